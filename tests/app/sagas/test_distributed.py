"""Several services at one queue, each with the handlers that it has, and what becomes of work that nobody can do."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses, step
from standfast import ConfigurationError, Saga, Settings
from standfast.store.records.instances import DEFAULT_TENANT
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import beat, housekeeping_of
from support.waiting import eventually

COOLDOWN = timedelta(seconds=5)
MINUTE = timedelta(minutes=1)

ORDER = (
    Saga("order")
    .step("pay", "payment")
    .on_failure("refund", "refunding")
    .fork("fork", lambda one: one.step("ship", "shipping", attempts=1), lambda two: two.save_point("here"))
    .join("met")
    .condition("paid", "{{ .paid }}")
    .then("mail", "payment")
    .build()
)


def look(engine: ManualEngine) -> None:
    """Have an engine look for handlers that nobody has, as it does by itself now and then."""
    housekeeping_of(engine).missing.look()


def missed(engine: ManualEngine, instance: object) -> int:
    """How often a history tells of a missing handler."""
    return len(history(engine, instance, "step_skipped_missing_handler"))  # type: ignore[arg-type]


@pytest.mark.row("F-104", "F-105", "EC-19")
def test_services_share_the_steps_of_one_saga(place: Place) -> None:
    """Each step is called where its handler is; steps without a handler are nobody's business and everybody's."""
    payment, shipping = Stage(), Stage()
    first = place.engine().register(ORDER).handle("payment", payment.does("payment", {"paid": True}))
    second = place.engine().handle("shipping", shipping.does("shipping"))
    instance = first.start("order").id
    first.drain()
    assert (payment.calls, shipping.calls, status(first, instance)) == (["payment"], [], "running")
    second.drain()
    assert shipping.calls == ["shipping"]
    first.drain()
    assert (payment.calls, status(first, instance)) == (["payment", "payment"], "completed")


@pytest.mark.row("F-104")
def test_services_with_threads_share_the_steps_of_one_saga(live: Live) -> None:
    """The same with services that work by themselves."""
    payment, shipping = Stage(), Stage()
    first = live.engine().register(ORDER).handle("payment", payment.does("payment", {"paid": True})).start_worker()
    live.engine().handle("shipping", shipping.does("shipping")).start_worker()
    started = [first.start("order").id for _ in range(5)]
    eventually(lambda: all(status(first, each) == "completed" for each in started))
    assert (payment.count("payment"), shipping.count("shipping")) == (10, 5)


@pytest.mark.row("F-106", "F-107")
def test_a_step_without_its_handler_waits_untouched(place: Place) -> None:
    """A service that lacks the handler does not touch it, and one that has it takes it at once."""
    stage, idle = Stage(), place.engine().register(ORDER)
    instance = idle.start("order").id
    assert (idle.execute_next(), idle.drain()) == (False, 0)
    idle.advance(hours=1)
    look(idle)
    found = step(idle, instance, "pay")
    assert (found.status, found.retry_count, found.error) == ("pending", 0, "")
    ((row,), _) = place.store.reader(DEFAULT_TENANT).work(instance)
    assert (row.owner, row.attempts, row.parked_until) == (None, 0, None)
    able = place.engine().handle("payment", stage.does("payment"))
    assert able.execute_next()
    assert (stage.calls, step(able, instance, "pay").retry_count) == (["payment"], 1)


@pytest.mark.row("F-107")
def test_work_that_a_service_cannot_do_does_not_stand_in_its_way(place: Place) -> None:
    """Urgent rows without a handler do not keep a service from the rest, and it comes to an end."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("foreign").step("a", "elsewhere", priority=100).build())
    engine.register(Saga("own").step("a", stage.does("a")).build())
    for _ in range(20):
        engine.start("foreign")
    instance = engine.start("own").id
    engine.drain()
    assert status(engine, instance) == "completed"
    assert engine.drain() == 0


@pytest.mark.row("F-108", "F-111", "EC-19")
def test_a_handler_is_missed_after_the_cooldown(place: Place) -> None:
    """A worker that is just being restarted is no news; after the cooldown the history tells, and the step still waits."""
    engine = place.engine(Settings(missing_handler_cooldown=COOLDOWN)).register(ORDER)
    instance = engine.start("order").id
    engine.advance(COOLDOWN - timedelta(milliseconds=1))
    look(engine)
    assert missed(engine, instance) == 0
    engine.advance(timedelta(milliseconds=1))
    look(engine)
    (told,) = history(engine, instance, "step_skipped_missing_handler")
    assert (told.step_name, told.data["handler"], told.timestamp) == ("pay", "payment", place.clock.now())
    assert statuses(engine, instance) == {"pay": "pending"}
    assert status(engine, instance) == "pending"


