"""Watches for operator actions that affect all processes: maintenance mode, pauses, and a schema that is newer than the code."""

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
"""Interval between two checks. With the check itself, a process notices a change within a second."""


_log = logging.getLogger("standfast.schema")


class WorkSwitch:
    """Turns the parts of one worker process off while there is maintenance, and on again."""

    __slots__ = ("is_off",)

    def __init__(self) -> None:
        self.is_off = False


class Watch:
    """Tracks the maintenance mode, the active pauses and the schema version of the database.

    Each process checks for itself, because one without a worker has no heartbeat.
    """

    name = "schema"
    is_kept_waiting = True
    """A newer schema is an external cause: a restarted process with the same code could not open the database."""

    def __init__(self, parts: StoreParts, clock: Clock, standing: ActivePauses) -> None:
        self._workers = parts.workers()
        self._pauses = parts.pauses()
        self._clock = clock
        self._standing = standing
        self._looked_at: datetime | None = None
        self.mode: Maintenance = ""
        self._outdated = ""
        self.told = 0
        """Number of times that this process has set the mode, paused or resumed."""
        self._lock = threading.Lock()
        self._changed: Callable[[Maintenance], None] = lambda _mode: None

    def when_changed(self, changed: Callable[[Maintenance], None]) -> None:
        """Call back with the current mode, and with each later one.

        The callback must be quick, because it delays the checking thread.
        """
        with self._lock:
            self._changed = changed
            changed(self._effective)

    def problem(self) -> str:
        """Describes why this process accepts no work: the schema is newer than its code. Empty if it is not."""
        return self._outdated

    def tell(self, mode: Maintenance) -> None:
        """Record that this process has set the mode."""
        with self._lock:
            self.told += 1
            self._become(mode)

    def tell_pauses(self, pauses: Sequence[PauseRecord]) -> None:
        """Record that this process has begun or ended a pause."""
        with self._lock:
            self.told += 1
            self._standing.become(pauses)

    def hear(self, mode: Maintenance, told: int) -> None:
        """Record a mode read by a check that began at the count `told`.

        If the mode was set since, the value may be stale and is dropped.
        """
        with self._lock:
            if told == self.told:
                self._become(mode)

    def step(self) -> float:
        """Run one check."""
        told = self.told
        mode, pauses, (at, newest) = self._workers.maintenance(), self._pauses.standing(), self._workers.schemas()
        with self._lock:
            self._compare(at, newest)
            if told == self.told:
                self._become(mode)
                self._standing.become(pauses)
        return _INTERVAL.total_seconds()

    def look_again(self) -> None:
        """Run a check unless one was made just now, for engines without threads."""
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
        """Stop new work in this process while the schema of the database is newer than the code."""
        told = ""
        if at > newest:
            told = f"the database is at schema {at}, which is newer than this code ({newest}); upgrade Standfast in this process"
        if told == self._outdated:
            return
        self._outdated = told
        if told:
            _log.error("schema_newer schema=%d code=%d: the process takes no work and refuses commands", at, newest)
        else:
            _log.warning("schema_known schema=%d: the process takes work again", at)
        self._changed(self._effective)
