"""Seals of histories, stored in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

import msgspec
from psycopg.types.numeric import Int4, Int8

from standfast.kernel.hash_chain import Sealed
from standfast.kernel.ids import InstanceId
from standfast.store.ports.seals import StoredSeal, chained
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    hold: str
    add: str
    of: str
    listed: str
    last: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "seals.sql")


class PostgresSeals:
    """The seals of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def add(self, tenant: str, sealed: Sequence[Sealed], *, by: str, at: datetime) -> list[StoredSeal]:
        """Append seals to the chain."""
        with self._line.transaction() as connection:
            connection.execute(_sql.hold, [tenant])
            made = chained(tenant, _last(connection, tenant), sealed, by=by, at=at)
            for each in made:
                values = msgspec.structs.asdict(each) | {"number": Int8(each.number), "version": Int4(each.version)}
                connection.execute(_sql.add, list(values.values()))
        return made

    def of(self, tenant: str, instances: Sequence[InstanceId]) -> list[StoredSeal]:
        """Return the seals of these instances."""
        with self._line.use() as connection:
            found = connection.execute(_sql.of, [tenant, list(instances)], binary=True).fetchall()
        return [_seal(cast("Row", row)) for row in found]

    def listed(self, tenant: str, *, after: int = 0, limit: int = 1000) -> list[StoredSeal]:
        """Return the seals after a number."""
        with self._line.use() as connection:
            found = connection.execute(_sql.listed, [tenant, Int8(after), Int4(limit)], binary=True).fetchall()
        return [_seal(cast("Row", row)) for row in found]

    def last(self, tenant: str) -> StoredSeal | None:
        """Return the last seal."""
        with self._line.use() as connection:
            return _last(connection, tenant)


def _last(connection: Connection, tenant: str) -> StoredSeal | None:
    row = connection.execute(_sql.last, [tenant], binary=True).fetchone()
    return None if row is None else _seal(cast("Row", row))


def _seal(row: Row) -> StoredSeal:
    return StoredSeal(**dict(zip(StoredSeal.__struct_fields__, row, strict=True)))
