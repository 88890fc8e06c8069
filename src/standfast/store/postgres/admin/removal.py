"""Removes the schema of Standfast from a Postgres database.

The roles stay, because other databases of the server may use them.
"""

from __future__ import annotations

from typing import cast

import msgspec
import psycopg
from psycopg import sql

from standfast.errors import StoreUnavailableError
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.removal import Made, Removal, RemovalPreview, RemovalRefusal, check_idle, refusal
from standfast.store.sql.statements import read_numbered

_SCHEMA = "standfast"


class _Sql(msgspec.Struct, frozen=True):
    exists: str
    try_lock: str
    impatient: str
    hold: str
    standing: str
    clock: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "removing.sql")


class PostgresRemoval:
    """A database that may contain tables of Standfast."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self.url = line.url
        self._line = line

    def remove(self, made: Made, *, with_unfinished: bool, with_workers: bool) -> Removal:
        """Drop every view, table and function by name, and then the schema.

        Foreign objects that depend on them prevent it.
        """
        with self._line.transaction() as connection:
            if not _row(connection, _sql.exists)[0]:
                return Removal(self.url)
            connection.execute(_sql.impatient)
            if not _row(connection, _sql.try_lock)[0]:
                raise StoreUnavailableError(
                    f"{self.url}: another process is migrating; wait for it, or check why it hangs"
                )
            connection.execute(_sql.hold)
            standing = RemovalPreview(*_row(connection, _sql.standing, *_row(connection, _sql.clock)))
            check_idle(self.url, standing, with_unfinished=with_unfinished, with_workers=with_workers)
            try:
                _drop(connection, made)
            except psycopg.errors.DependentObjectsStillExist as error:
                others = (error.diag.message_detail or str(error)).replace("\n", "; ")
                told = f"foreign objects in {self.url} depend on those of Standfast; drop them first: {others}"
                raise refusal(RemovalRefusal.DEPENDED_ON, told) from error
            return Removal(self.url, len(made.tables), standing.instances)


def _drop(connection: Connection, made: Made) -> None:
    """Drop all tables in one statement, because they may refer to one another.

    Partitions, indexes, triggers and sequences are dropped with them.
    """
    views = sql.SQL(", ").join(sql.Identifier(_SCHEMA, name) for name in made.views)
    connection.execute(sql.SQL("drop view if exists {} restrict").format(views))
    tables = sql.SQL(", ").join(sql.Identifier(_SCHEMA, name) for name in (*made.tables, "migrations"))
    connection.execute(sql.SQL("drop table if exists {} restrict").format(tables))
    for name in made.functions:
        connection.execute(sql.SQL("drop function if exists {} restrict").format(sql.Identifier(_SCHEMA, name)))
    connection.execute(sql.SQL("drop schema {} restrict").format(sql.Identifier(_SCHEMA)))


def _row(connection: Connection, statement: str, *values: object) -> Row:
    return cast("Row", connection.execute(statement, values).fetchone())
