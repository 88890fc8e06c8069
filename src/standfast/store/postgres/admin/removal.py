"""Taking the schema of Standfast out of a Postgres database. The roles stay: they belong to the server, and to other databases on it."""

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
    """A database that Standfast may have made tables in."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self.url = line.url
        self._line = line

    def remove(self, made: Made, *, with_unfinished: bool, with_workers: bool) -> Removal:
        """Drop every view, table and function by its name, and then the schema, none of them with what others have built on it."""
        with self._line.transaction() as connection:
            if not _row(connection, _sql.exists)[0]:
                return Removal(self.url)
            connection.execute(_sql.impatient)
            if not _row(connection, _sql.try_lock)[0]:
                raise StoreUnavailableError(f"{self.url}: another process is migrating; look what it does")
            connection.execute(_sql.hold)
            standing = RemovalPreview(*_row(connection, _sql.standing, *_row(connection, _sql.clock)))
            check_idle(self.url, standing, with_unfinished=with_unfinished, with_workers=with_workers)
            try:
                _drop(connection, made)
            except psycopg.errors.DependentObjectsStillExist as error:
                others = (error.diag.message_detail or str(error)).replace("\n", "; ")
                told = (
                    f"things of somebody else build on those of Standfast in {self.url}, and have to go first: {others}"
                )
                raise refusal(RemovalRefusal.DEPENDED_ON, told) from error
            return Removal(self.url, len(made.tables), standing.instances)


def _drop(connection: Connection, made: Made) -> None:
    """All tables in one statement, which may build on one another; their parts, indexes, triggers and sequences go with them."""
    views = sql.SQL(", ").join(sql.Identifier(_SCHEMA, name) for name in made.views)
    connection.execute(sql.SQL("drop view if exists {} restrict").format(views))
    tables = sql.SQL(", ").join(sql.Identifier(_SCHEMA, name) for name in (*made.tables, "migrations"))
    connection.execute(sql.SQL("drop table if exists {} restrict").format(tables))
    for name in made.functions:
        connection.execute(sql.SQL("drop function if exists {} restrict").format(sql.Identifier(_SCHEMA, name)))
    connection.execute(sql.SQL("drop schema {} restrict").format(sql.Identifier(_SCHEMA)))


def _row(connection: Connection, statement: str, *values: object) -> Row:
    return cast("Row", connection.execute(statement, values).fetchone())
