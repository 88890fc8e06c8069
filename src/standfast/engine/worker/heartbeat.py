"""The heartbeat: renews a worker's lease on its own thread and connection."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from standfast.engine.commit.context import EngineContext
from standfast.engine.common.operator_watch import Watch
from standfast.engine.common.telemetry import WorkRevived
from standfast.engine.worker.call import key_of
from standfast.engine.worker.worker import Worker
from standfast.store.ports.store import Workers

_log = logging.getLogger("standfast.heartbeat")

_INSTANT = timedelta(microseconds=1)


class Heartbeat:
    """Renews the worker's lease, and learns which claims the worker has lost."""

    def __init__(
        self,
        workers: Workers,
        worker: Worker,
        shared: EngineContext,
        *,
        name: str,
        watch: Watch,
        effects_ready: Callable[[], None],
    ) -> None:
        self.workers = workers
        """For the heartbeat thread, and for other threads once it has ended."""
        self._worker = worker
        self._shared = shared
        self._name = name
        self._watch = watch
        self._effects_ready = effects_ready
        self.hint = threading.Event()
        """Wakes the loop."""

    def wake(self) -> None:
        """Send the next heartbeat immediately."""
        self.hint.set()

    def step(self) -> float:
        """Send one heartbeat."""
        begun, told = time.monotonic(), self._watch.told
        lease = self._shared.settings.lease
        beat = self.workers.beat(
            self._worker.identity,
            self._worker.held(),
            name=self._name,
            handlers=self._shared.handlers.names(),
            lease=lease,
            now=self._shared.clock.judge(),
        )
        self._shared.clock.synchronise(beat.now, begun)
        self._worker.trust_until(begun + lease.total_seconds())
        if beat.lost:
            self._worker.lose(beat.lost)
        if beat.stopping:
            self._worker.interrupt(key_of(claim.instance, claim.number) for claim in beat.stopping)
            self._worker.limit(key_of(claim.instance, claim.number) for claim in beat.unawaited)
        if beat.revived:
            _log.warning("dead_workers_released workers=%s", ", ".join(beat.revived))
            self._shared.telemetry.tell(WorkRevived(handlers=tuple(beat.revived)))
            self._effects_ready()
        self._watch.hear(beat.maintenance, told)
        return self._shared.settings.beat_interval.total_seconds()

    def next_end(self) -> datetime | None:
        """Return when the lease of the next silent worker expires. None if there is no other worker."""
        live = self.workers.live(self._shared.clock.judge())
        ends = [each.alive_until for each in live if each.id != self._worker.identity]
        return min(ends) + _INSTANT if ends else None
