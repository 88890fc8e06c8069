"""Events: every change has one, what each says, and that together they tell the whole story."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.sagas.acting import BROKEN, Stage, decide, history, run, status, step, told
from standfast import Engine, HistoryEntry, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place


def trip(stage: Stage) -> Saga:
    """Two bookings with what undoes them, and a step that cannot be done."""
    return (
        Saga("trip")
        .step("hotel", stage.does("hotel"))
        .on_failure("cancel hotel", stage.does("cancel hotel", BROKEN, None))
        .step("plain", stage.does("plain"))
        .step("flight", stage.does("flight", BROKEN), attempts=2)
        .on_failure("cancel flight", stage.does("cancel flight"))
    )


@pytest.mark.row("F-118", "F-120", "F-121", "F-122", "F-123", "F-124", "F-126")
def test_a_history_tells_everything_in_order(place: Place) -> None:
    """Each change of a step and of the instance is an event with the new status."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(trip(stage).build()), "trip")
    seen = [(each.event_type, each.step_name, each.status) for each in history(engine, instance)]
    assert seen == [
        ("workflow_started", "", "pending"),
        ("step_started", "hotel", "running"),
        ("step_completed", "hotel", "completed"),
        ("step_started", "plain", "running"),
        ("step_completed", "plain", "completed"),
        ("step_started", "flight", "running"),
        ("step_retry", "flight", "running"),
        ("step_failed", "flight", "failed"),
        ("rollback_started", "", ""),
        ("rollback_planned", "", ""),
        ("compensation_started", "flight", "compensation"),
        ("compensation_success", "flight", "rolled_back"),
        ("step_rolled_back", "plain", "rolled_back"),
        ("compensation_started", "hotel", "compensation"),
        ("compensation_retry", "hotel", "compensation"),
        ("compensation_success", "hotel", "rolled_back"),
        ("workflow_failed", "", "failed"),
    ]
    assert [each.sequence for each in history(engine, instance)] == list(range(1, len(seen) + 1))


@pytest.mark.row("F-119")
def test_an_event_has_all_its_fields(place: Place) -> None:
    """Instance, step, status, type, calls, error and time; no error where nothing went wrong."""
    stage, engine = Stage(), place.engine()
    instance = engine.register(trip(stage).build()).start("trip").id
    begun = place.clock.now()
    engine.advance(seconds=7)
    events = history(engine, instance)
    assert {each.instance for each in events} == {instance}
    assert {each.timestamp for each in events} == {begun}
    failed = next(each for each in events if each.event_type == "step_failed")
    assert (failed.step_name, failed.status, failed.retry_count, failed.error) == (
        "flight",
        "failed",
        2,
        "ValueError: broken",
    )
    well = [each for each in events if each.status in {"pending", "running", "completed", "rolled_back"}]
    assert {each.error for each in well if each.event_type != "step_retry"} == {""}


@pytest.mark.row("F-119")
def test_an_event_says_when_it_happened(place: Place) -> None:
    """Its time is that of the clock at the change, not that of the start."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s").step("a", stage.does("a")).human("ask").build())
    instance = run(engine, "s")
    engine.advance(hours=3)
    decide(engine, instance, "ask")
    times = {each.event_type: each.timestamp for each in history(engine, instance)}
    assert times["workflow_completed"] == times["approved"] == place.clock.now()
    assert (times["approved"] - times["workflow_started"]).total_seconds() == 3 * 3600


@pytest.mark.row("F-119")
def test_an_event_counts_the_calls(place: Place) -> None:
    """The number of calls up to then, of the step or of its compensation."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(trip(stage).build()), "trip")
    counts = [(each.event_type, each.step_name, each.retry_count) for each in history(engine, instance)]
    assert ("step_completed", "hotel", 1) in counts
    assert [each for each in counts if each[1] == "flight"] == [
        ("step_started", "flight", 1),
        ("step_retry", "flight", 1),
        ("step_failed", "flight", 2),
        ("compensation_started", "flight", 1),
        ("compensation_success", "flight", 1),
    ]
    assert [count for kind, name, count in counts if name == "hotel" and kind.startswith("compensation")] == [1, 1, 2]


def lived(engine: Engine, instance: InstanceId, name: str) -> list[tuple[str, str, int]]:
    """Type, status and calls of all events of a step."""
    return [(x.event_type, x.status, x.retry_count) for x in history(engine, instance) if x.step_name == name]


