"""Questions to people that are open in a child run: a repair that goes past them takes what it takes to go past the question itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.sagas.acting import BROKEN, Stage, decide, run, status, step
from standfast import Actor, ForbiddenError, Run, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

REPAIR = frozenset({"execution:read", "execution:repair"})
REX = Actor(id="rex", capabilities=REPAIR)
OLGA = Actor(id="olga", capabilities=REPAIR | {"execution:override"})
WHY = "ticket 7"
OVERRIDE = "execution:override"

Act = Callable[[ManualEngine, Run[object]], None]


def skip(engine: ManualEngine, saga: Run[object]) -> None:
    """Skip the call."""
    saga.skip(step(engine, saga.id, "sub"), reason=WHY)


def complete(engine: ManualEngine, saga: Run[object]) -> None:
    """End the call with an answer that the child never gave."""
    saga.complete_step(step(engine, saga.id, "sub"), {"approved": True}, reason=WHY)


def paying(engine: ManualEngine, stage: Stage, *, depth: int = 1, detached: bool = False, dlq: bool = False) -> None:
    """A payment behind an approval that is asked for in a child, so many runs below."""
    engine.register(Saga("level-0").human("approve", role="boss").build())
    for level in range(1, depth):
        engine.register(Saga(f"level-{level}").call("sub", f"level-{level - 1}").build())
    top = Saga("payment", dlq=dlq).call("sub", f"level-{depth - 1}", detached=detached)
    engine.register(top.step("pay", stage.does("pay")).build())


def descendant(engine: ManualEngine, instance: InstanceId, depth: int) -> InstanceId:
    """The run so many levels below."""
    for _ in range(depth):
        (found,) = engine.runs.list(parent=instance).items
        instance = found.id
    return instance


@pytest.mark.parametrize("act", [skip, complete])
@pytest.mark.parametrize(("depth", "detached"), [(1, False), (1, True), (3, False)])
def test_nobody_goes_past_people_who_are_asked_in_a_child_by_repairing_the_call(
    place: Place, act: Act, depth: int, *, detached: bool
) -> None:
    """To skip or complete a call takes `execution:override` while people are asked below it, at any depth, detached or not."""
    stage, engine = Stage(), place.engine()
    paying(engine, stage, depth=depth, detached=detached)
    instance = run(engine, "payment")
    with pytest.raises(ForbiddenError, match=OVERRIDE):
        act(engine, engine.acting(REX).run(instance))
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("running", [])
    assert len(engine.tasks.list()) == 1
    act(engine, engine.acting(OLGA).run(instance))
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["pay"])


@pytest.mark.parametrize("act", [skip, complete])
def test_people_whom_a_child_will_ask_are_not_avoided_by_being_quick(place: Place, act: Act) -> None:
    """A call whose child has yet to ask people is not skipped or completed by a repair alone either."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("level-0").wait("pause", 3600).human("approve", role="boss").build())
    engine.register(Saga("payment").call("sub", "level-0").step("pay", stage.does("pay")).build())
    instance = run(engine, "payment")
    with pytest.raises(ForbiddenError, match=OVERRIDE):
        act(engine, engine.acting(REX).run(instance))
    engine.drain()
    assert stage.calls == []


@pytest.mark.parametrize("act", [skip, complete])
def test_a_child_that_ended_without_its_people_is_not_replaced_by_a_repair(place: Place, act: Act) -> None:
    """A call that gave up because its child was stopped before people decided takes `execution:override` too."""
    stage, engine = Stage(), place.engine()
    paying(engine, stage, dlq=True)
    instance = run(engine, "payment")
    engine.run(descendant(engine, instance, 1)).abort("stopped")
    engine.drain()
    assert status(engine, instance) == "dlq"
    with pytest.raises(ForbiddenError, match=OVERRIDE):
        act(engine, engine.acting(REX).run(instance))
    engine.drain()
    assert stage.calls == []
    engine.acting(REX).run(instance).retry(step(engine, instance, "sub"), reason=WHY)
    engine.drain()
    assert len(engine.tasks.list()) == 1  # A new child asks again, so a retry takes no more than a repair.


