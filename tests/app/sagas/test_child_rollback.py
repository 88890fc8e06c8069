"""A workflow that another one calls is a part of it: the rollback of the one undoes the other, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest

from app.sagas.acting import BROKEN, Stage, decide, history, run, status, statuses, step
from app.sagas.test_children import child, child_of
from standfast import Actor, ConflictError, Definition, RejectedError, RequestContext, Saga, SagaDefinition, Settings
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands.run_commands import UndoWorkflow
from standfast.testing import CrashScenario, ManualEngine
from support.crashing import NewStore, tried
from support.engines import Place
from support.inside import clockwork_of, desk_of

Build = Callable[[Saga], Saga]


def as_it_is(saga: Saga) -> Saga:
    """Nothing besides."""
    return saga


def calling(stage: Stage, build: Build = as_it_is, **options: object) -> SagaDefinition:
    """A step that can be undone, the child, and a step that fails."""
    saga = Saga("parent").step("order", stage.does("order")).on_failure("revoke", stage.does("revoke"))
    saga = build(saga.call("fulfil", "child", **options))  # type: ignore[arg-type]
    return saga.then("bill", stage.does("bill", BROKEN), attempts=1).build()


def failed(
    place: Place, stage: Stage, below: Definition | None = None, **options: object
) -> tuple[ManualEngine, InstanceId]:
    """A parent that has failed behind the child."""
    engine = place.engine().register(below or child(stage)).register(calling(stage, as_it_is, **options))
    return engine, run(engine, "parent")


def reasons(engine: ManualEngine, *runs: InstanceId) -> list[tuple[str, str]]:
    """Status and reason of runs."""
    return [(each.status, each.reason) for each in (engine.run(one).describe() for one in runs)]


# -- what is undone


def test_a_child_that_completed_is_undone_with_its_parent(place: Place) -> None:
    """In its turn on the way back, before the steps that came before it; then it counts as cancelled, and the step as rolled back."""
    stage = Stage()
    engine, instance = failed(place, stage)
    assert stage.calls == ["order", "pick", "pack", "bill", "unpick", "revoke"]
    assert reasons(engine, instance, child_of(engine, instance)) == [("failed", ""), ("cancelled", "")]
    assert statuses(engine, instance) == {"order": "rolled_back", "fulfil": "rolled_back", "bill": "rolled_back"}
    assert engine.dead_letters.list() == []
    told = [each.event_type for each in history(engine, child_of(engine, instance))]
    assert told[told.index("workflow_completed") + 1] == "cancellation_started"
    assert (told[-1], told.count("workflow_cancelled")) == ("workflow_cancelled", 1)


def test_a_child_that_completed_is_undone_when_its_parent_is_cancelled(place: Place) -> None:
    """A cancellation undoes what was done, and a child that has completed was."""
    stage = Stage()
    saga = Saga("parent").call("fulfil", "child").human("ask").build()
    engine = place.engine().register(child(stage)).register(saga)
    instance = run(engine, "parent")
    engine.futures.run(instance).cancel("no more")
    engine.drain()
    assert stage.calls == ["pick", "pack", "unpick"]
    assert [status(engine, each) for each in (instance, child_of(engine, instance))] == ["cancelled", "cancelled"]


def test_an_abort_undoes_no_child(place: Place) -> None:
    """Nothing is undone, in the parent or in what is a part of it."""
    stage = Stage()
    engine = place.engine().register(child(stage)).register(Saga("parent").call("fulfil", "child").human("ask").build())
    instance = run(engine, "parent")
    engine.futures.run(instance).abort("now")
    engine.drain()
    assert (stage.calls, status(engine, child_of(engine, instance))) == (["pick", "pack"], "completed")


@pytest.mark.parametrize("how", ["fails", "cancelled"])
def test_a_child_that_has_undone_itself_is_not_undone_again(place: Place, how: str) -> None:
    """The compensation of a call is for a child that stands: one that has failed or was cancelled leaves nothing to undo."""
    stage = Stage()
    if how == "fails":
        stage.does("pack", BROKEN)
    below = child(stage) if how == "fails" else waiting(stage)
    engine = place.engine().register(below)
    engine.register(calling(stage, lambda saga: saga.on_failure("send back", stage.does("send back"))))
    instance = run(engine, "parent")
    if how == "cancelled":
        engine.futures.run(child_of(engine, instance)).cancel("not this one")
        engine.drain()
    assert (stage.count("unpick"), stage.count("send back"), stage.count("revoke")) == (1, 0, 1)
    assert statuses(engine, instance)["fulfil"] == "rolled_back"


def test_a_child_that_was_aborted_is_undone_by_the_compensation_of_its_call(place: Place) -> None:
    """It has undone nothing, so that whoever wrote a compensation for the call has it called."""
    stage = Stage()
    engine = place.engine().register(waiting(stage))
    engine.register(calling(stage, lambda saga: saga.on_failure("send back", stage.does("send back"))))
    instance = run(engine, "parent")
    engine.futures.run(child_of(engine, instance)).abort("now")
    engine.drain()
    assert stage.calls == ["order", "pick", "send back", "revoke"]


def waiting(stage: Stage) -> SagaDefinition:
    """A child that waits for a person after its first step."""
    return (
        Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick")).human("ask").build()
    )


def test_children_of_children_are_undone(place: Place) -> None:
    """The rollback goes down to the last one, and comes back in the order in which things were done, reversed."""
    stage = Stage()
    middle = Saga("child").step("m", stage.does("m")).on_failure("undo m", stage.does("undo m"))
    low = Saga("low").step("l", stage.does("l")).on_failure("undo l", stage.does("undo l")).build()
    engine = place.engine().register(low).register(middle.call("down", "low").build()).register(calling(stage))
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    assert stage.calls == ["order", "m", "l", "bill", "undo l", "undo m", "revoke"]
    assert [status(engine, each) for each in (below, child_of(engine, below))] == ["cancelled", "cancelled"]


def test_a_child_that_did_nothing_to_undo_stays_completed(place: Place) -> None:
    """What it did stands, like a step without a compensation; nobody asks it."""
    stage = Stage()
    engine, instance = failed(place, stage, Saga("child").step("pick", stage.does("pick")).build())
    assert stage.calls == ["order", "pick", "bill", "revoke"]
    assert (status(engine, instance), status(engine, child_of(engine, instance))) == ("failed", "completed")


def test_children_of_branches_are_undone(place: Place) -> None:
    """Each of a list of items has its own, and all of them are undone."""
    stage = Stage()
    saga = (
        Saga("parent")
        .for_each("all", "items", lambda body: body.call("one", "child"))
        .step("bill", stage.does("bill", BROKEN), attempts=1)
        .build()
    )
    engine = place.engine().register(child(stage)).register(saga)
    instance = run(engine, "parent", {"items": [1, 2, 3]})
    assert (status(engine, instance), stage.count("pick"), stage.count("unpick")) == ("failed", 3, 3)
    assert {each.status for each in engine.runs.list(parent=instance).items} == {"cancelled"}


def test_children_of_a_fork_are_undone_whether_they_have_completed_or_not(place: Place) -> None:
    """One branch fails: a child that has completed and one that still waits both undo what they did, before the parent's earlier steps."""
    stage = Stage()
    other = (
        Saga("other").step("fetch", stage.does("fetch")).on_failure("return", stage.does("return")).human("ask").build()
    )
    saga = (
        Saga("parent")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .fork(
            "both",
            lambda one: one.call("fulfil", "child"),
            lambda two: two.call("bring", "other"),
            lambda three: three.wait_for("go", "go").step("bill", stage.does("bill", BROKEN), attempts=1),
        )
        .join("joined")
        .build()
    )
    engine = place.engine().register(child(stage)).register(other).register(saga)
    instance = run(engine, "parent")
    engine.run(instance).signal("go")
    engine.drain()
    assert {each.definition: each.status for each in engine.runs.list(parent=instance).items} == {
        "child": "cancelled",
        "other": "cancelled",
    }
    assert (status(engine, instance), stage.calls[-1]) == ("failed", "revoke")
    assert [stage.count(name) for name in ("unpick", "return", "revoke")] == [1, 1, 1]


