"""Requests to let paused instances go on: those that a commit has carried out are rows of it, the others are written down here."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import ResumeTrigger

Outcome = Literal["open", "executed", "refused"]


class ResumeRequestRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request to let an instance go on, with what became of it."""

    id: UUID
    instance: InstanceId
    tenant: str
    triggered_by: ResumeTrigger
    triggered_by_id: str = ""
    """What tells it from others: the id of an approval, of an event, of a call; empty if nothing does."""
    trigger_data: bytes | None = None
    """What it brought along, as JSON."""
    reason: str = ""
    requested_by: str = ""
    requested_at: datetime
    outcome: Outcome
    executed_at: datetime | None = None
    error_message: str = ""
    """Why it was refused."""
    on_behalf_of: str = ""
    """Whom the requester stood in for; empty if they asked for themselves."""
    context: bytes | None = None
    """On whose behalf it is carried out: the request that asked for it, as it is kept with what is done later. None for one that the engine itself asked for."""
    about: str = ""
    """Of one that was left for later: what its instance waited for then, in words of its decider. It is carried out for that alone."""


class PausedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which paused instances to list: those that were paused last first."""

    definition: str = ""
    kinds: tuple[str, ...] = ()
    reason: str = ""
    """Empty means all."""
    next_step: str = ""
    """Only those that go on with this step; empty means all."""
    since: datetime | None = None
    before: datetime | None = None
    """Only instances paused at the first instant or later, and before the second."""
    resumable: bool = False
    """Only those with a request that was not carried out, or that wait for nothing but that, because what they waited for is decided; or late ones."""
    late: tuple[str, datetime] | None = None
    """A kind, and the instant before which one of them was paused that has been paused for too long."""
    after: tuple[datetime, InstanceId] | None = None
    """Only those behind this one: the last of the page before, with the instant of its pause."""
    limit: int = 100


class LatePause(NamedTuple):
    """An instance that has been paused for too long."""

    tenant: str
    instance: InstanceId


class Resumes(Protocol):
    """For whoever lets paused instances go on."""

    def record(self, request: ResumeRequestRecord) -> bool:
        """Write a request down that no commit tells of; False, and nothing is written, if the tenant has no such instance."""
        ...

    def refuse(self, request: UUID, *, instance: InstanceId, error: str) -> None:
        """Say why a request that was written down cannot be carried out."""
        ...

    def open(self, *, limit: int) -> list[ResumeRequestRecord]:
        """Requests of all tenants that were written down and not carried out, oldest first."""
        ...

    def decided(self, *, limit: int) -> list[LatePause]:
        """Instances of all tenants that are paused although what they waited for is decided, oldest pause first."""
        ...

    def late(self, *, kind: str, before: datetime, limit: int) -> list[LatePause]:
        """Instances of a kind, of all tenants, that somebody paused before an instant, oldest pause first."""
        ...


class ResumingParts(Protocol):
    """The side of a store that knows requests to go on."""

    def resumes(self) -> Resumes:
        """For whoever lets paused instances go on."""
        ...


class PausedInstances(Protocol):
    """What is paused, of one tenant."""

    def paused(self, query: PausedQuery) -> list[InstanceId]:
        """A page of paused instances, those that were paused last first."""
        ...

    def resume_requests(self, instance: InstanceId) -> list[ResumeRequestRecord]:
        """All requests to let an instance go on, in order."""
        ...
