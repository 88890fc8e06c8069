"""Runs that begin where another one was: what they take over, what is asked for again, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses, step
from standfast import Actor, NotFoundError, PayloadError, RejectedError, Saga, SagaDefinition
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

OLGA = Actor(id="olga", capabilities=frozenset({"execution:read", "execution:repair"}))
WHY = "ticket 7"
HOUR = timedelta(hours=1)


def shop(stage: Stage) -> SagaDefinition:
    """A payment that can be undone, a question, and a shipment."""
    return (
        Saga("shop")
        .step("charge", stage.does("charge", {"charge": "c-1"}))
        .on_failure("refund", stage.does("refund"))
        .human("ask", subject="may we?")
        .step("ship", stage.does("ship", {"parcel": 7}), attempts=1)
        .build()
    )


def sequence(engine: ManualEngine, instance: InstanceId, type_: str, name: str = "") -> int:
    """The number of the last event of this type, of the step with this name."""
    return [each.sequence for each in history(engine, instance, type_) if name in {"", each.step_name}][-1]


def shipped(place: Place) -> tuple[Stage, ManualEngine, InstanceId]:
    """A run that has ended well."""
    stage = Stage()
    engine = place.engine().register(shop(stage))
    instance = run(engine, "shop", {"amount": 5})
    engine.tasks.approve(step(engine, instance, "ask"))
    engine.drain()
    assert status(engine, instance) == "completed"
    return stage, engine, instance


def test_a_fork_goes_on_from_a_point_of_the_history(place: Place) -> None:
    """It has the data of then, asks again for what was under way, and leaves the other run as it is; its history says whence it comes."""
    stage, engine, origin = shipped(place)
    before = engine.run(origin).history()
    at = sequence(engine, origin, "step_started", "ask")
    forked = engine.acting(OLGA).run(origin).fork(at, reason=WHY, data={"amount": 6}, key="again")
    engine.drain()
    assert statuses(engine, forked.id) == {"charge": "completed", "ask": "waiting_decision"}
    assert engine.run(forked).describe().context == {"amount": 6, "charge": "c-1"}
    assert engine.run(forked).describe().input == {"amount": 5}
    assert step(engine, forked.id, "ask").visit == 1
    engine.tasks.approve(step(engine, forked.id, "ask"))
    engine.drain()
    assert engine.run(forked).result()["parcel"] == 7  # type: ignore[index]
    assert stage.calls == ["charge", "ship", "ship"]
    first = engine.run(forked).history()[0]
    assert (first.event_type, first.actor, first.data["reason"]) == ("workflow_forked", "olga", WHY)
    assert (first.data["origin"], first.data["at"]) == (str(origin), at)
    described = engine.run(forked).describe()
    assert (described.key, described.definition_version) == ("again", engine.run(origin).describe().definition_version)
    assert engine.run(origin).history() == before


def test_calls_of_a_fork_have_idempotency_keys_of_their_own(place: Place) -> None:
    """The outside world can tell the call of the fork from that of the other run."""
    stage, engine, origin = shipped(place)
    at = sequence(engine, origin, "step_started", "ship")
    engine.run(origin).fork(at, reason=WHY)
    engine.drain()
    first, second = stage.contexts("ship")
    assert first.idempotency_key != second.idempotency_key
    assert first.input == second.input


def test_a_fork_does_not_undo_what_the_other_run_did(place: Place) -> None:
    """What it took over is not its own: only what it did itself is undone."""
    stage, engine, origin = shipped(place)
    at = sequence(engine, origin, "step_started", "ship")
    stage.does("ship", BROKEN)
    forked = engine.run(origin).fork(at, reason=WHY)
    engine.drain()
    assert (status(engine, forked.id), stage.count("refund")) == ("failed", 0)


def test_a_fork_of_a_run_that_gave_up_calls_the_step_again(place: Place) -> None:
    """A step that waits for an operator in one run is called in the other one, which does not wait."""
    stage = Stage()
    saga = Saga("s", dlq=True).step("a", stage.does("a", BROKEN), attempts=1).build()
    engine = place.engine().register(saga)
    origin = run(engine, "s")
    stage.does("a", None)
    forked = engine.run(origin).fork(len(engine.run(origin).history()), reason=WHY)
    engine.drain()
    assert (status(engine, origin), status(engine, forked.id)) == ("dlq", "completed")


def test_branches_are_taken_over_as_they_were(place: Place) -> None:
    """Those that have arrived wait, the others are asked again, and they meet."""
    stage = Stage()
    saga = (
        Saga("s")
        .fork(
            "f",
            lambda way: way.step("a", stage.does("a", {"n": 1})),
            lambda way: way.wait_for("word", "go"),
        )
        .join("j")
        .then("end", stage.does("end"))
        .build()
    )
    engine = place.engine().register(saga)
    origin = run(engine, "s")
    forked = engine.run(origin).fork(len(engine.run(origin).history()), reason=WHY)
    engine.run(forked).signal("go", "word")
    engine.drain()
    assert (status(engine, origin), status(engine, forked.id)) == ("running", "completed")
    assert stage.calls == ["a", "end"]
    assert stage.contexts("end")[0].input == {"a": {"n": 1}, "word": "word"}


def test_a_fork_of_a_run_that_was_held_goes_on_where_that_was_to_go(place: Place) -> None:
    """What was answered while the run was paused is not asked again, and what follows is done."""
    stage = Stage()
    engine = place.engine().register(shop(stage))
    origin = run(engine, "shop", {"amount": 5})
    engine.run(origin).pause("look first")
    engine.tasks.approve(step(engine, origin, "ask"))
    engine.drain()
    assert (status(engine, origin), stage.calls) == ("paused", ["charge"])
    at = engine.run(origin).history()[-1].sequence
    engine.run(origin).resume("looked at")
    engine.drain()
    forked = engine.acting(OLGA).run(origin).fork(at, reason=WHY)
    engine.drain()
    assert (status(engine, forked.id), status(engine, origin)) == ("completed", "completed")
    assert stage.calls == ["charge", "ship", "ship"]
    assert statuses(engine, forked.id) == {"charge": "completed", "ask": "completed", "ship": "completed"}


def test_no_fork_goes_past_a_pause(place: Place) -> None:
    """While a run is paused because that was requested, no point of it can be forked; the refusal and the preview say to resume it first."""
    stage = Stage()
    engine = place.engine().register(shop(stage))
    origin = run(engine, "shop", {"amount": 5})
    before = len(engine.run(origin).history())
    engine.acting(Actor(id="berta", capabilities=frozenset({"execution:pause"}))).run(origin).pause("fraud suspected")
    engine.tasks.approve(step(engine, origin, "ask"))
    engine.drain()
    olga = engine.acting(OLGA).run(origin)
    for at in (before, len(olga.history())):
        with pytest.raises(RejectedError, match=r"has paused it .fraud suspected.*resume it first") as caught:
            olga.fork(at, reason=WHY)
        assert caught.value.reason == "already_paused"
        assert "resume it first" in olga.fork_preview(at).problem
    engine.drain()
    assert (len(engine.runs.list().items), stage.calls) == (1, ["charge"])
    engine.run(origin).abort("it was fraud")
    engine.drain()
    assert engine.run(olga.fork(before, reason=WHY)).describe().status == "running"


def test_timers_of_a_fork_begin_anew(place: Place) -> None:
    """A wait takes its whole time again, a deadline too, and a start that was put off begins at once."""
    saga = Saga("s", deadline=2 * HOUR).wait("pause", HOUR).build()
    engine = place.engine().register(saga)
    origin = engine.start("s").id
    at = len(engine.run(origin).history())
    engine.advance(minutes=59)
    forked = engine.run(origin).fork(at, reason=WHY)
    engine.advance(minutes=59)
    assert (status(engine, origin), status(engine, forked.id)) == ("completed", "running")
    deadlines = {each.id: each.deadline_at for each in engine.instances.list()}
    assert deadlines[forked.id] == place.clock.now() - timedelta(minutes=59) + 2 * HOUR
    engine.advance(minutes=1)
    assert status(engine, forked.id) == "completed"
    delayed = engine.start("s", delay=HOUR).id
    at_once = engine.run(delayed).fork(1, reason=WHY)
    engine.advance(HOUR)
    assert (status(engine, delayed), status(engine, at_once.id)) == ("running", "completed")


def test_a_fork_starts_a_child_of_its_own(place: Place) -> None:
    """A workflow that was under way is started again for the fork; that of the other run goes on."""
    engine = place.engine().register(Saga("child").wait_for("word", "go").build())
    engine.register(Saga("parent").call("sub", "child").build())
    origin = run(engine, "parent")
    forked = engine.run(origin).fork(len(engine.run(origin).history()), reason=WHY)
    engine.drain()
    (first,), (second,) = engine.runs.list(parent=origin).items, engine.runs.list(parent=forked).items
    engine.run(second).signal("go")
    engine.drain()
    assert (status(engine, origin), status(engine, forked.id), status(engine, first.id)) == (
        "running",
        "completed",
        "running",
    )


def test_a_child_can_be_forked_and_its_parent_hears_nothing(place: Place) -> None:
    """The fork of a child is nobody's child."""
    engine = place.engine().register(Saga("child").wait_for("word", "go").build())
    engine.register(Saga("parent").call("sub", "child").build())
    parent = run(engine, "parent")
    (child,) = engine.runs.list(parent=parent).items
    forked = engine.run(child).fork(len(engine.run(child).history()), reason=WHY)
    engine.run(forked).signal("go")
    engine.drain()
    assert (status(engine, forked.id), status(engine, parent)) == ("completed", "running")
    assert engine.run(forked).describe().parent is None


