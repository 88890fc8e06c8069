"""Thread pool for work that may hang. The threads are daemons, so that they do not block the end of the process, and they can be replaced.

A thread cannot be stopped. If its task is abandoned, another thread replaces it, and it ends when the task returns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

_log = logging.getLogger("standfast.worker")

_DEFAULT_LIMIT_SECONDS = 10.0

Task = Callable[[], None]


class Threads:
    """As many threads as there are tasks, up to a limit."""

    def __init__(
        self, most: int, *, name: str, prefix: str = "", spare: int = 0, limit: float = _DEFAULT_LIMIT_SECONDS
    ) -> None:
        self.name = name
        self._prefix = prefix or name
        self._most = most
        self._spare = spare
        """How many abandoned threads are replaced."""
        self._limit = limit
        """Seconds for which tasks may wait while no thread takes any."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Reset to no threads and no tasks: at the start, and in a forked child, which has none of the threads."""
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        """Number of threads that wait for a task. A thread that has just got one may still count; it checks itself
        whether another is needed."""
        self._threads: dict[int, threading.Thread] = {}
        """The live threads by their ids, including abandoned ones."""
        self._made = 0
        self._lost: set[int] = set()
        """Ids of the abandoned threads that have not returned."""
        self._moved_at = 0.0
        """Time at which a task was last taken, or arrived while none waited."""
        self._is_closed = False

    def run(self, task: Task) -> bool:
        """Run a task on the next free thread. Return False once the pool is closed."""
        if self._is_closed:
            return False
        if self._tasks.empty():
            self._moved_at = time.monotonic()
        self._tasks.put(task)
        if self._tasks.qsize() > self._idle:
            self._grow()
        return True

    def write_off(self, thread: int) -> None:
        """Abandon the task of the thread with this id, and let another thread continue."""
        with self._lock:
            if thread not in self._threads or thread in self._lost:
                return
            self._lost.add(thread)
        if not self._tasks.empty():
            self._grow()

    @property
    def lost(self) -> int:
        """Number of abandoned threads."""
        return len(self._lost)

    @property
    def stalled_for(self) -> float:
        """Seconds for which tasks have waited without one being taken."""
        return 0.0 if self._tasks.empty() else max(0.0, time.monotonic() - self._moved_at)

    def problem(self, limit: float | None = None) -> str:
        """Describes the problem of the pool. Empty if there is none. `limit` replaces the pool's own."""
        lost, left = self._count_lost()
        if lost > self._spare > 0:
            return f"{lost} have hung past the limits of their calls; {left} of {self._most} are left"
        stalled = self.stalled_for
        if stalled >= (self._limit if limit is None else limit):
            waiting = self._tasks.qsize()
            return f"all {left} are busy, and {waiting} wait for one; none was free for {stalled:.0f} s"
        return ""

    def close(self, timeout: float = 0.0, *, drops: bool = True) -> None:
        """Close the pool, and wait up to `timeout` seconds for the running tasks.

        Queued tasks are dropped, or else still run.
        """
        self._is_closed = True
        if drops:
            self._take_all()
        with self._lock:
            threads = [thread for ident, thread in self._threads.items() if ident not in self._lost]
        for _ in threads:
            self._tasks.put(None)
        deadline = time.monotonic() + timeout
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def is_here(self) -> bool:
        """Whether the current thread belongs to the pool."""
        with self._lock:  # It may be running without being in the list yet.
            return threading.get_ident() in self._threads

    def _count_lost(self) -> tuple[int, int]:
        with self._lock:
            lost = len(self._lost)
        return lost, max(0, min(self._most, self._most + self._spare - lost))

    def _grow(self) -> None:
        """Start another thread, if the limit allows it."""
        with self._lock:
            if len(self._threads) >= self._most + min(len(self._lost), self._spare):
                return
            self._made += 1
            thread = threading.Thread(target=self._work, name=f"{self._prefix}-{self._made}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # The system has no more threads; the existing ones do the waiting tasks.
                _log.error("thread_start_failed pool=%r: %s", self.name, error)
                return
            assert thread.ident is not None
            self._threads[thread.ident] = thread

    def _work(self) -> None:
        me = threading.get_ident()
        while (task := self._next()) is not None:
            try:
                task()
            except BaseException:  # noqa: BLE001 - the thread survives every task
                _log.exception("pool_task_failed")
            task = None  # Drops the references of the task while the thread waits for the next one.
            if self._lost and self._is_superfluous(me):
                break
        with self._lock:
            self._threads.pop(me, None)
            self._lost.discard(me)

    def _is_superfluous(self, me: int) -> bool:
        """Return whether an abandoned thread that has returned was replaced meanwhile."""
        with self._lock:
            if me not in self._lost:
                return False
            self._lost.discard(me)
            return len(self._threads) > self._most + min(len(self._lost), self._spare)

    def _next(self) -> Task | None:
        try:
            task = self._tasks.get_nowait()
        except Empty:
            task = self._await()
        self._moved_at = time.monotonic()
        return task

    def _await(self) -> Task | None:
        if self._is_closed:
            return None
        with self._lock:
            self._idle += 1
        try:
            task = self._tasks.get()
        finally:
            with self._lock:
                self._idle -= 1
        if task is not None and self._tasks.qsize() > self._idle:
            self._grow()
        return task

    def _take_all(self) -> None:
        while True:
            try:
                self._tasks.get_nowait()
            except Empty:
                return
