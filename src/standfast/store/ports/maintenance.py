"""What somebody should look at, of all tenants: instances that nothing can ever wake, questions that nobody can decide, calls that may hang."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.row_kinds.tasks import PersonKind


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
