"""Loops that never die: each runs on its own thread, is woken by hints, waits in between, and goes on after any failure."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from holdfast.errors import StoreUnavailableError
from holdfast.runtime.telemetry import LoopFailed, Telemetry

_log = logging.getLogger("holdfast.loops")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0

Step = Callable[[], float]
"""One bounded round of work; how many seconds to wait before the next one unless a hint comes."""


class Loop:
    """A step that is repeated for as long as the engine runs."""

    def __init__(self, name: str, step: Step, telemetry: Telemetry) -> None:
        self.name = name
        self._step = step
        self._telemetry = telemetry
        self._hint = threading.Event()
        self._is_stopped = False
        self._failures = 0
        self._went_well_at = time.monotonic()
        self._due_at = self._went_well_at
        """When the next round should go well: after the rest that the last one asked for, or when one failed."""
        self._thread = threading.Thread(target=self._run, name=f"holdfast-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something to do: do not wait."""
        self._hint.set()

    def stop(self) -> None:
        """Do not begin another round."""
        self._is_stopped = True
        self._hint.set()

    def join(self, timeout: float) -> None:
        """Wait for the last round to end."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    @property
    def silent_for(self) -> float:
        """Seconds since the last round that went well."""
        return time.monotonic() - self._went_well_at

    @property
    def late_by(self) -> float:
        """Seconds for which a round that goes well is overdue; a loop that rests is not late."""
        return max(0.0, time.monotonic() - self._due_at)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_stopped:
            self._hint.clear()
            self._hint.wait(self._round())

    def _round(self) -> float:
        try:
            wait = self._step()
        except Exception as error:  # noqa: BLE001 - a loop outlives whatever happens in it
            return self._fail(error)
        self._failures = 0
        self._went_well_at = time.monotonic()
        self._due_at = self._went_well_at + wait
        return wait

    def _fail(self, error: Exception) -> float:
        if self._is_stopped:
            return 0.0
        self._failures += 1
        self._due_at = min(self._due_at, time.monotonic())
        if isinstance(error, StoreUnavailableError):
            _log.warning("%s: %s", self.name, error)
        else:
            _log.error("%s failed", self.name, exc_info=error)
        self._telemetry.tell(LoopFailed(loop=self.name, error=str(error), failures=self._failures))
        return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 10), _LONGEST_PAUSE_SECONDS)


class Chores:
    """Things that other threads ask a loop to do on its own thread and connection."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.wake: Callable[[], None] = lambda: None
        """Set by whoever runs the loop."""

    def wake_loop(self) -> None:
        """Have the loop look for work."""
        self.wake()

    def add(self, chore: Callable[[], None]) -> None:
        """Have it done in the next round."""
        self._queue.put(chore)
        self.wake()

    def run(self) -> int:
        """Do what was asked for; how many things. One that fails is kept for the next round."""
        count = 0
        while True:
            try:
                chore = self._queue.get_nowait()
            except Empty:
                return count
            try:
                chore()
            except Exception:
                self._queue.put(chore)
                raise
            count += 1