def test_a_child_is_undone_in_the_version_that_it_ran_in(place: Place) -> None:
    """A newer version has another compensation; what the child did is undone by its own."""
    stage = Stage()
    saga = (
        Saga("parent").call("fulfil", "child").wait_for("go", "go").step("bill", stage.does("bill", BROKEN), attempts=1)
    )
    engine = place.engine().register(child(stage)).register(saga.build())
    instance = run(engine, "parent")
    newer = Saga("child", 2).step("pick", stage.does("pick")).on_failure("put back", stage.does("put back")).build()
    engine.register(newer)
    engine.run(instance).signal("go")
    engine.drain()
    assert (stage.count("unpick"), stage.count("put back")) == (1, 0)
    assert status(engine, child_of(engine, instance)) == "cancelled"


def test_a_child_of_a_branch_that_was_not_needed_is_undone_while_the_run_goes_on(place: Place) -> None:
    """It has completed before the others won: its branch is dropped, and it with it."""
    stage = Stage()
    saga = (
        Saga("parent")
        .fork(
            "race",
            lambda slow: slow.call("fulfil", "child").wait_for("never", "never"),
            lambda quick: quick.wait_for("go", "go"),
        )
        .join("first", "any")
        .step("ship", stage.does("ship"))
        .build()
    )
    engine = place.engine().register(child(stage)).register(saga)
    instance = run(engine, "parent")
    engine.run(instance).signal("go")
    engine.drain()
    assert (status(engine, instance), sorted(stage.calls)) == ("completed", ["pack", "pick", "ship", "unpick"])
    assert status(engine, child_of(engine, instance)) == "cancelled"


