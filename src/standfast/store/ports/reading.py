"""Ports for queries: by callers of one tenant, by searches for processes, and by projections.

`Surveying` reads many instances with one statement per question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.documents import Documents
from standfast.store.ports.events import EventReads
from standfast.store.ports.maintenance import PausedInstances
from standfast.store.ports.tasks import Tasks
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    InstanceHeader,
    InstanceQuery,
    Loaded,
    ObservationRecord,
    Receipt,
    Snapshot,
    StoredEffect,
    StoredMessage,
    StoredTimer,
)
from standfast.store.records.queries import FedEvent, Headline, ProjectionState, StepName, TransitionRecord

MOST_COUNTED = 1_000
"""Maximum number of results to count, unless the caller asks for an exact count."""
ALL = 2**31 - 1
"""Greater than any count."""


class AskedOf(NamedTuple):
    """An approver whom a process asks."""

    kind: str
    name: str
    definition: str = ""
    """Limits it to one definition. Empty for all."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Search criteria for processes. All given criteria must match."""

    statuses: tuple[str, ...]
    """The allowed statuses."""
    definition: str = ""
    key: str = ""
    partition: str | None = None
    """None matches any."""
    started_by: str = ""
    people: tuple[AskedOf, ...] | None = None
    """Only processes at a step with one of these approvers. None matches any."""
    before: InstanceId | None = None
    """Only instances created before this one, the last of the previous page. Counts ignore it."""
    limit: int = 100
    most: int | None = MOST_COUNTED
    """Maximum number of results to count. None counts all."""


class VersionCount(NamedTuple):
    """How many processes of one version have a status."""

    definition: str
    version: str
    status: str
    has_voted: bool
    """Whether these are processes in which somebody has decided an open question before."""
    total: int


class ProcessStepName(NamedTuple):
    """The step that a process is at."""

    instance: InstanceId
    step: str


def counting(match: Match) -> Match:
    """Return the criteria for a count: all pages, and one more than the maximum."""
    return msgspec.structs.replace(match, before=None, limit=ALL if match.most is None else match.most + 1)


class Matches(Protocol):
    """Search for processes."""

    def matching(self, match: Match) -> list[InstanceId]:
        """Return a page of matching processes, newest first."""
        ...

    def count_matching(self, match: Match) -> int:
        """Return the number of matches on all pages, or `match.most` plus one if there are more."""
        ...

    def count_versions(self, match: Match, voter: str) -> list[VersionCount]:
        """The same by version and status, of a match that names people, and by whether somebody has decided what is still open.

        A process that asks several of these people may count several times.
        """
        ...

    def current_steps(self, instances: Sequence[InstanceId]) -> list[ProcessStepName]:
        """The steps that these processes are at, in any order; one that began before such rows were written has none."""
        ...


class Surveying(Protocol):
    """Reads many instances of one tenant together.

    Results are ordered by instance id, and within an instance by their own order.
    """

    def histories(self, instances: Sequence[InstanceId]) -> list[StoredEvent]:
        """Return all events of these instances, including those newer than their rows."""
        ...

    def snapshots(self, instances: Sequence[InstanceId]) -> dict[InstanceId, Snapshot]:
        """Return the existing snapshots."""
        ...

    def rows_of(self, kind: RowKind[S], instances: Sequence[InstanceId]) -> list[S]:
        """Return the rows of a declared kind of these instances."""
        ...

    def effects_of(self, instances: Sequence[InstanceId]) -> list[StoredEffect]:
        """Return their pending effects."""
        ...

    def timers_of(self, instances: Sequence[InstanceId]) -> list[StoredTimer]:
        """Return their timers."""
        ...


class Notes(Protocol):
    """Notes of the engine itself, and reads that only the engine may make."""

    def note(self, name: str, value: str) -> None:
        """Store a note under a name, replacing the previous one. An empty value deletes it."""
        ...

    def noted(self, name: str) -> str:
        """Return the note under a name, empty if there is none."""
        ...

    def receipted(self, tenant: str, scopes: Sequence[str]) -> list[Receipt]:
        """Return the receipts of these scopes."""
        ...


S = TypeVar("S", bound=Record)


