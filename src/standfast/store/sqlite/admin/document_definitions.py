"""Document definitions, stored in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import msgspec

from standfast.store.ports.documents import BlueprintKind, PublishingRule, StoredBlueprint, Suspension
from standfast.store.records.instances import StoredDefinition
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.admin.definitions import publish_within
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import Row, instant, instant_or_none, text, text_or_none


class _Sql(msgspec.Struct, frozen=True):
    add: str
    save: str
    publish: str
    archive: str
    discard: str
    retire_workflow: str
    own: str
    get: str
    version: str
    listed: str
    in_force_everywhere: str
    rule: str
    set_rule: str
    suspensions: str
    suspend: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "blueprints.sql")
_INSTANTS = ("created_at", "updated_at", "published_at", "archived_at")


class SQLiteBlueprintChange:
    """A transaction on the definitions of one document type of one tenant."""

    def __init__(self, connection: sqlite3.Connection, tenant: str, type_: str) -> None:
        self._connection = connection
        self._key = (tenant, type_)

    def listed(self, kind: BlueprintKind) -> list[StoredBlueprint]:
        """Return all definitions of a kind."""
        return [_blueprint(row) for row in self._connection.execute(_sql.own, (*self._key, kind))]

    def add(self, blueprint: StoredBlueprint) -> None:
        """Store a new definition."""
        self._connection.execute(_sql.add, _values(blueprint))

    def save(self, draft: StoredBlueprint) -> bool:
        """Replace a draft by its next revision."""
        return self._connection.execute(_sql.save, _values(draft)).rowcount == 1

    def publish(self, draft: StoredBlueprint) -> bool:
        """Turn a draft into a version."""
        return self._connection.execute(_sql.publish, _values(draft)).rowcount == 1

    def archive(self, identity: str, *, by: str, at: datetime, why: str) -> bool:
        """Archive a published version."""
        values = (by, text(at), why, identity, self._key[0])
        return self._connection.execute(_sql.archive, values).rowcount == 1

    def discard(self, identity: str) -> bool:
        """Delete a draft."""
        return self._connection.execute(_sql.discard, (identity, self._key[0])).rowcount == 1

    def publish_workflow(self, definition: StoredDefinition, now: datetime) -> bool:
        """Store the graph of an artifact."""
        return publish_within(self._connection, definition, now)

    def retire_workflow(self, version: str) -> None:
        """Exclude a graph from starting new instances."""
        self._connection.execute(_sql.retire_workflow, (*self._key, version))


class SQLiteBlueprints:
    """The document definitions of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def changing(self, tenant: str, type_: str) -> Iterator[SQLiteBlueprintChange]:
        """Open a transaction. There is one writer at a time."""
        with self._database.writing() as connection:
            yield SQLiteBlueprintChange(connection, tenant, type_)

    def get(self, tenant: str, identity: str) -> StoredBlueprint | None:
        """Return a definition of the tenant, or a shared one."""
        return self._one(_sql.get, (identity, tenant))

    def version(self, tenant: str, type_: str, kind: BlueprintKind, version: int) -> StoredBlueprint | None:
        """Return one version."""
        return self._one(_sql.version, (tenant, type_, kind, version))

    def listed(self, tenant: str, *, kind: BlueprintKind, type_: str = "") -> list[StoredBlueprint]:
        """Return all definitions of a kind."""
        with self._database.reading() as connection:
            return [_blueprint(row) for row in connection.execute(_sql.listed, (tenant, kind, type_))]

    def in_force_everywhere(self, type_: str) -> list[StoredBlueprint]:
        """Return the published bodies of all tenants."""
        with self._database.reading() as connection:
            return [_blueprint(row) for row in connection.execute(_sql.in_force_everywhere, (type_,))]

    def suspensions(self, tenant: str, type_: str) -> list[Suspension]:
        """Return a tenant's suspensions and reactivations."""
        with self._database.reading() as connection:
            rows = connection.execute(_sql.suspensions, (tenant, type_)).fetchall()
        return [_suspension(row) for row in rows]

    def suspend(self, suspension: Suspension) -> bool:
        """Suspend or reactivate a workflow."""
        values = msgspec.structs.asdict(suspension) | {"set_at": text(suspension.set_at)}
        with self._database.writing() as connection:
            return connection.execute(_sql.suspend, values).rowcount == 1

    def rule(self, tenant: str) -> PublishingRule | None:
        """An organisation's rule for publishing."""
        with self._database.reading() as connection:
            row = connection.execute(_sql.rule, (tenant,)).fetchone()
        if row is None:
            return None
        return PublishingRule(tenant=row[0], two_person=bool(row[1]), set_by=row[2], set_at=instant(row[3]))

    def set_rule(self, rule: PublishingRule) -> None:
        """Set an organisation's rule for publishing."""
        with self._database.writing() as connection:
            connection.execute(_sql.set_rule, (rule.tenant, rule.two_person, rule.set_by, text(rule.set_at)))

    def _one(self, statement: str, values: tuple[object, ...]) -> StoredBlueprint | None:
        with self._database.reading() as connection:
            row = connection.execute(statement, values).fetchone()
        return None if row is None else _blueprint(row)


def _values(blueprint: StoredBlueprint) -> dict[str, object]:
    values = msgspec.structs.asdict(blueprint)
    return values | {name: text_or_none(values[name]) for name in _INSTANTS}


def _suspension(row: Row) -> Suspension:
    values = dict(zip(Suspension.__struct_fields__, row, strict=True))
    return Suspension(**(values | {"is_suspended": bool(values["is_suspended"]), "set_at": instant(values["set_at"])}))


def _blueprint(row: Row) -> StoredBlueprint:
    values = dict(zip(StoredBlueprint.__struct_fields__, row, strict=True))
    values |= {name: instant_or_none(values[name]) for name in _INSTANTS}
    return StoredBlueprint(**(values | {"is_default": bool(values["is_default"])}))
