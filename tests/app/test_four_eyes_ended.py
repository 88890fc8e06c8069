"""Whoever has voted on a question has decided it, however it ended; only a vote that is void or withdrawn keeps nobody out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from app.processes.acting import ends, process, registered
from standfast import Actor, Branch, Escalation, RejectedError, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

Flow = TypeVar("Flow", Saga, Branch)

FIN = frozenset({"fin"})
ANN, BOB, CAT = (Actor(id=name, roles=FIN) for name in ("ann", "bob", "cat"))
OLGA = Actor(id="olga", capabilities=frozenset({"execution:*", "task:*"}))
TWO = ["user:ann", "user:bob"]


def code(call: Any, *given: Any, **named: Any) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


def task(engine: ManualEngine, run: InstanceId, name: str) -> str:
    """The open question of a name."""
    return next(each.step_id for each in engine.tasks.list() if each.instance == run and each.name == name)


def release(saga: Flow, **options: Any) -> Flow:
    """Asks finance, but those who have decided the check."""
    return saga.human("release", ask="role:fin", **(options or {"distinct_from": "check"}))


def by_time() -> Any:
    """The time of the check is over."""
    return Saga("pay").human("check", ask=TWO, agree=2, timeout=3600, on_timeout=release)


def by_rung() -> Any:
    """The ladder of the check ends it by itself."""
    ladder = [Escalation(3600, outcome="confirmed")]
    return release(Saga("pay").human("check", ask=TWO, agree=2, escalate=ladder))


def by_chain_of_all() -> Any:
    """The same, with a question that is apart from all others."""
    ladder = [Escalation(3600, outcome="confirmed")]
    return release(Saga("pay").human("check", ask=TWO, agree=2, escalate=ladder), distinct_approvers=True)


def by_branch() -> Any:
    """The branch of the check is cancelled."""
    saga = Saga("pay").fork(
        "both", lambda b: b.human("check", ask=TWO, agree=2), lambda b: b.wait_for("other", signal="go")
    )
    return release(saga.join("met"))


def late(engine: ManualEngine, run: InstanceId) -> None:
    """An hour and a bit."""
    del run
    engine.advance(minutes=61)


def cancelled(engine: ManualEngine, run: InstanceId) -> None:
    """An operator cancels the branch, and the other one is met."""
    step = next(each for each in engine.run(run).steps() if each.name == "check")
    engine.acting(OLGA).run(run).cancel_branch(step.token, reason="not needed")
    engine.run(run).signal("go")
    engine.drain()


def skipped(engine: ManualEngine, run: InstanceId) -> None:
    """An operator goes past it."""
    step = next(each for each in engine.run(run).steps() if each.name == "check")
    engine.acting(OLGA).run(run).skip(step.number, reason="enough", outcome="confirmed")
    engine.drain()


WAYS: dict[str, tuple[Callable[[], Any], Callable[[ManualEngine, InstanceId], None]]] = {
    "its time was over": (by_time, late),
    "a rung ended it": (by_rung, late),
    "a rung ended it, apart from all": (by_chain_of_all, late),
    "its branch was cancelled": (by_branch, cancelled),
    "it was skipped": (by_rung, skipped),
}


@pytest.mark.row("E-687")
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("is_withdrawn", [False, True], ids=["voted", "withdrawn"])
def test_a_vote_counts_however_its_question_ended(place: Place, how: str, *, is_withdrawn: bool) -> None:
    """Ann has approved the check, which ended by something else: the release is for another one. A vote that she took back is none."""
    made, ended = WAYS[how]
    engine = place.engine()
    saga = made().build()
    engine.register(saga)
    run = engine.start(saga).id
    engine.drain()
    check = task(engine, run, "check")
    engine.acting(ANN).tasks.approve(check)
    if is_withdrawn:
        engine.acting(ANN).tasks.withdraw_decision(check)
    ended(engine, run)
    second = task(engine, run, "release")
    ann = engine.acting(ANN).tasks
    assert ("ann" in engine.tasks.get(second).kept_out) is not is_withdrawn
    assert len(ann.list(mine=True)) == int(is_withdrawn)
    if is_withdrawn:
        ann.approve(second)
    else:
        assert [code(ann.approve, second), code(ann.claim, second)] == ["not_distinct"] * 2
        engine.acting(BOB).tasks.approve(second)
    engine.drain()
    assert engine.run(run).describe().status == "completed"
    assert engine.run(run).verify().is_sound


@pytest.mark.row("E-687")
def test_a_vote_on_other_data_is_void(place: Place) -> None:
    """The data was changed and the question is put anew: what was said of the data before keeps nobody out."""
    engine = place.engine()
    saga = release(Saga("pay").human("check", ask=TWO, agree=2)).build()
    engine.register(saga)
    run = engine.start(saga, {"amount": 5}).id
    engine.drain()
    engine.acting(ANN).tasks.approve(task(engine, run, "check"))
    engine.acting(OLGA).run(run).change_data({"amount": 6}, reason="a slip")
    engine.drain()
    check = task(engine, run, "check")
    for name in ("user:cat", "user:bob"):
        if name == "user:cat":
            engine.acting(OLGA).tasks.reassign(check, name, who="ann")
        engine.acting(name.removeprefix("user:")).tasks.approve(check)
    engine.drain()
    second = task(engine, run, "release")
    assert engine.tasks.get(second).kept_out == ["bob", "cat"]
    engine.acting(ANN).tasks.approve(second)
    assert engine.run(run).describe().status == "completed"


@pytest.mark.row("E-687", "P-044")
def test_a_vote_in_a_process_counts_however_its_step_was_left(place: Place) -> None:
    """The step expired with one of two answers; the next one is for somebody else."""
    engine = place.engine()
    check = {
        "id": "check",
        "type": "approval",
        "assignees": [{"user": "ann"}, {"user": "bob"}],
        "agree": "all",
        "timeout": "1h",
    }
    last = {"id": "release", "type": "approval", "assignee": {"role": "fin"}, "distinct_from": ["check"]}
    ways = "check approved release,check rejected no,check timeout release,release approved done,release rejected no"
    registered(engine, process(check, last, *ends("done", "no"), ways=ways))
    instance = engine.processes.start("w", {}).id
    engine.drain()
    engine.acting(ANN).processes.advance(instance, "approved")
    engine.advance(minutes=61)
    assert engine.processes.get(instance).instance.current_step == "release"
    assert code(engine.acting(ANN).processes.advance, instance, "approved") == "FORBIDDEN"
    assert not any(each.is_allowed for each in engine.acting(ANN).processes.get(instance).choices)
    engine.acting(CAT).processes.advance(instance, "approved")
    assert engine.processes.get(instance).instance.status == "completed"
