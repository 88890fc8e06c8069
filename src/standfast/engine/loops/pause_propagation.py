"""Applies pauses to stored effects and timers in batches, and ends expired pauses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from standfast.engine.commit.context import EngineContext
from standfast.engine.common.pauses import ActivePauses
from standfast.engine.worker.pause_filter import step_of
from standfast.kernel.actor import SYSTEM
from standfast.store.ports.pauses import Pauses
from standfast.store.sql.pause_propagation import next_propagation_at

_log = logging.getLogger("standfast.pauses")

_ROWS = 500
"""Rows per batch."""
_PACE_SECONDS = 0.1
"""Delay between two batches that release work, so that it is not released faster than workers can claim it."""
_CHECK = timedelta(seconds=30)
"""Interval of checks without a hint."""
_TIME_IS_UP = "its time was up"


class PausePropagator:
    """Propagates pauses, and ends expired ones. A single thread steps it, the watching one."""

    def __init__(
        self,
        pauses: Pauses,
        standing: ActivePauses,
        shared: EngineContext,
        *,
        look: Callable[[], object],
        released: Callable[[], None],
    ) -> None:
        self._pauses = pauses
        self._standing = standing
        self._shared = shared
        self._look = look
        """Makes the process reload the active pauses."""
        self._released = released
        """Notifies all workers that there is work."""
        self._is_walking = False
        self._check_at: datetime | None = None

    def step(self) -> float | None:
        """Process one batch if there is a reason. Return the seconds until the next one, or None if none is due."""
        now = self._shared.clock.now()
        self._end_late(now)
        if not self._has_reason(now):
            return None
        stride = self._pauses.stride(lambda each: step_of(self._shared.languages, each), now=now, limit=_ROWS)
        if stride.released:
            self._released()
        self._is_walking = not stride.is_over
        if stride.is_over:
            self._look()
            return None
        return _PACE_SECONDS if stride.released else 0.0

    def drain(self) -> None:
        """Process all due batches, for engines without threads."""
        while self.step() is not None:
            pass

    def next_at(self) -> datetime | None:
        """Return when the next batch is due or the next pause expires. None if neither is known."""
        now = self._shared.clock.now()
        known = [each.until for each in self._standing.pauses] + [next_propagation_at(self._standing.known)]
        return min((at for at in known if at is not None and at > now), default=None)

    def _end_late(self, now: datetime) -> None:
        late = [each for each in self._standing.pauses if each.until is not None and each.until <= now]
        for each in late:
            assert each.until is not None
            if self._pauses.end(each.id, by=SYSTEM.id, why=_TIME_IS_UP, at=each.until):
                _log.info("pause_ended pause=%d scope=%s: %s", each.id, each.scope, _TIME_IS_UP)
        if late:
            self._look()

    def _has_reason(self, now: datetime) -> bool:
        """Return whether to ask the database for a batch."""
        due = next_propagation_at(self._standing.known)
        if self._is_walking or (due is not None and due <= now):
            return True
        if self._check_at is not None and self._check_at - _CHECK <= now < self._check_at:
            return False
        self._check_at = now + _CHECK
        return bool(self._standing.known) or self._pauses.is_astray()
