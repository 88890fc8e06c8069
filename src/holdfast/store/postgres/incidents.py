"""Instances in the database that nothing can ever wake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int8

from holdfast.kernel.ids import InstanceId
from holdfast.store.incidents import Incident, Stretch
from holdfast.store.postgres.connections import Line
from holdfast.store.postgres.packing import Texts
from holdfast.store.postgres.rows import Row
from holdfast.store.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    stretch: str
    incidents: str


_sql = read_numbered(_Sql, __package__, "incidents.sql")


class PostgresIncidents:
    """The instances of all tenants, in the order of their ids."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Look at the next instances."""
        first = after or UUID(int=0)
        with self._line.use() as connection:
            last, count = cast("Row", connection.execute(_sql.stretch, [first, Int8(limit)]).fetchone())
            if last is None:
                return Stretch([], None)
            found = connection.execute(_sql.incidents, [first, last, Texts(kinds), still_since]).fetchall()
        incidents = [Incident(InstanceId(row[0]), *row[1:]) for row in cast("list[Row]", found)]
        return Stretch(incidents, InstanceId(last) if count == limit else None)