@pytest.mark.row("F-108")
def test_a_handler_that_somebody_alive_has_is_not_missed(place: Place) -> None:
    """As long as a live worker has the handler, nobody complains, however long the step waits."""
    engine = place.engine(Settings(missing_handler_cooldown=COOLDOWN)).register(ORDER)
    busy = place.engine().handle("payment", Stage().does("payment"))
    beat(busy)
    instance = engine.start("order").id
    place.clock.move(COOLDOWN)
    look(engine)
    assert missed(engine, instance) == 0
    place.clock.move(MINUTE)  # By now the busy one counts as dead.
    engine.drain()
    look(engine)
    assert missed(engine, instance) == 1


@pytest.mark.row("F-109")
def test_the_cooldown_varies_by_its_jitter(place: Place) -> None:
    """The time between two looks lies within the share that is set, and is not always the same."""
    engine = place.engine(Settings(missing_handler_cooldown=COOLDOWN, missing_handler_jitter=0.2))
    waits = [housekeeping_of(engine).step() for _ in range(200)]
    assert all(4 <= wait <= 6 for wait in waits)
    assert len(set(waits)) > 100
    assert max(waits) - min(waits) > 1, "both sides are used"
    steady = place.engine(Settings(missing_handler_cooldown=COOLDOWN, missing_handler_jitter=0))
    assert {housekeeping_of(steady).step() for _ in range(5)} == {5.0}
    for wrong in (-0.1, 1.1):
        with pytest.raises(ConfigurationError, match="missing_handler_jitter"):
            Settings(missing_handler_jitter=wrong)


@pytest.mark.row("F-110", "F-111")
def test_a_missing_handler_is_reported_once_in_a_while(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A hundred looks in a minute make one line in the log; the history of each instance that waits tells it once."""
    engine = place.engine(Settings(missing_handler_cooldown=COOLDOWN, missing_handler_throttle=MINUTE)).register(ORDER)
    first, second = engine.start("order").id, engine.start("order").id
    engine.advance(COOLDOWN)
    with caplog.at_level(logging.WARNING, logger="standfast"):
        for _ in range(100):
            look(engine)
            engine.advance(MINUTE / 101)
        lines = [each.getMessage() for each in caplog.records if "'payment'" in each.getMessage()]
        assert len(lines) == 1
        assert (missed(engine, first), missed(engine, second)) == (1, 1)
        engine.advance(MINUTE)
        look(engine)
    assert len([each for each in caplog.records if "'payment'" in each.getMessage()]) == 2
    assert (missed(engine, first), missed(engine, second)) == (1, 1)


@pytest.mark.row("F-111")
def test_a_history_tells_of_the_missing_handler_without_anybody_asking(live: Live) -> None:
    """An engine that works by itself looks by itself."""
    settings = Settings(missing_handler_cooldown=timedelta(0), poll_interval=timedelta(seconds=0.1))
    engine = live.engine(settings).register(ORDER).start_worker()
    instance = engine.start("order").id
    eventually(lambda: history(engine, instance, "step_skipped_missing_handler"))
    assert step(engine, instance, "pay").status == "pending"


@pytest.mark.row("C-13", "F-112")
def test_a_cancellation_waits_for_the_service_that_has_the_compensation(place: Place) -> None:
    """Until then the run is running, with the cancellation on record, and whoever cancelled has no answer; then it is cancelled."""
    other = Stage()
    first = place.engine().register(ORDER).handle("payment", Stage().does("payment"))
    instance = run(first, "order")
    reply = first.futures.run(instance).cancel("not wanted")
    first.drain()
    assert (reply.done(), status(first, instance)) == (False, "running")
    told = [each.event_type for each in history(first, instance)]
    assert ("cancellation_started" in told, "workflow_cancelled" in told) == (True, False)
    place.engine().handle("refunding", other.does("refunding")).drain()
    assert (other.calls, status(first, instance)) == (["refunding"], "cancelled")


@pytest.mark.row("F-112")
@pytest.mark.row("C-13")
def test_compensations_are_called_where_their_handlers_are(place: Place) -> None:
    """A rollback that one service began waits for the one that has the compensation, which brings it to its end."""
    stage, other = Stage(), Stage()
    first = place.engine().register(ORDER).handle("payment", stage.does("payment"))
    first.handle("shipping", stage.does("shipping", BROKEN))
    instance = run(first, "order")
    assert (stage.calls, status(first, instance)) == (["payment", "shipping"], "running")
    assert step(first, instance, "pay").status == "compensation"
    first.advance(MINUTE)
    look(first)
    (told,) = history(first, instance, "step_skipped_missing_handler")
    assert (told.step_name, told.data["handler"]) == ("pay", "refunding")
    found = step(first, instance, "pay")
    assert (found.status, found.compensation_retry_count) == ("compensation", 0)
    place.engine().handle("refunding", other.does("refunding")).drain()
    assert (other.calls, status(first, instance)) == (["refunding"], "failed")
