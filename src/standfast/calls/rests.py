"""Waiting for instances to rest: until none of their handlers is called any more, or until the caller's time is over.

This process's own commits tell; what another process commits is looked for now and then. Nobody is listened to while nobody waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.submission import View
from standfast.engine.concurrency.loop import Loop
from standfast.engine.dispatcher import Dispatcher
from standfast.errors import StandfastError, StoreUnavailableError
from standfast.kernel.ids import InstanceId
from standfast.machine.model.state import RunState


def is_at_rest(state: object) -> bool:
    """Whether a run does nothing by itself: it has ended, is paused, or waits for people, time or the world."""
    if not isinstance(state, RunState) or state.status != "running":
        return True
    return all(step.effect is None for step in state.open.values())


class IdleWait:
    """Somebody who waits for one instance to rest."""

    def __init__(
        self, *, view: View, look: Callable[[], bool], bring: Callable[[object], None], seconds: float
    ) -> None:
        self.view = view
        """Makes of an instance that has come to rest in a commit of this process what is brought."""
        self.look = look
        """Whether it rests, by the database."""
        self.bring = bring
        """Called once: with what was made of the instance, or with None if the database has to tell, or if the time is over."""
        self.until = time.monotonic() + seconds
        self.look_at = 0.0
        """Monotonic time from which on it is looked for in the database."""


def _anybody(_: IdleWait) -> bool:
    return True


class IdleWaiters:
    """Who waits for which instance to rest."""

    def __init__(self, service: Dispatcher, *, has_threads: bool) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, list[IdleWait]] = {}
        """By the numbers that ids are, which Python compares and hashes faster."""
        self._service = service
        self._pause = service.shared.settings.poll_interval.total_seconds()
        limit = service.shared.settings.unhealthy_after.total_seconds()
        self._loop = Loop("rests", self._step, service.shared.telemetry, limit=limit) if has_threads else None
        self._is_started = False

    @property
    def loops(self) -> list[Loop]:
        """The loop that looks, once somebody has waited."""
        return [self._loop] if self._loop is not None and self._is_started else []

    def wait(self, instance: InstanceId, version: int, waiting: IdleWait) -> None:
        """Have somebody called back once an instance rests that did not with so many events; at once in an engine without threads.

        As long as this process knows that it has no more, the commit that brings it to rest will tell.
        """
        now = time.monotonic()
        if self._loop is None or waiting.until <= now:
            waiting.bring(None)
            return
        with self._lock:
            is_alone = not self._waiting
            self._waiting.setdefault(instance.int, []).append(waiting)
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._service.listeners.append(self._hear)
            self._loop.start()
        is_heard_of = self._service.committer.is_at(instance, version)
        waiting.look_at = now + self._pause if is_heard_of else now
        if is_alone or min(waiting.look_at, waiting.until) < now + self._pause:
            self._loop.wake()

    def stop(self) -> None:
        """Nobody will tell any more: those who wait are told how things stand."""
        for loop in self.loops:
            loop.stop()
            loop.join(1.0)
        for number in list(self._waiting):
            self._bring(number)

    def _hear(self, batch: CommandBatch) -> None:
        if self._waiting:
            for draft in batch.written:
                number = draft.header.id.int
                if number in self._waiting and is_at_rest(draft.state):
                    for each in self._taken(number):
                        each.bring(each.view(draft.header, draft.program, draft.state))

    def _step(self) -> float:
        """Look at all of them: at the clock, and at the database. Without a database the time of those who wait is over all the same."""
        now, failure = time.monotonic(), None
        for number, waiting in list(self._waiting.items()):
            if any(each.until <= now for each in waiting):
                self._bring(number, lambda each: each.until <= now)
            elif failure is None and any(each.look_at <= now for each in waiting):
                try:
                    self._look(number, waiting, now)
                except StoreUnavailableError as error:
                    failure = error
        if failure is not None:
            raise failure
        with self._lock:
            ends = [min(each.until, each.look_at) for waiting in self._waiting.values() for each in waiting]
        return max(0.0, min(ends) - time.monotonic()) if ends else 60.0

    def _look(self, number: int, waiting: list[IdleWait], now: float) -> None:
        with self._lock:
            asked = list(waiting)  # Whoever comes after this may wait for what the instance does after the look.
        if _is_over(asked[0]):
            self._bring(number, lambda each: each in asked)
            return
        for each in asked:
            each.look_at = each.look_at if each.look_at > now else now + self._pause

    def _bring(self, number: int, is_meant: Callable[[IdleWait], bool] = _anybody) -> None:
        for each in self._taken(number, is_meant):
            each.bring(None)

    def _taken(self, number: int, is_meant: Callable[[IdleWait], bool] = _anybody) -> list[IdleWait]:
        """Those who wait for an instance and are meant, of whom nobody waits any more."""
        with self._lock:
            waiting = self._waiting.pop(number, [])
            left = [each for each in waiting if not is_meant(each)]
            if left:
                self._waiting[number] = left
        return [each for each in waiting if each not in left]


def _is_over(waiting: IdleWait) -> bool:
    try:
        return waiting.look()
    except StoreUnavailableError:
        raise
    except StandfastError:  # It is gone, or cannot be read: whoever waits is told so when it is read again.
        return True