@pytest.mark.parametrize("how", ["cancel", "abort", "fail"])
@pytest.mark.parametrize("depth", [1, 2])
def test_nobody_goes_past_people_by_ending_the_child_that_asks_them(place: Place, how: str, depth: int) -> None:
    """To end a child whose question is open, so that its parent goes on without the answer, takes `execution:override`."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("level-0").human("approve", role="boss").build())
    engine.register(Saga("level-1").call("sub", "level-0").build())
    way = Saga("payment").call(
        "sub", f"level-{depth - 1}", on_error=lambda branch: branch.step("pay", stage.does("pay"))
    )
    engine.register(way.build())
    instance = run(engine, "payment")
    child = descendant(engine, instance, 1)

    reply = getattr(engine.acting(REX).futures.run(child), how)(WHY)
    engine.drain()
    with pytest.raises(ForbiddenError, match=OVERRIDE):
        reply.result(timeout=0)
    assert (status(engine, child), stage.calls) == ("running", [])
    getattr(engine.acting(OLGA).futures.run(child), how)(WHY)
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["pay"])


def test_a_whole_run_with_open_questions_is_cancelled_as_before(place: Place) -> None:
    """Nothing goes on without the answer when the parent itself is cancelled, so that takes no more than it did."""
    stage, engine = Stage(), place.engine()
    paying(engine, stage, depth=2)
    instance = run(engine, "payment")
    engine.acting(REX).futures.run(instance).cancel("not wanted")
    engine.drain()
    assert (status(engine, instance), status(engine, descendant(engine, instance, 2))) == ("cancelled", "cancelled")


def test_a_branch_whose_child_asks_people_is_not_cancelled_by_a_repair(place: Place) -> None:
    """To cancel a branch takes `execution:override` if people are asked in a run that it called, or would call."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("level-0").human("approve", role="boss").build())
    forked = Saga("payment").fork(
        "both",
        lambda branch: branch.call("sub", "level-0"),
        lambda branch: branch.wait_for("word", "go").call("then", "level-0"),
        lambda branch: branch.wait_for("other", "stop"),
    )
    engine.register(forked.join("all").step("pay", stage.does("pay")).build())
    instance = run(engine, "payment")
    tokens = {each.name: each.token for each in engine.run(instance).steps() if each.status == "running"}
    for name in ("sub", "word", "other"):  # The last one waits for the world, which decides too.
        with pytest.raises(ForbiddenError, match=OVERRIDE):
            engine.acting(REX).run(instance).cancel_branch(tokens[name], reason=WHY)
    engine.acting(OLGA).run(instance).cancel_branch(tokens["other"], reason=WHY)
    engine.acting(OLGA).run(instance).cancel_branch(tokens["sub"], reason=WHY)


