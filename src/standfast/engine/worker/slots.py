"""Slots: limits on concurrent handlers, per handler and in total."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from standfast.engine.common.handlers import Handler, Handlers
from standfast.store.records.instances import Wanted


class ReservedSlots(NamedTuple):
    """Slots that are reserved during a claim."""

    wanted: list[Wanted]
    """Number of slots for each handler."""
    limit: int
    """Total number of slots."""


class Slots:
    """Counts the used slots.

    A slot is taken before an effect is claimed, so that a worker never owns what it cannot run.
    """

    def __init__(self, handlers: Handlers, limit: int) -> None:
        self._handlers = handlers
        self._limit = limit
        self._lock = threading.Lock()
        self._busy: dict[str, int] = {}
        """Reserved and running calls by handler."""
        self._total = 0
        self.takes_plain = self.takes_async = True
        """Whether the threads and the event loop make progress, set by the worker. Work that they cannot begin is
        left to others."""

    def take(self, handler: str) -> bool:
        """Take a slot for an effect of this handler.

        Return False if there is no slot or no such handler in this process.
        """
        known = self._handlers.find(handler)
        if known is None or not (self.takes_async if known.is_async else self.takes_plain):
            return False
        with self._lock:
            busy = self._busy.get(handler, 0)
            if busy >= known.concurrency or self._total >= self._limit:
                return False
            self._busy[handler] = busy + 1
            self._total += 1
            return True

    def give_back(self, handler: Handler) -> bool:
        """Release a slot. Return whether it was one of the last."""
        with self._lock:
            busy = self._busy[handler.name] = self._busy[handler.name] - 1
            self._total -= 1
            return busy == handler.concurrency - 1 or self._total == self._limit - 1

    def take_room(self, most: int) -> ReservedSlots:
        """Reserve slots for as many effects as could run now, at most `most` per handler.

        Every handler is included, however few total slots are free, because the most urgent effects come first.
        """
        wanted = []
        with self._lock:
            free = self._limit - self._total
            for each in filter(self._takes, self._handlers.all()):
                busy = self._busy.get(each.name, 0)
                limit = min(most, each.concurrency - busy, free)
                if limit > 0:
                    self._busy[each.name] = busy + limit
                    wanted.append(Wanted(each.name, limit))
            room = ReservedSlots(wanted, min(free, sum(each.limit for each in wanted)))
            self._total += room.limit
        return room

    def leave_room(self, room: ReservedSlots, used: Mapping[str, int]) -> None:
        """Release the unused slots, by handler."""
        with self._lock:
            for each in room.wanted:
                self._busy[each.handler] -= each.limit - used.get(each.handler, 0)
            self._total -= room.limit - sum(used.values())

    def _takes(self, handler: Handler) -> bool:
        return self.takes_async if handler.is_async else self.takes_plain
