"""The life of an engine: started at most once, stopped once and whole, whoever asks for it and when.

Starting and stopping exclude one another. A signal may interrupt the thread that is at either and ask for an end on that very thread;
and what the engine itself calls may ask for it, on a thread that the end has to wait for.

Parts of an engine that say how they are, and are nothing else: what callers have done with answers, and how people are told.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from standfast.calls.catalog.definitions import Library
from standfast.calls.pools import ReaderPool
from standfast.calls.waiters import CompletionWaiters
from standfast.engine.concurrency.loop import IsolatedTasks
from standfast.engine.concurrency.replies import callbacks
from standfast.engine.dispatcher import Dispatcher
from standfast.engine.worker_process import WorkerProcess
from standfast.errors import StoppedError
from standfast.notifications.delivery import Deliveries

_log = logging.getLogger("standfast")

_LAST_WORDS_SECONDS = 2.0
"""How long the last commits may take, and the answers that callers wait for, when the time to stop is over."""


class EngineLifecycle:
    """Starts and stops the parts of one engine."""

    def __init__(
        self,
        service: Dispatcher,
        runtime: WorkerProcess,
        endings: CompletionWaiters,
        readers: Sequence[ReaderPool],
        *,
        leave: Callable[[], None],
    ) -> None:
        self._service = service
        self._runtime = runtime
        self._endings = endings
        self._readers = readers
        self._leave = leave
        """Lets go of the database, when nobody needs it any more."""
        self._limit = service.shared.settings.shutdown_timeout
        self._turn = threading.RLock()
        """Held by the thread that starts or stops the engine; the others wait for it."""
        self.is_started = False
        self.is_closed = False
        """Whether the engine is to stop, or has stopped."""
        self._is_starting = False
        self._is_ending = False
        """Whether a thread is at it, or was."""

    def start(self, started: Callable[[], None]) -> None:
        """Begin to work, and call back then, unless that was done before; StoppedError if it is too late."""
        self._service.check_process()
        self._check_open()
        with self._turn:
            self._check_open()
            if not self.is_started:
                self._start(started)

    def stop(self, timeout: timedelta | None = None) -> None:
        """End, and come back then; but whoever is waited for does not wait."""
        limit = self._limit if timeout is None else timeout
        is_first, self.is_closed = not self.is_closed, True
        if self._service.is_inherited:
            return  # It is the parent's, and goes on there.
        if not self._is_here():
            self._end(limit)
        elif is_first:
            self._end_elsewhere(limit)

    def _check_open(self) -> None:
        if self.is_closed:
            raise StoppedError("a stopped engine is not started again; open a new one")

    def _start(self, started: Callable[[], None]) -> None:
        """Leave nothing behind that works on if the start fails halfway, or if the end is asked for meanwhile."""
        self._is_starting = True
        try:
            self._runtime.start()
        except BaseException:
            self.is_closed = self.is_closed or self._runtime.is_begun
            raise
        else:
            self.is_started = True
            started()
        finally:
            self._is_starting = False
            if self.is_closed:
                self._end(self._limit)

    def _end_elsewhere(self, limit: timedelta) -> None:
        def end() -> None:
            try:
                self._end(limit)
            except BaseException:  # noqa: BLE001 - nobody waits for it
                _log.exception("not all parts of the engine could be stopped")

        try:
            threading.Thread(target=end, name="standfast-stop").start()
        except (
            RuntimeError
        ):  # The system has no more threads: the call that asks counts as one that did not end in time.
            end()

    def _end(self, limit: timedelta) -> None:
        """Once. Every part has its turn, whatever happens to the others, so that nothing works on and no work stays owned."""
        with self._turn:
            if self._is_starting or self._is_ending:  # By this very thread, which a signal has interrupted.
                return
            self._is_ending = True
            deadline, turns = time.monotonic() + limit.total_seconds(), IsolatedTasks()
            if self._runtime.is_begun:
                turns.take(lambda: self._runtime.stop(limit), None)
            turns.take(lambda: self._service.stop(_until(deadline)), None)
            if self._runtime.is_listed:
                turns.take(self._runtime.retire, None)
            turns.take(self._endings.stop, None)
            for each in self._readers:
                turns.take(partial(each.close, _until(deadline)), None)
            turns.take(self._leave, None)
            turns.end()

    def _is_here(self) -> bool:
        """Whether the present thread is one of the engine's own."""
        return (
            self._service.is_here()
            or self._runtime.is_here()
            or any(loop.is_here() for loop in self._endings.loops)
            or any(each.is_here() for each in self._readers)
        )


def _until(deadline: float) -> float:
    """Seconds that a part has to come to its end."""
    return max(0.0, deadline - time.monotonic()) + _LAST_WORDS_SECONDS


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
