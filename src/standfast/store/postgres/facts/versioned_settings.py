"""Approval chains and organisation settings, stored in tables of the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import msgspec
from psycopg.types.numeric import Int4

from standfast.store.ports.versioned_settings import Edition
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_numbered


class PostgresSettingStatements(msgspec.Struct, frozen=True):
    """The statements for one of the tables."""

    hold: str
    publish: str
    newest: str
    get: str
    listed: str


CHAINS: Final = read_numbered(PostgresSettingStatements, "standfast.store.postgres", "chains.sql")
CHARTERS: Final = read_numbered(PostgresSettingStatements, "standfast.store.postgres", "charters.sql")


class PostgresEditions:
    """The published versions in one of the tables, of all tenants."""

    def __init__(self, line: ReconnectingConnection, statements: PostgresSettingStatements) -> None:
        self._line = line
        self._sql = statements

    def publish(self, edition: Edition, *, replaces: int | None = None) -> Edition | None:
        """Store a version, unless the newest one is equal or is not the one to replace."""
        key = [edition.tenant, edition.name]
        with self._line.transaction() as connection:
            connection.execute(self._sql.hold, key)
            newest = _one(connection, self._sql.newest, key)
            if newest is None or newest.content != edition.content:
                if replaces not in {None, 0 if newest is None else newest.version}:
                    return None
                what = [edition.content, edition.note, edition.published_by, edition.published_at]
                connection.execute(self._sql.publish, [*what, *key])
                newest = _one(connection, self._sql.newest, key)
        return newest

    def get(self, tenant: str, name: str, version: int = 0) -> Edition | None:
        """Return one version, or the newest."""
        with self._line.use() as connection:
            if version:
                return _one(connection, self._sql.get, [tenant, name, Int4(version)])
            return _one(connection, self._sql.newest, [tenant, name])

    def listed(self, tenant: str, *, name: str = "") -> list[Edition]:
        """Return all versions."""
        with self._line.use() as connection:
            found = connection.execute(self._sql.listed, [tenant, name], binary=True).fetchall()
        return [_edition(row) for row in cast("list[Row]", found)]


def _one(connection: Connection, statement: str, values: Sequence[object]) -> Edition | None:
    row = connection.execute(statement, values, binary=True).fetchone()
    return None if row is None else _edition(cast("Row", row))


def _edition(row: Row) -> Edition:
    return Edition(**dict(zip(Edition.__struct_fields__, row, strict=True)))
