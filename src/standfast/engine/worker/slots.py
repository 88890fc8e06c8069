"""Slots: how many handlers may run at the same time, each kind and all together."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from standfast.engine.common.handlers import Handler, Handlers
from standfast.store.records.instances import Wanted


class ReservedSlots(NamedTuple):
    """Slots that are reserved while effects for them are looked for."""

    wanted: list[Wanted]
    """How many there are for each handler."""
    limit: int
    """How many there are for all of them together."""


class Slots:
    """Who has how many. A slot is taken before an effect is, so that a worker never owns what it cannot run."""

    def __init__(self, handlers: Handlers, limit: int) -> None:
        self._handlers = handlers
        self._limit = limit
        self._lock = threading.Lock()
        self._busy: dict[str, int] = {}
        """Reserved and running calls by handler."""
        self._total = 0
        self.takes_plain = self.takes_async = True
        """Set by the worker: whether its threads, and its event loop, move. What they cannot begin is left to others."""

    def take(self, handler: str) -> bool:
        """Take a slot for an effect of this handler; False if there is none, or no such handler here."""
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
        """Give a slot back; whether it was one of the last."""
        with self._lock:
            busy = self._busy[handler.name] = self._busy[handler.name] - 1
            self._total -= 1
            return busy == handler.concurrency - 1 or self._total == self._limit - 1

    def take_room(self, most: int) -> ReservedSlots:
        """Take slots for as many effects as could run now, at most this many of each handler.

        Every handler is asked for, however little room there is for all together: who is first is a matter of urgency.
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
        """Give the slots back that were not used, by handler."""
        with self._lock:
            for each in room.wanted:
                self._busy[each.handler] -= each.limit - used.get(each.handler, 0)
            self._total -= room.limit - sum(used.values())

    def _takes(self, handler: Handler) -> bool:
        return self.takes_async if handler.is_async else self.takes_plain
