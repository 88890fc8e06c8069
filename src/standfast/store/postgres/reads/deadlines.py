"""Deadlines of active processes, in Postgres."""

from __future__ import annotations

import msgspec
from psycopg.types.numeric import Int8

from standfast.store.ports.maintenance import ExpiredQuery
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.records.instances import InstanceHeader
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    expired: str
    expired_of_tenant: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "expiries.sql")


class PostgresExpiries:
    """The deadlines of active processes."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def expired(self, query: ExpiredQuery) -> list[InstanceHeader]:
        """Return a page of active processes whose deadline is before a time."""
        deadline_at, identity = query.after or (None, None)
        values: list[object] = [query.before, deadline_at, identity, Int8(query.limit), query.partition]
        with self._line.use() as connection:
            if query.tenant is None:
                found = connection.execute(_sql.expired, values, binary=True).fetchall()
            else:
                found = connection.execute(_sql.expired_of_tenant, [*values, query.tenant], binary=True).fetchall()
        return [rows.header(row) for row in found]
