"""What has to be done now and then: partitions, a short log, old receipts, finished instances past their time, missing handlers."""

from __future__ import annotations

import logging
from datetime import datetime

from holdfast.runtime.shared import Shared
from holdfast.runtime.telemetry import HandlerMissing
from holdfast.store.port import Parts
from holdfast.store.shapes import Backlog

_log = logging.getLogger("holdfast.housekeeping")

_INTERVAL_SECONDS = 30.0
_MOST = 1000


class Housekeeping:
    """Keeps the database tidy. One thread steps it."""

    def __init__(self, parts: Parts, shared: Shared) -> None:
        self._keeper = parts.keeper()
        self._workers = parts.workers()
        self._shared = shared
        self._missed_at: dict[str, datetime] = {}

    def step(self) -> float:
        """One round."""
        now = self._shared.clock.now()
        self._keeper.tidy(now)
        self.look_for_missing_handlers()
        gone = self.prune()
        return 1.0 if gone else _INTERVAL_SECONDS

    def prune(self) -> int:
        """Delete what is past its time; how much of it there was, up to a limit."""
        settings, now = self._shared.settings, self._shared.clock.now()
        gone = self._keeper.prune(receipts_before=now - settings.keep_receipts, signals_before=now, limit=_MOST)
        if settings.keep_finished is None:
            return gone
        for address in self._keeper.expired(ended_before=now - settings.keep_finished, limit=_MOST):
            assert address.instance is not None
            gone += self._keeper.delete(address.instance, tenant=address.tenant)
        return gone

    def look_for_missing_handlers(self) -> list[Backlog]:
        """Work that waits for a handler no live worker has; each is reported once in a while."""
        waiting = [each for each in self._keeper.backlog() if each.kind == "effect"]
        if not waiting:
            return []
        known = {name for worker in self._workers.live(self._shared.clock.judge()) for name in worker.handlers}
        missing = [each for each in waiting if each.name not in known]
        for each in missing:
            self._report(each)
        return missing

    def _report(self, backlog: Backlog) -> None:
        now = self._shared.clock.now()
        last = self._missed_at.get(backlog.name)
        if last is not None and now - last < self._shared.settings.missing_handler_after:
            return
        self._missed_at[backlog.name] = now
        _log.warning("%d effects wait for the handler %r, which no live worker has", backlog.count, backlog.name)
        self._shared.telemetry.tell(HandlerMissing(handler=backlog.name, waiting=backlog.count))
