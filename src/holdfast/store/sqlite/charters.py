"""What organisations say of their documents, in the file."""

from __future__ import annotations

import msgspec

from holdfast.store.charters import StoredCharter
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.rows import Row, instant, text
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    publish: str
    newest: str
    get: str
    listed: str


_sql = read_statements(_Sql, __package__, "charters.sql")


class SQLiteCharters:
    """The charters of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, charter: StoredCharter, *, replaces: int | None = None) -> StoredCharter | None:
        """Store a version, unless the newest one says the same, or is another than it replaces."""
        key = (charter.tenant, charter.name)
        with self._database.writing() as connection:
            row = connection.execute(_sql.newest, key).fetchone()
            if row is None or _charter(row).body != charter.body:
                if replaces not in {None, 0 if row is None else _charter(row).version}:
                    return None
                what = (charter.body, charter.comment, charter.published_by, text(charter.published_at))
                connection.execute(_sql.publish, (*key, *what))
                row = connection.execute(_sql.newest, key).fetchone()
            return _charter(row)

    def get(self, tenant: str, name: str, version: int = 0) -> StoredCharter | None:
        """One version, or the newest."""
        with self._database.reading() as connection:
            if version:
                row = connection.execute(_sql.get, (tenant, name, version)).fetchone()
            else:
                row = connection.execute(_sql.newest, (tenant, name)).fetchone()
        return None if row is None else _charter(row)

    def listed(self, tenant: str, *, name: str = "") -> list[StoredCharter]:
        """All versions."""
        with self._database.reading() as connection:
            return [_charter(row) for row in connection.execute(_sql.listed, (tenant, name))]


def _charter(row: Row) -> StoredCharter:
    values = dict(zip(StoredCharter.__struct_fields__, row, strict=True))
    return StoredCharter(**(values | {"published_at": instant(row[-1])}))
