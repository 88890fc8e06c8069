"""Definitions, stored in Postgres."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import cast

import msgspec

from standfast.store.ports.definitions import ClashError, Publication
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.records.instances import StoredDefinition
from standfast.store.records.queries import ArchivedVersion, Archiving, PublishedDefinition
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    publish: str
    get: str
    adopt: str
    versions: str
    archive: str
    archived: str
    names: str
    listed: str
    note_trigger: str
    triggered: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "definitions.sql")


class PostgresDefinitions:
    """The definitions of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line
        self._turn = threading.Lock()
        """Serializes the queries of all threads on one connection."""

    def publish(
        self, definition: StoredDefinition, now: datetime, *, triggers: Collection[str] = ()
    ) -> StoredDefinition:
        """Store a definition unless its version exists, and return the stored one."""
        with self._turn, self._line.transaction() as connection:
            return _published(connection, Publication(definition, triggers), now)

    def publish_all(self, publications: Sequence[Publication], now: datetime) -> list[StoredDefinition]:
        """Store several in one transaction, all of them or none."""
        # Concurrent publications of the same definitions lock them in one order, which avoids deadlocks.
        ordered = sorted(publications, key=lambda each: (each.definition.name, each.definition.version))
        found = []
        with self._turn, self._line.transaction() as connection:
            for each in ordered:
                known = _published(connection, each, now)
                if known.hash != each.definition.hash:
                    raise ClashError(known)
                found.append(known)
        return found

    def get(self, tenant: str, name: str, version: str) -> StoredDefinition | None:
        """Return one version."""
        with self._turn, self._line.use() as connection:
            return _get(connection, [tenant, name, version])

    def versions(self, tenant: str, name: str) -> list[str]:
        """Return the versions of a definition, oldest first."""
        with self._turn, self._line.use() as connection:
            return [str(row[0]) for row in connection.execute(_sql.versions, [tenant, name])]

    def archive(self, tenant: str, name: str, version: str, told: Archiving | None) -> bool:
        """Archive or restore a version."""
        said = ["published", "", None, ""] if told is None else ["retired", told.by, told.at, told.why]
        with self._turn, self._line.transaction() as connection:
            return connection.execute(_sql.archive, [*said, tenant, name, version]).rowcount > 0

    def archived(self) -> list[ArchivedVersion]:
        """Return all archived versions."""
        with self._turn, self._line.use() as connection:
            found = cast("list[rows.Row]", connection.execute(_sql.archived).fetchall())
        return [ArchivedVersion(**dict(zip(ArchivedVersion.__struct_fields__, row, strict=True))) for row in found]

    def names(self) -> set[str]:
        """Return the names of all definitions."""
        with self._turn, self._line.use() as connection:
            return {str(row[0]) for row in connection.execute(_sql.names)}

    def listed(self, tenant: str) -> list[PublishedDefinition]:
        """Return all published versions."""
        return self._published(_sql.listed, [tenant])

    def triggered(self, tenant: str, event: str) -> list[PublishedDefinition]:
        """Return the definitions that an event starts, in all versions."""
        return self._published(_sql.triggered, [tenant, event, tenant])

    def _published(self, statement: str, values: Sequence[str]) -> list[PublishedDefinition]:
        with self._turn, self._line.use() as connection:
            found = cast("list[rows.Row]", connection.execute(statement, values).fetchall())
        names = PublishedDefinition.__struct_fields__
        return [PublishedDefinition(**dict(zip(names, row, strict=True))) for row in found]


def publish_within(connection: Connection, definition: StoredDefinition, now: datetime) -> bool:
    """Store a definition in an open transaction. Return False if its version exists."""
    values = [*msgspec.structs.astuple(definition)[:-1], now]
    is_new = bool(connection.execute(_sql.publish, values).rowcount)
    if is_new:
        connection.execute(_sql.adopt, [definition.name, definition.tenant])
    return is_new


def _published(connection: Connection, publication: Publication, now: datetime) -> StoredDefinition:
    """Store a definition with its triggers unless its version exists, and return the stored one."""
    definition = publication.definition
    # A concurrent publication of the same version is waited for, and then the stored one is read.
    if publish_within(connection, definition, now):
        for event in publication.triggers:
            connection.execute(_sql.note_trigger, [event, definition.tenant, definition.name])
    found = _get(connection, [definition.tenant, definition.name, definition.version])
    assert found is not None, "the definition just stored exists"
    return found


def _get(connection: Connection, key: Sequence[str]) -> StoredDefinition | None:
    row = connection.execute(_sql.get, key, binary=True).fetchone()
    return None if row is None else rows.definition(cast("rows.Row", row))