class Instances(Protocol):
    """The instances of one tenant and their histories."""

    def load(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Return an instance with its snapshot and the later events. `whole` ignores the snapshot."""
        ...

    def instances(self, query: InstanceQuery) -> list[InstanceHeader]:
        """Return a page of instances, newest first."""
        ...

    def headers(self, instances: Sequence[InstanceId]) -> list[InstanceHeader]:
        """Return the rows of the existing instances among these, in any order."""
        ...

    def events(self, instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """Return the history of an instance, in order."""
        ...

    def stuck(
        self, kinds: Sequence[str], *, before: InstanceId | None = None, limit: int = 100
    ) -> list[InstanceHeader]:
        """Return the active instances of these kinds that cannot be woken, newest first. Any result indicates a bug.

        They wait for no handler, time, person, signal, message or child, and have no dead letter.
        """
        ...

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[ObservationRecord]:
        """Return the observed inputs, in order."""
        ...

    def transitions(self, definition: str) -> list[TransitionRecord]:
        """Return the observed status transitions of a definition, with counts."""
        ...


class PendingWork(Protocol):
    """The pending work of one tenant's instances."""

    def work(self, instance: InstanceId) -> tuple[list[StoredEffect], list[StoredTimer]]:
        """Return the pending effects and timers of an instance."""
        ...

    def rows(self, kind: RowKind[S], instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[S]:
        """Return an instance's rows of a declared kind, in the order of their keys.

        `after` limits them to those behind a number, with which the key begins.
        """
        ...

    def with_rows(self, kind: RowKind[S], instance: InstanceId) -> tuple[InstanceHeader | None, list[S]]:
        """Return the row of an instance, or None, with its rows of a declared kind, from one snapshot."""
        ...

    def messages(self, instance: InstanceId, *, limit: int = 100) -> list[StoredMessage]:
        """Return the accepted commands that wait for an instance, in order of acceptance."""
        ...

    def in_hand(self, instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Return the instances with an effect claimed by a worker, live or dead."""
        ...

    def step_names(self, instance: InstanceId, numbers: Sequence[int]) -> dict[int, StepName]:
        """Return the nodes of these steps of an instance, by number."""
        ...


class DeadLetters(Protocol):
    """The dead letters of one tenant."""

    def dead_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> list[DeadLetterRecord]:
        """Return a page of dead letters, oldest first. `key` is the business key of their instances."""
        ...

    def count_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
    ) -> int:
        """Return the number of matching dead letters."""
        ...

    def dead_letter(self, letter: int) -> DeadLetterRecord | None:
        """Return a dead letter."""
        ...


class TenantReader(
    Instances, Matches, PendingWork, DeadLetters, PausedInstances, EventReads, Tasks, Documents, Surveying, Protocol
):
    """Queries of callers on one tenant. They take no locks."""

    def look(self) -> AbstractContextManager[TenantReader]:
        """Open a consistent snapshot. All queries on the reader of the block, from one thread, see the same state."""
        ...


class Feed(Protocol):
    """All events of all tenants in one monotonic order, with the progress of each projection."""

    def read(self, *, after: int, limit: int) -> list[FedEvent]:
        """Return the next events that no running transaction can precede. Equal positions may exceed `limit`."""
        ...

    def headlines(self, *, after: int, limit: int) -> list[Headline]:
        """Return the same events without their content."""
        ...

    def newest(self) -> int:
        """Return a position after all events that `read` returns now, and before all future ones."""
        ...

    def checkpoint(self, name: str) -> int:
        """Return the position up to which a projection has read, 0 for a new one."""
        ...

    def enter(self, name: str) -> None:
        """Register a projection before it reads. From now on no event is deleted that it has not read."""
        ...

    def drop(self, name: str) -> bool:
        """Delete a projection that is no longer fed. Return False if there is none of this name."""
        ...

    def advance(
        self, name: str, *, limit: int, apply: Callable[[Sequence[FedEvent], object], None], now: datetime
    ) -> int:
        """In one transaction: lock the checkpoint, read on, let `apply` write with the connection, and move the checkpoint.

        Returns the number of applied events.
        """
        ...

    def rewind(self, name: str, *, clear: Callable[[object], None], now: datetime) -> None:
        """Reset a projection to the beginning in one transaction, together with what `clear` does to its tables."""
        ...

    def fail(self, name: str, *, error: str, now: datetime) -> None:
        """Store why a projection does not progress."""
        ...

    def projections(self, names: Sequence[str], *, most: int) -> list[ProjectionState]:
        """Return the progress of these projections and all known ones, by name.

        Unread events are counted up to `most`.
        """
        ...
