"""Retries: how often handlers and compensations are called, what is counted, and what a crash means for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses, step
from standfast import Saga, StepContext, task
from standfast.testing import ManualEngine
from support.engines import Place

LEASE = timedelta(seconds=7)
"""Longer than the lease of a worker: the others know by then that it died."""


class Silence:
    """A call in the middle of which the worker falls silent; when it comes back, its heir has long done what is left to do."""

    def __init__(self, place: Place, heir: ManualEngine) -> None:
        self._place = place
        self._heir = heir

    def __call__(self, ctx: StepContext) -> dict[str, bool]:
        """Do nothing for longer than the lease."""
        self._place.clock.move(LEASE)
        self._heir.drain()
        return {"late": True}


@pytest.mark.row("F-061", "EC-16")
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_the_limit_counts_all_calls(place: Place, limit: int) -> None:
    """A handler that always fails is called as often as the limit says, the first call included."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(Saga("s").step("a", stage.does("a", BROKEN), attempts=limit).build()), "s")
    assert (stage.count("a"), status(engine, instance)) == (limit, "failed")
    assert [each.attempt for each in stage.contexts("a")] == list(range(1, limit + 1))


@pytest.mark.row("F-061", "F-062", "F-063")
def test_a_call_that_goes_well_is_the_last(place: Place) -> None:
    """Two failures and a success within three calls complete the step; it is never called again, and counts three."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(Saga("s").step("a", stage.does("a", BROKEN, BROKEN, None), attempts=3).build()), "s")
    engine.advance(hours=1)
    found = step(engine, instance, "a")
    assert (stage.count("a"), found.status, found.retry_count, found.error) == (3, "completed", 3, "")


@pytest.mark.row("F-062", "F-064", "F-090")
def test_a_compensation_is_tried_again_by_the_same_rule(place: Place) -> None:
    """It is called until it goes well, and its calls are counted apart from those of its step."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a", BROKEN, BROKEN), attempts=2)
        .on_failure("undo a", stage.does("undo a", BROKEN, None), attempts=3)
    )
    instance = run(engine.register(saga.build()), "s")
    found = step(engine, instance, "a")
    assert (found.status, found.retry_count, found.compensation_retry_count) == ("rolled_back", 2, 2)
    assert stage.calls == ["a", "a", "undo a", "undo a"]
    assert [each.attempt for each in stage.contexts("undo a")] == [1, 2]


@pytest.mark.row("F-062", "F-064")
@pytest.mark.parametrize("limit", [1, 3])
def test_a_compensation_is_called_at_most_as_often_as_its_limit(place: Place, limit: int) -> None:
    """One that always fails is called up to its own limit."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a", BROKEN), attempts=2)
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=limit)
    )
    instance = run(engine.register(saga.build()), "s")
    assert (stage.count("undo a"), step(engine, instance, "a").compensation_retry_count) == (limit, limit)


@pytest.mark.row("F-063")
def test_a_call_is_counted_before_it_ends(place: Place) -> None:
    """From inside of a handler its own call is counted already."""
    stage, engine, seen = Stage(), place.engine(), list[int]()

    def look(ctx: StepContext) -> None:
        seen.append(step(engine, ctx.instance, "a").retry_count)
        if ctx.attempt == 1:
            raise BROKEN

    run(engine.register(Saga("s").step("a", stage.does("a", look)).build()), "s")
    assert seen == [1, 2]


@pytest.mark.row("F-063")
def test_a_call_that_was_stopped_counts(place: Place) -> None:
    """A handler that was called once and then cancelled has been called once."""
    stage, engine = Stage(), place.engine()
    stop = stage.does("a", lambda ctx: engine.futures.run(ctx.instance).cancel())
    instance = run(engine.register(Saga("s").step("a", stop).build()), "s")
    found = step(engine, instance, "a")
    assert (found.status, stage.count("a"), found.retry_count) == ("skipped", 1, 1)


@pytest.mark.row("F-065", "EC-16")
def test_a_compensation_without_calls_fails_at_once(place: Place) -> None:
    """The limit is looked at before the call: with 0 there is none, and the end is that of one that gave up."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"), attempts=0)
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    instance = run(engine.register(saga.build()), "s")
    found = step(engine, instance, "a")
    assert (stage.count("undo a"), found.status, found.compensation_retry_count) == (0, "failed", 0)
    assert [each.event_type for each in history(engine, instance) if each.event_type.startswith("compensation")] == [
        "compensation_started",
        "compensation_max_retries_exceeded",
    ]
    assert status(engine, instance) == "failed"


@pytest.mark.row("F-066")
def test_each_instance_counts_for_itself(place: Place) -> None:
    """The calls of one instance do not use up those of another, nor those of another step with the same handler."""
    stage, engine = Stage(), place.engine()
    work = stage.does("work", BROKEN, None, BROKEN, BROKEN, None, BROKEN, BROKEN)
    engine.register(Saga("s").step("a", work, attempts=3).step("b", work, attempts=3).build())
    first, second = run(engine, "s"), run(engine, "s")
    counts = [[each.retry_count for each in engine.run(instance).steps()] for instance in (first, second)]
    assert counts == [[2, 3], [3]]