@pytest.mark.parametrize("act", [skip, complete])
def test_what_people_have_answered_in_a_child_is_not_dropped_by_a_repair(place: Place, act: Act) -> None:
    """A call whose child has its answers is gone past with `execution:override` alone: it may have been a no."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("level-0").human("approve", role="boss").wait("pause", 3600).build())
    engine.register(Saga("payment").call("sub", "level-0").step("pay", stage.does("pay")).build())
    instance = run(engine, "payment")
    decide(engine, descendant(engine, instance, 1), "approve", role="boss")
    engine.drain()
    with pytest.raises(ForbiddenError, match=OVERRIDE):
        act(engine, engine.acting(REX).run(instance))
    act(engine, engine.acting(OLGA).run(instance))
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["pay"])


def test_advice_names_what_it_takes_to_go_past_people_below(place: Place) -> None:
    """`why` says of each remedy what it takes: `execution:override` where people are passed over, `execution:repair` elsewhere."""
    stage, engine = Stage(), place.engine()
    paying(engine, stage, dlq=True)
    instance = run(engine, "payment")
    engine.run(descendant(engine, instance, 1)).abort("stopped")
    engine.drain()
    [reason] = engine.run(instance).why().reasons
    found = {each.call: each.capability for each in reason.remedies}
    assert found["run.retry"] == "execution:repair"
    assert (found["run.skip"], found["run.complete_step"]) == (OVERRIDE, OVERRIDE)


def test_advice_about_a_failed_call_without_people_stays_as_it_was(place: Place) -> None:
    """Where a child asks nobody, skipping its call is advised to those who repair."""
    stage, engine = Stage(), place.engine()
    stage.does("charge", BROKEN)
    engine.register(Saga("level-0").step("charge", stage.does("charge"), attempts=1).build())
    engine.register(Saga("payment", dlq=True).call("sub", "level-0").build())
    [reason] = engine.run(run(engine, "payment")).why().reasons
    assert {each.capability for each in reason.remedies if each.call == "run.skip"} == {"execution:repair"}


@pytest.mark.parametrize("act", [skip, complete])
def test_the_audit_names_who_went_past_people_in_a_child_and_why(place: Place, act: Act) -> None:
    """The audits of the parent and of every run below it name the operator and the reason."""
    stage, engine = Stage(), place.engine()
    paying(engine, stage, depth=2)
    instance = run(engine, "payment")
    act(engine, engine.acting(OLGA).run(instance))
    engine.drain()
    [entry] = [each for each in engine.run(instance).history() if each.event_type == "step_repaired"]
    assert (entry.data["actor"], entry.data["reason"]) == ("olga", WHY)
    for depth in (1, 2):
        below = engine.run(descendant(engine, instance, depth))
        assert below.describe().status == "cancelled"
        [entry] = [each for each in below.history() if each.event_type == "workflow_cancelled"]
        assert "olga" in str(entry.data["reason"])
        assert WHY in str(entry.data["reason"])


def decided_below(engine: ManualEngine) -> InstanceId:
    """A payment that waits behind an approval which was given in a child."""
    engine.register(Saga("level-0").human("approve", role="boss").build())
    engine.register(Saga("payment").call("sub", "level-0").wait_for("word", "go").build())
    instance = run(engine, "payment", {"amount": 5})
    decide(engine, descendant(engine, instance, 1), "approve", role="boss")
    engine.drain()
    return instance


def test_data_that_people_decided_on_in_a_child_is_changed_by_overriding_them(place: Place) -> None:
    """Behind a call whose child asks people, other data takes `execution:override`, as behind a question of the run itself."""
    engine = place.engine()
    instance = decided_below(engine)
    with pytest.raises(ForbiddenError, match=OVERRIDE):
        engine.acting(REX).run(instance).change_data({"amount": 500}, reason=WHY)
    engine.acting(OLGA).run(instance).change_data({"amount": 500}, reason=WHY)


def test_a_fork_with_other_data_asks_the_people_of_a_child_again(place: Place) -> None:
    """A fork with other data begins before the call whose child asked, and starts it again, unless the actor may override."""
    engine = place.engine()
    instance = decided_below(engine)
    at = engine.run(instance).history()[-1].sequence
    assert engine.run(instance).fork_preview(at).approvals == ["sub"]
    again = engine.acting(REX).run(instance).fork(at, reason=WHY, data={"amount": 500})
    engine.drain()
    assert len(engine.tasks.list()) == 1
    assert again.describe().context["amount"] == 500
    taken = engine.acting(OLGA).run(instance).fork(at, reason=WHY, data={"amount": 500})
    engine.drain()
    assert [each.name for each in taken.steps() if each.status == "running"] == ["word"]
    assert len(engine.tasks.list()) == 1


def test_a_run_that_ends_with_a_branch_says_who_cancelled_that(place: Place) -> None:
    """The run that the branch has called ends with it, and its history names the operator and the reason."""
    engine = place.engine()
    engine.register(Saga("level-0").human("approve", role="boss").build())
    forked = Saga("payment").fork(
        "both", lambda branch: branch.call("sub", "level-0"), lambda branch: branch.wait_for("other", "stop")
    )
    engine.register(forked.join("all").build())
    instance = run(engine, "payment")
    (token,) = (each.token for each in engine.run(instance).steps() if each.name == "sub")
    child = descendant(engine, instance, 1)
    engine.acting(OLGA).run(instance).cancel_branch(token, reason=WHY)
    engine.drain()
    assert status(engine, child) == "cancelled"
    (ended,) = [each for each in engine.run(child).history() if each.event_type == "workflow_cancelled"]
    assert ended.data["reason"] == f"the workflow that started it was stopped at 'sub' by 'olga': {WHY}"
