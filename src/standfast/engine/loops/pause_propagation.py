"""The walk that brings effects and timers into line with the pauses, and the end of pauses whose time is up."""

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
"""Rows that a stride of the walk looks at."""
_PACE_SECONDS = 0.1
"""Between two strides that let work go: so it comes back no faster than it can be claimed."""
_CHECK = timedelta(seconds=30)
"""How often is looked for what nobody expects."""
_TIME_IS_UP = "its time was up"


class PausePropagator:
    """Goes on with the walk, and ends pauses whose time is up. One thread steps it, the one that watches."""

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
        """Has the process learn anew which pauses there are."""
        self._released = released
        """Tells all workers that there is work."""
        self._is_walking = False
        self._check_at: datetime | None = None

    def step(self) -> float | None:
        """One stride, if there is reason for it; how many seconds to rest before the next one, None if there is none to come."""
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
        """Without a thread: walk until all that is due is done."""
        while self.step() is not None:
            pass

    def next_at(self) -> datetime | None:
        """When the next walk is due, or the next pause ends by itself; None if that is not known to come."""
        now = self._shared.clock.now()
        known = [each.until for each in self._standing.pauses] + [next_propagation_at(self._standing.known)]
        return min((at for at in known if at is not None and at > now), default=None)

    def _end_late(self, now: datetime) -> None:
        late = [each for each in self._standing.pauses if each.until is not None and each.until <= now]
        for each in late:
            assert each.until is not None
            if self._pauses.end(each.id, by=SYSTEM.id, why=_TIME_IS_UP, at=each.until):
                _log.info("the pause %d of %s has ended: %s", each.id, each.scope, _TIME_IS_UP)
        if late:
            self._look()

    def _has_reason(self, now: datetime) -> bool:
        """Whether to ask the database for a stride."""
        due = next_propagation_at(self._standing.known)
        if self._is_walking or (due is not None and due <= now):
            return True
        if self._check_at is not None and self._check_at - _CHECK <= now < self._check_at:
            return False
        self._check_at = now + _CHECK
        return bool(self._standing.known) or self._pauses.is_astray()
