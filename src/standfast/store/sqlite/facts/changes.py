"""Audit of changes, stored in the file."""

from __future__ import annotations

import json

import msgspec

from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports.changes import ChangeQuery
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import Row, instant, text


class _Sql(msgspec.Struct, frozen=True):
    add: str
    page: str
    page_of: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "changes.sql")
_LAST = 2**63 - 1


class SQLiteChanges:
    """The audited changes of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, change: Change) -> None:
        """Store a change."""
        with self._database.writing() as connection:
            connection.execute(_sql.add, values_of(change))

    def page(self, query: ChangeQuery) -> list[Change]:
        """Return a page of changes."""
        given = {**msgspec.structs.asdict(query), "before": query.before or _LAST}
        if not query.subject:
            given = {name: value for name, value in given.items() if name not in {"subject", "name"}}
        with self._database.reading() as connection:
            found = connection.execute(_sql.page_of if query.subject else _sql.page, given).fetchall()
        return [_change(row) for row in found]


def values_of(change: Change) -> tuple[object, ...]:
    """Return the row of a change."""
    told = (json.dumps(dict(change.before)), json.dumps(dict(change.after)), change.reason)
    who = (change.actor, change.on_behalf_of, change.trace, text(change.at), change.mark)
    return (change.tenant, change.subject, change.name, change.action, *told, *who)


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
        at=instant(row[11]),
        mark=row[12],
    )


ADD = _sql.add
"""For code that writes a change within its own transaction."""
