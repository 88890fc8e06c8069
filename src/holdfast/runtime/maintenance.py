"""Watching for what operators say to all processes: maintenance mode."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from holdfast.runtime.clock import Clock
from holdfast.store.port import Workers
from holdfast.store.shapes import Maintenance

_INTERVAL = timedelta(seconds=0.5)
"""How often to look; with the look itself a process hears of it within a second."""


class Watch:
    """Knows whether there is maintenance. Every process looks for itself, because one without a worker hears no heartbeat."""

    def __init__(self, workers: Workers, clock: Clock) -> None:
        self._workers = workers
        self._clock = clock
        self._looked_at: datetime | None = None
        self.mode: Maintenance = ""
        self.told = 0
        """How often the mode was set by an operator of this process."""
        self._lock = threading.Lock()
        self._changed: Callable[[Maintenance], None] = lambda _mode: None

    def when_changed(self, changed: Callable[[Maintenance], None]) -> None:
        """Call back with the mode as it is, and with each other one that it becomes; quick, because those who look wait for it."""
        with self._lock:
            self._changed = changed
            changed(self.mode)

    def tell(self, mode: Maintenance) -> None:
        """The mode was just set."""
        with self._lock:
            self.told += 1
            self._become(mode)

    def hear(self, mode: Maintenance, told: int) -> None:
        """The mode was read by a look that began when it was `told` so often; if it was set since, what was read may be older."""
        with self._lock:
            if told == self.told:
                self._become(mode)

    def step(self) -> float:
        """One look."""
        told = self.told
        self.hear(self._workers.maintenance(), told)
        return _INTERVAL.total_seconds()

    def look_again(self) -> None:
        """Look, unless that was done just now; for engines without threads."""
        now = self._clock.now()
        if self._looked_at is None or now - self._looked_at >= _INTERVAL:
            self.step()
            self._looked_at = now

    def _become(self, mode: Maintenance) -> None:
        if mode != self.mode:
            self.mode = mode
            self._changed(mode)
