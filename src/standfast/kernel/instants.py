"""Instants at the end of the calendar: data names them for "never", and moving one any further must not fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

LAST: Final = datetime.max.replace(tzinfo=UTC)
"""There is no later one."""


def later(at: datetime, by: timedelta) -> datetime:
    """The instant so much later, or the last one that there is."""
    try:
        return at + by
    except OverflowError:
        return LAST
