"""Threads for plain handlers. They are daemons: a handler that hangs must not keep its process from ending."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_log = logging.getLogger("holdfast.worker")

Task = Callable[[], None]


class Threads:
    """As many threads as there is work for, up to a limit."""

    def __init__(self, most: int, *, name: str) -> None:
        self._most = most
        self._name = name
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def run(self, task: Task) -> None:
        """Have a task done by the next thread that is free."""
        self._tasks.put(task)
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._count < self._most:
                self._count += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._count}", daemon=True).start()

    def close(self) -> None:
        """Begin no further task; those that run are left to themselves."""
        self._take_all()
        with self._lock:
            for _ in range(self._count):
                self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except BaseException:  # noqa: BLE001 - the thread outlives whatever it is given
                _log.exception("a task failed unexpectedly")

    def _next(self) -> Task | None:
        try:
            return self._tasks.get_nowait()
        except Empty:
            self._idle.release()
            return self._tasks.get()

    def _take_all(self) -> None:
        while True:
            try:
                self._tasks.get_nowait()
            except Empty:
                return
