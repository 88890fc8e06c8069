"""Incidents for operators, found in the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.store.ports.maintenance import (
    AskedName,
    Deputed,
    Incident,
    LongCall,
    RefusedSchedule,
    Stretch,
)
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import instance_id, instant, text


class _Sql(msgspec.Struct, frozen=True):
    stretch: str
    incidents: str
    long_calls: str
    undecidable: str
    next_asked: str
    deputed: str
    refused_schedules: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "incidents.sql")


class SQLiteIncidents:
    """Finds stuck instances, undecidable tasks and long calls of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Examine the next instances."""
        first = str(after or UUID(int=0))
        with self._database.reading() as connection:
            last, count = connection.execute(_sql.stretch, (first, limit)).fetchone()
            if last is None:
                return Stretch([], None)
            values = {"after": first, "last": last, "kinds": json.dumps(list(kinds)), "since": text(still_since)}
            rows = connection.execute(_sql.incidents, values).fetchall()
        found = [Incident(instance_id(row[0]), row[1], row[2], instant(row[3])) for row in rows]
        return Stretch(found, instance_id(last) if count == limit else None)

    def long_calls(self, *, before: datetime, limit: int) -> list[LongCall]:
        """Return the calls that workers claimed before a time."""
        with self._database.reading() as connection:
            rows = connection.execute(_sql.long_calls, (text(before), limit)).fetchall()
        return [
            LongCall(
                instance_id(run), number, tenant, definition, handler, WorkerId(UUID(owner)), instant(since), options
            )
            for run, number, tenant, definition, handler, owner, since, options in rows
        ]

    def undecidable(self, *, limit: int) -> list[Incident]:
        """Return the instances with a task that has no eligible approver."""
        with self._database.reading() as connection:
            rows = connection.execute(_sql.undecidable, (limit,)).fetchall()
        return [Incident(instance_id(row[0]), row[1], row[2], instant(row[3])) for row in rows]

    def asked(self, *, after: AskedName | None, limit: int) -> list[AskedName]:
        """Return the approvers of open tasks."""
        found: list[AskedName] = []
        values = {"tenant": "", "kind": "", "name": ""} if after is None else after._asdict()
        with self._database.reading() as connection:
            while len(found) < limit and (row := connection.execute(_sql.next_asked, values).fetchone()) is not None:
                found.append(AskedName(*row))
                values = found[-1]._asdict()
        return found

    def deputed(self, *, after: Deputed | None, limit: int) -> list[Deputed]:
        """Return the approvers of open tasks who represent others."""
        at = ("", "", 0, 0) if after is None else (after.tenant, str(after.instance), after.number, after.place)
        with self._database.reading() as connection:
            rows = connection.execute(_sql.deputed, (*at, limit)).fetchall()
        return [Deputed(tenant, instance_id(run), *row) for tenant, run, *row in rows]

    def refused_schedules(self, *, limit: int) -> list[RefusedSchedule]:
        """Return the schedules whose last start was refused."""
        with self._database.reading() as connection:
            rows = connection.execute(_sql.refused_schedules, (limit,)).fetchall()
        return [RefusedSchedule(instance_id(row[0]), row[1], row[2], instant(row[3]), *row[4:]) for row in rows]
