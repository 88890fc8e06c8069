"""Many callers at the same time, each of which waits for its answer before it calls again, and the handlers that they wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

CALLERS = 64
_PATIENCE_SECONDS = 120.0


class Arrivals:
    """When the handler of each run was called."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}
        self._changed = threading.Condition()

    def note(self, number: int) -> None:
        """The handler of a run was called; a second call would be one too many."""
        with self._changed:
            assert number not in self.at, f"the handler of run {number} was called twice"
            self.at[number] = time.perf_counter()
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until the handlers of so many runs were called."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.at) >= count, _PATIENCE_SECONDS):
                raise TimeoutError(f"{len(self.at)} of {count} handlers were called in {_PATIENCE_SECONDS} s")


class Answers:
    """When each call began, and when its answer was there."""

    def __init__(self, begun: Sequence[float], ended: Sequence[float]) -> None:
        self.begun, self.ended = begun, ended

    @property
    def waits(self) -> list[float]:
        """How long each caller waited."""
        return [ended - begun for begun, ended in zip(self.begun, self.ended, strict=True)]

    @property
    def per_second(self) -> float:
        """Calls a second, from the first to the last answer."""
        return len(self.begun) / (max(self.ended) - min(self.begun))

    def waits_for(self, arrivals: Arrivals, *, first: int) -> list[float]:
        """How long it took from each call to the handler that it led to; the calls were about this run and those after it."""
        return [arrivals.at[number] - begun for number, begun in enumerate(self.begun, first)]


def call_all(call: Callable[[T], object], subjects: Sequence[T], callers: int = CALLERS) -> Answers:
    """Call for each of these, so many at a time."""
    with ThreadPoolExecutor(callers) as pool:
        ready = threading.Barrier(callers)
        list(pool.map(lambda _: ready.wait(), range(callers)))  # Every thread is there before the first one calls.
        times = list(pool.map(lambda subject: _timed(call, subject), subjects))
    return Answers([begun for begun, _ in times], [ended for _, ended in times])


def _timed(call: Callable[[T], object], subject: T) -> tuple[float, float]:
    begun = time.perf_counter()
    call(subject)
    return begun, time.perf_counter()
