"""Audit of changes, stored in Postgres."""

from __future__ import annotations

import json
from typing import cast

import msgspec
from psycopg.types.numeric import Int8

from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports.changes import ChangeQuery
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    add: str
    page: str
    page_of: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "changes.sql")
_LAST = 2**63 - 1


class PostgresChanges:
    """The audited changes of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def add(self, change: Change) -> None:
        """Store a change."""
        with self._line.use() as connection:
            connection.execute(_sql.add, values_of(change))

    def page(self, query: ChangeQuery) -> list[Change]:
        """Return a page of changes."""
        before, most = Int8(query.before or _LAST), Int8(query.limit)
        with self._line.use() as connection:
            if query.subject:
                values = [query.tenant, query.subject, query.name, before, query.actor, most]
                found = connection.execute(_sql.page_of, values).fetchall()
            else:
                found = connection.execute(_sql.page, [query.tenant, before, query.actor, most]).fetchall()
        return [_change(row) for row in cast("list[Row]", found)]


def values_of(change: Change) -> list[object]:
    """Return the row of a change."""
    told = (json.dumps(dict(change.before)), json.dumps(dict(change.after)), change.reason)
    who = (change.actor, change.on_behalf_of, change.trace, change.at, change.mark)
    return [change.tenant, change.subject, change.name, change.action, *told, *who]


def _change(row: Row) -> Change:
    return Change(
        id=row[0],
        tenant=row[1],
        subject=row[2],
        name=row[3],
        action=row[4],
        before=json.loads(row[5]),
        after=json.loads(row[6]),
        reason=row[7],
        actor=row[8],
        on_behalf_of=row[9],
        trace=row[10],
        at=row[11],
        mark=row[12],
    )


ADD = _sql.add
"""For code that writes a change within its own transaction."""
