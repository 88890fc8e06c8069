"""Times of a run that count working time: by the calendar that the organisation's settings had when the document was created or a transition was asked for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from standfast.errors import ExpressionError
from standfast.expressions import ExpressionErrorCode
from standfast.graph.values.business_time import Calendar, WorkingTime, calendars_of
from standfast.machine.model.state import RunState

_DAY: Final = timedelta(days=1)
_MILLISECOND: Final = timedelta(milliseconds=1)


def reached(state: RunState, calendar: str, since: datetime, after_ms: int) -> datetime:
    """When a time is over: by the clock, or by a calendar, of which whole days are working days and the rest is working time.

    A step that is entered has made sure of its calendar; one that is gone since then leaves the clock.
    """
    after = timedelta(milliseconds=after_ms)
    found, flaws = _calendars(state) if calendar else ({}, [])
    if flaws or calendar not in found:
        return since + after
    days, rest = divmod(after, _DAY)
    return WorkingTime(found[calendar]).after(since, days=days, time=rest)


def reached_ms(state: RunState, calendar: str, since: datetime, after_ms: int) -> int:
    """The same as time by the clock."""
    return (reached(state, calendar, since, after_ms) - since) // _MILLISECOND if calendar else after_ms


def check_calendar(state: RunState, calendar: str) -> None:
    """ExpressionError if the organisation has no calendar of this name, or one that cannot be read."""
    if not calendar:
        return
    found, flaws = _calendars(state)
    if flaws or calendar not in found:
        told = flaws[0] if flaws else f"the organisation's settings have no calendar {calendar!r}"
        raise ExpressionError(
            f"{told}; publish it under `calendars` of its settings", reason=ExpressionErrorCode.BAD_TIME
        )


def _calendars(state: RunState) -> tuple[dict[str, Calendar], list[str]]:
    return calendars_of({} if state.document is None else state.document.org)
