"""Events that are published at the very moment somebody begins, or ceases, to wait: one winner, and a history that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from app.sagas.acting import history
from standfast import Engine, Saga, SagaDefinition
from standfast.app.api.sync import Run
from standfast.engine.common.clock import ManualClock
from standfast.kernel.ids import InstanceId
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.engines import Live
from support.inside import clockwork_of
from support.racing import TIMES, Group, endings, raced, rivals
from support.waiting import LONG_SECONDS, eventually

MINUTE = timedelta(minutes=1)
SOME = 50
"""How often those races are run that need many commits each."""


def workers(live: Live, saga: SagaDefinition) -> tuple[Engine, Engine]:
    """Two processes that know a saga and work."""
    one, two = rivals(live, saga)
    return one.start_worker(), two.start_worker()


def received(engine: Engine, run: Run[object]) -> int:
    """How many events a run has taken."""
    return len(history(engine, run.id, "event_received"))


def starting(engine: Engine, runs: list[Run[object]], order: str) -> None:
    """Begin to wait for the payment of an order."""
    runs.append(engine.start("waiting", {"order": order}))


WAITING = Saga("waiting").wait_for_event("paid", "payment", key="order").build()


def test_an_event_and_the_beginning_of_a_wait_do_not_miss_one_another(live: Live) -> None:
    """Whoever comes second sees the other: the run goes on, with the event, once."""
    one, two = workers(live, WAITING)
    runs: list[Run[object]] = []
    raced(
        (partial(starting, one, runs, f"o-{number}"), partial(two.publish, "payment", f"o-{number}", number))
        for number in range(TIMES)
    )
    for number, run in enumerate(runs):
        assert run.result(timeout=LONG_SECONDS) == {"order": f"o-{number}", "paid": number}
        assert received(one, run) == 1


def test_an_event_and_the_end_of_a_wait_have_one_winner(live: Live) -> None:
    """The run takes the event or runs out of time, never both; the way that it went is the one that its history tells."""
    clock = ManualClock(START)
    saga = Saga("waiting").wait_for_event(
        "paid", "payment", key="order", timeout=MINUTE, on_timeout=lambda way: way.save_point("late")
    )
    one, two = (live.engine(clock=clock).register(saga.build()) for _ in range(2))
    store = open_store(live.url)
    router = ManualEngine(store=store, clock=clock).register(saga.build())
    runs: list[Run[object]] = []

    def groups() -> Iterator[Group]:
        for number in range(TIMES):
            starting(one, runs, f"o-{number}")
            router.publish("payment", f"o-{number}", number)
            while router.execute_next():  # Nobody found it early; it is on its way to the one who waits.
                pass
            clock.move(MINUTE)
            yield clockwork_of(one).deliver, clockwork_of(two).fire

    try:
        raced(groups())
        assert endings(one, runs) == ["completed"] * TIMES
        for run in runs:
            told = [each.event_type for each in history(one, run.id, "event_received", "timeout")]
            assert told == (["event_received"] if "paid" in run.result() else ["timeout"])  # type: ignore[operator]
        assert eventually(lambda: router.admin.inbox_depth() == 0)
    finally:
        router.stop()
        store.close()


def test_an_event_for_one_has_one_taker(live: Live) -> None:
    """However many begin to wait while it is published: one gets it, and the next event goes to another."""
    one, two = workers(live, WAITING)
    runs: list[Run[object]] = []
    raced(
        (
            (
                partial(starting, one, runs, f"o-{number}"),
                partial(starting, two, runs, f"o-{number}"),
                partial(two.publish, "payment", f"o-{number}", 1, event_id=f"a-{number}", match_one=True),
            )
            for number in range(SOME)
        ),
        lanes=3,
    )
    for number in range(SOME):
        eventually(partial(_taker, one, f"a-{number}"))
        two.publish("payment", f"o-{number}", 2, event_id=f"b-{number}", match_one=True)
    paid: dict[str, list[int]] = {}
    for run in runs:
        result = run.result(timeout=LONG_SECONDS)
        paid.setdefault(result["order"], []).append(result["paid"])  # type: ignore[index]
        assert received(one, run) == 1
    assert [sorted(each) for each in paid.values()] == [[1, 2]] * SOME


def _taker(engine: Engine, event: str) -> InstanceId | None:
    return engine.events.get(event).taken_by


def test_the_same_event_twice_at_the_same_moment_is_one(live: Live) -> None:
    """Two processes deliver it: one run is started, and whoever waits gets it once."""
    saga = Saga("waiting").trigger("created", key="id").wait_for_event("paid", "payment", key="id").build()
    one, two = workers(live, saga)
    raced(
        [partial(each.publish, "created", payload={"id": f"o-{number}"}, event_id=f"e-{number}") for each in (one, two)]
        for number in range(SOME)
    )
    started = [eventually(partial(_started, one, f"e-{number}")) for number in range(SOME)]
    raced(
        [partial(each.publish, "payment", f"o-{number}", event_id=f"p-{number}") for each in (one, two)]
        for number in range(SOME)
    )
    for number, (identity,) in enumerate(started):
        run = one.run(identity)
        assert run.result(timeout=LONG_SECONDS) == {"id": f"o-{number}"}
        assert received(one, run) == 1
    assert len(one.runs.list(limit=1000).items) == SOME


def _started(engine: Engine, event: str) -> list[InstanceId]:
    return engine.events.get(event).started
