"""Incidents for operators, found in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int8

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.store.ports.maintenance import (
    AskedName,
    Deputed,
    Incident,
    LongCall,
    RefusedSchedule,
    Stretch,
)
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.postgres.connection.packing import Texts
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    stretch: str
    incidents: str
    long_calls: str
    undecidable: str
    asked: str
    deputed: str
    refused_schedules: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "incidents.sql")


class PostgresIncidents:
    """Finds stuck instances, undecidable tasks and long calls of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Examine the next instances."""
        first = after or UUID(int=0)
        with self._line.use() as connection:
            last, count = cast("Row", connection.execute(_sql.stretch, [first, Int8(limit)]).fetchone())
            if last is None:
                return Stretch([], None)
            found = connection.execute(_sql.incidents, [first, last, Texts(kinds), still_since]).fetchall()
        incidents = [Incident(InstanceId(row[0]), *row[1:]) for row in cast("list[Row]", found)]
        return Stretch(incidents, InstanceId(last) if count == limit else None)

    def long_calls(self, *, before: datetime, limit: int) -> list[LongCall]:
        """Return the calls that workers claimed before a time."""
        with self._line.use() as connection:
            found = cast("list[Row]", connection.execute(_sql.long_calls, [before, Int8(limit)]).fetchall())
        return [
            LongCall(InstanceId(run), number, tenant, definition, handler, WorkerId(owner), since, bytes(options))
            for run, number, tenant, definition, handler, owner, since, options in found
        ]

    def undecidable(self, *, limit: int) -> list[Incident]:
        """Return the instances with a task that has no eligible approver."""
        with self._line.use() as connection:
            found = cast("list[Row]", connection.execute(_sql.undecidable, [Int8(limit)]).fetchall())
        return [Incident(InstanceId(row[0]), *row[1:]) for row in found]

    def asked(self, *, after: AskedName | None, limit: int) -> list[AskedName]:
        """Return the approvers of open tasks."""
        at = ("", "", "") if after is None else after
        with self._line.use() as connection:
            found = cast("list[Row]", connection.execute(_sql.asked, [*at, Int8(limit)]).fetchall())
        return [AskedName(*row) for row in found]

    def deputed(self, *, after: Deputed | None, limit: int) -> list[Deputed]:
        """Return the approvers of open tasks who represent others."""
        at = ("", UUID(int=0), 0, 0) if after is None else after[:4]
        tenant, run, number, place = at
        with self._line.use() as connection:
            values = [tenant, run, Int8(number), Int8(place), Int8(limit)]
            found = cast("list[Row]", connection.execute(_sql.deputed, values).fetchall())
        return [Deputed(row[0], InstanceId(row[1]), *row[2:]) for row in found]

    def refused_schedules(self, *, limit: int) -> list[RefusedSchedule]:
        """Return the schedules whose last start was refused."""
        with self._line.use() as connection:
            found = cast("list[Row]", connection.execute(_sql.refused_schedules, [Int8(limit)]).fetchall())
        return [RefusedSchedule(InstanceId(row[0]), *row[1:]) for row in found]
