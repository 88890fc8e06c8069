"""Start and stop of an engine: started at most once, stopped once and completely, whichever thread asks.

Starting and stopping exclude one another. A signal may interrupt the thread that starts or stops, and request the stop
on that thread. Handlers may also request it, on a thread that the stop waits for.

The module also holds health checks of parts that only report: callbacks and channels.
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
"""Time for the last commits and replies when the stop timeout is over."""


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
        """Closes the database when the last part has stopped."""
        self._limit = service.shared.settings.shutdown_timeout
        self._turn = threading.RLock()
        """Held by the thread that starts or stops the engine; other threads wait for it."""
        self.is_started = False
        self.is_closed = False
        """Whether the engine is to stop, or has stopped."""
        self._is_starting = False
        self._is_ending = False
        """Whether a thread has begun to stop the engine."""

    def start(self, started: Callable[[], None]) -> None:
        """Start the engine and run the callback, unless it was started before; StoppedError after a stop."""
        self._service.check_process()
        self._check_open()
        with self._turn:
            self._check_open()
            if not self.is_started:
                self._start(started)

    def stop(self, timeout: timedelta | None = None) -> None:
        """Stop the engine and run the callback; a thread that the stop waits for returns immediately."""
        limit = self._limit if timeout is None else timeout
        is_first, self.is_closed = not self.is_closed, True
        if self._service.is_inherited:
            return  # The engine belongs to the parent process, and goes on there.
        if not self._is_here():
            self._end(limit)
        elif is_first:
            self._end_elsewhere(limit)

    def _check_open(self) -> None:
        if self.is_closed:
            raise StoppedError("a stopped engine is not started again; open a new one")

    def _start(self, started: Callable[[], None]) -> None:
        """Start all parts. If that fails, or a stop is requested meanwhile, stop the started parts."""
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
            except BaseException:  # noqa: BLE001 - no caller waits for it
                _log.exception("engine_stop_incomplete")

        try:
            threading.Thread(target=end, name="standfast-stop").start()
        except RuntimeError:  # The system has no more threads: the calling part counts as not stopped in time.
            end()

    def _end(self, limit: timedelta) -> None:
        """Stop every part once, whatever fails, so that no part works on and no work stays claimed."""
        with self._turn:
            if self._is_starting or self._is_ending:  # This thread, which a signal has interrupted.
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
        """Return whether the current thread is one of the engine's own."""
        return (
            self._service.is_here()
            or self._runtime.is_here()
            or any(loop.is_here() for loop in self._endings.loops)
            or any(each.is_here() for each in self._readers)
        )


def _until(deadline: float) -> float:
    """Return the seconds that a part has to stop."""
    return max(0.0, deadline - time.monotonic()) + _LAST_WORDS_SECONDS


class Callbacks:
    """Health check of the callback threads, which all engines of a process share. The limit is that of one engine."""

    name = callbacks.name

    def __init__(self, *, limit: float) -> None:
        self._limit = limit

    def problem(self) -> str:
        """Return what prevents the threads from working; empty if nothing does."""
        return callbacks.problem(self._limit)


class Channels:
    """Health check of notification channels that definitions name; every worker process needs all of them."""

    name = "channels"
    is_kept_waiting = True

    def __init__(self, deliveries: Deliveries, library: Library) -> None:
        self._deliveries = deliveries
        self._library = library

    def problem(self) -> str:
        """Return which channel is missing; empty if none is."""
        return self._deliveries.lacking(self._library.channels())
