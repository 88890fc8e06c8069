"""Those who act on a question at the same moment: one is taken, the other is told why not, and rows and history show which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import pytest

from app.sagas.acting import Stage, history, person
from standfast import Calls, Engine, Escalation, HumanTask, Saga, SagaDefinition
from standfast.app.api.sync import Run
from standfast.engine.common.clock import ManualClock
from standfast.testing.manual import START
from support.engines import Live
from support.inside import clockwork_of
from support.racing import TAKEN, TIMES, Group, begun, endings, raced, rivals

ANN, BOB, EVE = person("ann"), person("bob"), person("eve")
FAY, GUS = person("fay", "finance"), person("gus", "finance")
HOUR = timedelta(hours=1)


def asking(stage: Stage, **options: Any) -> SagaDefinition:
    """A question to a role, of whose holders the first decides, and a step behind it."""
    options = {"ask": "role:finance", **options}
    return Saga("spend").human("ok", **options).step("pay", stage.does("pay")).build()


def question(run: Run[object]) -> HumanTask:
    """The one question of a run."""
    (task,) = run.tasks()
    return task


def told(engine: Calls, run: Run[object], *types: str) -> list[str]:
    """What happened to a run, as far as it is of these types."""
    return [each.event_type for each in history(engine, run.id, *types)]


def as_(engine: Calls, actor: object) -> Any:
    """The tasks of somebody."""
    return engine.acting(actor).tasks  # type: ignore[arg-type]


class Rival(NamedTuple):
    """What somebody does while another one decides."""

    call: Callable[[Engine, Run[object], HumanTask], object]
    event: str
    """What the history tells once it is taken."""
    code: str
    """What it is refused with once the question is decided."""
    too_late: str
    """What the decision is refused with once this is taken."""
    end: str
    """How the run ends then; if people have to go on deciding, GUS and EVE do."""


RIVALS = {
    "decision": Rival(
        lambda engine, _, task: as_(engine, GUS).reject(task),
        "rejected",
        "already_decided",
        "already_decided",
        "aborted",
    ),
    "withdrawal": Rival(
        lambda engine, _, task: as_(engine, "rita").withdraw(task, "no longer"),
        "step_answered",
        "not_waiting",
        "already_decided",
        "aborted",
    ),
    "delegation": Rival(
        lambda engine, _, task: as_(engine, GUS).delegate(task, "eve"),
        "task_delegated",
        "not_waiting",
        "not_allowed",
        "completed",
    ),
    "claim": Rival(
        lambda engine, _, task: as_(engine, GUS).claim(task), "task_claimed", "not_waiting", "claimed", "completed"
    ),
    "reassignment": Rival(
        lambda engine, _, task: engine.tasks.reassign(task, "eve"),
        "task_reassigned",
        "not_waiting",
        "not_allowed",
        "completed",
    ),
}
ANSWERS = ("approved", *(each.event for each in RIVALS.values()))


@pytest.mark.row("F-147")
@pytest.mark.parametrize(("name", "processes"), [("decision", 1), *((name, 2) for name in RIVALS)])
def test_a_decision_and_what_another_one_does_have_one_winner(live: Live, name: str, processes: int) -> None:
    """One is taken and the other refused with a reason; the history has one of them, and the step behind is called once or not at all."""
    stage, rival = Stage(), RIVALS[name]
    saga = asking(stage)
    one, two = rivals(live, saga, processes=processes)
    runs = begun(one.acting("rita"), saga)  # type: ignore[arg-type]
    tasks = [question(each) for each in runs]
    outcomes = raced(
        (partial(as_(one, FAY).approve, task), partial(rival.call, two, run, task))
        for run, task in zip(runs, tasks, strict=True)
    )
    one.start_worker()
    for run, task, (decision, other) in zip(runs, tasks, outcomes, strict=True):
        if decision == TAKEN:
            assert (other, told(one, run, *ANSWERS)) == (rival.code, ["approved"])
            continue
        assert (decision, other) == (rival.too_late, TAKEN)
        assert told(one, run, *ANSWERS) == [rival.event]
        if rival.end == "completed":
            as_(two, GUS if name == "claim" else EVE).approve(task)
    approved = [outcome[0] == TAKEN for outcome in outcomes]
    assert endings(one, runs) == ["completed" if each else rival.end for each in approved]
    for run, is_approved in zip(runs, approved, strict=True):
        assert question(run).decided_by in ({"fay"} if is_approved else {"gus", "eve", "rita"})
    assert stage.count("pay") == sum(each or rival.end == "completed" for each in approved)


def last(**options: Any) -> SagaDefinition:
    """A question behind which nothing comes."""
    return Saga("last").human("ok", **options).build()


def test_a_decision_and_a_cancellation_have_one_winner(live: Live) -> None:
    """A run that a decision ends is not cancelled, and one that is cancelled takes no decision."""
    saga = last(ask="role:finance")
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    outcomes = raced(
        (partial(as_(one, FAY).approve, question(run)), partial(two.run(run.id).cancel, "no")) for run in runs
    )
    won = ["completed" if outcome == [TAKEN, "already_terminal"] else "cancelled" for outcome in outcomes]
    assert [each for each in outcomes if TAKEN not in each or each.count(TAKEN) > 1] == []
    assert endings(one.start_worker(), runs) == won
    for run, end in zip(runs, won, strict=True):
        ends = {"completed": ["approved"], "cancelled": ["workflow_cancelled"]}
        assert told(one, run, "approved", "workflow_cancelled") == ends[end]
        assert question(run).status == {"completed": "decided", "cancelled": "cancelled"}[end]


def test_the_same_decision_twice_is_one(live: Live) -> None:
    """The same person decides the same on two screens: neither is refused, and it counts once; if not the same, one is a conflict."""
    saga = last(ask=["user:ann", "user:bob"], agree="all")
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    outcomes = raced(
        (partial(as_(one, ANN).approve, task), partial(as_(two, ANN).decide, task, second))
        for number, task in enumerate(map(question, runs))
        for second in [("confirmed", "rejected")[number % 2]]
    )
    for number, (run, outcome) in enumerate(zip(runs, outcomes, strict=True)):
        assert sorted(outcome) == ["already_decided" if number % 2 else TAKEN, TAKEN]
        decided = one.tasks.get(question(run)).decisions
        assert [each.decided_by for each in decided] == ["ann"]
        assert decided[0].decision == ("confirmed" if outcome[0] == TAKEN else "rejected")
        if decided[0].decision == "confirmed":
            as_(two, BOB).approve(question(run))
    ends = ["completed" if outcome[0] == TAKEN else "aborted" for outcome in outcomes]
    assert endings(one, runs) == ends


def test_the_last_two_votes_end_a_question_once(live: Live) -> None:
    """Where all have to agree both are taken, the second of them ends the question, and the step behind is called once."""
    stage = Stage()
    saga = asking(stage, ask=["user:ann", "user:bob", "user:eve"], agree=2)
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    outcomes = raced(
        (partial(as_(one, ANN).approve, task), partial(as_(two, BOB).approve, task)) for task in map(question, runs)
    )
    assert outcomes == [[TAKEN, TAKEN]] * TIMES
    assert endings(one.start_worker(), runs) == ["completed"] * TIMES
    for run in runs:
        assert told(one, run, "task_decided", "approved") == ["task_decided", "task_decided", "approved"]
        found = one.tasks.get(question(run))
        assert [(each.is_applied, each.is_withdrawn) for each in found.decisions] == [(True, False)] * 2
        assert [each.is_open for each in found.people] == [False] * 3
    assert stage.count("pay") == TIMES


def test_a_decision_is_withdrawn_before_it_is_used_or_not_at_all(live: Live) -> None:
    """One takes a decision back while another gives the last one: it counts for both, or the question stays open."""
    saga = last(ask=["user:ann", "user:bob"], agree="all")
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    tasks = [question(each) for each in runs]
    for task in tasks:
        as_(one, ANN).approve(task)
    outcomes = raced(
        (partial(as_(one, ANN).withdraw_decision, task), partial(as_(two, BOB).approve, task)) for task in tasks
    )
    for run, task, (withdrawn, decided) in zip(runs, tasks, outcomes, strict=True):
        assert decided == TAKEN
        assert withdrawn in {TAKEN, "already_terminal"}
        first, second = one.tasks.get(task).decisions
        assert (first.is_withdrawn, second.is_withdrawn) == (withdrawn == TAKEN, False)
        assert question(run).status == ("open" if withdrawn == TAKEN else "decided")
        assert told(one, run, "task_decision_withdrawn", "approved") == [
            "task_decision_withdrawn" if withdrawn == TAKEN else "approved"
        ]
        if withdrawn == TAKEN:
            as_(one, ANN).approve(task)
    assert endings(one, runs) == ["completed"] * TIMES


def test_of_two_who_claim_one_has_it(live: Live) -> None:
    """The other one is told who decides, and cannot."""
    saga = last(ask="role:finance")
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    outcomes = raced(
        (partial(as_(one, FAY).claim, task), partial(as_(two, GUS).claim, task)) for task in map(question, runs)
    )
    for run, outcome in zip(runs, outcomes, strict=True):
        assert sorted(outcome) == ["claimed", TAKEN]
        assert question(run).claimed_by == ("fay" if outcome[0] == TAKEN else "gus")
        assert len(told(one, run, "task_claimed")) == 1
        as_(one, FAY if outcome[0] == TAKEN else GUS).approve(question(run))
    assert endings(one, runs) == ["completed"] * TIMES


EXPIRIES: dict[str, dict[str, Any]] = {
    "timeout": {"timeout": HOUR},
    "escalation": {"escalate": Escalation(HOUR, outcome="rejected")},
}


@pytest.mark.row("R-141")
@pytest.mark.parametrize("name", EXPIRIES)
def test_a_decision_comes_in_time_or_not_at_all(live: Live, name: str) -> None:
    """It is given when the time of the question is over: it is taken and the time does nothing, or it is refused and changes nothing."""
    clock, saga = ManualClock(START), last(ask="role:finance", **EXPIRIES[name])
    one, two = (live.engine(clock=clock).register(saga) for _ in range(2))
    runs: list[Run[object]] = []

    def groups() -> Iterator[Group]:
        for _ in range(TIMES):
            runs.append(one.start(saga))
            clock.move(HOUR)
            yield partial(as_(one, FAY).approve, question(runs[-1])), clockwork_of(two).fire

    outcomes = raced(groups())
    ends = endings(one, runs)
    late = {"timeout": "timeout", "escalation": "task_escalated"}[name]
    for run, (decision, _), end in zip(runs, outcomes, ends, strict=True):
        if decision == TAKEN:
            assert (end, told(one, run, "approved", late)) == ("completed", ["approved"])
        else:
            assert (decision, told(one, run, "approved", late)) == ("expired", [late])
            assert (end, question(run).status) == {
                "timeout": ("failed", "expired"),
                "escalation": ("aborted", "expired"),
            }[name]
    _, timers = one.service.store.reader("default").work(runs[-1].id)
    assert timers == []
