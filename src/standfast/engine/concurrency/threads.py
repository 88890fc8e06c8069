"""Threads for work that may hang: they are daemons, so that it does not keep the process from ending, and they can be replaced.

A thread cannot be stopped. One whose task is given up is written off: another takes its place, and if it ever comes back it goes home.
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
    """As many threads as there is work for, up to a limit."""

    def __init__(
        self, most: int, *, name: str, prefix: str = "", spare: int = 0, limit: float = _DEFAULT_LIMIT_SECONDS
    ) -> None:
        self.name = name
        self._prefix = prefix or name
        self._most = most
        self._spare = spare
        """How many of those that are written off are replaced."""
        self._limit = limit
        """Seconds for which tasks may wait without any of them being taken."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have no threads and nothing to do: at the beginning, and in a forked child, where those are gone that there were."""
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        """How many threads wait for a task; one that has just got one may still be counted, and looks itself whether another is needed."""
        self._threads: dict[int, threading.Thread] = {}
        """Those that live, by their ids, also those that are written off."""
        self._made = 0
        self._lost: set[int] = set()
        """Ids of those that are written off and have not come back."""
        self._moved_at = 0.0
        """When a task was last taken, or came while nothing was waiting."""
        self._is_closed = False

    def run(self, task: Task) -> bool:
        """Have a task done by the next thread that is free; False once the threads are closed."""
        if self._is_closed:
            return False
        if self._tasks.empty():
            self._moved_at = time.monotonic()
        self._tasks.put(task)
        if self._tasks.qsize() > self._idle:
            self._grow()
        return True

    def write_off(self, thread: int) -> None:
        """The task of the thread with this id is given up: have another thread do what it would have done next."""
        with self._lock:
            if thread not in self._threads or thread in self._lost:
                return
            self._lost.add(thread)
        if not self._tasks.empty():
            self._grow()

    @property
    def lost(self) -> int:
        """How many threads are written off."""
        return len(self._lost)

    @property
    def stalled_for(self) -> float:
        """Seconds for which something has waited and nothing was taken."""
        return 0.0 if self._tasks.empty() else max(0.0, time.monotonic() - self._moved_at)

    def problem(self, limit: float | None = None) -> str:
        """What keeps the threads from their work, in words; empty if nothing does. `limit` is another one than their own."""
        lost, left = self._count_lost()
        if lost > self._spare > 0:
            return f"{lost} have hung past the limits of their calls; {left} of {self._most} are left"
        stalled = self.stalled_for
        if stalled >= (self._limit if limit is None else limit):
            waiting = self._tasks.qsize()
            return f"all {left} are busy, and {waiting} wait for one; none was free for {stalled:.0f} s"
        return ""

    def close(self, timeout: float = 0.0, *, drops: bool = True) -> None:
        """End when the running tasks do, and wait for that for a while. What waits is dropped, or else still begun."""
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
        """Whether the present thread is one of them."""
        with self._lock:  # It may be at work already and not in the list yet.
            return threading.get_ident() in self._threads

    def _count_lost(self) -> tuple[int, int]:
        with self._lock:
            lost = len(self._lost)
        return lost, max(0, min(self._most, self._most + self._spare - lost))

    def _grow(self) -> None:
        """Make another thread, if there may be one."""
        with self._lock:
            if len(self._threads) >= self._most + min(len(self._lost), self._spare):
                return
            self._made += 1
            thread = threading.Thread(target=self._work, name=f"{self._prefix}-{self._made}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # The system has no more; what waits is done by those that there are.
                _log.error("%s: %s", self.name, error)
                return
            assert thread.ident is not None
            self._threads[thread.ident] = thread

    def _work(self) -> None:
        me = threading.get_ident()
        while (task := self._next()) is not None:
            try:
                task()
            except BaseException:  # noqa: BLE001 - the thread outlives whatever it is given
                _log.exception("a task failed unexpectedly")
            task = None  # Nobody keeps what it refers to alive while the thread waits for the next one.
            if self._lost and self._is_superfluous(me):
                break
        with self._lock:
            self._threads.pop(me, None)
            self._lost.discard(me)

    def _is_superfluous(self, me: int) -> bool:
        """Whether a thread that was written off and has come back after all was replaced meanwhile."""
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
