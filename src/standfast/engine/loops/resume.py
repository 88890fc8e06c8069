"""Resumes paused instances periodically: after stored requests, decided tasks and expired pauses.

The application layer supplies the commands. Several processes may run this loop at the same time, because an instance
accepts the same request only once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.submission import CommandOutcome, Settled, Submission
from standfast.engine.common.work_errors import describe
from standfast.kernel.actor import RequestContext
from standfast.kernel.ids import InstanceId
from standfast.store.ports.maintenance import LatePause, ResumeRequestRecord
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import Address

_log = logging.getLogger("standfast.housekeeping")

_MOST = 1000
_FAR = datetime(9000, 1, 1, tzinfo=UTC)


class ResumeSubmission(NamedTuple):
    """A command that resumes an instance, and the request it acts for."""

    command: object
    request: RequestContext


class Resumption(NamedTuple):
    """The commands for instances that are to resume."""

    requested: Callable[[ResumeRequestRecord], ResumeSubmission]
    """Returns the command for a stored request."""
    decided: Callable[[], ResumeSubmission]
    """Returns the command after the task is decided."""
    expired: Callable[[timedelta], ResumeSubmission]
    """Returns the command after the longest allowed pause, which is passed in."""
    expiring: str
    """Kind of the instances whose pauses expire."""


class _Refusal(NamedTuple):
    request: UUID
    instance: InstanceId
    error: str


class Resuming:
    """Looks for instances to resume, once per interval. A single thread steps it."""

    def __init__(self, parts: StoreParts, shared: EngineContext, resumption: Resumption) -> None:
        self._resumes = parts.resumes()
        self._shared = shared
        self.resumption = resumption
        self._due_at: datetime | None = None
        """Time of the next round. None means now."""
        self._refusals: deque[_Refusal] = deque()
        """Refused requests whose refusal must be stored. Any thread may append."""

    def look(self) -> int:
        """Resume instances if a round is due. Return their number."""
        self._write_refusals()
        interval, now = self._shared.settings.resume_worker_interval, self._shared.clock.now()
        if interval is None:
            return 0
        if self._due_at is not None and self._due_at - interval <= now < self._due_at:
            return 0
        self._due_at = now + interval
        told = self._look(self.resumption, now)
        self._write_refusals()
        return told

    def next_at(self) -> datetime | None:
        """Return when the next round can find something, or None."""
        if self._shared.settings.resume_worker_interval is None:
            return None
        resumes, kind = self._resumes, self.resumption.expiring
        is_waiting = resumes.open(limit=1) or resumes.decided(limit=1) or resumes.late(kind=kind, before=_FAR, limit=1)
        return self._due_at if is_waiting else None

    def _look(self, resumption: Resumption, now: datetime) -> int:
        requests = self._resumes.open(limit=_MOST)
        for each in requests:
            self._tell(
                LatePause(each.tenant, each.instance), resumption.requested(each), self._noting(each), str(each.id)
            )
        decided = self._resumes.decided(limit=_MOST)
        longest = self._shared.settings.resume_timeout
        late = self._resumes.late(kind=resumption.expiring, before=now - longest, limit=_MOST)
        for paused in decided:
            self._tell(paused, resumption.decided(), _shrug)
        for paused in late:
            self._tell(paused, resumption.expired(longest), _shrug)
        return len(requests) + len(decided) + len(late)

    def _tell(self, paused: LatePause, told: ResumeSubmission, settled: Settled, name: str = "") -> None:
        shared = self._shared
        shared.submit(
            Submission(
                address=Address(tenant=paused.tenant, instance=paused.instance),
                command=told.command,
                cause=f"resume:{name or shared.chance.new_id(shared.clock.now())}",
                request=told.request,
                settled=settled,
            )
        )

    def _noting(self, request: ResumeRequestRecord) -> Settled:
        """Return a callback for a request. A success is recorded by the commit itself, any other outcome here."""

        def settled(outcome: CommandOutcome | None, error: BaseException | None) -> None:
            told = "" if outcome is None else outcome.ignored
            if error is not None or told:
                self._refusals.append(
                    _Refusal(request.id, request.instance, told if error is None else describe(error))
                )

        return settled

    def _write_refusals(self) -> None:
        while self._refusals:
            request, instance, error = self._refusals.popleft()
            self._resumes.refuse(request, instance=instance, error=error)


def _shrug(_outcome: CommandOutcome | None, error: BaseException | None) -> None:
    """Ignore the outcome. Another process was faster, or a caller decided otherwise; the next round checks again."""
    if error is not None:
        _log.debug("resume_refused: %s", error)
