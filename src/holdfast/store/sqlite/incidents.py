"""Instances in the file that nothing can ever wake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.kernel.ids import InstanceId
from holdfast.store.incidents import Incident, Stretch
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.rows import instance_id, instant, text
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    stretch: str
    incidents: str


_sql = read_statements(_Sql, __package__, "incidents.sql")


class SQLiteIncidents:
    """The instances of all tenants, in the order of their ids."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Look at the next instances."""
        first = str(after or UUID(int=0))
        with self._database.reading() as connection:
            last, count = connection.execute(_sql.stretch, (first, limit)).fetchone()
            if last is None:
                return Stretch([], None)
            values = {"after": first, "last": last, "kinds": json.dumps(list(kinds)), "since": text(still_since)}
            rows = connection.execute(_sql.incidents, values).fetchall()
        found = [Incident(instance_id(row[0]), row[1], row[2], instant(row[3])) for row in rows]
        return Stretch(found, instance_id(last) if count == limit else None)
