"""Facts for decisions, read on an existing connection."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import cast

import msgspec

from standfast.kernel.row_kinds.documents import DOCUMENTS
from standfast.store.ports.access import StoredKey, StoredSession
from standfast.store.ports.facts import DocumentFactRecord, FactVersions
from standfast.store.ports.versioned_settings import Edition
from standfast.store.postgres.connection import loading
from standfast.store.postgres.connection.connection import HeldConnection
from standfast.store.postgres.connection.records import reading
from standfast.store.postgres.connection.session import Row
from standfast.store.postgres.facts.access import PostgresAccess
from standfast.store.postgres.facts.directory import PostgresDirectory, PostgresPeople
from standfast.store.postgres.facts.versioned_settings import CHARTERS, PostgresEditions
from standfast.store.records.instances import Address, Loaded
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    versions: str
    document: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "facts.sql")
_read = reading(DOCUMENTS)


class PostgresFacts:
    """Reads facts."""

    def __init__(self, line: HeldConnection) -> None:
        self._line = line
        self._versions: dict[str, FactVersions] = {}

    def versions(self, tenant: str) -> FactVersions:
        """Returns the versions that were the newest when they were asked for first."""
        found = self._versions.get(tenant)
        if found is None:
            with self._line.use() as connection:
                row = connection.execute(_sql.versions, [tenant, tenant], binary=True).fetchone()
            assert row is not None
            found = self._versions[tenant] = FactVersions(*cast("tuple[int, int]", row))
        return found

    def people(self, tenant: str) -> AbstractContextManager[PostgresDirectory]:
        """Opens a view of a tenant's people."""
        return PostgresPeople(self._line).looking(tenant)

    def key(self, identity: str) -> StoredKey | None:
        """Returns an API key."""
        return PostgresAccess(self._line).key(identity)

    def session(self, identity: str) -> StoredSession | None:
        """Returns a session."""
        return PostgresAccess(self._line).session(identity)

    def charter(self, tenant: str, name: str) -> Edition | None:
        """Returns the newest version of an organisation setting."""
        return PostgresEditions(self._line, CHARTERS).get(tenant, name)

    def document(self, tenant: str, partition: str, type_: str, id_: str) -> DocumentFactRecord | None:
        """Returns a document."""
        with self._line.use() as connection:
            row = connection.execute(_sql.document, [tenant, type_, id_, partition], binary=True).fetchone()
        if row is None:
            return None
        found = cast("Row", row)
        return DocumentFactRecord(_read(found[:-1]), found[-1])

    def instance(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Returns another instance, without a lock."""
        with self._line.use() as connection:
            return loading.load(connection, [address], whole=whole)[0]
