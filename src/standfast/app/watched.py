"""Parts of an engine that say how they are, and are nothing else: what callers have done with answers, and how people are told."""

from __future__ import annotations

from standfast.calls.catalog.definitions import Library
from standfast.engine.concurrency.replies import callbacks
from standfast.notifications.delivery import Deliveries


class Callbacks:
    """The threads for callbacks, which all engines of a process share, by the bound of one of them."""

    name = callbacks.name

    def __init__(self, *, limit: float) -> None:
        self._limit = limit

    def problem(self) -> str:
        """What keeps the threads from their work, in words; empty if nothing does."""
        return callbacks.problem(self._limit)


class Channels:
    """The channels that notices of the definitions here are sent by; every process that works needs all of them."""

    name = "channels"
    is_kept_waiting = True

    def __init__(self, deliveries: Deliveries, library: Library) -> None:
        self._deliveries = deliveries
        self._library = library

    def problem(self) -> str:
        """Which of them is missing, in words; empty if none is."""
        return self._deliveries.lacking(self._library.channels())
