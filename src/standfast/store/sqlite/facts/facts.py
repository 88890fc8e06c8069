"""Facts for decisions, read and checked on an existing connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from standfast.kernel.row_kinds.documents import DOCUMENTS
from standfast.store.ports.access import StoredKey, StoredSession
from standfast.store.ports.facts import DocumentFactRecord, FactVersions, Gate
from standfast.store.ports.store import StaleFactError
from standfast.store.ports.versioned_settings import Edition
from standfast.store.records.instances import Address, Loaded
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.loading import load
from standfast.store.sqlite.connection.records import reading
from standfast.store.sqlite.facts.access import key_in, session_in
from standfast.store.sqlite.facts.directory import SQLiteDirectory
from standfast.store.sqlite.facts.versioned_settings import CHARTERS, newest_in


class _Sql(msgspec.Struct, frozen=True):
    versions: str
    version: str
    instance_version: str
    document: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "facts.sql")
_read = reading(DOCUMENTS)


class SQLiteFacts:
    """Reads facts."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._versions: dict[str, FactVersions] = {}

    def versions(self, tenant: str) -> FactVersions:
        """Returns the versions that were the newest when they were asked for first."""
        found = self._versions.get(tenant)
        if found is None:
            row = self._connection.execute(_sql.versions, {"tenant": tenant}).fetchone()
            found = self._versions[tenant] = FactVersions(*row)
        return found

    def people(self, tenant: str) -> AbstractContextManager[SQLiteDirectory]:
        """Opens a view of a tenant's people."""
        return nullcontext(SQLiteDirectory(self._connection, tenant))

    def key(self, identity: str) -> StoredKey | None:
        """Returns an API key."""
        return key_in(self._connection, identity)

    def session(self, identity: str) -> StoredSession | None:
        """Returns a session."""
        return session_in(self._connection, identity)

    def charter(self, tenant: str, name: str) -> Edition | None:
        """Returns the newest version of an organisation setting."""
        return newest_in(self._connection, CHARTERS, tenant, name)

    def document(self, tenant: str, partition: str, type_: str, id_: str) -> DocumentFactRecord | None:
        """Returns a document."""
        row = self._connection.execute(_sql.document, (tenant, type_, id_, partition)).fetchone()
        return None if row is None else DocumentFactRecord(_read(row[:-1]), row[-1])

    def instance(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Returns another instance, without a lock."""
        return load(self._connection, address, whole=whole)


def check_gates(connection: sqlite3.Connection, gates: Sequence[Gate]) -> None:
    """Raises StaleFactError if a fact has another version. No other connection writes until the transaction ends."""
    for each in gates:
        if each.kind == "instance":
            place = (each.tenant, each.definition, each.key, each.partition)
            row = connection.execute(_sql.instance_version, place).fetchone()
        else:
            row = connection.execute(_sql.version, (each.tenant, each.kind)).fetchone()
        if (0 if row is None else row[0]) != each.version:
            raise StaleFactError(f"{each.kind} of {each.tenant!r} has changed since it was read")
