"""Working time: what is computed in spans is what a walk from minute to minute comes to."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.machine.graphs.working_time import DAYS, Calendar, WorkingTime, calendars_of

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
FIRST = datetime(2030, 3, 20, tzinfo=UTC)
"""Clocks change in the weeks after it, in most of the zones."""
HOURS = [["09:00-17:00"], ["08:15-12:00", "12:45-16:30"], ["06:00-07:00", "22:00-24:00"], ["04:00-24:00"], []]


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    """Some that work on one day at least."""
    hours = {day: draw(st.sampled_from(HOURS)) for day in draw(st.sets(st.sampled_from(DAYS), min_size=1))}
    if not any(hours.values()):
        hours["wed"] = ["09:00-10:00"]
    off = draw(st.sets(st.integers(0, 40), max_size=8))
    return Calendar(
        zone=draw(st.sampled_from(ZONES)), hours=hours, holidays=[FIRST.date() + DAY * each for each in off]
    )


class Walker:
    """The most obvious way: one minute after the other."""

    def __init__(self, calendar: Calendar) -> None:
        self.zone = ZoneInfo(calendar.zone)
        self.calendar = calendar

    def works(self, at: datetime) -> bool:
        """Whether it is worked in the minute that begins then."""
        local = at.astimezone(self.zone)
        return self.holds(local.date(), f"{local:%H:%M}")

    def holds(self, day: date, clock: str) -> bool:
        """Whether it is worked on a day at a time of day."""
        spans = [] if day in self.calendar.holidays else self.calendar.hours.get(DAYS[day.weekday()], [])
        return any(each[:5] <= clock < each[6:] for each in spans)

    def after(self, at: datetime, days: int, minutes: int) -> datetime:
        """When so much has gone by."""
        while not self.works(at):
            at += MINUTE
        if days:
            local = at.astimezone(self.zone)
            day = local.date()
            while days:
                day += DAY
                days -= any(self.holds(day, f"{each // 60:02}:{each % 60:02}") for each in range(0, 1440, 15))
            at = datetime.combine(day, local.time(), self.zone).astimezone(UTC)
            while not self.works(at):
                at += MINUTE
        while minutes:
            minutes -= self.works(at)
            at += MINUTE
        return at


@pytest.mark.row("EO-20")
@settings(max_examples=25, deadline=None)
@given(calendar=calendars(), begin=st.integers(0, 20 * 1440), days=st.integers(0, 4), minutes=st.integers(0, 900))
def test_working_time_is_that_of_a_walk(calendar: Calendar, begin: int, days: int, minutes: int) -> None:
    """Whatever the hours, the holidays, the zone and the change of its clocks."""
    since = FIRST + MINUTE * begin
    found = WorkingTime(calendar).after(since, days=days, time=MINUTE * minutes)
    assert found == Walker(calendar).after(since, days, minutes)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"zone": "Mars", "hours": {"mon": ["09:00-17:00"]}}, "time zone 'Mars'"),
        ({"zone": "UTC", "hours": {}}, "no hours"),
        ({"zone": "UTC", "hours": {"mon": []}}, "no hours"),
        ({"zone": "UTC", "hours": {"mon": ["17:00-09:00"]}}, "hours of mon cannot be read"),
        ({"zone": "UTC", "hours": {"mon": ["09:00-24:30"]}}, "hours of mon cannot be read"),
        ({"zone": "UTC", "hours": {"mon": ["09:00-12:00", "11:00-13:00"]}}, "overlap"),
        ({"zone": "UTC", "hours": {"monday": ["09:00-12:00"]}}, "cannot be read"),
        ({"zone": "UTC", "hours": {"mon": ["09:00-12:00"]}, "holidays": ["Easter"]}, "cannot be read"),
        ({"zone": "UTC", "hours": {"mon": ["09:00-12:00"]}, "holidays": ["2030-01-01"] * 10_001}, "10001 holidays"),
        ({"zone": "UTC"}, "cannot be read"),
        ("office", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_calendar_is_told(given: object, told: str) -> None:
    """Each in a sentence that says what to write."""
    _, flaws = calendars_of({"calendars": {"office": given}})
    assert told in " ".join(flaws)
