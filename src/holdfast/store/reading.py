"""What is asked of a database by those who only look: callers of one tenant, and projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.kernel.history import StoredEvent
from holdfast.kernel.ids import InstanceId
from holdfast.store.shapes import (
    Address,
    DeadLetter,
    Header,
    InstanceQuery,
    Loaded,
    Observation,
    StoredEffect,
    StoredStep,
    StoredSubscription,
    StoredTask,
    StoredTimer,
    Transition,
)


class Reader(Protocol):
    """What callers may see, of one tenant. Everything is read without a lock."""

    def load(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """An instance with its snapshot and the events after it; `whole` leaves the snapshot aside."""
        ...

    def instances(self, query: InstanceQuery) -> list[Header]:
        """A page of instances, newest first."""
        ...

    def events(self, instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """The history of an instance, in order."""
        ...

    def work(self, instance: InstanceId) -> tuple[list[StoredEffect], list[StoredTimer]]:
        """What the instance waits for: its live effects and timers."""
        ...

    def steps(self, instance: InstanceId) -> list[StoredStep]:
        """The step rows of an instance, in order."""
        ...

    def tasks(self, instance: InstanceId) -> list[StoredTask]:
        """The questions that an instance has asked."""
        ...

    def subscriptions(self, instance: InstanceId) -> list[StoredSubscription]:
        """The signals that an instance waits for."""
        ...

    def dead_letters(self, *, instance: InstanceId | None = None, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """What gave up, oldest first."""
        ...

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[Observation]:
        """The observed inputs, in order."""
        ...

    def transitions(self, definition: str) -> list[Transition]:
        """The observed moves of a definition, counted."""
        ...


class Feed(Protocol):
    """All events of all tenants in one order that never goes back, and how far each projection has read it."""

    def read(self, *, after: int, limit: int) -> list[StoredEvent]:
        """The next events that no running transaction can still overtake; a few more than `limit` where positions are equal."""
        ...

    def checkpoint(self, name: str) -> int:
        """The position up to which a projection has read; 0 for one that is new."""
        ...

    def advance(
        self, name: str, *, limit: int, apply: Callable[[Sequence[StoredEvent], object], None], now: datetime
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
