"""Waiting for instances to rest: until none of their handlers is called any more, or until the caller's time is over.

This process's own commits tell; what another process commits is looked for now and then. Nobody is listened to while nobody waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from holdfast.errors import NotFoundError
from holdfast.kernel.ids import InstanceId
from holdfast.machine.runs.state import State
from holdfast.runtime.commit.batch import Batch
from holdfast.runtime.loop import Loop
from holdfast.runtime.service import Service


def is_at_rest(state: object) -> bool:
    """Whether a run does nothing by itself: it has ended, is paused, or waits for people, time or the world."""
    if not isinstance(state, State) or state.status != "running":
        return True
    return all(step.effect is None for step in state.open.values())


class _Waiting(NamedTuple):
    look: Callable[[], bool]
    """Whether it rests, by the database."""
    bring: Callable[[], None]
    until: float
    """Monotonic time."""


class Rests:
    """Who waits for which instance to rest."""

    def __init__(self, service: Service, *, has_threads: bool) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[InstanceId, list[_Waiting]] = {}
        self._service = service
        self._pause = service.shared.settings.poll_interval.total_seconds()
        limit = service.shared.settings.unhealthy_after.total_seconds()
        self._loop = Loop("rests", self._step, service.shared.telemetry, limit=limit) if has_threads else None
        self._is_started = False

    @property
    def loops(self) -> list[Loop]:
        """The loop that looks, once somebody has waited."""
        return [self._loop] if self._loop is not None and self._is_started else []

    def wait(
        self, instance: InstanceId, look: Callable[[], bool], bring: Callable[[], None], *, seconds: float
    ) -> None:
        """Call back once an instance rests, or the time is over: at once in an engine that only moves when it is driven."""
        if self._loop is None or seconds <= 0:
            bring()
            return
        with self._lock:
            self._waiting.setdefault(instance, []).append(_Waiting(look, bring, time.monotonic() + seconds))
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._service.listeners.append(self._hear)
            self._loop.start()
        self._loop.wake()  # It may rest since before it was waited for.

    def stop(self) -> None:
        """Nobody will tell any more: those who wait are told how things stand."""
        for loop in self.loops:
            loop.stop()
            loop.join(1.0)
        for instance in list(self._waiting):
            self._bring(instance)

    def _hear(self, batch: Batch) -> None:
        if self._waiting:
            for draft in batch.written:
                if draft.header.id in self._waiting and is_at_rest(draft.state):
                    self._bring(draft.header.id)

    def _step(self) -> float:
        """Look at all of them: at the clock, and at the database."""
        now = time.monotonic()
        for instance, waiting in list(self._waiting.items()):
            if any(each.until <= now for each in waiting):
                self._bring(instance, until=now)
        for instance, waiting in list(self._waiting.items()):
            try:
                is_over = waiting[0].look()
            except NotFoundError:  # Whoever waits is told so when it is read again.
                is_over = True
            if is_over:
                self._bring(instance)
        with self._lock:
            ends = [each.until for waiting in self._waiting.values() for each in waiting]
        return min([self._pause, *(max(0.0, each - now) for each in ends)]) if ends else 60.0

    def _bring(self, instance: InstanceId, *, until: float | None = None) -> None:
        with self._lock:
            waiting = self._waiting.pop(instance, [])
            left = [each for each in waiting if until is not None and each.until > until]
            if left:
                self._waiting[instance] = left
        for each in waiting:
            if each not in left:
                each.bring()
