"""Parsing and formatting of durations: `24h`, `5m`, `1h30m`, `90s`, `500ms`, `7d`.

Also adds durations to times without overflow at the end of the calendar, which data uses for "never".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from standfast.errors import PayloadError, brief
from standfast.kernel.retry import LONGEST_TIMEOUT

_UNITS: Final = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|w|d|h|m|s)", re.ASCII)

HOW_TO_WRITE: Final = "write a number with its unit (w, d, h, m, s or ms), such as 24h, 5m or 1h30m"
"""End of an error message about an invalid duration."""


def duration_of(text: object) -> timedelta | None:
    """Parse a duration. Return None if the text is invalid. Units go from large to small, each once."""
    if not isinstance(text, str):
        return None
    found, at, last = timedelta(0), 0, None
    order = list(_UNITS)
    text = text.strip()
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or (last is not None and order.index(part[2]) <= order.index(last)):
            return None
        try:
            found += float(part[1]) * _UNITS[part[2]]
        except OverflowError:
            return None
        at, last = part.end(), part[2]
    return found if last is not None else None


def duration_text(found: timedelta) -> str:
    """Format a duration, from days to milliseconds. Smaller fractions are dropped."""
    parts, left = [], round(found / timedelta(milliseconds=1))
    for unit, length in list(_UNITS.items())[1:]:  # Two weeks are usually written as 14d.
        count, left = divmod(left, round(length / timedelta(milliseconds=1)))
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


LAST: Final = datetime.max.replace(tzinfo=UTC)
"""The last time of the calendar."""


def later(at: datetime, by: timedelta) -> datetime:
    """Return the time after this duration, or the last time of the calendar."""
    try:
        return at + by
    except OverflowError:
        return LAST


def milliseconds(given: object, what: str) -> int:
    """The milliseconds of a timedelta, or of a number of seconds. `what` names it in the error. Raises PayloadError."""
    try:
        length = given if isinstance(given, timedelta) else timedelta(seconds=msgspec.convert(given, float))
    except (msgspec.ValidationError, OverflowError, ValueError):
        raise PayloadError(f"{what} must be a timedelta or a number of seconds, not {brief(given)}") from None
    if not timedelta(0) <= length <= LONGEST_TIMEOUT:
        raise PayloadError(f"{what} must be from nothing to a hundred years, not {brief(given)}")
    return round(length.total_seconds() * 1000)
