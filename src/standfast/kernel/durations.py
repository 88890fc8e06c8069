"""Durations as people write them in files and in the environment: `24h`, `5m`, `1h30m`, `90s`, `500ms`, `7d`.

Instants at the end of the calendar: data names them for "never", and moving one any further must not fail.
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
"""The end of a sentence about a text that is none."""


def duration_of(text: object) -> timedelta | None:
    """The duration that a text tells; None if it tells none. Parts go from large to small, each unit once."""
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
    """The text that tells a duration, from days to milliseconds; of less than that nothing is told."""
    parts, left = [], round(found / timedelta(milliseconds=1))
    for unit, length in list(_UNITS.items())[1:]:  # Two weeks are mostly written as 14d.
        count, left = divmod(left, round(length / timedelta(milliseconds=1)))
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


LAST: Final = datetime.max.replace(tzinfo=UTC)
"""There is no later one."""


def later(at: datetime, by: timedelta) -> datetime:
    """The instant so much later, or the last one that there is."""
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
