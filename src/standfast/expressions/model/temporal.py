"""Dates, datetimes and durations: how ISO 8601 texts become them and how they meet in a comparison.

A datetime without a time zone is refused: it names no moment. Against a date a datetime counts as its day in UTC, so
`due_date < now` is false for the whole of the due day.
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
    """The date, datetime or duration that a text denotes. A date may stand for a datetime and the reverse."""
    if kind != "duration":
        kind = "date" if len(text) == _DATE_LENGTH else "datetime"
    try:
        return msgspec.convert(text, TYPES[kind])
    except (msgspec.ValidationError, UnicodeEncodeError):  # The latter for half a character.
        raise ExpressionError(
            f"this text is not a {kind}; one looks like {EXAMPLES[kind]}", reason=ExpressionErrorCode.BAD_TIME
        ) from None


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC: comparing across zones in Python depends on whether they are the same object."""
    if moment.utcoffset() is None:
        raise ExpressionError("this datetime has no time zone", reason=ExpressionErrorCode.NO_TIME_ZONE)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ExpressionError("this datetime is out of range", reason=ExpressionErrorCode.BAD_TIME) from None


def align_times(left: Time | str, right: Time | str) -> tuple[Time, Time]:
    """The pair in a form that Python compares: texts read, datetimes in UTC, and days where one side is a date."""
    first, second = _read_beside(left, right), _read_beside(right, left)
    if isinstance(first, datetime) and isinstance(second, datetime):
        return in_utc(first), in_utc(second)
    return _day(first), _day(second)


def time_text(value: Time) -> str:
    """The value in ISO 8601; datetimes in UTC."""
    return str(msgspec.to_builtins(in_utc(value) if isinstance(value, datetime) else value))


def _read_beside(value: Time | str, other: Time | str) -> Time:
    if not isinstance(value, str):
        return value
    assert not isinstance(other, str)
    return read_time(value, "duration" if isinstance(other, timedelta) else "datetime")


def _day(value: Time) -> Time:
    return in_utc(value).date() if isinstance(value, datetime) else value
