"""Working time: the hours, holidays and clock of an organisation, and when so much of it has gone by. It follows from these and an instant alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from holdfast.kernel.settling import settled
from holdfast.machine.graphs.calendars import is_zone

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

DAYS: Final[tuple[Day, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_HOLIDAYS: Final = 10_000
_DAY: Final = timedelta(days=1)
_SPAN: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)", re.ASCII)
_HOUR: Final = 60
_WHOLE_DAY: Final = 24 * _HOUR


class Calendar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an organisation works, as its settings say it."""

    zone: str
    """Whose clock the hours mean, such as `Europe/Berlin`."""
    hours: dict[Day, list[str]]
    """By day, such as `{"mon": ["09:00-12:30", "13:00-17:00"]}`; on days that are not named nobody works."""
    holidays: list[date] = []
    """Days on which nobody works, whatever the day of the week."""

    def flaws(self) -> Iterator[str]:
        """What is wrong with it, each in a sentence."""
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
    """The calendars that the settings of an organisation name under `calendars`, and what is wrong with them."""
    try:
        found = msgspec.convert(settings.get("calendars", {}), settled(dict[str, Calendar]))
    except msgspec.ValidationError as error:
        return {}, [f"the calendars cannot be read: {error}"]
    flaws = [f"the calendar {name!r}: {flaw}" for name, each in found.items() for flaw in each.flaws()]
    return found, flaws


class WorkingTime:
    """A sound calendar, for counting."""

    def __init__(self, calendar: Calendar) -> None:
        self._zone = ZoneInfo(calendar.zone)
        self._holidays = frozenset(calendar.holidays)
        named = [[_span(each) for each in calendar.hours.get(day, [])] for day in DAYS]
        self._hours = [[each for each in spans if each is not None] for spans in named]

    def after(self, since: datetime, *, days: int = 0, time: timedelta = timedelta(0)) -> datetime:
        """When so many working days and so much working time have gone by.

        Working days end at the same time of day as they began, or when it is worked next. They begin with the first working time.
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
            at = self._open(self._utc(day + _DAY, 0))
        return at

    def _days_later(self, at: datetime, days: int) -> datetime:
        local = at.astimezone(self._zone)
        day = local.date()
        while days:
            day += _DAY
            days -= bool(self._spans(day))
        wall = datetime.combine(day, local.time(), self._zone)
        return self._open(wall.astimezone(UTC))

    def _open(self, at: datetime) -> datetime:
        """The first working time from an instant on."""
        day = at.astimezone(self._zone).date()
        while True:
            for begin, end in self._spans(day):
                if at < end:
                    return max(at, begin)
            day += _DAY

    def _spans(self, day: date) -> list[tuple[datetime, datetime]]:
        """When it is worked on a day, in UTC."""
        if day in self._holidays:
            return []
        return [(self._utc(day, begin), self._utc(day, end)) for begin, end in self._hours[day.weekday()]]

    def _utc(self, day: date, minutes: int) -> datetime:
        if minutes == _WHOLE_DAY:
            day, minutes = day + _DAY, 0
        return datetime.combine(day, time(minutes // _HOUR, minutes % _HOUR), self._zone).astimezone(UTC)


def _span(text: str) -> tuple[int, int] | None:
    """Hours as minutes of the day; None if they cannot be read."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    begin, end = (int(match[each]) * _HOUR + int(match[each + 1]) for each in (1, 3))
    return (begin, end) if begin < end <= _WHOLE_DAY else None
