"""Watching an engine at work: how often it commits, and when it has nothing left to do."""

from __future__ import annotations

import time

from standfast import Engine
from standfast.engine.common.telemetry import Committed, Happening

_LOOK_SECONDS = 0.002
_PATIENCE_SECONDS = 120.0


class Commits:
    """Counts the transactions of an engine's committer."""

    def __init__(self, engine: Engine) -> None:
        self.count = 0
        engine.listen(self._heard)

    def _heard(self, happening: Happening) -> None:
        if isinstance(happening, Committed):
            self.count += 1


class Calls:
    """Counts the calls of a handler, and notes when each came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def note(self) -> None:
        """A handler was called."""
        self.times.append(time.perf_counter())

    def wait_for(self, count: int) -> None:
        """Wait until there were this many."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(self.times) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.times)} of {count} handlers were called in {_PATIENCE_SECONDS} s")
            time.sleep(_LOOK_SECONDS)


def wait_until_empty(engine: Engine) -> None:
    """Wait until no effect is left in the database: a call counts as done when its end is committed."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while left := engine.admin.backlog():
        if time.monotonic() > deadline:
            raise TimeoutError(f"still waiting after {_PATIENCE_SECONDS} s: {left}")
        time.sleep(_LOOK_SECONDS)
