"""How large data may be: what comes in is bounded, what would not fit fails its step or is refused, and nothing else ever is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses, step
from standfast import Fail, PayloadError, RejectedError, Retry, Saga, Settings
from standfast.kernel.codec.depth import DEEPEST
from support.engines import Place

LIMIT = 10_000
SMALL = Settings(max_payload_bytes=LIMIT)
MOST, HALF = "x" * (LIMIT * 9 // 10), "x" * (LIMIT * 6 // 10)


@pytest.mark.row("F-042", "F-076")
def test_a_rollback_begins_however_much_there_is_to_undo(place: Place) -> None:
    """What a step worked on and what it answered may together be larger than the limit: it is undone all the same."""
    stage = Stage()
    stage.does("a", {"a": "x" * (LIMIT * 7 // 10)})
    stage.does("bad", BROKEN)
    saga = (
        Saga("wide")
        .step("s", stage.does("s"))
        .on_failure("us", stage.does("us"))
        .fork(
            "f",
            lambda branch: branch.step("a", stage.does("a")).on_failure("ua", stage.does("ua")),
            lambda branch: branch.wait("w", 10).step("bad", stage.does("bad"), attempts=1),
        )
        .join("j")
        .build()
    )
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "wide", {"in": "x" * (LIMIT * 2 // 10)})
    engine.advance(seconds=10)
    assert status(engine, instance) == "failed"
    assert stage.calls == ["s", "a", "bad", "ua", "us"]
    assert engine.dead_letters.list() == []


@pytest.mark.row("F-157")
def test_a_cancellation_ends_however_much_there_is_to_undo(place: Place) -> None:
    """The same after a cancellation, while a handler may still answer."""
    stage = Stage()
    stage.does("a", {"a": HALF})
    saga = (
        Saga("full")
        .step("a", stage.does("a"))
        .on_failure("ua", stage.does("ua"))
        .wait("w", 10)
        .step("b", stage.does("b"))
        .build()
    )
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "full", {"in": "x" * (LIMIT * 3 // 10)})
    reply = engine.futures.run(instance).cancel("enough")
    engine.drain()
    assert reply.result() == "cancelled"
    assert stage.calls == ["a", "ua"]


def test_an_answer_within_the_limit_is_handed_on(place: Place) -> None:
    """Behind a step, a wait, a child or a person: the order that holds it may be larger than the answer itself."""
    stage = Stage()
    stage.does("large", {"large": MOST})
    saga = (
        Saga("handing on")
        .step("large", stage.does("large"))
        .on_failure("undo", stage.does("undo"))
        .step("next", stage.does("next"))
        .wait("w", 10)
        .step("after time", stage.does("after time"))
        .human("ask")
        .step("after people", stage.does("after people"))
        .build()
    )
    parent = Saga("parent").call("child", "handing on").step("after child", stage.does("after child")).build()
    engine = place.engine(SMALL).register(saga).register(parent)
    instance = run(engine, "parent")
    engine.advance(seconds=10)
    (task,) = engine.tasks.list()
    engine.tasks.decide(task.step_id, "confirmed")
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.calls == ["large", "next", "after time", "after people", "after child"]
    assert stage.contexts("next")[0].previous == {"large": MOST}
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize(("has_way", "ending"), [(False, "failed"), (True, "completed")])
def test_an_answer_that_does_not_fit_fails_its_step_at_once(place: Place, *, has_way: bool, ending: str) -> None:
    """One call, a short error, and then what follows a failure: the way of `on_error`, or a rollback."""
    stage = Stage()
    stage.does("first", {"a": HALF})
    stage.does("second", {"b": HALF})
    saga = (
        Saga("two halves")
        .step("first", stage.does("first"))
        .on_failure("undo first", stage.does("undo first"))
        .step(
            "second",
            stage.does("second"),
            on_error=(lambda way: way.step("smaller", stage.does("smaller"))) if has_way else None,
        )
        .on_failure("undo second", stage.does("undo second"))
        .build()
    )
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "two halves")
    assert status(engine, instance) == ending
    assert stage.calls == ["first", "second", *(["smaller"] if has_way else ["undo second", "undo first"])]
    (failed,) = history(engine, instance, "step_failed")
    assert f"larger than {LIMIT} bytes" in failed.error
    assert len(failed.error) < 300


def test_the_result_of_a_child_that_does_not_fit_fails_the_call(place: Place) -> None:
    """The child has completed; its parent is rolled back, and both have ended."""
    stage = Stage()
    stage.does("large", {"large": HALF})
    child = Saga("child").step("large", stage.does("large")).build()
    parent = (
        Saga("parent")
        .step("first", stage.does("first"))
        .on_failure("undo first", stage.does("undo first"))
        .call("child", "child")
        .build()
    )
    engine = place.engine(SMALL).register(child).register(parent)
    instance = run(engine, "parent", {"in": "x" * (LIMIT * 3 // 10)})
    assert status(engine, instance) == "failed"
    assert statuses(engine, instance) == {"first": "rolled_back", "child": "rolled_back"}
    assert stage.calls == ["first", "large", "undo first"]


def test_branches_whose_answers_do_not_fit_together_fail_their_join(place: Place) -> None:
    """Each answer fits into its branch, and all of them together do not fit: the saga is rolled back."""
    stage = Stage()
    for name in "ab":
        stage.does(name, HALF)
    saga = (
        Saga("both")
        .fork(
            "f",
            lambda branch: branch.step("a", stage.does("a")).on_failure("ua", stage.does("ua")),
            lambda branch: branch.step("b", stage.does("b")).on_failure("ub", stage.does("ub")),
        )
        .join("j")
        .step("after", stage.does("after"))
        .build()
    )
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "both")
    assert status(engine, instance) == "failed"
    assert statuses(engine, instance)["j"] == "rolled_back"
    assert sorted(stage.calls) == ["a", "b", "ua", "ub"]


def test_a_signal_that_does_not_fit_is_refused_and_the_step_goes_on_waiting(place: Place) -> None:
    """Whoever sends it is told; a smaller one is taken."""
    stage = Stage()
    saga = Saga("waiting").wait_for("paid", "paid").step("after", stage.does("after")).build()
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "waiting", {"in": HALF})
    with pytest.raises(RejectedError) as caught:
        engine.run(instance).signal("paid", {"sum": HALF})
    assert caught.value.reason == "too_large"
    with pytest.raises(PayloadError, match="the payload takes"):
        engine.run(instance).signal("paid", {"sum": "x" * LIMIT})
    assert statuses(engine, instance) == {"paid": "running"}
    engine.run(instance).signal("paid", {"sum": 5})
    engine.drain()
    assert status(engine, instance) == "completed"


def test_a_signal_that_was_kept_and_does_not_fit_fails_the_step_that_takes_it(place: Place) -> None:
    """Nobody is there any more to whom it could be refused."""
    saga = Saga("late").wait("w", 10).wait_for("paid", "paid").build()
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "late", {"in": HALF})
    engine.run(instance).signal("paid", {"sum": HALF})
    engine.advance(seconds=10)
    assert status(engine, instance) == "failed"
    assert "larger than" in engine.run(instance).describe().error


def test_an_answer_of_a_person_that_does_not_fit_is_refused(place: Place) -> None:
    """The question stays open."""
    saga = Saga("asking").human("ask").build()
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "asking", {"in": HALF})
    (task,) = engine.tasks.list()
    with pytest.raises(RejectedError) as caught:
        engine.tasks.decide(task.step_id, "confirmed", data=HALF)
    assert caught.value.reason == "too_large"
    with pytest.raises(PayloadError, match="the data takes"):
        engine.tasks.decide(task.step_id, "confirmed", data="x" * LIMIT)
    engine.tasks.decide(task.step_id, "confirmed", data="fine")
    assert status(engine, instance) == "completed"


@pytest.mark.row("G-22")
def test_what_is_given_is_bounded(place: Place) -> None:
    """The input of a start and of a requeue; nothing is written."""
    stage = Stage()
    stage.does("a", BROKEN)
    engine = place.engine(SMALL).register(Saga("s", dlq=True).step("a", stage.does("a"), attempts=1).build())
    with pytest.raises(PayloadError, match="the input takes"):
        engine.start("s", {"in": "x" * LIMIT})
    run(engine, "s")
    (letter,) = engine.dead_letters.list()
    with pytest.raises(PayloadError, match="the input takes"):
        engine.dead_letters.requeue(letter.id, {"in": "x" * LIMIT})
    assert engine.dead_letters.list() == [letter]


# -- answers that cannot be kept, and failures that cannot be told


class Response:
    """What client libraries return."""


@pytest.mark.row("F-062")
def test_an_answer_that_cannot_be_stored_is_not_asked_for_again(place: Place) -> None:
    """Another call could not help: one call, and the step has failed."""
    stage = Stage()
    stage.does("charge", Response())
    engine = place.engine().register(Saga("s").step("charge", stage.does("charge"), attempts=5).build())
    instance = run(engine, "s")
    assert (stage.count("charge"), status(engine, instance)) == (1, "failed")
    assert "Response cannot be stored" in engine.run(instance).describe().error


@pytest.mark.row("F-124")
def test_the_answer_of_a_compensation_does_not_matter(place: Place) -> None:
    """Nobody reads it, so that it cannot be wrong."""
    stage = Stage()
    stage.does("refund", Response())
    stage.does("bad", BROKEN)
    saga = Saga("s").step("a", stage.does("a")).on_failure("refund", stage.does("refund"))
    engine = place.engine().register(saga.step("bad", stage.does("bad"), attempts=1).build())
    instance = run(engine, "s")
    assert (stage.count("refund"), status(engine, instance)) == (1, "failed")
    assert engine.run(instance).describe().reason == ""
    assert len(history(engine, instance, "compensation_success")) == 1


@pytest.mark.row("F-062")
@pytest.mark.parametrize(("days", "waited"), [(3_000_000, 0), (1_000_000, 366), (365, 365)])
def test_a_wait_that_nobody_can_mean_is_no_reason_to_lose_a_step(place: Place, days: int, waited: int) -> None:
    """Milliseconds taken for seconds: beyond the calendar the retry rule tells, and no wait is longer than a year."""
    stage = Stage()
    stage.does("a", Retry(after=timedelta(days=days)), "done")
    engine = place.engine().register(Saga("s").step("a", stage.does("a")).build())
    instance = run(engine, "s")
    assert engine.dead_letters.list() == []
    if waited:
        engine.advance(days=waited - 1)
        assert (stage.count("a"), step(engine, instance, "a").status) == (1, "running")
        engine.advance(days=1)
    assert (stage.count("a"), status(engine, instance)) == (2, "completed")


def test_another_way_is_told_as_much_of_an_error_as_there_is_room_for(place: Place) -> None:
    """A long error leaves room for what the steps of the other way answer, and no data outgrows the limit by it."""
    stage = Stage()
    stage.does("bad", Fail("e" * LIMIT))
    stage.does("tell", {"told": 1})
    saga = Saga("s").step("bad", stage.does("bad"), on_error=lambda way: way.step("tell", stage.does("tell"))).build()
    engine = place.engine(SMALL).register(saga)
    instance = run(engine, "s", {"x": MOST})
    assert status(engine, instance) == "completed"
    (told,) = stage.contexts("tell")
    error = told.input["error"]
    assert isinstance(error, dict)
    assert error["step"] == "bad"
    assert "eee" in error["message"]


def test_a_person_can_always_reject(place: Place) -> None:
    """Where there is no room for an answer, a confirmation is refused, and so is a long reason; a bare rejection is taken."""
    engine = place.engine(SMALL).register(Saga("s").human("ask").build())
    instance = run(engine, "s", {"x": "y" * (LIMIT - 20)})
    (task,) = engine.tasks.list()
    with pytest.raises(RejectedError, match="larger than"):
        engine.acting("ann").tasks.decide(task, "confirmed")
    with pytest.raises(RejectedError, match="larger than"):
        engine.acting("ann").tasks.decide(task, "rejected", comment="because")
    engine.acting("ann").tasks.decide(task, "rejected")
    assert statuses(engine, instance) == {"ask": "rejected"}


def nested(levels: int) -> object:
    """A list in a list, so many times."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [DEEPEST, DEEPEST + 1, 900, 990, 5000])
