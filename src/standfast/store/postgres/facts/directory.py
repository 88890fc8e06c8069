"""People, stored in Postgres."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, cast

import msgspec
from psycopg.types.numeric import Int8

from standfast.kernel.people import Absence, Delegation, Grant, Principal
from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports import people as people_rows
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.packing import Texts
from standfast.store.postgres.connection.session import Row
from standfast.store.postgres.facts.changes import ADD, values_of
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    hold: str
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


_sql = read_numbered(_Sql, "standfast.store.postgres", "directory.sql")

_ENDS = {"grant": _sql.end_grant, "delegation": _sql.end_delegation, "absence": _sql.end_absence}
_LAST = 2**63 - 1


class PostgresPeople:
    """The people of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    @contextmanager
    def looking(self, tenant: str) -> Iterator[PostgresDirectory]:
        """Open a view of one tenant's people."""
        with self._line.use() as connection:
            yield PostgresDirectory(connection, tenant)

    @contextmanager
    def changing(self, tenant: str) -> Iterator[PostgresDirectory]:
        """Open a transaction on a tenant's people. Concurrent changes wait."""
        with self._line.transaction() as connection:
            connection.execute(_sql.hold, [tenant])
            yield PostgresDirectory(connection, tenant)


class PostgresDirectory:
    """The people of one tenant, on a reading or writing connection."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def is_empty(self) -> bool:
        """Return whether no principal is known."""
        return bool(self._all(_sql.is_empty)[0][0])

    def has_grants(self) -> bool:
        """Return whether a role was ever granted."""
        return bool(self._all(_sql.has_grants)[0][0])

    def principals(self, ids: Sequence[str]) -> list[Principal]:
        """Return the known principals."""
        return [people_rows.principal(row) for row in self._all(_sql.principals, Texts(ids))]

    def page(self, *, after: str, limit: int) -> list[Principal]:
        """Return a page of all principals by id."""
        return [people_rows.principal(row) for row in self._all(_sql.page, after, Int8(limit))]

    def inactive(self) -> list[str]:
        """Return the deactivated principals."""
        return [row[0] for row in self._all(_sql.inactive)]

    def grants(self, *, principals: Sequence[str] = (), role: str = "", at: datetime) -> list[Grant]:
        """Return the grants that have not ended."""
        if role:
            return [people_rows.grant(row) for row in self._all(_sql.grants_of, role, at)]
        return [people_rows.grant(row) for row in self._each(_sql.grants_to, Texts(principals), at)]

    def delegations(self, *, givers: Sequence[str] = (), receiver: str = "", at: datetime) -> list[Delegation]:
        """Return the delegations that have not ended."""
        if receiver:
            return [people_rows.delegation(row) for row in self._all(_sql.delegations_to, receiver, at)]
        return [people_rows.delegation(row) for row in self._each(_sql.delegations_by, Texts(givers), at)]

    def absences(self, principals: Sequence[str], *, at: datetime) -> list[Absence]:
        """Return the absences that have not ended."""
        return [people_rows.absence(row) for row in self._each(_sql.absences, Texts(principals), at)]

    def put(self, principal: Principal) -> None:
        """Insert or replace a principal."""
        kept = (principal.kind, principal.name, principal.email, principal.is_active, principal.manager)
        self._run(_sql.put, principal.id, *kept, json.dumps(principal.attributes))

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
        return next(map(people_rows.delegation, self._all(_sql.delegation, Int8(number))), None)

    def absence(self, number: int) -> Absence | None:
        """Return an absence."""
        return next(map(people_rows.absence, self._all(_sql.absence, Int8(number))), None)

    def end(self, kind: Literal["grant", "delegation", "absence"], number: int, at: datetime) -> None:
        """Set the end of a period."""
        self._connection.execute(_ENDS[kind], [at, self._tenant, Int8(number)])

    def note(self, change: Change) -> None:
        """Store an audit entry."""
        self._connection.execute(ADD, values_of(change))

    def _all(self, statement: str, *values: object) -> list[Row]:
        return cast("list[Row]", self._connection.execute(statement, [self._tenant, *values]).fetchall())

    def _each(self, statement: str, names: Texts, at: datetime) -> list[Row]:
        return cast("list[Row]", self._connection.execute(statement, [names, self._tenant, at]).fetchall())

    def _run(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, [self._tenant, *values])

    def _written(self, statement: str, period: Grant | Delegation | Absence, *values: str) -> int:
        return int(self._all(statement, *values, period.begins_at, period.ends_at)[0][0])
