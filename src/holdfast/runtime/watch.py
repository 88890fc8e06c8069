"""Watching for what operators say to all processes: maintenance mode."""

from __future__ import annotations

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
        self._told = 0

    def tell(self, mode: Maintenance) -> None:
        """The mode was just set or read. What a look that is under way finds may be older, and does not count."""
        self._told += 1
        self.mode = mode

    def step(self) -> float:
        """One look."""
        told, mode = self._told, self._workers.maintenance()
        if told == self._told:
            self.mode = mode
        return _INTERVAL.total_seconds()

    def look_again(self) -> None:
        """Look, unless that was done just now; for engines without threads."""
        now = self._clock.now()
        if self._looked_at is None or now - self._looked_at >= _INTERVAL:
            self.step()
            self._looked_at = now
