"""People, stored in the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

import msgspec

from standfast.kernel.people import Absence, Delegation, Grant, Principal
from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports import people as people_rows
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import Row, instant, instant_or_none, text, text_or_none
from standfast.store.sqlite.facts.changes import ADD, values_of


class _Sql(msgspec.Struct, frozen=True):
    is_empty: str
    has_grants: str
    principals: str
    page: str
    inactive: str
    grants_to: str
    grants_of: str
    delegations_by: str
    delegations_to: str
    delegation: str
    absences: str
    absence: str
    put: str
    grant: str
    delegate: str
    absent: str
    end_grant: str
    end_delegation: str
    end_absence: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "directory.sql")

_ENDS = {"grant": _sql.end_grant, "delegation": _sql.end_delegation, "absence": _sql.end_absence}
_LAST = 2**63 - 1


class SQLitePeople:
    """The people of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def looking(self, tenant: str) -> Iterator[SQLiteDirectory]:
        """Open a view of one tenant's people."""
        with self._database.reading() as connection:
            yield SQLiteDirectory(connection, tenant)

    @contextmanager
    def changing(self, tenant: str) -> Iterator[SQLiteDirectory]:
        """Open a transaction on a tenant's people. The file has one writer."""
        with self._database.writing() as connection:
            yield SQLiteDirectory(connection, tenant)


class SQLiteDirectory:
    """The people of one tenant, on a reading or writing connection."""

    def __init__(self, connection: sqlite3.Connection, tenant: str) -> None:
        self._run = connection.execute
        self._tenant = tenant

    def is_empty(self) -> bool:
        """Return whether no principal is known."""
        return bool(self._run(_sql.is_empty, (self._tenant,)).fetchone()[0])

    def has_grants(self) -> bool:
        """Return whether a role was ever granted."""
        return bool(self._run(_sql.has_grants, (self._tenant,)).fetchone()[0])

    def principals(self, ids: Sequence[str]) -> list[Principal]:
        """Return the known principals."""
        return [people_rows.principal(row) for row in self._run(_sql.principals, (self._tenant, json.dumps(list(ids))))]

    def page(self, *, after: str, limit: int) -> list[Principal]:
        """Return a page of all principals by id."""
        return [people_rows.principal(row) for row in self._run(_sql.page, (self._tenant, after, limit))]

    def inactive(self) -> list[str]:
        """Return the deactivated principals."""
        return [row[0] for row in self._run(_sql.inactive, (self._tenant,))]

    def grants(self, *, principals: Sequence[str] = (), role: str = "", at: datetime) -> list[Grant]:
        """Return the grants that have not ended."""
        if role:
            return [
                people_rows.grant(_period(row)) for row in self._run(_sql.grants_of, (self._tenant, role, text(at)))
            ]
        return [people_rows.grant(_period(row)) for row in self._run(_sql.grants_to, self._of(principals, at))]

    def delegations(self, *, givers: Sequence[str] = (), receiver: str = "", at: datetime) -> list[Delegation]:
        """Return the delegations that have not ended."""
        if receiver:
            return [
                people_rows.delegation(_period(row))
                for row in self._run(_sql.delegations_to, (self._tenant, receiver, text(at)))
            ]
        return [people_rows.delegation(_period(row)) for row in self._run(_sql.delegations_by, self._of(givers, at))]

    def absences(self, principals: Sequence[str], *, at: datetime) -> list[Absence]:
        """Return the absences that have not ended."""
        return [people_rows.absence(_period(row)) for row in self._run(_sql.absences, self._of(principals, at))]

    def put(self, principal: Principal) -> None:
        """Insert or replace a principal."""
        kept = (principal.kind, principal.name, principal.email, principal.is_active, principal.manager)
        self._run(_sql.put, (self._tenant, principal.id, *kept, json.dumps(principal.attributes)))

    def grant(self, grant: Grant) -> int:
        """Insert a grant."""
        return self._written(_sql.grant, grant, grant.principal, grant.role)

    def delegate(self, delegation: Delegation) -> int:
        """Insert a delegation."""
        given = delegation
        kept = (given.giver, given.receiver, given.role, given.definition, given.reason)
        return self._written(_sql.delegate, delegation, *kept)

    def absent(self, absence: Absence) -> int:
        """Insert an absence."""
        return self._written(_sql.absent, absence, absence.principal, absence.reason)

    def delegation(self, number: int) -> Delegation | None:
        """Return a delegation."""
        row = self._run(_sql.delegation, (self._tenant, number)).fetchone()
        return None if row is None else people_rows.delegation(_period(row))

    def absence(self, number: int) -> Absence | None:
        """Return an absence."""
        row = self._run(_sql.absence, (self._tenant, number)).fetchone()
        return None if row is None else people_rows.absence(_period(row))

    def end(self, kind: Literal["grant", "delegation", "absence"], number: int, at: datetime) -> None:
        """Set the end of a period."""
        self._run(_ENDS[kind], (text(at), self._tenant, number))

    def note(self, change: Change) -> None:
        """Store an audit entry."""
        self._run(ADD, values_of(change))

    def _of(self, ids: Sequence[str], at: datetime) -> tuple[str, str, str]:
        return self._tenant, json.dumps(list(ids)), text(at)

    def _written(self, statement: str, period: Grant | Delegation | Absence, *values: str) -> int:
        assert period.begins_at is not None
        span = (text(period.begins_at), text_or_none(period.ends_at))
        (number,) = self._run(statement, (self._tenant, *values, *span)).fetchone()
        return int(number)


def _period(row: Row) -> Row:
    """Parse the times of a period."""
    return (row[0], instant(row[1]), instant_or_none(row[2]), *row[3:])