def test_a_fork_can_be_forked_and_repaired(place: Place) -> None:
    """It is a run like any other."""
    stage, engine, origin = shipped(place)
    forked = engine.run(origin).fork(sequence(engine, origin, "step_started", "ask"), reason=WHY)
    again = engine.run(forked).fork(len(engine.run(forked).history()), reason=WHY)
    engine.run(again).skip(step(engine, again.id, "ask"), reason=WHY)
    engine.drain()
    assert (status(engine, again.id), stage.count("charge")) == ("completed", 1)
    assert engine.run(again).verify().is_sound


def test_a_preview_tells_what_would_be_done_again(place: Place) -> None:
    """Handlers that would be called again, people who would be asked, what is kept; and it starts nothing."""
    _, engine, origin = shipped(place)
    at = sequence(engine, origin, "step_started", "ask")
    found = engine.run(origin).fork_preview(at)
    assert (found.problem, found.kept, found.people) == ("", ["charge"], ["ask"])
    assert [(call.step, call.handler, call.is_under_way) for call in found.calls] == [("ship", "ship", False)]
    assert (found.children, found.waits, found.data) == ([], [], {"0": {"amount": 5, "charge": "c-1"}})
    begun = engine.run(origin).fork_preview(sequence(engine, origin, "step_started", "ship"))
    assert [(call.step, call.is_under_way) for call in begun.calls] == [("ship", True)]
    assert begun.people == []
    assert len(engine.runs.list().items) == 1


