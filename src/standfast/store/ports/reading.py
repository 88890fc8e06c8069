"""What is asked of a database by those who only look: callers of one tenant, and projections.

Finding processes by what their callers know of them.

What is asked of a database by who looks at many instances at once: the same questions as of one, in a statement for all of them.
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
"""Of more than so many it is not counted how many there are, unless somebody asks for it."""
ALL = 2**31 - 1
"""More than there are."""


class AskedOf(NamedTuple):
    """Somebody whom a process asks."""

    kind: str
    name: str
    definition: str = ""
    """Where only one definition is meant."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Which processes are meant; all that is given has to be so."""

    statuses: tuple[str, ...]
    """One of these."""
    definition: str = ""
    key: str = ""
    partition: str | None = None
    """None means whatever it is."""
    started_by: str = ""
    people: tuple[AskedOf, ...] | None = None
    """At a step that asks one of these; None means whoever is asked."""
    before: InstanceId | None = None
    """Only instances born before this one: the last of the page before. What is counted does not depend on it."""
    limit: int = 100
    most: int | None = MOST_COUNTED
    """Of more than so many it is not counted how many there are; None means that all are counted."""


def counting(match: Match) -> Match:
    """The same, to be counted: all pages, and one more than is counted."""
    return msgspec.structs.replace(match, before=None, limit=ALL if match.most is None else match.most + 1)


class Matches(Protocol):
    """Processes by what is known of them."""

    def matching(self, match: Match) -> list[InstanceId]:
        """A page of them, newest first."""
        ...

    def count_matching(self, match: Match) -> int:
        """How many there are on all pages; one more than `match.most` where there are more than that."""
        ...


class Surveying(Protocol):
    """Many instances of one tenant at once. Every answer is in the order of the instances' ids, and within one in its own order."""

    def histories(self, instances: Sequence[InstanceId]) -> list[StoredEvent]:
        """All events of these instances, also those that their rows do not count."""
        ...

    def snapshots(self, instances: Sequence[InstanceId]) -> dict[InstanceId, Snapshot]:
        """The snapshots that there are."""
        ...

    def rows_of(self, kind: RowKind[S], instances: Sequence[InstanceId]) -> list[S]:
        """The rows of a declared kind that these instances have."""
        ...

    def effects_of(self, instances: Sequence[InstanceId]) -> list[StoredEffect]:
        """Their live effects."""
        ...

    def timers_of(self, instances: Sequence[InstanceId]) -> list[StoredTimer]:
        """Their timers."""
        ...


class Notes(Protocol):
    """What who looks at all of them keeps for himself, and what only the engine may see."""

    def note(self, name: str, value: str) -> None:
        """Keep a word of the engine's own under a name, in the place of the one before; an empty one forgets it."""
        ...

    def noted(self, name: str) -> str:
        """The word that is kept under a name; empty if there is none."""
        ...

    def receipted(self, tenant: str, scopes: Sequence[str]) -> list[Receipt]:
        """The receipts of these scopes."""
        ...


S = TypeVar("S", bound=Record)


class Instances(Protocol):
    """The instances of one tenant, and what happened to them."""

    def load(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """An instance with its snapshot and the events after it; `whole` leaves the snapshot aside."""
        ...

    def instances(self, query: InstanceQuery) -> list[InstanceHeader]:
        """A page of instances, newest first."""
        ...

    def headers(self, instances: Sequence[InstanceId]) -> list[InstanceHeader]:
        """The rows of these instances, of those that exist, in any order."""
        ...

    def events(self, instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """The history of an instance, in order."""
        ...

    def stuck(
        self, kinds: Sequence[str], *, before: InstanceId | None = None, limit: int = 100
    ) -> list[InstanceHeader]:
        """Running instances of these kinds that nothing can ever wake, newest first; there should never be any.

        They wait for no handler, time, person, signal, message or child, and nothing of them gave up.
        """
        ...

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[ObservationRecord]:
        """The observed inputs, in order."""
        ...

    def transitions(self, definition: str) -> list[TransitionRecord]:
        """The observed moves of a definition, counted."""
        ...


class PendingWork(Protocol):
    """What the instances of one tenant do and wait for."""

    def work(self, instance: InstanceId) -> tuple[list[StoredEffect], list[StoredTimer]]:
        """What the instance waits for: its live effects and timers."""
        ...

    def rows(self, kind: RowKind[S], instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[S]:
        """The rows of a declared kind that an instance has, in the order of their keys.

        They may be those behind a number, with which the key begins, and no more than so many.
        """
        ...

    def with_rows(self, kind: RowKind[S], instance: InstanceId) -> tuple[InstanceHeader | None, list[S]]:
        """The row of an instance, None if there is none, and its rows of a declared kind, as of one moment."""
        ...

    def messages(self, instance: InstanceId, *, limit: int = 100) -> list[StoredMessage]:
        """The commands that were accepted for an instance and wait for their turn, in order of acceptance."""
        ...

    def in_hand(self, instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Those of the instances of which a worker has an effect in hand, or had when it died."""
        ...

    def step_names(self, instance: InstanceId, numbers: Sequence[int]) -> dict[int, StepName]:
        """Which nodes these steps of an instance are of, by number."""
        ...


class DeadLetters(Protocol):
    """What gave up, of one tenant."""

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
        """A page of dead letters, oldest first; `key` is that of their instances."""
        ...

    def count_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
    ) -> int:
        """How many dead letters there are of these."""
        ...

    def dead_letter(self, letter: int) -> DeadLetterRecord | None:
        """One dead letter."""
        ...


class TenantReader(
    Instances, Matches, PendingWork, DeadLetters, PausedInstances, EventReads, Tasks, Documents, Surveying, Protocol
):
    """What callers may see, of one tenant. Everything is read without a lock."""

    def look(self) -> AbstractContextManager[TenantReader]:
        """Answers as of one moment: whatever is asked of the reader that the block gets, by one thread, fits together."""
        ...


class Feed(Protocol):
    """All events of all tenants in one order that never goes back, and how far each projection has read it."""

    def read(self, *, after: int, limit: int) -> list[FedEvent]:
        """The next events that no running transaction can still overtake; a few more than `limit` where positions are equal."""
        ...

    def headlines(self, *, after: int, limit: int) -> list[Headline]:
        """The same events for those who only want to know that they are there."""
        ...

    def newest(self) -> int:
        """A position behind everything that `read` gives now, and before everything that is still to come."""
        ...

    def checkpoint(self, name: str) -> int:
        """The position up to which a projection has read; 0 for one that is new."""
        ...

    def enter(self, name: str) -> None:
        """Make a projection known before it reads: from now on no event is deleted before it has read it."""
        ...

    def drop(self, name: str) -> bool:
        """Forget a projection, which nobody feeds any more; False if there is none of this name."""
        ...

    def advance(
        self, name: str, *, limit: int, apply: Callable[[Sequence[FedEvent], object], None], now: datetime
    ) -> int:
        """One transaction: lock the checkpoint, read on, let `apply` write with the connection, move the checkpoint.

        The number of events that were applied.
        """
        ...

    def rewind(self, name: str, *, clear: Callable[[object], None], now: datetime) -> None:
        """Set a projection back to the beginning, with what `clear` does to its tables, in one transaction."""
        ...

    def fail(self, name: str, *, error: str, now: datetime) -> None:
        """Note why a projection does not go on."""
        ...

    def projections(self, names: Sequence[str], *, most: int) -> list[ProjectionState]:
        """How far each projection has read, by name: all that ever read, and these; what is left is counted up to `most`."""
        ...
