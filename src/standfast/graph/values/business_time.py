"""Working time: counts working days and hours by an organisation's calendar.

Results depend only on the calendar and a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from standfast.graph.values.calendars import is_zone
from standfast.kernel.codec.type_cache import settled

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

DAYS: Final[tuple[Day, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_HOLIDAYS: Final = 10_000
_DAY: Final = timedelta(days=1)
_SPAN: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)", re.ASCII)
_AROUND: Final = 2 * _DAY
"""No zone is further from UTC than a day, and a day is at most this long."""
_TICK: Final = timedelta(seconds=1)


class Calendar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The working hours of an organisation, from its settings."""

    zone: str
    """Time zone of the hours, such as `Europe/Berlin`."""
    hours: dict[Day, list[str]]
    """Hours by day, such as `{"mon": ["09:00-12:30", "13:00-17:00"]}`. Missing days are free."""
    holidays: list[date] = []
    """Free days, whatever the day of the week."""

    def flaws(self) -> Iterator[str]:
        """Yield what is wrong with the calendar, one sentence each."""
        if not is_zone(self.zone):
            yield f"the time zone {self.zone!r} is not known; give one such as 'Europe/Berlin'"
        if len(self.holidays) > MOST_HOLIDAYS:
            yield f"it has {len(self.holidays)} holidays; give at most {MOST_HOLIDAYS}"
        if not any(self.hours.values()):
            yield 'it has no hours, so that no time would ever go by; give some, such as {"mon": ["09:00-17:00"]}'
        for day, texts in self.hours.items():
            spans = [_span(each) for each in texts]
            if None in spans:
                yield f"the hours of {day} cannot be read; write them as '09:00-17:00', the end behind the beginning"
            elif any(one[1] > other[0] for one, other in pairwise(each for each in spans if each is not None)):
                yield f"the hours of {day} overlap or are not in order; put the earlier ones first"


def calendars_of(settings: Mapping[str, object]) -> tuple[dict[str, Calendar], list[str]]:
    """Return the calendars under `calendars` in an organisation's settings, and what is wrong with them."""
    try:
        found = msgspec.convert(settings.get("calendars", {}), settled(dict[str, Calendar]))
    except msgspec.ValidationError as error:
        return {}, [f"the calendars cannot be read: {error}"]
    flaws = [f"the calendar {name!r}: {flaw}" for name, each in found.items() for flaw in each.flaws()]
    return found, flaws


class _Stretch(NamedTuple):
    """A period without clock changes in a zone."""

    begin: datetime
    end: datetime
    offset: timedelta


class WorkingTime:
    """Counts by a valid calendar.

    Hours are local times. Skipped hours at a clock change are not worked, and repeated hours are worked twice.
    """

    def __init__(self, calendar: Calendar) -> None:
        self._zone = ZoneInfo(calendar.zone)
        self._holidays = frozenset(calendar.holidays)
        named = [[_span(each) for each in calendar.hours.get(day, [])] for day in DAYS]
        self._hours = [[each for each in spans if each is not None] for spans in named]

    def after(self, since: datetime, *, days: int = 0, time: timedelta = timedelta(0)) -> datetime:
        """Return the time after this many working days and this much working time.

        Working days end at the same time of day as they began, or at the next working time. They begin with the first
        working time.
        """
        at = self._open(since)
        if days:
            at = self._days_later(at, days)
        left = time
        while left:
            day = at.astimezone(self._zone).date()
            for begin, end in self._spans(day):
                room = end - max(begin, at)
                if room >= left:
                    return max(begin, at) + left
                left -= max(room, timedelta(0))
            at = self._open(self._reading(_midnight(day + _DAY)))
        return at

    def _days_later(self, at: datetime, days: int) -> datetime:
        local = at.astimezone(self._zone)
        day = local.date()
        while days:
            day += _DAY
            days -= bool(self._named(day))
        return self._open(self._reading(datetime.combine(day, local.time(), UTC)))

    def _open(self, at: datetime) -> datetime:
        """Return the first working time from a time on."""
        day = at.astimezone(self._zone).date()
        while True:
            for begin, end in self._spans(day):
                if at < end:
                    return max(at, begin)
            day += _DAY

    def _spans(self, day: date) -> list[tuple[datetime, datetime]]:
        """Return the working periods of a day in UTC, in order."""
        hours = self._named(day)
        if not hours:
            return []
        midnight = _midnight(day)
        found = [
            (max(stretch.begin, midnight + begin - stretch.offset), min(stretch.end, midnight + end - stretch.offset))
            for stretch in self._stretches(midnight)
            for begin, end in hours
        ]
        return [(begin, end) for begin, end in found if begin < end]

    def _named(self, day: date) -> list[tuple[timedelta, timedelta]]:
        """Return the hours of a day as the calendar states them."""
        return [] if day in self._holidays else self._hours[day.weekday()]

    def _reading(self, wall: datetime) -> datetime:
        """Return when local clocks first show this time, or a later one if it is skipped.

        Local times are passed as if they were UTC.
        """
        return next(at for each in self._stretches(wall) if (at := max(each.begin, wall - each.offset)) < each.end)

    def _stretches(self, wall: datetime) -> list[_Stretch]:
        """Return the period around a local time: one, or two around a clock change."""
        begin, end = wall - _AROUND, wall + _AROUND
        before, behind = self._offset(begin), self._offset(end)
        if before == behind:
            return [_Stretch(begin, end, before)]
        low, high = begin, end
        while high - low > _TICK:  # Clock changes occur at whole seconds.
            middle = low + (high - low) // _TICK // 2 * _TICK
            low, high = (middle, high) if self._offset(middle) == before else (low, middle)
        return [_Stretch(begin, high, before), _Stretch(high, end, behind)]

    def _offset(self, at: datetime) -> timedelta:
        return at.astimezone(self._zone).utcoffset() or timedelta(0)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(0), UTC)


def _span(text: str) -> tuple[timedelta, timedelta] | None:
    """Parse hours as times of the day, or return None."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    begin, end = (timedelta(hours=int(match[each]), minutes=int(match[each + 1])) for each in (1, 3))
    return (begin, end) if begin < end <= _DAY else None
