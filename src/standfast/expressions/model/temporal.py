"""Dates, datetimes and durations: parsing of ISO 8601 texts, and comparison.

A datetime without a time zone is refused, because it is ambiguous. Compared with a date, a datetime counts as its day
in UTC, so `due_date < now` is false for the whole due day.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.tree import Temporal

Time: TypeAlias = date | datetime | timedelta

TYPES: dict[Temporal, type[Time]] = {"date": date, "datetime": datetime, "duration": timedelta}

EXAMPLES: dict[Temporal, str] = {
    "date": "2026-03-31",
    "datetime": "2026-03-31T12:00:00Z",
    "duration": "PT48H",
}

_DATE_LENGTH = len(EXAMPLES["date"])


def read_time(text: str, kind: Temporal) -> Time:
    """Parse a date, datetime or duration. A date is accepted as a datetime and the reverse."""
    if kind != "duration":
        kind = "date" if len(text) == _DATE_LENGTH else "datetime"
    try:
        return msgspec.convert(text, TYPES[kind])
    except (msgspec.ValidationError, UnicodeEncodeError):  # UnicodeEncodeError for a lone surrogate.
        raise ExpressionError(
            f"this text is not a {kind}; one looks like {EXAMPLES[kind]}", reason=ExpressionErrorCode.BAD_TIME
        ) from None


def in_utc(moment: datetime) -> datetime:
    """Return the time in UTC, because Python's comparison depends on whether two zones are the same object."""
    if moment.utcoffset() is None:
        raise ExpressionError("this datetime has no time zone", reason=ExpressionErrorCode.NO_TIME_ZONE)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ExpressionError("this datetime is out of range", reason=ExpressionErrorCode.BAD_TIME) from None


def align_times(left: Time | str, right: Time | str) -> tuple[Time, Time]:
    """Return the pair in comparable types: texts parsed, datetimes in UTC, and days if one side is a date."""
    first, second = _read_beside(left, right), _read_beside(right, left)
    if isinstance(first, datetime) and isinstance(second, datetime):
        return in_utc(first), in_utc(second)
    return _day(first), _day(second)


def time_text(value: Time) -> str:
    """Return the value in ISO 8601, datetimes in UTC."""
    return str(msgspec.to_builtins(in_utc(value) if isinstance(value, datetime) else value))


def _read_beside(value: Time | str, other: Time | str) -> Time:
    if not isinstance(value, str):
        return value
    assert not isinstance(other, str)
    return read_time(value, "duration" if isinstance(other, timedelta) else "datetime")


def _day(value: Time) -> Time:
    return in_utc(value).date() if isinstance(value, datetime) else value
