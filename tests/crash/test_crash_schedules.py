"""Processes that die while schedules start workflows: each time is one run, and the end is always the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Saga
from holdfast.testing import ManualEngine, Scenario
from holdfast.testing.manual import START
from support.crashing import NewStore, tried

HOUR = timedelta(hours=1)


def prepared(engine: ManualEngine) -> None:
    """A workflow that takes longer than the time between two starts, and one that does not."""
    engine.register(Saga("long").step("begin", lambda: None).wait("rest", 1.5 * HOUR).build())
    engine.register(Saga("short").step("write", lambda: None).build())


def scheduled(engine: ManualEngine) -> None:
    """Three hours of a schedule whose runs overlap, one that was asked for, and a period."""
    engine.schedules.put("s", "long", every=HOUR, overlap="buffer_one", start_at=START + HOUR, end_at=START + 3 * HOUR)
    engine.schedules.put("p", "short", cron="0 0 * * *")
    engine.schedules.trigger("p", command_id="now")
    engine.drain()
    engine.schedules.backfill("p", START - timedelta(days=2), START, command_id="days")
    engine.advance(max(START + 7 * HOUR - engine.clock.now(), timedelta(0)))


def told(engine: ManualEngine) -> object:
    """What became of every time, and how many runs there are."""
    return (
        [(each.at, each.status) for each in engine.schedules.fires("s")],
        [(each.why, each.status) for each in engine.schedules.fires("p")],
        sorted((each.definition, each.status) for each in engine.runs.list().items),
    )


SCENARIO = Scenario(prepare=prepared, play=scheduled, outcome=told)


@pytest.mark.row("G-18", "E-765")
def test_a_process_that_dies_anywhere_starts_each_time_once(new_store: NewStore) -> None:
    """Wherever the process dies, a time leads to one run and to the same end."""
    assert tried(SCENARIO, new_store, every=7, on_server=29).points > 1


@pytest.mark.long
def test_a_process_that_dies_at_any_point_starts_each_time_once(new_store: NewStore) -> None:
    """The same at every point there is, and with a second crash while the first is recovered from."""
    assert tried(SCENARIO, new_store).points > 50
    assert tried(SCENARIO, new_store, every=3, again_after=5).points > 20
