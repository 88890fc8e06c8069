"""Approval chains and organisation settings, stored in tables of the same shape."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from standfast.store.ports.versioned_settings import Edition
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import Row, instant, text


class SQLiteSettingStatements(msgspec.Struct, frozen=True):
    """The statements for one of the tables."""

    publish: str
    newest: str
    get: str
    listed: str


CHAINS: Final = read_statements(SQLiteSettingStatements, "standfast.store.sqlite", "chains.sql")
CHARTERS: Final = read_statements(SQLiteSettingStatements, "standfast.store.sqlite", "charters.sql")


class SQLiteEditions:
    """The published versions in one of the tables, of all tenants."""

    def __init__(self, database: Database, statements: SQLiteSettingStatements) -> None:
        self._database = database
        self._sql = statements

    def publish(self, edition: Edition, *, replaces: int | None = None) -> Edition | None:
        """Store a version, unless the newest one is equal or is not the one to replace."""
        key = (edition.tenant, edition.name)
        with self._database.writing() as connection:
            row = connection.execute(self._sql.newest, key).fetchone()
            if row is None or _edition(row).content != edition.content:
                if replaces not in {None, 0 if row is None else _edition(row).version}:
                    return None
                what = (edition.content, edition.note, edition.published_by, text(edition.published_at))
                connection.execute(self._sql.publish, (*key, *what))
                row = connection.execute(self._sql.newest, key).fetchone()
            return _edition(row)

    def get(self, tenant: str, name: str, version: int = 0) -> Edition | None:
        """Return one version, or the newest."""
        with self._database.reading() as connection:
            if not version:
                return newest_in(connection, self._sql, tenant, name)
            row = connection.execute(self._sql.get, (tenant, name, version)).fetchone()
        return None if row is None else _edition(row)

    def listed(self, tenant: str, *, name: str = "") -> list[Edition]:
        """Return all versions."""
        with self._database.reading() as connection:
            return [_edition(row) for row in connection.execute(self._sql.listed, (tenant, name))]


def newest_in(
    connection: sqlite3.Connection, statements: SQLiteSettingStatements, tenant: str, name: str
) -> Edition | None:
    """Return the newest version."""
    row = connection.execute(statements.newest, (tenant, name)).fetchone()
    return None if row is None else _edition(row)


def _edition(row: Row) -> Edition:
    values = dict(zip(Edition.__struct_fields__, row, strict=True))
    return Edition(**(values | {"published_at": instant(row[-1])}))
