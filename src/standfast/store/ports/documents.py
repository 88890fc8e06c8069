"""What is asked of a database about documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import StoredDocument
from standfast.store.ports.blueprints import InForce


class DocumentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents a page shows, newest first."""

    type: str
    status: str = ""
    """Empty means any."""
    requester: str = ""
    """Empty means anybody's."""
    before: InstanceId | None = None
    """The last one of the page before."""
    limit: int = 100


class Documents(Protocol):
    """The documents of one tenant."""

    def document(self, type_: str, id_: str, partition: str = "") -> StoredDocument | None:
        """One document of the reader's partition, or of the one that is named if the reader sees all: ids are of a partition, as keys are."""
        ...

    def documents(self, query: DocumentQuery) -> list[StoredDocument]:
        """A page of documents, newest first."""
        ...

    def touched_by(self, names: Sequence[str], instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Those of the instances whose document somebody has done something to, or that goes on with another one, whose rows would tell."""
        ...

    def stand_in(self, type_: str, found: InForce) -> str:
        """The newest workflow before one that a tenant has taken out of use, of the same owner and in use, and of a body if that one is; empty if there is none."""
        ...

    def in_force(self, type_: str) -> InForce | None:
        """The workflow that a new document of a type begins with, as it was published with its contract or a body; None if none was."""
        ...
