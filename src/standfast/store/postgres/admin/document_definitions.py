"""Document definitions, stored in Postgres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import cast

import msgspec
from psycopg.types.numeric import Int4

from standfast.store.ports.documents import BlueprintKind, PublishingRule, StoredBlueprint, Suspension
from standfast.store.postgres.admin.definitions import publish_within
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.session import Row
from standfast.store.records.instances import StoredDefinition
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    hold: str
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


_sql = read_numbered(_Sql, "standfast.store.postgres", "blueprints.sql")


class PostgresBlueprintChange:
    """A transaction on the definitions of one document type of one tenant."""

    def __init__(self, connection: Connection, tenant: str, type_: str) -> None:
        self._connection = connection
        self._key = [tenant, type_]

    def listed(self, kind: BlueprintKind) -> list[StoredBlueprint]:
        """Return all definitions of a kind."""
        return _all(self._connection, _sql.own, [*self._key, kind])

    def add(self, blueprint: StoredBlueprint) -> None:
        """Store a new definition."""
        self._connection.execute(_sql.add, [_whole(each) for each in msgspec.structs.astuple(blueprint)])

    def save(self, draft: StoredBlueprint) -> bool:
        """Replace a draft by its next revision."""
        said = [draft.name, draft.envelope_version, draft.content, draft.hash, draft.replaces]
        by = [draft.drafted_by, draft.comment, draft.updated_by, draft.updated_at]
        return self._is_done(_sql.save, [*said, *by, draft.id, draft.tenant, draft.revision - 1])

    def publish(self, draft: StoredBlueprint) -> bool:
        """Turn a draft into a version."""
        said = [draft.version, draft.comment, draft.published_by, draft.published_at]
        return self._is_done(_sql.publish, [*said, draft.id, draft.tenant, draft.revision])

    def archive(self, identity: str, *, by: str, at: datetime, why: str) -> bool:
        """Archive a published version."""
        return self._is_done(_sql.archive, [by, at, why, identity, self._key[0]])

    def discard(self, identity: str) -> bool:
        """Delete a draft."""
        return self._is_done(_sql.discard, [identity, self._key[0]])

    def publish_workflow(self, definition: StoredDefinition, now: datetime) -> bool:
        """Store the graph of an artifact."""
        return publish_within(self._connection, definition, now)

    def retire_workflow(self, version: str) -> None:
        """Exclude a graph from starting new instances."""
        self._connection.execute(_sql.retire_workflow, [*self._key, version])

    def _is_done(self, statement: str, values: Sequence[object]) -> bool:
        return self._connection.execute(statement, [_whole(each) for each in values]).rowcount == 1


class PostgresBlueprints:
    """The document definitions of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    @contextmanager
    def changing(self, tenant: str, type_: str) -> Iterator[PostgresBlueprintChange]:
        """Open a transaction that locks the type."""
        with self._line.transaction() as connection:
            connection.execute(_sql.hold, [tenant, type_])
            yield PostgresBlueprintChange(connection, tenant, type_)

    def get(self, tenant: str, identity: str) -> StoredBlueprint | None:
        """Return a definition of the tenant, or a shared one."""
        return self._one(_sql.get, [identity, tenant])

    def version(self, tenant: str, type_: str, kind: BlueprintKind, version: int) -> StoredBlueprint | None:
        """Return one version."""
        return self._one(_sql.version, [tenant, type_, kind, Int4(version)])

    def listed(self, tenant: str, *, kind: BlueprintKind, type_: str = "") -> list[StoredBlueprint]:
        """Return all definitions of a kind."""
        with self._line.use() as connection:
            return _all(connection, _sql.listed, [tenant, kind, type_])

    def in_force_everywhere(self, type_: str) -> list[StoredBlueprint]:
        """Return the published bodies of all tenants."""
        with self._line.use() as connection:
            return _all(connection, _sql.in_force_everywhere, [type_])

    def suspensions(self, tenant: str, type_: str) -> list[Suspension]:
        """Return a tenant's suspensions and reactivations."""
        with self._line.use() as connection:
            rows = cast("list[Row]", connection.execute(_sql.suspensions, [tenant, type_], binary=True).fetchall())
        return [Suspension(**dict(zip(Suspension.__struct_fields__, row, strict=True))) for row in rows]

    def suspend(self, suspension: Suspension) -> bool:
        """Suspend or reactivate a workflow."""
        s = suspension
        values = [s.set_by, s.set_at, s.why, s.batch, s.tenant, s.type, s.workflow, s.is_suspended]
        with self._line.transaction() as connection:
            connection.execute(_sql.hold, [s.tenant, s.type])
            return connection.execute(_sql.suspend, values).rowcount == 1

    def rule(self, tenant: str) -> PublishingRule | None:
        """Return an organisation's rule for publishing."""
        with self._line.use() as connection:
            row = connection.execute(_sql.rule, [tenant], binary=True).fetchone()
        if row is None:
            return None
        return PublishingRule(**dict(zip(PublishingRule.__struct_fields__, cast("Row", row), strict=True)))

    def set_rule(self, rule: PublishingRule) -> None:
        """Set an organisation's rule for publishing."""
        with self._line.transaction() as connection:
            connection.execute(_sql.hold, [rule.tenant, ""])
            connection.execute(_sql.set_rule, [rule.two_person, rule.set_by, rule.set_at, rule.tenant])

    def _one(self, statement: str, values: Sequence[object]) -> StoredBlueprint | None:
        with self._line.use() as connection:
            return next(iter(_all(connection, statement, values)), None)


def _all(connection: Connection, statement: str, values: Sequence[object]) -> list[StoredBlueprint]:
    found = cast("list[Row]", connection.execute(statement, values, binary=True).fetchall())
    names = StoredBlueprint.__struct_fields__
    return [StoredBlueprint(**dict(zip(names, row, strict=True))) for row in found]


def _whole(value: object) -> object:
    """Return a value as an int, as the database stores it."""
    return Int4(value) if isinstance(value, int) and not isinstance(value, bool) else value