def test_moving_back_undoes_the_children_behind_the_save_point(place: Place) -> None:
    """The run goes on from the save point, and calls another child."""
    stage = Stage()
    saga = Saga("parent").save_point("here").call("fulfil", "child").human("ask").build()
    engine = place.engine().register(child(stage)).register(saga)
    instance = run(engine, "parent")
    engine.run(instance).move_back("here", reason="again")
    engine.drain()
    assert stage.calls == ["pick", "pack", "unpick", "pick", "pack"]
    assert sorted(each.status for each in engine.runs.list(parent=instance).items) == ["cancelled", "completed"]


def test_a_child_before_a_point_of_no_return_of_its_parent_stays(place: Place) -> None:
    """What the parent does not undo any more, it does not undo in its parts either."""
    stage = Stage()
    saga = (
        Saga("parent")
        .call("fulfil", "child")
        .point_of_no_return("sent")
        .step("bill", stage.does("bill", BROKEN), attempts=1)
    )
    engine = place.engine().register(child(stage)).register(saga.build())
    instance = run(engine, "parent")
    assert (status(engine, instance), stage.count("unpick")) == ("failed", 0)
    assert status(engine, child_of(engine, instance)) == "completed"


def test_an_answer_that_does_not_fit_leaves_no_child_behind(place: Place) -> None:
    """The child has completed, and its parent has no room for what it came to: the step has failed, and the child is undone."""
    stage = Stage()
    stage.does("order", {"note": "y" * 400})
    stage.does("pack", {"parcel": "x" * 400})
    engine = place.engine(Settings(max_payload_bytes=1_000)).register(child(stage)).register(calling(stage))
    instance = run(engine, "parent")
    assert (status(engine, instance), status(engine, child_of(engine, instance))) == ("failed", "cancelled")
    assert stage.calls == ["order", "pick", "pack", "unpick", "revoke"]


def test_a_fork_undoes_no_child_of_the_other_run(place: Place) -> None:
    """What the other run did is that one's own, its parts too."""
    stage = Stage()
    saga = Saga("parent").call("fulfil", "child").human("ask").step("bill", stage.does("bill", BROKEN), attempts=1)
    engine = place.engine().register(child(stage)).register(saga.build())
    instance = run(engine, "parent")
    forked = engine.run(instance).fork(history(engine, instance)[-1].sequence, reason="try").id
    engine.drain()
    decide(engine, forked, "ask")
    engine.drain()
    assert (status(engine, forked), stage.count("unpick")) == ("failed", 0)


# -- what cannot be undone


def beyond(stage: Stage) -> SagaDefinition:
    """A child that passes a point of no return."""
    saga = Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"))
    return saga.point_of_no_return("posted").step("pack", stage.does("pack")).build()


