"""What is asked of a database by who looks at many instances at once: the same questions as of one, in a statement for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind
from standfast.store.records.instances import Receipt, Snapshot, StoredEffect, StoredTimer

S = TypeVar("S", bound=Record)


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