@pytest.mark.row("F-119")
def test_a_call_that_was_never_made_is_not_counted(place: Place) -> None:
    """Cancelled while it waits for its second call: the step was called once, says the history as well as the step."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s").step("a", stage.does("a", BROKEN), delay=100).build())
    instance = run(engine, "s")
    engine.futures.run(instance).cancel()
    engine.drain()
    assert lived(engine, instance, "a") == [
        ("step_started", "running", 1),
        ("step_retry", "running", 1),
        ("step_failed", "skipped", 1),
        ("step_stopped", "skipped", 1),
    ]
    assert (stage.count("a"), step(engine, instance, "a").retry_count) == (1, 1)


@pytest.mark.row("F-119")
def test_a_handler_that_could_not_be_called_was_not_called(place: Place) -> None:
    """Something is missing in the data: neither a step that waits for an operator nor a compensation counts that as a call."""
    engine = place.engine()

    def needs(missing: str) -> None:
        pytest.fail(missing)

    engine.register(Saga("dead", dlq=True).step("a", needs).build())
    undoing = Saga("undoing").step("a", lambda: None).on_failure("undo", needs)
    engine.register(undoing.step("bad", Stage().does("bad", BROKEN), attempts=1).build())
    dead, stuck = run(engine, "dead"), run(engine, "undoing")
    assert lived(engine, dead, "a")[-1] == ("step_paused", "paused", 0)
    assert lived(engine, stuck, "a")[-1] == ("compensation_max_retries_exceeded", "failed", 0)
    assert (step(engine, dead, "a").retry_count, step(engine, stuck, "a").compensation_retry_count) == (0, 0)
    assert [letter.attempts for letter in engine.dead_letters.list()] == [0, 0]


@pytest.mark.row("F-118", "F-119")
def test_a_step_that_starts_later_is_pending_until_then(place: Place) -> None:
    """The history says so too, and counts the call when it has come back."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").step("a", stage.does("a"), start_after=60).on_failure("undo", stage.does("undo"), start_after=60)
    engine.register(saga.step("bad", stage.does("bad", BROKEN), attempts=1).build())
    instance = run(engine, "s")
    assert lived(engine, instance, "a") == [("step_started", "pending", 0)]
    found = step(engine, instance, "a")
    assert (found.status, found.retry_count) == ("pending", 0)
    engine.advance(seconds=60)
    assert lived(engine, instance, "a")[1:] == [
        ("step_completed", "completed", 1),
        ("compensation_started", "compensation", 0),
    ]
    found = step(engine, instance, "a")
    assert (found.status, found.compensation_retry_count) == ("compensation", 0)
    engine.advance(seconds=60)
    assert lived(engine, instance, "a")[-1] == ("compensation_success", "rolled_back", 1)


@pytest.mark.row("F-118")
def test_a_step_without_a_handler_is_pending(place: Place) -> None:
    """Once it is noticed that nobody has the handler, the history says that the call was not made; so of compensations."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s").step("a", "nobody").build())
    back = Saga("back").step("a", stage.does("a")).on_failure("undo", "nobody either")
    engine.register(back.step("bad", stage.does("bad", BROKEN), attempts=1).build())
    waiting, undoing = run(engine, "s"), run(engine, "back")
    engine.advance(hours=1)
    assert lived(engine, waiting, "a")[1:] == [("step_skipped_missing_handler", "pending", 0)]
    assert [kind for kind, _, _ in lived(engine, undoing, "a")].count("step_skipped_missing_handler") == 1
    assert lived(engine, undoing, "a")[-1] == ("step_skipped_missing_handler", "compensation", 0)
    assert (step(engine, waiting, "a").status, step(engine, undoing, "a").status) == ("pending", "compensation")


@pytest.mark.row("F-118")
def test_a_handler_that_is_missing_again_is_told_again(place: Place) -> None:
    """Each call that waits for nobody is told of once, however long it waits, and the next one for itself."""
    engine = place.engine()
    engine.register(Saga("s").step("a", "rare", attempts=2).build())
    instance = run(engine, "s")
    engine.advance(hours=1)
    helper = place.engine()
    helper.handle("rare", Stage().does("a", BROKEN))
    assert helper.execute_next()
    helper.stop()
    engine.advance(hours=1)
    told = [kind for kind, _, _ in lived(engine, instance, "a")]
    assert told.count("step_skipped_missing_handler") == 2


@pytest.mark.row("F-118")
def test_a_step_goes_on_as_what_it_was(place: Place) -> None:
    """Its call was taken back while the saga waited: one that was called before is running again, one that was not is pending."""
    engine, stage = place.engine(), Stage()
    saga = Saga("s", dlq=True).fork(
        "f",
        lambda one: one.step("bad", stage.does("bad", BROKEN, None), attempts=1, priority=5),
        lambda two: two.step("cold", stage.does("cold")),
        lambda three: three.step("warm", stage.does("warm", BROKEN, None), priority=9, delay=60),
    )
    instance = run(engine.register(saga.join("met").build()), "s")
    assert stage.calls == ["warm", "bad"]
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter)
    for name, word, calls in (("cold", "pending", 0), ("warm", "running", 1)):
        assert lived(engine, instance, name)[-1] == ("step_resumed", word, calls)
        found = step(engine, instance, name)
        assert (found.status, found.retry_count) == (word, calls)
    engine.advance(minutes=1)  # A call that was put off keeps its time.
    assert (status(engine, instance), lived(engine, instance, "warm")[-1][2]) == ("completed", 2)


def of(engine: Engine, instance: InstanceId, kind: str) -> list[tuple[str, int, str]]:
    """Step, calls and error of all events of a type."""
    return [(each.step_name, each.retry_count, each.error) for each in history(engine, instance, kind)]


@pytest.mark.row("F-120")
def test_each_call_has_an_event_that_begins_it(place: Place) -> None:
    """The first call of a step is told by `step_started`, each further one by the `step_retry` that leads to it."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").step("a", stage.does("a", BROKEN, BROKEN, None)).step("b", stage.does("b"))
    instance = run(engine.register(saga.build()), "s")
    assert of(engine, instance, "step_started") == [("a", 1, ""), ("b", 1, "")]
    assert of(engine, instance, "step_retry") == [("a", 1, "ValueError: broken"), ("a", 2, "ValueError: broken")]
    assert len(stage.calls) == len(history(engine, instance, "step_started", "step_retry"))