@pytest.mark.row("F-067", "G-06")
def test_retries_do_not_wait_unless_they_are_told_to(place: Place) -> None:
    """One look after the other sees all calls without any time going by."""
    stage, engine = Stage(), place.engine()
    instance = engine.register(Saga("s").step("a", stage.does("a", BROKEN), attempts=3).build()).start("s").id
    begun = place.clock.now()
    while engine.execute_next():
        pass
    assert (stage.count("a"), place.clock.now(), status(engine, instance)) == (3, begun, "failed")


@pytest.mark.row("F-067", "F-098")
def test_retries_wait_as_long_as_they_are_told_to(place: Place) -> None:
    """With a delay the next call is made then and not before; it may grow up to a cap."""
    stage, engine = Stage(), place.engine()
    work = stage.does("a", BROKEN)
    engine.register(Saga("s").step("a", work, attempts=4, delay=10, backoff="exponential", cap=25).build())
    run(engine, "s")
    calls = [1]
    for seconds in (9, 1, 19, 1, 24, 1):
        engine.advance(seconds=seconds)
        calls.append(stage.count("a"))
    assert calls == [1, 1, 2, 2, 3, 3, 4]


@pytest.mark.row("F-068", "F-071")
@pytest.mark.row("G-08")
def test_a_step_whose_worker_fell_silent_is_called_again(place: Place) -> None:
    """Steps may be repeated by default: after the lease another worker calls the handler, and the instance finishes."""
    stage, other = Stage(), Stage()
    saga = Saga("s").step("a", "a").step("b", "b").build()
    heir = place.engine().register(saga).handle("a", other.does("a", {"by": "heir"})).handle("b", other.does("b"))
    lost = place.engine().register(saga).handle("a", stage.does("a", Silence(place, heir)))
    instance = lost.start("s").id
    lost.drain()
    assert (stage.calls, other.calls) == (["a"], ["a", "b"])
    assert (status(heir, instance), heir.run(instance).result()) == ("completed", {"by": "heir"})


@pytest.mark.row("F-071")
def test_a_step_is_left_to_its_worker_as_long_as_that_may_live(place: Place) -> None:
    """Before the lease is over nobody else calls the handler."""
    stage, other = Stage(), Stage()
    saga = Saga("s").step("a", "a").build()
    heir = place.engine().register(saga).handle("a", other.does("a"))

    def work(ctx: StepContext) -> None:
        place.clock.move(LEASE / 2)
        heir.drain()

    busy = place.engine().register(saga).handle("a", stage.does("a", work))
    instance = run(busy, "s")
    assert (stage.calls, other.calls, status(busy, instance)) == (["a"], [], "completed")


@pytest.mark.row("F-063")
def test_a_call_that_never_came_back_counts(place: Place) -> None:
    """The limit bounds all calls, those whose worker fell silent included."""
    stage = Stage()
    saga = Saga("s").step("a", "a", attempts=2).build()
    last = place.engine().register(saga).handle("a", stage.does("never", None))
    second = place.engine().register(saga).handle("a", stage.does("second", Silence(place, last)))
    first = place.engine().register(saga).handle("a", stage.does("first", Silence(place, second)))
    instance = run(first, "s")
    found = step(last, instance, "a")
    assert (stage.calls, found.retry_count, status(last, instance)) == (["first", "second"], 2, "failed")
    assert "never came back" in found.error


