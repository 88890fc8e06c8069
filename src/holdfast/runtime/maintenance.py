"""Watching for what operators say to all processes: maintenance mode, and pauses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from holdfast.runtime.clock import Clock
from holdfast.runtime.pauses import Standing
from holdfast.store.pauses import Pause
from holdfast.store.port import Parts
from holdfast.store.shapes import Maintenance

_INTERVAL = timedelta(seconds=0.5)
"""How often to look; with the look itself a process hears of it within a second."""


class Watch:
    """Knows whether there is maintenance, and which pauses stand.

    Every process looks for itself, because one without a worker hears no heartbeat.
    """

    def __init__(self, parts: Parts, clock: Clock, standing: Standing) -> None:
        self._workers = parts.workers()
        self._pauses = parts.pauses()
        self._clock = clock
        self._standing = standing
        self._looked_at: datetime | None = None
        self.mode: Maintenance = ""
        self.told = 0
        """How often an operator of this process has set the mode, paused or resumed."""
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

    def tell_pauses(self, pauses: Sequence[Pause]) -> None:
        """One of the pauses has just begun or ended."""
        with self._lock:
            self.told += 1
            self._standing.become(pauses)

    def hear(self, mode: Maintenance, told: int) -> None:
        """The mode was read by a look that began when it was `told` so often; if it was set since, what was read may be older."""
        with self._lock:
            if told == self.told:
                self._become(mode)

    def step(self) -> float:
        """One look."""
        told = self.told
        mode, pauses = self._workers.maintenance(), self._pauses.standing()
        with self._lock:
            if told == self.told:
                self._become(mode)
                self._standing.become(pauses)
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