def test_a_child_past_its_point_of_no_return_is_an_incident(place: Place) -> None:
    """Nothing of it is undone: the way back of the parent halts, with a letter that says why, and an operator who has settled it lets it go on."""
    stage = Stage()
    engine, instance = failed(place, stage, beyond(stage))
    assert (stage.count("unpick"), stage.count("revoke")) == (0, 0)
    assert reasons(engine, instance) == [("failed", "compensation_failed")]
    assert status(engine, child_of(engine, instance)) == "completed"
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.name) == ("compensation", "fulfil")
    assert "has passed its point of no return, 'posted'" in letter.error
    with pytest.raises(RejectedError, match="undo by hand what it did, and skip step 2 of this workflow"):
        engine.dead_letters.retry_compensation(letter)
    assert "skip step 2" in engine.run(instance).describe().error
    engine.run(instance).skip(2, reason="sent back by hand")
    engine.drain()
    assert reasons(engine, instance) == [("failed", "")]
    assert (stage.count("revoke"), engine.dead_letters.list()) == (1, [])
    assert "compensation_waived" in [each.event_type for each in history(engine, instance)]
    assert engine.instances.verify(instance).is_sound


def test_a_point_of_no_return_counts_where_nothing_could_be_undone(place: Place) -> None:
    """A child that has said that there is no way back is an incident, also if none of its steps has a compensation."""
    stage = Stage()
    below = Saga("child").step("pick", stage.does("pick")).point_of_no_return("posted").build()
    engine, instance = failed(place, stage, below)
    assert reasons(engine, instance) == [("failed", "compensation_failed")]
    assert "its point of no return, 'posted'" in engine.dead_letters.list()[0].error


@pytest.mark.parametrize("names", [("posted",), ("before", "posted"), ("posted", "behind")])
def test_a_process_without_compensations_has_no_point_of_no_return(place: Place, names: tuple[str, ...]) -> None:
    """It is not gone back over and keeps no list of what it did, so that it never halts its parent, wherever its point lies."""
    stage = Stage()
    nodes = [g.Node(id=name, op=g.NoReturnOp() if name == "posted" else g.SavePointOp()) for name in names]
    edges = [g.Edge(source=one, target=other) for one, other in pairwise(names)]
    below = compile_graph(
        kind="process", name="child", version="1", entry=names[0], nodes=nodes, edges=edges, policies=g.Policies()
    )
    engine, instance = failed(place, stage, Definition(graph=below))
    assert reasons(engine, instance, child_of(engine, instance)) == [("failed", ""), ("completed", "")]
    assert (stage.count("revoke"), engine.dead_letters.list()) == (1, [])


def test_what_is_said_of_a_halted_parent_holds(place: Place) -> None:
    """`describe` and `why` name the child, why it cannot be undone, and the call that helps."""
    stage = Stage()
    engine, instance = failed(place, stage, beyond(stage))
    told = engine.run(instance).describe().error
    below = str(child_of(engine, instance))
    assert below in told
    assert "'posted'" in told
    why = engine.run(instance).why()
    assert below in why.words
    assert "run.skip" in {each.call for reason in why.reasons for each in reason.remedies}


def test_a_child_that_cannot_be_undone_halts_its_parent_until_it_is(place: Place) -> None:
    """Its own compensation is tried again, and both go on by themselves."""
    stage = Stage()
    stage.does("unpick", BROKEN, None)
    once = Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"), attempts=1).build()
    engine, instance = failed(place, stage, once)
    below = child_of(engine, instance)
    halted = ("failed", "compensation_failed")
    assert reasons(engine, instance, below) == [halted, halted]
    (letter,) = engine.dead_letters.list(instance=below)
    engine.dead_letters.retry_compensation(letter)
    engine.drain()
    assert reasons(engine, instance, below) == [("failed", ""), ("cancelled", "")]
    assert stage.calls == ["order", "pick", "bill", "unpick", "unpick", "revoke"]
    assert engine.dead_letters.list() == []


def test_a_child_whose_undoing_is_aborted_halts_its_parent(place: Place) -> None:
    """An operator has ended it at once: whether to go on without it is for an operator to say."""
    stage = Stage()
    delayed = Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"), start_after=60)
    engine, instance = failed(place, stage, delayed.build())
    below = child_of(engine, instance)
    assert (status(engine, instance), status(engine, below)) == ("running", "running")
    engine.futures.run(below).abort("leave it")
    engine.drain()
    assert reasons(engine, instance, below) == [("failed", "compensation_failed"), ("aborted", "")]
    engine.run(instance).skip(2, reason="settled")
    engine.drain()
    assert (reasons(engine, instance), stage.calls[-1]) == ([("failed", "")], "revoke")


