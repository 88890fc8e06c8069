"""What is asked of a database about work that waits or gave up, of all tenants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from standfast.store.records.queries import BacklogRecord, GivenUpRecord, Unhandled, WaitingWord


class Backlogs(Protocol):
    """How much there is of it, and whom it waits for."""

    def backlog(self, now: datetime | None = None) -> list[BacklogRecord]:
        """How much work waits, by handler and definition; judged by the store's own clock if no instant is given."""
        ...

    def given_up(self) -> list[GivenUpRecord]:
        """How many dead letters there are, by tenant; of those that have some."""
        ...

    def unhandled(self, *, waited: timedelta, now: datetime | None, most: int = 1000) -> list[Unhandled]:
        """Handlers that no live worker has and for which effects have waited this long, by name.

        The cost does not grow with the work that somebody can do.
        """
        ...

    def waiting_words(self, handlers: Sequence[str], *, waited: timedelta, now: datetime | None) -> list[WaitingWord]:
        """The words of timers and messages, and of effects for these handlers, that have waited this long, whoever can read them.

        The cost grows with the number of different words, and not with the work.
        """
        ...