def test_an_answer_that_is_too_deep_fails_its_step_at_once(place: Place, levels: int) -> None:
    """The handler is called once, what was done is undone, and the error says what is wrong."""
    stage = Stage()
    stage.does("deep", nested(levels))
    saga = (
        Saga("deep")
        .step("a", stage.does("a"))
        .on_failure("ua", stage.does("ua"))
        .step("deep", stage.does("deep"), attempts=3)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "deep")
    assert status(engine, instance) == "failed"
    assert stage.calls == ["a", "deep", "ua"]
    assert f"deeper than {DEEPEST} levels" in step(engine, instance, "deep").error
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("levels", [DEEPEST, 900, 5000])
def test_data_that_is_too_deep_is_not_taken(place: Place, levels: int) -> None:
    """An input, a signal and a decision are refused with a sentence, and nothing is written."""
    engine = place.engine().register(Saga("w").wait_for("s", "sig").human("ask").build())
    instance = run(engine, "w")
    with pytest.raises(PayloadError):
        engine.start("w", {"x": nested(levels)})
    with pytest.raises((PayloadError, RejectedError), match="deeper than"):
        engine.run(instance).signal("sig", nested(levels))
    engine.run(instance).signal("sig", nested(DEEPEST - 1))
    engine.drain()
    with pytest.raises((PayloadError, RejectedError), match="deeper than"):
        engine.acting("p").tasks.decide(engine.tasks.list()[0], "confirmed", data={"x": nested(levels)})
    assert len(engine.runs.list().items) == 1


def test_what_children_answer_grows_no_deeper_than_it_may(place: Place) -> None:
    """Each call lays the answer of its child one level deeper; the one that finds it too deep is undone, its child too, and tells so to the one above."""
    stage = Stage()
    stage.does("leaf", nested(DEEPEST - 2))
    engine = place.engine().register(Saga("L0").step("leaf", stage.does("leaf")).build())
    for number in range(1, 5):
        before, name = f"L{number - 1}", f"r{number}"
        saga = Saga(f"L{number}").step(name, stage.does(name)).on_failure(f"u{name}", stage.does(f"u{name}"))
        engine.register(saga.call(f"k{number}", before).build())
    top = run(engine, "L4")
    assert status(engine, top) == "failed"
    assert stage.calls == ["r4", "r3", "r2", "r1", "leaf", "ur1", "ur2", "ur3", "ur4"]
    assert engine.dead_letters.list() == []
    assert engine.admin.inbox_depth() == 0
