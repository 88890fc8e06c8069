"""Events that are published at the very moment somebody begins, or ceases, to wait: one winner, and a history that shows it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from holdfast import Engine, Saga, SagaDefinition
from holdfast.app.faces.blocking import Run
from holdfast.kernel.ids import InstanceId
from support.engines import Live
from support.waiting import LONG_SECONDS, eventually, together

REPETITIONS = pytest.mark.parametrize(
    "times", [pytest.param(20, id="20"), pytest.param(200, id="200", marks=pytest.mark.long)]
)


def workers(live: Live, saga: SagaDefinition) -> list[Engine]:
    """Two processes that know a saga and work."""
    return [live.engine().register(saga).start_worker() for _ in range(2)]


def received(run: Run[object]) -> int:
    """How many events a run has taken."""
    return [each.event_type for each in run.history()].count("event_received")


@REPETITIONS
def test_an_event_and_the_beginning_of_a_wait_do_not_miss_one_another(live: Live, times: int) -> None:
    """Whoever comes second sees the other: the run goes on, with the event, once."""
    first, second = workers(live, Saga("waiting").wait_for_event("paid", "payment", key="order").build())
    for number in range(times):
        order, runs = f"o-{number}", list[Run[object]]()
        together(
            lambda order=order, runs=runs: runs.append(first.start("waiting", {"order": order})),  # type: ignore[misc]
            partial(second.publish, "payment", order, number),
        )
        (run,) = runs
        assert run.result(timeout=LONG_SECONDS) == {"order": order, "paid": number}
        assert received(run) == 1


@REPETITIONS
def test_an_event_and_the_end_of_a_wait_have_one_winner(live: Live, times: int) -> None:
    """The run takes the event or runs out of time, never both; the way that it went is the one that its history tells."""
    saga = Saga("waiting").wait_for_event(
        "paid", "payment", key="order", timeout=0.05, on_timeout=lambda way: way.save_point("late")
    )
    first, second = workers(live, saga.build())
    ways = set[str]()
    for number in range(times):
        order = f"o-{number}"
        run = first.start("waiting", {"order": order})
        eventually(lambda run=run: _is_nearly_over(first, run))  # type: ignore[misc]
        second.publish("payment", order, number)
        result = run.result(timeout=LONG_SECONDS)
        told = [each.event_type for each in run.history()]
        assert told.count("event_received") + told.count("timeout") == 1
        assert ("event_received" in told) == ("paid" in result)  # type: ignore[operator]
        ways.add("event" if "event_received" in told else "time")
        assert run.verify().is_sound
    assert ways


def _is_nearly_over(engine: Engine, run: Run[object]) -> bool:
    """Whether the time of the run's wait is about to be over, or is."""
    _, timers = engine.service.store.reader("default").work(run.id)
    now = engine.service.shared.clock.now()
    return not timers or timers[0].due_at - now < timedelta(milliseconds=5)


@REPETITIONS
def test_an_event_for_one_has_one_taker(live: Live, times: int) -> None:
    """However many begin to wait while it is published: one gets it, and the next event goes to another."""
    first, second = workers(live, Saga("waiting").wait_for_event("paid", "payment", key="order").build())
    for number in range(times):
        order, runs = f"o-{number}", list[Run[object]]()
        together(
            lambda order=order, runs=runs: runs.append(first.start("waiting", {"order": order})),  # type: ignore[misc]
            lambda order=order, runs=runs: runs.append(second.start("waiting", {"order": order})),  # type: ignore[misc]
            partial(second.publish, "payment", order, 1, event_id=f"a-{number}", match_one=True),
        )
        eventually(lambda number=number: first.events.get(f"a-{number}").taken_by)  # type: ignore[misc]
        first.publish("payment", order, 2, event_id=f"b-{number}", match_one=True)
        results = [run.result(timeout=LONG_SECONDS) for run in runs]
        assert sorted(each["paid"] for each in results) == [1, 2]  # type: ignore[index]
        assert [received(run) for run in runs] == [1, 1]


@REPETITIONS
def test_the_same_event_twice_at_the_same_moment_is_one(live: Live, times: int) -> None:
    """Two processes deliver it: one run is started, and whoever waits gets it once."""
    saga = Saga("waiting").trigger("created", key="id").wait_for_event("paid", "payment", key="id").build()
    first, second = workers(live, saga)
    for number in range(times):
        given = {"id": f"o-{number}"}
        sent = [partial(each.publish, "created", payload=given, event_id=f"e-{number}") for each in (first, second)]
        together(*sent)
        event = eventually(lambda number=number: _started(first, f"e-{number}"))  # type: ignore[misc]
        (identity,) = event
        together(*(partial(each.publish, "payment", f"o-{number}", event_id=f"p-{number}") for each in (first, second)))
        run = first.run(identity)
        assert run.result(timeout=LONG_SECONDS) == given
        assert received(run) == 1
    assert len(first.runs.list(limit=1000).items) == times


def _started(engine: Engine, event: str) -> list[InstanceId]:
    return engine.events.get(event).started