@pytest.mark.row("F-069")
def test_what_must_not_be_repeated_is_not(place: Place) -> None:
    """A failing step is called once if it says so, and so is a failing compensation; then the failure takes its way."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a", BROKEN), no_idempotent=True)
        .on_failure("undo a", stage.does("undo a", BROKEN), no_idempotent=True)
    )
    instance = run(engine.register(saga.build()), "s")
    engine.advance(hours=1)
    assert stage.calls == ["a", "undo a"]
    assert (status(engine, instance), statuses(engine, instance)) == ("failed", {"a": "failed"})


@pytest.mark.row("F-070")
@pytest.mark.row("C-15", "C-33")
def test_what_must_not_be_repeated_is_not_after_a_crash_either(place: Place) -> None:
    """A step that may have been done is not done again: it fails, and it is undone with what came before it."""
    stage, other = Stage(), Stage()
    saga = (
        Saga("s")
        .step("first", "first")
        .on_failure("undo first", "undo first")
        .step("pay", "pay", once=True)
        .on_failure("refund", "refund")
        .build()
    )
    heir = place.engine().register(saga)
    for name in ("first", "pay", "undo first", "refund"):
        heir.handle(name, other.does(name))
    lost = place.engine().register(saga).handle("first", stage.does("first"))
    instance = run(lost.handle("pay", stage.does("pay", Silence(place, heir))), "s")
    assert (stage.calls, other.calls) == (["first", "pay"], ["refund", "undo first"])
    assert (status(heir, instance), step(heir, instance, "pay").retry_count) == ("failed", 1)


@pytest.mark.row("F-070")
def test_a_compensation_that_must_not_be_repeated_is_not_after_a_crash_either(place: Place) -> None:
    """If its worker fell silent it has given up: an operator has to look."""
    stage, other = Stage(), Stage()
    saga = Saga("s").step("a", "a", attempts=1).on_failure("undo", "undo", once=True).build()
    heir = place.engine().register(saga).handle("undo", other.does("undo"))
    lost = place.engine().register(saga).handle("a", stage.does("a", BROKEN))
    instance = run(lost.handle("undo", stage.does("undo", Silence(place, heir))), "s")
    assert (other.calls, status(heir, instance)) == ([], "failed")
    assert [letter.source for letter in heir.dead_letters.list()] == ["compensation"]


@pytest.mark.row("F-071")
def test_a_compensation_whose_worker_fell_silent_is_called_again(place: Place) -> None:
    """Compensations may be repeated by default, too."""
    stage, other = Stage(), Stage()
    saga = Saga("s").step("a", "a", attempts=1).on_failure("undo", "undo").build()
    heir = place.engine().register(saga).handle("undo", other.does("undo"))
    lost = place.engine().register(saga).handle("a", stage.does("a", BROKEN))
    instance = run(lost.handle("undo", stage.does("undo", Silence(place, heir))), "s")
    found = step(heir, instance, "a")
    assert (other.calls, found.status, found.compensation_retry_count) == (["undo"], "rolled_back", 2)


@pytest.mark.row("F-072")
def test_nothing_is_tried_for_ever(place: Place) -> None:
    """A saga of which every call fails comes to its end in a known number of calls, without anybody's help."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN))
        .step("b", stage.does("b", BROKEN))
        .on_failure("undo b", stage.does("undo b", BROKEN))
    )
    instance = run(engine.register(saga.build()), "s")
    engine.advance(hours=24)
    assert (stage.calls, status(engine, instance)) == (["a", *["b"] * 3, *["undo b"] * 3], "failed")
    assert engine.admin.backlog() == []


# -- the wait before the first call


def test_a_step_may_start_later(place: Place) -> None:
    """Its handler is not called before the delay is over; the history tells how long that is, and the retry rule is another thing."""
    stage = Stage()
    saga = (
        Saga("s").step("a", stage.does("a", BROKEN, None), start_after=60, delay=5).step("b", stage.does("b")).build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "s")
    engine.advance(seconds=59)
    assert (stage.calls, step(engine, instance, "a").status, status(engine, instance)) == ([], "pending", "pending")
    (started,) = history(engine, instance, "step_started")
    assert started.data["delay_ms"] == 60_000
    engine.advance(seconds=1)
    assert stage.calls == ["a"]
    engine.advance(seconds=5)
    assert (stage.calls, status(engine, instance)) == (["a", "a", "b"], "completed")


def test_a_step_that_starts_later_can_be_stopped_meanwhile(place: Place) -> None:
    """In branches as well: whoever cancels does not wait for it, and it is never called."""
    stage = Stage()
    saga = Saga("s").parallel("p", task("a", stage.does("a"), start_after=60), task("b", stage.does("b"))).build()
    engine = place.engine().register(saga)
    instance = run(engine, "s")
    reply = engine.futures.run(instance).cancel()
    engine.drain()
    assert reply.result() == "cancelled"
    engine.advance(seconds=60)
    assert stage.calls == ["b"]
    assert statuses(engine, instance)["a"] == "skipped"


def test_a_compensation_may_start_later_and_an_operator_does_not_wait(place: Place) -> None:
    """The delay is that of the first call; a compensation that is tried again is called at once."""
    stage = Stage()
    stage.does("bad", BROKEN)
    stage.does("undo", BROKEN, None)
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo", stage.does("undo"), attempts=1, start_after=60)
        .step("bad", stage.does("bad"), attempts=1)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "s")
    assert (stage.count("undo"), status(engine, instance)) == (0, "running")
    engine.advance(seconds=60)
    assert (stage.count("undo"), engine.run(instance).describe().reason) == (1, "compensation_failed")
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.retry_compensation(letter.id)
    engine.drain()
    assert (stage.count("undo"), status(engine, instance)) == (2, "failed")


def test_a_requeued_step_does_not_wait_for_its_start(place: Place) -> None:
    """What an operator asks for is called at once."""
    stage = Stage()
    saga = Saga("s", dlq=True).step("a", stage.does("a", BROKEN, None), attempts=1, start_after=60).build()
    engine = place.engine().register(saga)
    instance = run(engine, "s")
    engine.advance(seconds=60)
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert (stage.count("a"), status(engine, instance)) == (2, "completed")
