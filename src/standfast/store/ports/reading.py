"""What is asked of a database by those who only look: callers of one tenant, and projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeVar

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.documents import Documents
from standfast.store.ports.events import EventReads
from standfast.store.ports.matches import Matches
from standfast.store.ports.resuming import PausedInstances
from standfast.store.ports.surveying import Surveying
from standfast.store.ports.tasks import Tasks
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    InstanceHeader,
    InstanceQuery,
    Loaded,
    ObservationRecord,
    StoredEffect,
    StoredMessage,
    StoredTimer,
)
from standfast.store.records.queries import FedEvent, Headline, ProjectionState, StepName, TransitionRecord

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
