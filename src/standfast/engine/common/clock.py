"""The only reader of time.

The database's clock is the one that counts. Between two looks at it the local monotonic clock carries on from the last one, so that
a host's wall clock, which may be wrong or jump, decides nothing.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

LATEST = datetime(9999, 1, 1, tzinfo=UTC)
"""No instant that the engine computes is later, so that every database and every time zone can tell it."""


def later(now: datetime, wait: timedelta) -> datetime | None:
    """The instant that lies so far ahead; None if the calendar does not reach so far."""
    try:
        at = now + wait
    except OverflowError:
        return None
    return at if at <= LATEST else None


class Clock(Protocol):
    """What time it is."""

    def now(self) -> datetime:
        """The database's time, as well as this process knows it."""
        ...

    def judge(self) -> datetime | None:
        """The instant for statements that judge leases and due times; None lets the database take its own."""
        ...

    def synchronise(self, database_now: datetime, asked_at: float) -> None:
        """Take note of the database's time, for which the process asked at this tick."""
        ...

    def ticks(self) -> float:
        """Seconds that only go forward, to measure how long something takes."""
        ...


class DatabaseClock:
    """The database's clock, carried on by the monotonic one."""

    def __init__(self) -> None:
        self._anchor = datetime.now(UTC)
        self._anchored_at = time.monotonic()
        self._width = math.inf
        """Seconds between the question and the answer that the present anchor comes from."""

    def now(self) -> datetime:
        """The last known time of the database, plus what has gone by since."""
        return self._anchor + timedelta(seconds=time.monotonic() - self._anchored_at)

    def judge(self) -> datetime | None:
        """The database judges by itself."""
        return None

    def synchronise(self, database_now: datetime, asked_at: float) -> None:
        """Carry on from the middle between question and answer.

        A process that the system held up in between knows less than before. It keeps its earlier anchor if that one agrees with the answer:
        a clock that fell behind would refuse rights which another process has just granted.
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
    """A clock that stands still until it is moved, for tests, and for plays that take no time."""

    def __init__(self, start: datetime) -> None:
        self._start = self._now = start

    def now(self) -> datetime:
        """The time it was set to."""
        return self._now

    def judge(self) -> datetime | None:
        """Statements judge by this clock too."""
        return self._now

    def synchronise(self, database_now: datetime, asked_at: float) -> None:
        """Keep the time: only the test moves this clock."""

    def ticks(self) -> float:
        """What the test lets go by, on top of what its own code really takes."""
        return time.monotonic() + (self._now - self._start).total_seconds()

    def move(self, duration: timedelta) -> None:
        """Let time go by."""
        if duration < timedelta(0):
            raise ValueError("time does not go backwards")
        self._now += duration
