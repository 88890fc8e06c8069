"""Seals of histories, stored in the file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from standfast.kernel.hash_chain import Sealed
from standfast.kernel.ids import InstanceId, id_text
from standfast.store.ports.seals import StoredSeal, chained
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import Row, instance_id, instant, text


class _Sql(msgspec.Struct, frozen=True):
    add: str
    of: str
    listed: str
    last: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "seals.sql")


class SQLiteSeals:
    """The seals of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, tenant: str, sealed: Sequence[Sealed], *, by: str, at: datetime) -> list[StoredSeal]:
        """Append seals to the chain."""
        with self._database.writing() as connection:
            row = connection.execute(_sql.last, (tenant,)).fetchone()
            made = chained(tenant, None if row is None else _seal(row), sealed, by=by, at=at)
            connection.executemany(_sql.add, [_values(each) for each in made])
        return made

    def of(self, tenant: str, instances: Sequence[InstanceId]) -> list[StoredSeal]:
        """Return the seals of these instances."""
        with self._database.reading() as connection:
            look = connection.execute
            return [_seal(row) for each in instances for row in look(_sql.of, (tenant, id_text(each)))]

    def listed(self, tenant: str, *, after: int = 0, limit: int = 1000) -> list[StoredSeal]:
        """Return the seals after a number."""
        with self._database.reading() as connection:
            return [_seal(row) for row in connection.execute(_sql.listed, (tenant, after, limit))]

    def last(self, tenant: str) -> StoredSeal | None:
        """Return the last seal."""
        with self._database.reading() as connection:
            row = connection.execute(_sql.last, (tenant,)).fetchone()
        return None if row is None else _seal(row)


def _values(seal: StoredSeal) -> tuple[object, ...]:
    values = msgspec.structs.asdict(seal) | {"instance": id_text(seal.instance), "sealed_at": text(seal.sealed_at)}
    return tuple(values.values())


def _seal(row: Row) -> StoredSeal:
    values = dict(zip(StoredSeal.__struct_fields__, row, strict=True))
    return StoredSeal(**(values | {"instance": instance_id(row[2]), "sealed_at": instant(row[-1])}))