def test_a_preview_does_not_keep_what_is_tried_again(place: Place) -> None:
    """A step that gave up and was put back is one that would be called again, and none that is taken over."""
    stage = Stage()
    saga = Saga("s", dlq=True).step("a", stage.does("a")).step("b", stage.does("b", BROKEN), attempts=1).build()
    engine = place.engine().register(saga)
    instance = run(engine, "s")
    engine.dead_letters.requeue(engine.dead_letters.list()[0])
    engine.drain()
    previews = [engine.run(instance).fork_preview(each.sequence) for each in history(engine, instance, "step_started")]
    told = [(each.kept, [call.step for call in each.calls]) for each in previews if not each.problem]
    assert told == [([], ["a", "b"]), (["a"], ["b"]), (["a"], ["b"])]


def test_a_fork_is_not_moved_back_to_where_another_run_was(place: Place) -> None:
    """A save point that the other run had passed is refused with that reason, and is not offered; one of its own will do."""
    stage = Stage()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .save_point("first")
        .step("b", stage.does("b"))
        .save_point("second")
        .human("ask")
        .build()
    )
    engine = place.engine().register(saga)
    origin = run(engine, "s")
    olga = engine.acting(OLGA).run(origin)
    late = olga.fork(sequence(engine, origin, "step_started", "ask"), reason=WHY)
    for name in ("", "second"):
        with pytest.raises(RejectedError, match=r"forked from one that had passed 'second' .* has passed none") as told:
            late.move_back(name, reason=WHY)
        assert told.value.reason == "no_save_point"
    with pytest.raises(RejectedError, match=r"has not passed this save point; it has passed none on its main way \["):
        late.move_back("third", reason=WHY)
    early = olga.fork(sequence(engine, origin, "step_started", "b"), reason=WHY)
    engine.drain()
    with pytest.raises(
        RejectedError, match=r"had passed 'first' before.* it can be moved back to 'second' itself, or fork"
    ):
        early.move_back("first", reason=WHY)
    early.move_back(reason=WHY)
    engine.drain()
    assert statuses(engine, early.id)["ask"] == "waiting_decision"


