"""The heartbeat: a worker's lease on its work, renewed on a thread and a connection of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from holdfast.runtime.calling import key_of
from holdfast.runtime.shared import Shared
from holdfast.runtime.telemetry import WorkRevived
from holdfast.runtime.worker import Worker
from holdfast.store.port import Workers
from holdfast.store.shapes import Maintenance

_log = logging.getLogger("holdfast.heart")


class Heart:
    """Says that the worker lives, and hears what it has lost."""

    def __init__(
        self, workers: Workers, worker: Worker, shared: Shared, *, name: str, effects_ready: Callable[[], None]
    ) -> None:
        self._workers = workers
        self._worker = worker
        self._shared = shared
        self._name = name
        self._effects_ready = effects_ready
        self.maintenance: Maintenance = ""
        """What the last beat heard."""
        self.on_maintenance: Callable[[Maintenance], None] = lambda _mode: None
        """Set by a runtime: it is told with every beat."""
        self.wake: Callable[[], None] = lambda: None
        """Has the next beat come at once; set by whoever runs the loop."""

    def step(self) -> float:
        """One beat."""
        begun = time.monotonic()
        lease = self._shared.settings.lease
        beat = self._workers.beat(
            self._worker.identity,
            self._worker.held(),
            name=self._name,
            handlers=self._shared.handlers.names(),
            lease=lease,
            now=self._shared.clock.judge(),
        )
        self._shared.clock.synchronise(beat.now)
        self._worker.trust_until(begun + lease.total_seconds())
        if beat.lost:
            self._worker.lose(beat.lost)
        if beat.stopping:
            self._worker.interrupt(key_of(claim.instance, claim.number) for claim in beat.stopping)
            self._worker.limit(key_of(claim.instance, claim.number) for claim in beat.unawaited)
        if beat.revived:
            _log.warning("took over the work of a worker that died: %s", ", ".join(beat.revived))
            self._shared.telemetry.tell(WorkRevived(handlers=tuple(beat.revived)))
        if beat.revived or (self.maintenance and not beat.maintenance):
            self._effects_ready()
        self.maintenance = beat.maintenance
        self.on_maintenance(beat.maintenance)
        return self._shared.settings.beat_interval.total_seconds()

    def stop(self) -> None:
        """The worker leaves; what it still holds is free at once."""
        self._workers.retire(self._worker.identity)
