"""Ports for maintenance across tenants.

They find incidents for operators: stuck instances, tasks without an eligible approver and calls that may hang. They
also list overdue processes, compress old values of rows, and store requests to resume paused instances.
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
    """An instance that cannot be woken."""

    instance: InstanceId
    tenant: str
    definition: str
    since: datetime
    """Time of its last activity."""


class LongCall(NamedTuple):
    """A handler call that has been running for long."""

    instance: InstanceId
    number: int
    tenant: str
    definition: str
    handler: str
    worker: WorkerId
    since: datetime
    options: bytes
    """Its delivery options, as bytes of the engine."""


class AskedName(NamedTuple):
    """A user or role that is an approver of open tasks."""

    tenant: str
    kind: PersonKind
    name: str


class Deputed(NamedTuple):
    """An approver who represents another person, or to whom a task was delegated."""

    tenant: str
    instance: InstanceId
    number: int
    place: int
    name: str
    stands_for: str
    via: str
    """Reason why this approver is asked. It ends with the person who delegated the task."""


class RefusedSchedule(NamedTuple):
    """A schedule whose last start was refused: its owner may no longer start the definition, or it cannot be started."""

    instance: InstanceId
    tenant: str
    definition: str
    since: datetime
    """Time of the refusal."""
    schedule: str
    detail: str
    partition: str
    """Its part of the tenant; empty for none."""


class Stretch(NamedTuple):
    """The incidents among a batch of instances."""

    found: list[Incident]
    last: InstanceId | None
    """The last instance that was examined. None if there is none after it."""


class Incidents(Protocol):
    """Finds incidents."""

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Examine the next instances, up to a limit, and return those of these kinds that have been stuck since before `still_since`.

        It uses the same criteria as `Instances.stuck`. The cost depends on the number of instances examined.
        """
        ...

    def long_calls(self, *, before: datetime, limit: int) -> list[LongCall]:
        """Return the calls that workers claimed before a time, oldest first. The cost depends on the claimed work."""
        ...

    def undecidable(self, *, limit: int) -> list[Incident]:
        """Return the instances with a task that has no eligible approver, oldest first."""
        ...

    def asked(self, *, after: AskedName | None, limit: int) -> list[AskedName]:
        """Return the distinct approvers of open tasks, in order.

        The cost depends on the number of names and not of tasks.
        """
        ...

    def refused_schedules(self, *, limit: int) -> list[RefusedSchedule]:
        """Return the schedules whose last start was refused. The cost depends on the number of schedules."""
        ...

    def deputed(self, *, after: Deputed | None, limit: int) -> list[Deputed]:
        """Return the approvers of open tasks who represent others, in order.

        The cost depends on their number and not on that of tasks.
        """
        ...


class IncidentParts(Protocol):
    """The part of a store that finds incidents."""

    def incidents(self) -> Incidents:
        """Open the port for incidents."""
        ...


class ExpiredQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for overdue processes, the earliest deadline first."""

    before: datetime
    """Only deadlines before this time, exclusive."""
    tenant: str | None = None
    """None matches all."""
    partition: str | None = None
    """Partition of the tenant, empty for none. None matches all."""
    after: tuple[datetime, InstanceId] | None = None
    """The last process of the previous page, with its deadline."""
    limit: int = 100


class Expiries(Protocol):
    """The deadlines of active processes."""

    def expired(self, query: ExpiredQuery) -> list[InstanceHeader]:
        """Return a page of active processes whose deadline is before a time."""
        ...


class ExpiryParts(Protocol):
    """The part of a store that lists deadlines."""

    def expiries(self) -> Expiries:
        """Open the port for overdue processes."""
        ...


_MARK: Final = b"\0z"
_SHORTEST: Final = 256
"""In bytes. Compressing shorter values would save little."""


class CompressionResult(NamedTuple):
    """The result of one round."""

    packed: int
    last: tuple[InstanceId, int] | None
    """The last step that was examined. None if there is none after it."""


class CompressionPort(Protocol):
    """Compresses old values. They are JSON, which never begins with a zero byte, as a compressed value does."""

    def fade(self, *, before: datetime, after: tuple[InstanceId, int] | None, limit: int) -> CompressionResult:
        """Compress inputs and outputs of the next steps, in the order of their keys, that ended before a time."""
        ...


def packed(value: bytes | None) -> bytes | None:
    """Compress a value, if it is not compressed and becomes smaller."""
    if value is None or len(value) < _SHORTEST or value.startswith(_MARK):
        return value
    made = _MARK + zlib.compress(value)
    return made if len(made) < len(value) else value


def unpacked(value: bytes | None) -> bytes | None:
    """Return a value uncompressed."""
    if value is None or not value.startswith(_MARK):
        return value
    return zlib.decompress(value[len(_MARK) :])


Outcome = Literal["open", "executed", "refused"]


class ResumeRequestRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request to resume an instance, with its outcome.

    Executed requests are written by commits, others are stored here.
    """

    id: UUID
    instance: InstanceId
    tenant: str
    triggered_by: ResumeTrigger
    triggered_by_id: str = ""
    """Id of the trigger, such as an approval, an event or a call. Empty without one."""
    trigger_data: bytes | None = None
    """Data of the trigger as JSON."""
    reason: str = ""
    requested_by: str = ""
    requested_at: datetime
    outcome: Outcome
    executed_at: datetime | None = None
    error_message: str = ""
    """Why it was refused."""
    on_behalf_of: str = ""
    """The person whom the requester represented. Empty if the requester acted for itself."""
    context: bytes | None = None
    """The stored context of the request, for its later execution. None for requests of the engine."""
    about: str = ""
    """For a deferred request: what its instance waited for then, in the decider's terms. It is executed for that
    alone."""


class PausedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for paused instances, the most recently paused first."""

    definition: str = ""
    kinds: tuple[str, ...] = ()
    reason: str = ""
    """Empty matches all."""
    next_step: str = ""
    """The next step after the pause. Empty matches all."""
    since: datetime | None = None
    before: datetime | None = None
    """Range of the pause time: from the first, inclusive, to the second, exclusive."""
    resumable: bool = False
    """Only instances that can be resumed: with a request that is not executed, with a decided task, or overdue."""
    late: tuple[str, datetime] | None = None
    """A kind and a time. Its instances paused before that time are overdue."""
    after: tuple[datetime, InstanceId] | None = None
    """The last instance of the previous page, with its pause time."""
    limit: int = 100


class LatePause(NamedTuple):
    """An instance whose pause is overdue."""

    tenant: str
    instance: InstanceId


class Resumes(Protocol):
    """Port for resuming paused instances."""

    def record(self, request: ResumeRequestRecord) -> bool:
        """Store a request that no commit writes. Return False, without writing, if the tenant has no such instance."""
        ...

    def refuse(self, request: UUID, *, instance: InstanceId, error: str) -> None:
        """Store why a request cannot be executed."""
        ...

    def open(self, *, limit: int) -> list[ResumeRequestRecord]:
        """Return the stored requests of all tenants that are not executed, oldest first."""
        ...

    def decided(self, *, limit: int) -> list[LatePause]:
        """Return the paused instances of all tenants whose task is decided, oldest pause first."""
        ...

    def late(self, *, kind: str, before: datetime, limit: int) -> list[LatePause]:
        """Return the instances of a kind, of all tenants, that were paused on request before a time, oldest pause first."""
        ...


class ResumingParts(Protocol):
    """The part of a store that holds resume requests."""

    def resumes(self) -> Resumes:
        """Open the port for resuming instances."""
        ...


class PausedInstances(Protocol):
    """The paused instances of one tenant."""

    def paused(self, query: PausedQuery) -> list[InstanceId]:
        """Return a page of paused instances, the most recently paused first."""
        ...

    def resume_requests(self, instance: InstanceId) -> list[ResumeRequestRecord]:
        """Return all resume requests of an instance, in order."""
        ...
