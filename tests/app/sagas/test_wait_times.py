"""Waiting until an instant, and for the next time of a calendar rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.sagas.acting import run, status
from standfast import DefinitionError, Saga
from standfast.graph.values.calendars import next_time
from standfast.testing.manual import START
from support.engines import Place

HOUR = timedelta(hours=1)


@pytest.mark.row("E-411", "E-763")
@pytest.mark.parametrize(
    ("until", "given"),
    [
        ("due", {"due": (START + HOUR).isoformat()}),
        ("input.due.at", {"due": {"at": (START + HOUR).isoformat()}}),
        (START + HOUR, {}),
    ],
)
def test_a_wait_ends_at_its_instant(place: Place, until: Any, given: object) -> None:
    """Given in the data or as it is: not a moment earlier."""
    engine = place.engine().register(Saga("slow").wait("rest", until=until).build())
    instance = run(engine, "slow", given)
    engine.advance(HOUR - timedelta(milliseconds=1))
    assert status(engine, instance) == "running"
    engine.advance(timedelta(milliseconds=1))
    assert status(engine, instance) == "completed"


@pytest.mark.parametrize("due", [START.isoformat(), "2001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"])
def test_an_instant_that_has_passed_is_no_wait(place: Place, due: str) -> None:
    """The saga goes on at once."""
    engine = place.engine().register(Saga("slow").wait("rest", until="due").build())
    assert status(engine, run(engine, "slow", {"due": due})) == "completed"


@pytest.mark.parametrize(
    "due", [None, "soon", 5, "2026-01-01", "2026-01-01T00:00:00", {"a": 1}, "9999-12-31T23:59:59-10:00"]
)
def test_what_is_no_instant_fails_the_step(place: Place, due: object) -> None:
    """The sentence says so."""
    saga = Saga("slow").wait("rest", until="due").build()
    engine = place.engine().register(saga)
    instance = run(engine, "slow", {"due": due})
    assert status(engine, instance) == "failed"
    assert "waits for what is no instant" in engine.run(instance).describe().error


def test_a_missing_instant_fails_the_step(place: Place) -> None:
    """As one that is none."""
    engine = place.engine().register(Saga("slow").wait("rest", until="due").build())
    assert status(engine, run(engine, "slow", {})) == "failed"


def test_a_wait_ends_at_the_next_time_of_its_rule(place: Place) -> None:
    """On the clock of its zone, strictly after it was entered."""
    engine = place.engine().register(
        Saga("slow").wait("rest", cron="0 9 * * MON-FRI", time_zone="Europe/Berlin").build()
    )
    place.clock.move(datetime(2032, 7, 2, 7, 0, tzinfo=UTC) - place.clock.now())  # Friday, nine o'clock in Berlin.
    instance = run(engine, "slow")
    engine.advance(timedelta(days=3) - timedelta(seconds=1))
    assert status(engine, instance) == "running"
    engine.advance(seconds=1)
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-769")
@pytest.mark.row("E-764")
def test_overdue_waits_fire_once_after_a_long_downtime(place: Place) -> None:
    """Three days without any process: the next one finds the wait over, and fires it once however often it looks."""
    saga = Saga("slow").wait("rest", cron="0 9 * * *").build()
    instance = run(place.engine().register(saga), "slow")
    place.clock.move(timedelta(days=3))
    other = place.engine()
    for _ in range(10):
        other.drain()
    assert status(other, instance) == "completed"
    assert [each.event_type for each in other.run(instance).history()].count("step_completed") == 1


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-03-28T12:00:00+00:00", "2026-03-29T01:00:00+00:00"),  # 2:30 does not exist: the clock goes from 2 to 3.
        ("2026-10-24T12:00:00+00:00", "2026-10-25T00:30:00+00:00"),  # 2:30 exists twice: the first one.
        ("2026-07-01T00:30:00+00:00", "2026-07-02T00:30:00+00:00"),  # Strictly after.
    ],
)
def test_a_rule_keeps_to_the_clock_of_its_zone(now: str, expected: str) -> None:
    """Also where that jumps."""
    assert next_time("30 2 * * *", "Europe/Berlin", datetime.fromisoformat(now)) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "wait_time"),
        ({"duration": 5, "cron": "* * * * *"}, "wait_time"),
        ({"until": "due", "cron": "* * * * *"}, "wait_time"),
        ({"until": "2030-01-01T00:00:00Z"}, "until"),
        ({"until": "2030-01-01"}, "until"),
        ({"cron": "every day"}, "cron"),
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "* * * * * *"}, "cron"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": 5}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron_never"),
        ({"cron": "0 0 31 4,6,9,11 *"}, "cron_never"),
        ({"cron": "* * * * *", "time_zone": "Europe/Atlantis"}, "time_zone"),
        ({"cron": "* * * * *", "time_zone": ""}, "time_zone"),
        ({"cron": "* * * * *", "time_zone": "../etc/passwd"}, "time_zone"),
        ({"cron": "* * * * *", "time_zone": 5}, "time_zone"),
        ({"duration": 5, "time_zone": "Europe/Berlin"}, "time_zone"),
        ({"until": "1 +"}, "bad_expression"),
        ({"until": 5}, "bad_expression"),
        ({"until": datetime(2026, 1, 1)}, "until"),  # noqa: DTZ001 - that is what is wrong with it
    ],
)
def test_a_time_that_never_comes_is_refused(options: dict[str, Any], code: str) -> None:
    """When the saga is built, with a code and a sentence."""
    with pytest.raises(DefinitionError) as refused:
        Saga("slow").wait("rest", **options).build()
    assert code in {each.code for each in refused.value.diagnostics}


def test_the_29th_of_february_comes(place: Place) -> None:
    """A rule that fires every four years is a rule."""
    saga = Saga("slow").wait("rest", cron="0 0 29 2 *").build()
    instance = run(place.engine().register(saga), "slow")
    assert status(place.engine(), instance) == "running"
