"""What organisations say of their documents, in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
from psycopg.types.numeric import Int4

from holdfast.store.charters import StoredCharter
from holdfast.store.postgres.connections import Connection, Line
from holdfast.store.postgres.rows import Row
from holdfast.store.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    hold: str
    publish: str
    newest: str
    get: str
    listed: str


_sql = read_numbered(_Sql, __package__, "charters.sql")


class PostgresCharters:
    """The charters of all tenants."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def publish(self, charter: StoredCharter, *, replaces: int | None = None) -> StoredCharter | None:
        """Store a version, unless the newest one says the same, or is another than it replaces."""
        key = [charter.tenant, charter.name]
        with self._line.transaction() as connection:
            connection.execute(_sql.hold, key)
            newest = _one(connection, _sql.newest, key)
            if newest is None or newest.body != charter.body:
                if replaces not in {None, 0 if newest is None else newest.version}:
                    return None
                what = [charter.body, charter.comment, charter.published_by, charter.published_at]
                connection.execute(_sql.publish, [*what, *key])
                newest = _one(connection, _sql.newest, key)
        assert newest is not None, "what was just stored is there"
        return newest

    def get(self, tenant: str, name: str, version: int = 0) -> StoredCharter | None:
        """One version, or the newest."""
        with self._line.use() as connection:
            if version:
                return _one(connection, _sql.get, [tenant, name, Int4(version)])
            return _one(connection, _sql.newest, [tenant, name])

    def listed(self, tenant: str, *, name: str = "") -> list[StoredCharter]:
        """All versions."""
        with self._line.use() as connection:
            found = cast("list[Row]", connection.execute(_sql.listed, [tenant, name], binary=True).fetchall())
        return [_charter(row) for row in found]


def _one(connection: Connection, statement: str, values: Sequence[object]) -> StoredCharter | None:
    row = connection.execute(statement, values, binary=True).fetchone()
    return None if row is None else _charter(cast("Row", row))


def _charter(row: Row) -> StoredCharter:
    return StoredCharter(**dict(zip(StoredCharter.__struct_fields__, row, strict=True)))
