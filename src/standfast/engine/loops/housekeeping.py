"""Periodic maintenance of the database.

It creates partitions, deletes expired rows and finished instances, and compresses the inputs and outputs of old steps.
It also looks for work without a handler, instances to resume and stuck instances.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.readable_types import Vocabularies
from standfast.engine.concurrency.loop import IsolatedTasks
from standfast.engine.loops.missing_handlers import SHORTEST_PAUSE, MissingHandlers
from standfast.engine.loops.resume import Resuming, Resumption
from standfast.engine.loops.stuck_instances import Alert, IncidentLook
from standfast.engine.worker.unreadable_work import Throttle, UnreadWork
from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.row_kinds.events import EVENT_KIND
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import Address
from standfast.store.records.queries import NeededError, PartError

_FIRST = timedelta(hours=1)
"""Delay after the start of a process, which has more urgent work."""
_EVERY = timedelta(minutes=1)
"""Interval between two rounds."""
_REST = timedelta(days=1)
"""Delay after a complete pass."""
_MOST_COMPRESSED = 500
"""Maximum number of steps per round."""


class CompressionPass:
    """Compresses old steps, a batch per interval. A single thread steps it."""

    def __init__(self, parts: StoreParts, shared: EngineContext) -> None:
        self._keeper = parts.keeper()
        self._shared = shared
        self._last: tuple[InstanceId, int] | None = None
        self._due_at: datetime | None = None
        """Time of the next round. None until the start of the process is known."""

    def look(self) -> int:
        """Compress the next batch if it is due. Return the number of compressed steps."""
        compress_after, now = self._shared.settings.compress_after, self._shared.clock.now()
        if self._due_at is None:
            self._due_at = now + _FIRST
        if compress_after is None or self._due_at - _REST <= now < self._due_at:
            return 0
        found = self._keeper.fade(before=now - compress_after, after=self._last, limit=_MOST_COMPRESSED)
        self._last = found.last
        self._due_at = now + (_REST if found.last is None else _EVERY)
        return found.packed


_log = logging.getLogger("standfast.housekeeping")

_INTERVAL = timedelta(seconds=30)
_RECEIPTS_INTERVAL = timedelta(hours=1)
_MOST = 1000
_KEEP_EVENTS = timedelta(days=1)
"""How long an expired published event can still be read, whatever the retention of other instances."""


class WorkflowDuties(NamedTuple):
    """The duties of housekeeping towards workflows. The application layer provides them."""

    resumption: Resumption
    """The commands for instances that are to resume."""
    kinds: tuple[str, ...]
    """The kinds of instances that must never get stuck."""
    review: Callable[[], None]
    """Re-evaluates whether open tasks have an eligible approver."""
    alert: Alert
    """Sends an incident to operators."""


class Housekeeping:
    """Cleans up the database. A single thread steps it."""

    def __init__(
        self,
        parts: StoreParts,
        shared: EngineContext,
        vocabularies: Vocabularies,
        worker: WorkerId,
        *,
        duties: WorkflowDuties,
        is_outdated: Callable[[], bool],
    ) -> None:
        self._keeper = parts.keeper()
        self._pauses = parts.pauses()
        self._shared = shared
        self._tidy_at: datetime | None = None
        """Time of the next cleanup. None means now."""
        self._receipts_at: datetime | None = None
        """Time of the next search for old receipts. None means now."""
        self._throttle = Throttle(shared)
        self.missing = MissingHandlers(parts, shared)
        self.unread = UnreadWork(parts, shared, vocabularies, worker)
        self.resuming = Resuming(parts, shared, duties.resumption)
        self.incidents = IncidentLook(parts, shared, duties.kinds, duties.alert)
        self.fading = CompressionPass(parts, shared)
        self.review = duties.review
        """Re-evaluates whether open tasks have an eligible approver."""
        self.is_outdated = is_outdated
        """Whether the schema of the database is newer than the code. Then nothing is changed."""

    def step(self) -> float:
        """Run one round."""
        if self.is_outdated():
            return SHORTEST_PAUSE.total_seconds()
        now, turns = self._shared.clock.now(), IsolatedTasks()
        if self._tidy_at is None or not self._tidy_at - _INTERVAL <= now < self._tidy_at:
            turns.take(lambda: self._keeper.tidy(now), None)
            has_more = turns.take(self._prune_in_turn, 0) > 0 or turns.error is not None
            self._tidy_at = None if has_more else now + _INTERVAL
        turns.take(lambda: bool(self.missing.look()), otherwise=False)
        turns.take(lambda: bool(self.unread.look()), otherwise=False)
        turns.take(self.resuming.look, 0)
        turns.take(self.review, None)
        turns.take(self.incidents.look, 0)
        turns.take(self.fading.look, 0)
        turns.end()
        settings = self._shared.settings
        spread = settings.missing_handler_jitter * (2 * self._shared.chance.share() - 1)
        wait = settings.missing_handler_cooldown.total_seconds() * (1 + spread)
        shortest = SHORTEST_PAUSE.total_seconds()
        left = shortest if self._tidy_at is None else (self._tidy_at - now).total_seconds()
        return max(shortest, min(wait, left))

    def catch_up(self) -> None:
        """Do everything that is due, for engines without threads. Maintenance of the database files is left out."""
        if self.is_outdated():
            return
        while self.prune():
            pass
        self.missing.look()
        self.unread.look()
        self.resuming.look()
        self.review()
        self.incidents.look()
        self.fading.look()

    def _prune_in_turn(self) -> int:
        """Delete expired data.

        Receipts are checked rarely, because those of open documents are read each time and stay.
        """
        now = self._shared.clock.now()
        is_due = self._receipts_at is None or not self._receipts_at - _RECEIPTS_INTERVAL <= now < self._receipts_at
        forgotten = self._prune_receipts() if is_due else 0
        if is_due and forgotten < _MOST:
            self._receipts_at = now + _RECEIPTS_INTERVAL
        return forgotten + self._prune_instances()

    def prune(self) -> int:
        """Delete expired data up to a limit, and return the number of rows."""
        return self._prune_receipts() + self._prune_instances()

    def _prune_receipts(self) -> int:
        before = self._shared.clock.now() - self._shared.settings.keep_receipts
        return self._keeper.prune(receipts_before=before, limit=_MOST)

    def _prune_instances(self) -> int:
        settings, now = self._shared.settings, self._shared.clock.now()
        gone = 0
        turns = IsolatedTasks()
        for address in self._keeper.expired(ended_before=now - _KEEP_EVENTS, limit=_MOST, kind=EVENT_KIND):
            gone += turns.take(partial(self._delete, address), otherwise=False)
        if settings.keep_finished is None:
            turns.end()
            return gone
        before = now - settings.keep_finished
        gone += turns.take(lambda: self._pauses.prune(before=before, limit=_MOST), 0)
        for address in self._keeper.expired(ended_before=before, limit=_MOST):
            gone += turns.take(partial(self._delete, address), otherwise=False)
        turns.take(partial(self._tell_of_late_readers, before), None)
        turns.end()
        return gone

    def _delete(self, address: Address) -> bool:
        assert address.instance is not None
        try:
            return self._keeper.delete(address.instance, tenant=address.tenant)
        except (NeededError, PartError):  # Another transaction has referred to it since.
            return False

    def _tell_of_late_readers(self, before: datetime) -> None:
        """Warn about projections that are far behind.

        A projection that is slightly behind catches up by the next round.
        """
        for name in self._keeper.late_readers(before=before - self._shared.settings.unhealthy_after):
            if self._throttle.allows(name):
                _log.warning(
                    "retention_blocked projection=%r: finished instances are kept because it has not read their events; "
                    "let it catch up, or call drop_projection if no process feeds it",
                    name,
                )