@pytest.mark.row("F-121")
def test_a_failure_is_told_with_its_error(place: Place) -> None:
    """`step_failed` once, when the calls are used up; and for each step that a cancellation stopped, with the reason."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(trip(stage).build()), "trip")
    assert of(engine, instance, "step_failed") == [("flight", 2, "ValueError: broken")]
    engine.register(Saga("asking").human("ask").build())
    waiting = run(engine, "asking")
    engine.run(waiting).cancel()
    (stopped,) = history(engine, waiting, "step_failed")
    assert (stopped.step_name, stopped.status, stopped.data["reason"]) == ("ask", "skipped", "workflow_stopped")


@pytest.mark.row("F-122", "F-123", "F-124")
def test_a_compensation_is_told(place: Place) -> None:
    """Once that it began, once for each failed call that is repeated, once that it went well."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(trip(stage).build()), "trip")
    assert of(engine, instance, "compensation_started") == [("flight", 1, ""), ("hotel", 1, "")]
    assert of(engine, instance, "compensation_retry") == [("hotel", 1, "ValueError: broken")]
    assert of(engine, instance, "compensation_success") == [("flight", 1, ""), ("hotel", 2, "")]
    assert of(engine, instance, "compensation_max_retries_exceeded") == []


@pytest.mark.row("F-125")
def test_a_compensation_that_gives_up_is_told(place: Place) -> None:
    """Once, with its error and its calls; and there is no word of success."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=3)
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    instance = run(engine.register(saga.build()), "s")
    assert of(engine, instance, "compensation_started") == [("a", 1, "")]
    assert [count for _, count, _ in of(engine, instance, "compensation_retry")] == [1, 2]
    (exceeded,) = history(engine, instance, "compensation_max_retries_exceeded")
    assert (exceeded.step_name, exceeded.status, exceeded.retry_count) == ("a", "failed", 3)
    assert exceeded.error == "ValueError: broken"
    assert of(engine, instance, "compensation_success") == []


# -- the history alone


def happy(engine: ManualEngine, stage: Stage) -> InstanceId:
    """All goes well, after a question, a condition and a fork."""
    saga = (
        Saga("happy")
        .step("a", stage.does("a", BROKEN, None))
        .human("ask")
        .condition("c", "{{ .yes }}", lambda no: no.step("n", stage.does("n")))
        .fork("f", lambda one: one.step("x", stage.does("x")), lambda two: two.step("y", stage.does("y")))
        .join("met", "any")
        .save_point("sp")
    )
    instance = run(engine.register(saga.build()), "happy", {"yes": True})
    decide(engine, instance, "ask")
    return instance


def undone(engine: ManualEngine, stage: Stage) -> InstanceId:
    """A rollback, with a branch that never began."""
    saga = trip(stage).fork(
        "never", lambda one: one.step("x", stage.does("x")), lambda two: two.step("y", stage.does("y"))
    )
    return run(engine.register(saga.join("met").build()), "trip")


def halved(engine: ManualEngine, stage: Stage) -> InstanceId:
    """A failure beside a branch that waits for a person and one that was not begun."""
    saga = Saga("halved").fork(
        "f",
        lambda one: one.step("bad", stage.does("bad", BROKEN), attempts=1),
        lambda two: two.human("ask"),
        lambda three: three.step("late", stage.does("late")),
    )
    return run(engine.register(saga.join("met").build()), "halved")


def stuck(engine: ManualEngine, stage: Stage) -> InstanceId:
    """A compensation that gave up."""
    saga = (
        Saga("stuck")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=1)
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    return run(engine.register(saga.build()), "stuck")


def dead(engine: ManualEngine, stage: Stage) -> InstanceId:
    """In the dead letter queue, beside a branch that was taken back."""
    saga = Saga("dead", dlq=True).fork(
        "f",
        lambda one: one.step("bad", stage.does("bad", BROKEN, None), attempts=1),
        lambda two: two.step("cold", stage.does("cold")),
    )
    return run(engine.register(saga.join("met").build()), "dead")


def requeued(engine: ManualEngine, stage: Stage) -> InstanceId:
    """Out of the dead letter queue again."""
    instance = dead(engine, stage)
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.requeue(letter.id)
    return instance


def buried(engine: ManualEngine, stage: Stage) -> InstanceId:
    """Aborted in the dead letter queue."""
    instance = dead(engine, stage)
    engine.futures.run(instance).abort()
    return instance


def cancelled(engine: ManualEngine, stage: Stage) -> InstanceId:
    """Cancelled from inside of a branch."""
    stop = stage.does("x", lambda ctx: engine.futures.run(ctx.instance).cancel())
    saga = (
        Saga("cancelled")
        .step("a", stage.does("a"))
        .fork("f", lambda one: one.step("x", stop), lambda two: two.step("y", stage.does("y")))
    )
    return run(engine.register(saga.join("met").build()), "cancelled")


def refused(engine: ManualEngine, stage: Stage) -> InstanceId:
    """Rejected by a person."""
    instance = run(engine.register(Saga("refused").human("ask").step("a", stage.does("a")).build()), "refused")
    decide(engine, instance, "ask", "rejected")
    return instance


def rebuilt(events: list[HistoryEntry]) -> tuple[str, dict[str, str]]:
    """The status of an instance and of its steps, from events alone."""
    instance = [each.status for each in events if each.step_number is None and each.status][-1]
    return instance, {each.step_name: each.status for each in events if each.step_number is not None and each.status}


@pytest.mark.row("F-118", "F-126")
@pytest.mark.parametrize(
    "story",
    [happy, undone, halved, stuck, dead, requeued, buried, cancelled, refused],
    ids=lambda story: story.__name__,
)
def test_the_history_alone_tells_how_it_ended(place: Place, story: Callable[[ManualEngine, Stage], InstanceId]) -> None:
    """The last event of each step, and of the instance, says the status and the calls that are stored; the rows prove it."""
    engine, stage = place.engine(), Stage()
    instance = story(engine, stage)
    engine.drain()
    ended, steps = rebuilt(history(engine, instance))
    assert ended == status(engine, instance)
    assert steps == {each.name: each.status for each in engine.run(instance).steps()}
    forward = [each for each in history(engine, instance) if each.event_type.startswith("step_")]
    calls = {each.step_number: each.retry_count for each in forward if each.event_type != "step_rolled_back"}
    assert {each.number: each.retry_count for each in engine.run(instance).steps()}.items() <= calls.items()
    assert engine.instances.verify(instance).differences == []


@pytest.mark.row("F-126")
def test_the_other_events_exist(place: Place) -> None:
    """What the list of types leaves out is told as well: ends, retries, decisions, pauses, dead letters, cancel and abort."""
    engine, stage = place.engine(), Stage()
    seen: set[str] = set()
    for story in (happy, undone, requeued, cancelled, refused):
        instance = story(engine, stage)
        engine.drain()
        seen |= {kind for kind, _ in told(engine, instance)}
        stage = Stage()
        engine = place.engine()
    assert seen >= {
        "step_completed",
        "step_retry",
        "workflow_started",
        "workflow_completed",
        "workflow_failed",
        "approved",
        "rejected",
        "step_rolled_back",
        "step_paused",
        "workflow_paused",
        "step_requeued",
        "workflow_resumed",
        "cancellation_started",
        "workflow_cancelled",
        "abort_started",
        "workflow_aborted",
    }


@pytest.mark.row("F-118")
def test_events_are_there_with_the_change_and_for_good(place: Place) -> None:
    """Another process reads the same history; it only ever grows, and can be read page by page."""
    stage, engine = Stage(), place.engine()
    instance = engine.register(trip(stage).build()).start("trip").id
    so_far = history(engine, instance)
    while engine.execute_next():
        now = history(engine, instance)
        assert now[: len(so_far)] == so_far
        assert len(now) > len(so_far)
        so_far = now
    reader = place.engine()
    assert reader.run(instance).history() == so_far
    page = reader.run(instance).history(after=3, limit=4)
    assert page == so_far[3:7]
    assert step(reader, instance, "flight").status == "rolled_back"
