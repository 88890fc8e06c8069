"""Time: the database's clock, carried on by the monotonic one; the host's wall clock decides nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from standfast.engine.common.clock import DatabaseClock, ManualClock
from support.engines import Live, Place
from support.inside import beat, claim_one, service_of, store_of
from support.samples import Do, Ledger, Puppet, act, done

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.row("G-23")
def test_the_database_sets_the_time_and_the_monotonic_clock_carries_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the database time goes on by itself, whatever the wall clock does."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = DatabaseClock()
    clock.synchronise(START, now[0])
    now[0] += 5
    assert clock.now() == START + timedelta(seconds=5)
    clock.synchronise(START + timedelta(hours=1), now[0])
    assert clock.now() == START + timedelta(hours=1)
    assert clock.judge() is None, "the database judges leases and due times by its own clock"


def test_an_answer_that_comes_late_sets_no_clock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the system held up while it asked keeps the time it knew; if the database's clock was set, it follows."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = DatabaseClock()
    now[0] += 0.002
    clock.synchronise(START, now[0] - 0.002)
    assert clock.now() == START + timedelta(milliseconds=1), "the answer was made half-way between"
    now[0] += 10
    clock.synchronise(START + timedelta(seconds=7), now[0] - 4)
    assert clock.now() == START + timedelta(seconds=10, milliseconds=1), "it agrees with what the clock knew better"
    clock.synchronise(START + timedelta(hours=1), now[0] - 4)
    assert clock.now() == START + timedelta(hours=1, seconds=2)


def test_a_tests_clock_stands_still_until_it_is_moved() -> None:
    """It obeys the test alone, and it judges."""
    clock = ManualClock(START)
    clock.synchronise(START + timedelta(days=1), clock.ticks())
    assert clock.now() == clock.judge() == START
    clock.move(timedelta(seconds=3))
    assert clock.now() == START + timedelta(seconds=3)
    with pytest.raises(ValueError, match="backwards"):
        clock.move(timedelta(seconds=-1))


def test_a_heartbeat_takes_note_of_the_databases_time(live: Live) -> None:
    """A process whose idea of the time is wrong is set right by its own heartbeat."""
    engine = live.engine().register(Puppet(act), done)
    clock = service_of(engine).shared.clock
    clock.synchronise(START, clock.ticks())
    assert abs(clock.now() - START) < timedelta(hours=1)
    engine.start_worker()
    assert abs(clock.now() - store_of(engine).now()) < timedelta(minutes=1)


def test_a_worker_with_a_wrong_clock_takes_nothing_from_others(place: Place) -> None:
    """Leases are judged by one clock, the database's: an engine that thinks it is tomorrow frees nobody's work."""
    ledger = Ledger()
    honest = place.engine().register(Puppet(act), done)
    honest.deciders.execute(Puppet, Do("p-1", "x"))
    beat(honest)
    assert claim_one(honest, "puppet")
    other = place.engine().register(Puppet(act), lambda context, effect: ledger.add(effect))
    other.drain()
    assert ledger.entries == []