def test_aborting_a_parent_ends_the_undoing_of_its_child(place: Place) -> None:
    """Everything ends at once."""
    stage = Stage()
    delayed = Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"), start_after=60)
    engine, instance = failed(place, stage, delayed.build())
    engine.futures.run(instance).abort("now")
    engine.advance(minutes=5)
    assert [status(engine, each) for each in (instance, child_of(engine, instance))] == ["aborted", "aborted"]
    assert (stage.count("unpick"), stage.count("revoke"), engine.dead_letters.list()) == (0, 0, [])


@pytest.mark.parametrize("who", ["parent", "child"])
def test_cancelling_while_a_child_is_undone_changes_nothing(place: Place, who: str) -> None:
    """Both are on their way back already: the cancellation is refused, and everything is undone once."""
    stage = Stage()
    delayed = Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"), start_after=60)
    engine, instance = failed(place, stage, delayed.build())
    below = child_of(engine, instance)
    with pytest.raises(RejectedError) as refusal:
        engine.futures.run(instance if who == "parent" else below).cancel("no more").result()
    assert refusal.value.reason == "rollback_in_progress"
    engine.advance(minutes=2)
    assert reasons(engine, instance, below) == [("failed", ""), ("cancelled", "")]
    assert (stage.count("unpick"), stage.count("revoke")) == (1, 1)


def test_a_parent_that_waits_for_its_child_to_be_undone_says_so(place: Place) -> None:
    """`why` names the child, and the run is not taken for stuck."""
    stage = Stage()
    delayed = Saga("child").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"), start_after=60)
    engine, instance = failed(place, stage, delayed.build())
    below = child_of(engine, instance)
    reason = next(each for each in engine.run(instance).why().reasons if each.kind == "child")
    assert (reason.kind, reason.waits_for) == ("child", str(below))
    assert "to undo what it did" in reason.words
    assert engine.runs.stuck().items == []
    engine.advance(minutes=2)
    assert status(engine, instance) == "failed"


# -- who may


def test_only_its_parent_can_have_a_completed_run_undone(place: Place) -> None:
    """The command names the run that started it, and nobody but the engine gives it."""
    stage = Stage()
    engine = place.engine().register(child(stage)).register(Saga("parent").call("fulfil", "child").human("ask").build())
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    right = UndoWorkflow(parent=str(instance), step=step(engine, instance, "fulfil").number)
    wrong = UndoWorkflow(parent=str(below), step=right.step)
    for who, command in ((desk_of(engine.acting("ann")), right), (desk_of(engine), wrong)):
        with pytest.raises(RejectedError, match="only the workflow that started"):
            who.command(who.address(instance=below), command, lambda _: None, may_create=False).result()
    assert (status(engine, below), stage.count("unpick")) == ("completed", 0)


# -- children of their own


def test_a_detached_child_is_left_alone(place: Place) -> None:
    """It is waited for, and no part: a rollback leaves what it did."""
    stage = Stage()
    engine, instance = failed(place, stage, detached=True)
    assert stage.calls == ["order", "pick", "pack", "bill", "revoke"]
    assert (status(engine, instance), status(engine, child_of(engine, instance))) == ("failed", "completed")


@pytest.mark.parametrize("how", ["cancel", "abort", "time out"])
def test_a_detached_child_is_not_stopped_with_its_parent(place: Place, how: str) -> None:
    """It goes on, whatever becomes of its parent."""
    stage = Stage()
    engine = place.engine().register(waiting(stage)).register(calling(stage, detached=True, timeout=60))
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    if how == "time out":
        engine.advance(minutes=2)
    else:
        getattr(engine.futures.run(instance), how)("no more")
        engine.drain()
    assert status(engine, below) == "running"
    decide(engine, below, "ask")
    engine.drain()
    assert (status(engine, below), stage.count("unpick"), engine.admin.inbox_depth()) == ("completed", 0, 0)


# -- time


def test_a_rollback_waits_for_a_child_that_took_too_long(place: Place) -> None:
    """The child undoes what it did before the steps are undone that came before it."""
    stage = Stage()
    engine = place.engine().register(waiting(stage)).register(calling(stage, timeout=60))
    instance = run(engine, "parent")
    engine.advance(minutes=2)
    assert stage.calls == ["order", "pick", "unpick", "revoke"]
    assert [status(engine, each) for each in (instance, child_of(engine, instance))] == ["failed", "cancelled"]


