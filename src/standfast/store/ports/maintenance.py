"""What somebody should look at, of all tenants: instances that nothing can ever wake, questions that nobody can decide, calls that may hang.

Processes that have not ended although their time is over, or will be before an instant: found by their deadlines, of one tenant or of all.

Old values of rows, packed to take less room. They are JSON, which never begins with a zero byte; a packed one does.

Requests to let paused instances go on: those that a commit has carried out are rows of it, the others are written down here.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol
from uuid import UUID

import msgspec

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.row_kinds.steps import ResumeTrigger
from standfast.kernel.row_kinds.tasks import PersonKind
from standfast.store.records.instances import InstanceHeader


class Incident(NamedTuple):
    """An instance that nothing can wake."""

    instance: InstanceId
    tenant: str
    definition: str
    since: datetime
    """When something last happened to it."""


class LongCall(NamedTuple):
    """A call of a handler that a worker has had in hand for long."""

    instance: InstanceId
    number: int
    tenant: str
    definition: str
    handler: str
    worker: WorkerId
    since: datetime
    options: bytes
    """Its delivery options, as bytes of the runtime."""


class AskedName(NamedTuple):
    """Somebody, or a role, that open questions ask."""

    tenant: str
    kind: PersonKind
    name: str


class Deputed(NamedTuple):
    """Somebody who is asked in the place of another, or to whom a question was handed on."""

    tenant: str
    instance: InstanceId
    number: int
    place: int
    name: str
    stands_for: str
    via: str
    """Why it is them, in words; who has handed it on is named last."""


class RefusedSchedule(NamedTuple):
    """A schedule whose last time was refused: who put it may not start what it starts any more, or that cannot be started."""

    instance: InstanceId
    tenant: str
    definition: str
    since: datetime
    """When it was refused."""
    schedule: str
    detail: str


class Stretch(NamedTuple):
    """What was found among the next instances."""

    found: list[Incident]
    last: InstanceId | None
    """The last instance that was looked at; None if there is none behind it."""


class Incidents(Protocol):
    """Finds them."""

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Look at the next instances, up to a limit, for those of these kinds that have stood still since before an instant.

        The same counts that `Instances.stuck` counts; the cost is that of the instances that are looked at.
        """
        ...

    def long_calls(self, *, before: datetime, limit: int) -> list[LongCall]:
        """The calls that workers took before an instant, the oldest first; the cost is that of the work that is there."""
        ...

    def undecidable(self, *, limit: int) -> list[Incident]:
        """The instances that wait for an operator because nobody can decide a question, the oldest first."""
        ...

    def asked(self, *, after: AskedName | None, limit: int) -> list[AskedName]:
        """Those whom open questions ask, each once, in order; the cost is that of the names, and not of the questions."""
        ...

    def refused_schedules(self, *, limit: int) -> list[RefusedSchedule]:
        """The schedules whose last time was refused; the cost is that of the schedules that there are."""
        ...

    def deputed(self, *, after: Deputed | None, limit: int) -> list[Deputed]:
        """Those whom open questions ask in the place of others, in order; the cost is that of these, and not of the questions."""
        ...


class IncidentParts(Protocol):
    """The side of a store that knows such instances."""

    def incidents(self) -> Incidents:
        """For whoever looks for instances that nothing can wake."""
        ...


class ExpiredQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which of them to list: those whose deadline is the earliest first."""

    before: datetime
    """Only those whose deadline is before this instant; one that is at it is not."""
    tenant: str | None = None
    """None means all."""
    partition: str | None = None
    """Only those of one part of the tenant, or of none if it is empty; None means all."""
    after: tuple[datetime, InstanceId] | None = None
    """Only those behind this one: the last of the page before, with its deadline."""
    limit: int = 100


class Expiries(Protocol):
    """The deadlines of active processes."""

    def expired(self, query: ExpiredQuery) -> list[InstanceHeader]:
        """A page of active processes whose deadline is before an instant."""
        ...


class ExpiryParts(Protocol):
    """The side of a store that knows deadlines."""

    def expiries(self) -> Expiries:
        """For operators who look for what should have ended."""
        ...


_MARK: Final = b"\0z"
_SHORTEST: Final = 256
"""Bytes; what is shorter would gain little."""


class CompressionResult(NamedTuple):
    """What became of some rows."""

    packed: int
    last: tuple[InstanceId, int] | None
    """The last step that was looked at; None if there is none behind it."""


class CompressionPort(Protocol):
    """Whoever packs old values."""

    def fade(self, *, before: datetime, after: tuple[InstanceId, int] | None, limit: int) -> CompressionResult:
        """Pack what steps were given and gave, of those of the next ones, in the order of their keys, that ended before an instant."""
        ...


def packed(value: bytes | None) -> bytes | None:
    """A value packed, if it is not and gains by it."""
    if value is None or len(value) < _SHORTEST or value.startswith(_MARK):
        return value
    made = _MARK + zlib.compress(value)
    return made if len(made) < len(value) else value


def unpacked(value: bytes | None) -> bytes | None:
    """A value as it was told."""
    if value is None or not value.startswith(_MARK):
        return value
    return zlib.decompress(value[len(_MARK) :])


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
