"""Deadlines of active processes, in the file."""

from __future__ import annotations

import msgspec

from standfast.store.ports.maintenance import ExpiredQuery
from standfast.store.records.instances import InstanceHeader
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import header, text


class _Sql(msgspec.Struct, frozen=True):
    expired: str
    expired_of_tenant: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "expiries.sql")


class SQLiteExpiries:
    """The deadlines of active processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def expired(self, query: ExpiredQuery) -> list[InstanceHeader]:
        """Return a page of active processes whose deadline is before a time."""
        values = {
            "before": text(query.before),
            "tenant": query.tenant,
            "partition": query.partition,
            "after": None if query.after is None else text(query.after[0]),
            "after_id": None if query.after is None else str(query.after[1]),
            "limit": query.limit,
        }
        statement = _sql.expired if query.tenant is None else _sql.expired_of_tenant
        with self._database.reading() as connection:
            return [header(row) for row in connection.execute(statement, values).fetchall()]
