"""Working time: what is computed in spans is what a walk from minute to minute comes to."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standfast.graph.values.business_time import DAYS, Calendar, WorkingTime, calendars_of

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Havana",
]
SPRING, AUTUMN = datetime(2030, 3, 5, tzinfo=UTC), datetime(2030, 10, 1, tzinfo=UTC)
"""Clocks change in the weeks after each, in most of the zones."""
HOURS = [
    ["09:00-17:00"],
    ["08:15-12:00", "12:45-16:30"],
    ["06:00-07:00", "22:00-24:00"],
    ["00:00-00:45", "01:30-02:15", "02:30-03:00", "03:15-24:00"],
    ["02:15-02:45"],
    [],
]
"""Also at night, when clocks are changed."""


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    """Some that work on one day at least."""
    hours = {day: draw(st.sampled_from(HOURS)) for day in draw(st.sets(st.sampled_from(DAYS), min_size=1))}
    if not any(hours.values()):
        hours["wed"] = ["09:00-10:00"]
    off = draw(st.sets(st.integers(0, 40), max_size=8))
    return Calendar(
        zone=draw(st.sampled_from(ZONES)), hours=hours, holidays=[SPRING.date() + DAY * each for each in off]
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
            clock = (day, local.time())
            at = datetime.combine(day, local.time(), UTC) - DAY
            while ((now := at.astimezone(self.zone)).date(), now.time()) < clock:  # What clocks skip is over with that.
                at += MINUTE
            while not self.works(at):
                at += MINUTE
        while minutes:
            minutes -= self.works(at)
            at += MINUTE
        return at


@pytest.mark.row("EO-20")
@settings(max_examples=25, deadline=None)
@given(
    calendar=calendars(),
    first=st.sampled_from([SPRING, AUTUMN]),
    begin=st.integers(0, 40 * 1440),
    days=st.integers(0, 4),
    minutes=st.integers(0, 900),
)
def test_working_time_is_that_of_a_walk(
    *, calendar: Calendar, first: datetime, begin: int, days: int, minutes: int
) -> None:
    """Whatever the hours, the holidays, the zone and the change of its clocks, be it at night."""
    since = first + MINUTE * begin
    found = WorkingTime(calendar).after(since, days=days, time=MINUTE * minutes)
    assert found == Walker(calendar).after(since, days, minutes)


NIGHT = ["00:00-02:30", "03:00-04:00"]


@pytest.mark.row("EO-20")
@pytest.mark.parametrize(
    ("zone", "since", "hours", "minutes", "until"),
    [
        # Clocks skip two to three: half an hour of the first hours is not worked, and none of the second hours is counted twice.
        ("Europe/Berlin", "2030-03-30T23:00Z", NIGHT, 180, "2030-03-31T02:00Z"),
        # Clocks show two to three twice: half an hour is worked twice.
        ("Europe/Berlin", "2030-10-26T22:00Z", NIGHT, 180, "2030-10-27T01:30Z"),
        ("Australia/Lord_Howe", "2030-10-05T13:30Z", ["00:00-02:15", "02:30-04:00"], 150, "2030-10-05T16:00Z"),
        ("Asia/Kathmandu", "2028-02-28T18:15Z", ["00:00-01:00"], 90, "2028-02-29T18:45Z"),
        # The day behind that night is missing from the calendar of Samoa: nobody works on it.
        ("Pacific/Apia", "2011-12-29T10:00Z", ["00:00-24:00"], 1441, "2011-12-30T10:01Z"),
    ],
)  # fmt: skip
def test_hours_are_what_clocks_show(*, zone: str, since: str, hours: list[str], minutes: int, until: str) -> None:
    """Also where they skip hours, show them twice, or leave a day out."""
    working = WorkingTime(Calendar(zone=zone, hours=dict.fromkeys(DAYS, hours)))
    found = working.after(datetime.fromisoformat(since), time=MINUTE * minutes)
    assert found == datetime.fromisoformat(until)


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
