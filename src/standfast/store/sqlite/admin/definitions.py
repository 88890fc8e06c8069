"""Definitions, stored in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from standfast.store.ports.definitions import ClashError, Publication
from standfast.store.records.instances import StoredDefinition
from standfast.store.records.queries import ArchivedVersion, Archiving, PublishedDefinition
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import text


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


_sql = read_statements(_Sql, "standfast.store.sqlite", "definitions.sql")


class SQLiteDefinitions:
    """The definitions of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(
        self, definition: StoredDefinition, now: datetime, *, triggers: Collection[str] = ()
    ) -> StoredDefinition:
        """Store a definition unless its version exists, and return the stored one.

        An existing version is found without the writer.
        """
        found = self.get(definition.tenant, definition.name, definition.version)
        if found is not None:
            return found
        with self._database.writing() as connection:
            return _published(connection, Publication(definition, triggers), now)

    def publish_all(self, publications: Sequence[Publication], now: datetime) -> list[StoredDefinition]:
        """Store several in one transaction, all of them or none."""
        found = []
        with self._database.writing() as connection:
            for each in publications:
                known = _published(connection, each, now)
                if known.hash != each.definition.hash:
                    raise ClashError(known)
                found.append(known)
        return found

    def get(self, tenant: str, name: str, version: str) -> StoredDefinition | None:
        """Return one version."""
        with self._database.reading() as connection:
            return _get(connection, tenant, name, version)

    def versions(self, tenant: str, name: str) -> list[str]:
        """Return the versions of a definition, oldest first."""
        with self._database.reading() as connection:
            return [version for (version,) in connection.execute(_sql.versions, (tenant, name))]

    def archive(self, tenant: str, name: str, version: str, told: Archiving | None) -> bool:
        """Archive or restore a version."""
        said = ("published", "", None, "") if told is None else ("retired", told.by, text(told.at), told.why)
        with self._database.writing() as connection:
            return connection.execute(_sql.archive, (*said, tenant, name, version)).rowcount > 0

    def archived(self) -> list[ArchivedVersion]:
        """Return all archived versions."""
        with self._database.reading() as connection:
            return [rows.archived(row) for row in connection.execute(_sql.archived)]

    def names(self) -> set[str]:
        """Return the names of all definitions."""
        with self._database.reading() as connection:
            return {name for (name,) in connection.execute(_sql.names)}

    def listed(self, tenant: str) -> list[PublishedDefinition]:
        """Return all published versions."""
        with self._database.reading() as connection:
            return [rows.published(row) for row in connection.execute(_sql.listed, (tenant,))]

    def triggered(self, tenant: str, event: str) -> list[PublishedDefinition]:
        """Return the definitions that an event starts, in all versions."""
        with self._database.reading() as connection:
            found = connection.execute(_sql.triggered, {"tenant": tenant, "event": event})
            return [rows.published(row) for row in found]


def publish_within(connection: sqlite3.Connection, definition: StoredDefinition, now: datetime) -> bool:
    """Store a definition in an open transaction. Return False if its version exists."""
    values = msgspec.structs.astuple(definition)[:-1]
    is_new = bool(connection.execute(_sql.publish, (*values, text(now))).rowcount)
    if is_new:
        connection.execute(_sql.adopt, (definition.name, definition.tenant))
    return is_new


def _published(connection: sqlite3.Connection, publication: Publication, now: datetime) -> StoredDefinition:
    """Store a definition with its triggers unless its version exists, and return the stored one."""
    definition = publication.definition
    if publish_within(connection, definition, now):
        connection.executemany(
            _sql.note_trigger, [(event, definition.tenant, definition.name) for event in publication.triggers]
        )
    found = _get(connection, definition.tenant, definition.name, definition.version)
    assert found is not None, "what was just stored is there"
    return found


def _get(connection: sqlite3.Connection, tenant: str, name: str, version: str) -> StoredDefinition | None:
    row = connection.execute(_sql.get, (tenant, name, version)).fetchone()
    return None if row is None else rows.definition(row)
