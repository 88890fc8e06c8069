"""Port for the facts that decisions depend on, and their versions.

The version of a fact is read before the fact. A concurrent change therefore leaves the reader with an outdated version,
and the commit that relies on it is refused.
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
    """A precondition of a commit: this version must still be the newest."""

    kind: GateKind
    tenant: str
    version: int
    """0 if there was nothing."""
    partition: str = ""
    definition: str = ""
    key: str = ""
    """Address of the instance. Empty for facts of a tenant."""


class FactVersions(NamedTuple):
    """The versions of a tenant's facts."""

    access: int
    charters: int


class DocumentFactRecord(NamedTuple):
    """A document with the version of its instance."""

    row: StoredDocument
    version: int


class FactLook(Protocol):
    """Reads facts on an existing connection, within its open transaction if there is one."""

    def versions(self, tenant: str) -> FactVersions:
        """Returns the versions that were the newest at the first call. 0 for facts that a tenant never had.

        A commit that relies on an older version than the newest is refused.
        """
        ...

    def people(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """Opens a view of a tenant's people."""
        ...

    def key(self, identity: str) -> StoredKey | None:
        """Returns an API key."""
        ...

    def session(self, identity: str) -> StoredSession | None:
        """Returns a session."""
        ...

    def charter(self, tenant: str, name: str) -> Edition | None:
        """Returns the newest version of an organisation setting."""
        ...

    def document(self, tenant: str, partition: str, type_: str, id_: str) -> DocumentFactRecord | None:
        """Returns a document."""
        ...

    def instance(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Returns another instance without a lock. `whole` ignores its snapshot."""
        ...
