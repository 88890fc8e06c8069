"""Facts that decisions are based on, as the database keeps them: their versions, and how they are read.

A version is read before what it is the version of. So a fact that changes meanwhile is remembered with a version that is too old, and
the commit that relies on it is refused.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

from standfast.kernel.people import DirectoryLook
from standfast.kernel.row_kinds.documents import StoredDocument
from standfast.store.ports.access import StoredKey, StoredSession
from standfast.store.ports.versioned_settings import Edition
from standfast.store.records.instances import Address, Loaded

GateKind = Literal["access", "charters", "instance"]


class Gate(NamedTuple):
    """What a commit was based on: it stands only if this version is still the newest."""

    kind: GateKind
    tenant: str
    version: int
    """0 if there was nothing."""
    partition: str = ""
    definition: str = ""
    key: str = ""
    """Where the instance is found; empty for the facts of a tenant."""


class FactVersions(NamedTuple):
    """The versions of what a tenant keeps."""

    access: int
    charters: int


class DocumentFactRecord(NamedTuple):
    """A document, and the version of its instance."""

    row: StoredDocument
    version: int


class FactLook(Protocol):
    """Reads facts on a connection that somebody has in use, in its transaction if one is open."""

    def versions(self, tenant: str) -> FactVersions:
        """Returns the newest versions; 0 for what a tenant has never had."""
        ...

    def people(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """Returns a look at the people of a tenant."""
        ...

    def key(self, identity: str) -> StoredKey | None:
        """Returns an API key."""
        ...

    def session(self, identity: str) -> StoredSession | None:
        """Returns a session."""
        ...

    def charter(self, tenant: str, name: str) -> Edition | None:
        """Returns the newest version of a charter."""
        ...

    def document(self, tenant: str, partition: str, type_: str, id_: str) -> DocumentFactRecord | None:
        """Returns a document."""
        ...

    def instance(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Returns another instance, without a lock. `whole` leaves its snapshot aside."""
        ...
