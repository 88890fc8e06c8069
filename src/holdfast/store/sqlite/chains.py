"""Approval chains in the file."""

from __future__ import annotations

import msgspec

from holdfast.store.chains import StoredChain
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.rows import Row, instant, text
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    publish: str
    newest: str
    get: str
    listed: str


_sql = read_statements(_Sql, __package__, "chains.sql")


class SQLiteChains:
    """The chains of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, chain: StoredChain) -> StoredChain:
        """Store a version, unless the newest one says the same."""
        key = (chain.tenant, chain.name)
        with self._database.writing() as connection:
            row = connection.execute(_sql.newest, key).fetchone()
            if row is None or _chain(row).stages != chain.stages:
                what = (chain.stages, chain.description, chain.published_by, text(chain.published_at))
                connection.execute(_sql.publish, (*key, *what))
                row = connection.execute(_sql.newest, key).fetchone()
            return _chain(row)

    def get(self, tenant: str, name: str, version: int = 0) -> StoredChain | None:
        """One version, or the newest."""
        with self._database.reading() as connection:
            if version:
                row = connection.execute(_sql.get, (tenant, name, version)).fetchone()
            else:
                row = connection.execute(_sql.newest, (tenant, name)).fetchone()
        return None if row is None else _chain(row)

    def listed(self, tenant: str, *, name: str = "") -> list[StoredChain]:
        """All versions."""
        with self._database.reading() as connection:
            return [_chain(row) for row in connection.execute(_sql.listed, (tenant, name))]


def _chain(row: Row) -> StoredChain:
    values = dict(zip(StoredChain.__struct_fields__, row, strict=True))
    return StoredChain(**(values | {"published_at": instant(row[-1])}))