def test_a_preview_names_children_and_waits(place: Place) -> None:
    """So it does with workflows that would be started again, and with time that would be waited for again."""
    engine = place.engine().register(Saga("child").wait_for("word", "go").build())
    engine.register(Saga("parent").wait("pause", 1).call("sub", "child").build())
    origin = run(engine, "parent")
    engine.advance(seconds=1)
    found = engine.run(origin).fork_preview(sequence(engine, origin, "step_started", "pause"))
    assert (found.children, found.waits) == (["sub"], ["pause"])


def test_no_fork_begins_in_the_midst_of_a_decision(place: Place) -> None:
    """The refusal names the next point, the preview too, and nothing is written."""
    _, engine, origin = shipped(place)
    at = sequence(engine, origin, "step_completed", "charge")
    told = rf"in the midst of a decision; the next point is {at + 1}"
    assert told in engine.run(origin).fork_preview(at).problem
    with pytest.raises(RejectedError, match=told) as refusal:
        engine.run(origin).fork(at, reason=WHY)
    assert refusal.value.reason == "no_fork"
    assert len(engine.runs.list().items) == 1


def test_no_fork_begins_on_the_way_back_or_at_the_end(place: Place) -> None:
    """What was undone cannot be taken over, and what has ended goes nowhere."""
    stage = Stage()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo", stage.does("undo"))
        .step("b", stage.does("b", BROKEN), attempts=1)
        .build()
    )
    engine = place.engine().register(saga)
    origin = run(engine, "s")
    with pytest.raises(RejectedError, match="it was undoing or stopping"):
        engine.run(origin).fork(sequence(engine, origin, "compensation_started"), reason=WHY)
    with pytest.raises(RejectedError, match="it had ended; take an earlier point"):
        engine.run(origin).fork(len(engine.run(origin).history()), reason=WHY)


@pytest.mark.parametrize("at", [0, 10_000])
def test_a_point_that_is_not_there_is_not_found(place: Place, at: int) -> None:
    """The refusal says which events there are."""
    _, engine, origin = shipped(place)
    with pytest.raises(NotFoundError, match="has the events 1 to"):
        engine.run(origin).fork(at, reason=WHY)
    with pytest.raises(NotFoundError):
        engine.run(origin).fork_preview(at)


@pytest.mark.parametrize("at", ["3", None, True, 1.0])
def test_a_point_is_the_number_of_an_event(place: Place, at: object) -> None:
    """The refusal names the argument as it is called, and says where the number stands."""
    _, engine, origin = shipped(place)
    for call in (engine.run(origin).fork_preview, lambda at: engine.run(origin).fork(at, reason=WHY)):
        with pytest.raises(PayloadError, match="`at` is the sequence of an event, as `history` tells it"):
            call(at)  # type: ignore[arg-type]


def test_a_key_that_is_taken_starts_nothing(place: Place) -> None:
    """A fork is a start: its business key must be free."""
    _, engine, origin = shipped(place)
    at = sequence(engine, origin, "step_started", "ask")
    engine.run(origin).fork(at, reason=WHY, key="k-1")
    with pytest.raises(RejectedError) as refusal:
        engine.run(origin).fork(at, reason=WHY, key="k-1")
    assert refusal.value.reason == "already_started"
