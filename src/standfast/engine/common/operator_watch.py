"""Watching for what operators do to all processes: maintenance mode, pauses, and a schema that is newer than the code."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from standfast.engine.common.clock import Clock
from standfast.engine.common.pauses import ActivePauses
from standfast.store.ports.pauses import PauseRecord
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import Maintenance

_INTERVAL = timedelta(seconds=0.5)
"""How often to look; with the look itself a process hears of it within a second."""


_log = logging.getLogger("standfast.schema")


class WorkSwitch:
    """Turns the parts of one worker process off while there is maintenance, and on again."""

    __slots__ = ("is_off",)

    def __init__(self) -> None:
        self.is_off = False


class Watch:
    """Knows whether there is maintenance, which pauses stand, and whether the schema of the database is still that of the code.

    Every process looks for itself, because one without a worker hears no heartbeat.
    """

    name = "schema"
    is_kept_waiting = True
    """Another process of the same code would not even open the database."""

    def __init__(self, parts: StoreParts, clock: Clock, standing: ActivePauses) -> None:
        self._workers = parts.workers()
        self._pauses = parts.pauses()
        self._clock = clock
        self._standing = standing
        self._looked_at: datetime | None = None
        self.mode: Maintenance = ""
        self._outdated = ""
        self.told = 0
        """How often an operator of this process has set the mode, paused or resumed."""
        self._lock = threading.Lock()
        self._changed: Callable[[Maintenance], None] = lambda _mode: None

    def when_changed(self, changed: Callable[[Maintenance], None]) -> None:
        """Call back with the mode as it is, and with each other one that it becomes; quick, because those who look wait for it."""
        with self._lock:
            self._changed = changed
            changed(self._effective)

    def problem(self) -> str:
        """Why this process takes no work any more, in words: the schema is newer than its code. Empty if it is not."""
        return self._outdated

    def tell(self, mode: Maintenance) -> None:
        """The mode was just set."""
        with self._lock:
            self.told += 1
            self._become(mode)

    def tell_pauses(self, pauses: Sequence[PauseRecord]) -> None:
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
        mode, pauses, (at, newest) = self._workers.maintenance(), self._pauses.standing(), self._workers.schemas()
        with self._lock:
            self._compare(at, newest)
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

    @property
    def _effective(self) -> Maintenance:
        return "refuse" if self._outdated else self.mode

    def _become(self, mode: Maintenance) -> None:
        if mode != self.mode:
            self.mode = mode
            self._changed(self._effective)

    def _compare(self, at: int, newest: int) -> None:
        """Stop everything that begins in this process while the database is at a schema that its code does not know."""
        told = ""
        if at > newest:
            told = f"the database is at schema {at}, which is newer than this code ({newest}); upgrade Standfast in this process"
        if told == self._outdated:
            return
        self._outdated = told
        if told:
            _log.error("schema_newer schema=%d code=%d: no work is taken and commands are refused", at, newest)
        else:
            _log.warning("schema_known schema=%d: work is taken again", at)
        self._changed(self._effective)