@pytest.mark.parametrize("way", ["fails", "goes on", "undone by hand"])
def test_a_child_that_completes_when_its_time_is_over_is_undone(place: Place, way: str) -> None:
    """Whichever comes first: the step has failed, or was left by its timeout, and nothing of the child stays, nor is it undone twice."""
    stage = Stage()
    options: dict[str, object] = {"timeout": 60}
    if way == "goes on":
        options["on_timeout"] = lambda other: other.step("instead", stage.does("instead"))

    def build(saga: Saga) -> Saga:
        return saga.on_failure("send back", stage.does("send back")) if way == "undone by hand" else saga

    engine = place.engine().register(waiting(stage)).register(calling(stage, build, **options))
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    place.clock.move(timedelta(minutes=2))
    decide(engine, below, "ask")
    clockwork_of(engine).fire()  # The child has completed, and its parent has not heard of it when its time is over.
    assert (status(engine, below), engine.admin.inbox_depth()) == ("completed", 2)
    engine.drain()
    assert (status(engine, below), stage.count("unpick"), stage.count("send back")) == ("cancelled", 1, 0)
    assert status(engine, instance) == ("completed" if way == "goes on" else "failed")


# -- keeping


def test_a_child_stays_as_long_as_its_parent_may_undo_it(place: Place) -> None:
    """It cannot be deleted, not even by force, and retention leaves it; once its parent has ended it goes like any other."""
    stage = Stage()
    engine = place.engine()
    engine.register(child(stage)).register(Saga("parent").call("fulfil", "child").human("ask").build())
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    for force in (False, True):
        with pytest.raises(ConflictError, match="is a part of the workflow"):
            engine.instances.delete(below, force=force)
    decide(engine, instance, "ask")
    engine.drain()
    engine.instances.delete(below)
    assert status(engine, instance) == "completed"


@pytest.mark.parametrize("ends", [True, False])
def test_what_a_completed_child_has_called_stays_as_long_as_the_topmost_run_may_undo_it(
    place: Place, *, ends: bool
) -> None:
    """A rollback goes down through all levels, so that retention and deletion leave each of them until the topmost run has ended."""
    stage = Stage()
    engine = place.engine(Settings(keep_finished=timedelta(hours=1)))
    engine.register(Saga("low").step("hold", stage.does("hold")).on_failure("let go", stage.does("let go")).build())
    engine.register(Saga("child").call("down", "low").build())
    bill = stage.does("bill", *(() if ends else (BROKEN,)))
    engine.register(Saga("parent").call("fulfil", "child").human("ask").step("bill", bill, attempts=1).build())
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    lowest = child_of(engine, below)
    engine.advance(days=30)
    for each in (below, lowest):
        for force in (False, True):
            with pytest.raises(ConflictError, match=f"is a part of the workflow {instance}"):
                engine.instances.delete(each, force=force)
    decide(engine, instance, "ask")
    engine.drain()
    assert stage.count("let go") == (0 if ends else 1)
    assert status(engine, instance) == ("completed" if ends else "failed")
    engine.advance(days=1)
    assert engine.runs.list().items == []


# -- crashes


def undoing(engine: ManualEngine) -> None:
    """A parent fails behind two levels of children."""
    engine.acting(RequestContext(actor=Actor(id="ann"), idempotency_key="start")).start("parent")
    engine.drain()


def prepare(engine: ManualEngine) -> None:
    """Three levels, each with a step that can be undone."""
    low = Saga("low").step("l", lambda: {"l": 1}, undo=lambda: None).build()
    child = Saga("child").step("m", lambda: {"m": 1}, undo=lambda: None).call("down", "low").build()
    parent = Saga("parent").step("t", lambda: {"t": 1}, undo=lambda: None).call("fulfil", "child")
    engine.register(low).register(child).register(parent.step("bill", fail, attempts=1).build())


def fail() -> None:
    """The step that has everything undone."""
    raise BROKEN


def outcome(engine: ManualEngine) -> object:
    """What became of the runs, and that each was undone once."""
    found = engine.runs.list().items
    undone = {each.definition: [step.status for step in engine.run(each.id).steps()] for each in found}
    return sorted((each.definition, each.status) for each in found), sorted(undone.items())


def test_children_are_undone_whatever_crashes(new_store: NewStore) -> None:
    """The engine is stopped at every point: parent, child and grandchild always come to the same end."""
    tried(CrashScenario(prepare=prepare, play=undoing, outcome=outcome), new_store, on_server=6)
