"""The engine's clock, the only reader of time.

The database's clock is authoritative. Between two readings the local monotonic clock advances the last one, so that a
wrong or jumping wall clock of the host has no effect.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

LATEST = datetime(9999, 1, 1, tzinfo=UTC)
"""The latest time that the engine computes. Every database and time zone can represent it."""


def later(now: datetime, wait: timedelta) -> datetime | None:
    """Return the time after `wait`, or None beyond the range of the calendar."""
    try:
        at = now + wait
    except OverflowError:
        return None
    return at if at <= LATEST else None


class Clock(Protocol):
    """Source of the current time."""

    def now(self) -> datetime:
        """Returns the database's time as this process knows it."""
        ...

    def judge(self) -> datetime | None:
        """Returns the time for statements that judge leases and due times.

        None makes the database use its own clock.
        """
        ...

    def synchronise(self, database_now: datetime, asked_at: float) -> None:
        """Records the database's time, which the process requested at the tick `asked_at`."""
        ...

    def ticks(self) -> float:
        """Returns monotonic seconds, to measure durations."""
        ...


class DatabaseClock:
    """The database's clock, advanced by the local monotonic clock."""

    def __init__(self) -> None:
        self._anchor = datetime.now(UTC)
        self._anchored_at = time.monotonic()
        self._width = math.inf
        """Round-trip time, in seconds, of the reading behind the current anchor."""

    def now(self) -> datetime:
        """Return the last known time of the database plus the elapsed time."""
        return self._anchor + timedelta(seconds=time.monotonic() - self._anchored_at)

    def judge(self) -> datetime | None:
        """Return None: the database uses its own clock."""
        return None

    def synchronise(self, database_now: datetime, asked_at: float) -> None:
        """Set the anchor to the middle of the round trip.

        A delayed process has a less precise reading. It keeps its earlier anchor if that agrees with the answer,
        because a clock that falls behind would refuse rights that another process has just granted.
        """
        answered_at = time.monotonic()
        width = answered_at - asked_at
        ahead = (self.now() - database_now).total_seconds()
        if width > self._width and 0 <= ahead <= width:
            return
        self._anchor, self._anchored_at = database_now + timedelta(seconds=width / 2), answered_at
        self._width = width

    ticks = staticmethod(time.monotonic)
    """The local monotonic clock."""


class ManualClock:
    """A clock that stands still until it is moved, for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        self._start = self._now = start

    def now(self) -> datetime:
        """Return the time it was set to."""
        return self._now

    def judge(self) -> datetime | None:
        """Return the same time for statements."""
        return self._now

    def synchronise(self, database_now: datetime, asked_at: float) -> None:
        """Ignore the database: only `move` changes this clock."""

    def ticks(self) -> float:
        """Return the time moved so far plus the time that really elapsed."""
        return time.monotonic() + (self._now - self._start).total_seconds()

    def move(self, duration: timedelta) -> None:
        """Advance the clock."""
        if duration < timedelta(0):
            raise ValueError("time does not go backwards")
        self._now += duration
