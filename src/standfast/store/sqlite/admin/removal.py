"""Removes the tables of Standfast from an SQLite file."""

from __future__ import annotations

import sqlite3

import msgspec

from standfast.store.sql.removal import Made, Removal, RemovalPreview, RemovalRefusal, check_idle, refusal
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database


class _Sql(msgspec.Struct, frozen=True):
    exists: str
    standing: str
    clock: str
    references: str
    probe: str
    rename: str
    drop_probe: str
    drop_probed: str
    unmark: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "removing.sql")


class SQLiteRemoval:
    """A file that may contain tables of Standfast."""

    def __init__(self, database: Database) -> None:
        self.url = database.url
        self._database = database

    def remove(self, made: Made, *, with_unfinished: bool, with_workers: bool) -> Removal:
        """Drop every view and table by name, with indexes and triggers, and reset the schema version in the file's header."""
        with self._database.writing() as connection:
            if connection.execute(_sql.exists).fetchone() is None:
                return Removal(self.url)
            now = connection.execute(_sql.clock).fetchone()
            standing = RemovalPreview(*connection.execute(_sql.standing, now).fetchone())
            check_idle(self.url, standing, with_unfinished=with_unfinished, with_workers=with_workers)
            self._check_unused(", ".join(_referring(connection, made)))
            was_sound = not _unsound(connection)
            for name in made.views:
                connection.execute(f'drop view if exists "{name}"')
            for name in made.tables:
                connection.execute(f'drop table if exists "{name}"')
            if was_sound:
                self._check_unused(_unsound(connection))
            connection.execute(_sql.unmark)
            return Removal(self.url, len(made.tables), standing.instances)

    def _check_unused(self, others: str) -> None:
        if others:
            told = f"foreign objects in {self.url} depend on those of Standfast; drop them first: {others}"
            raise refusal(RemovalRefusal.DEPENDED_ON, told)


def _referring(connection: sqlite3.Connection, made: Made) -> list[str]:
    """Return foreign tables whose keys refer to the engine's. SQLite would not prevent their loss."""
    ours = set(made.tables)
    found = connection.execute(_sql.references).fetchall()
    return [f"table {name}" for name, of in found if of.lower() in ours and name not in ours]


def _unsound(connection: sqlite3.Connection) -> str:
    """Return SQLite's error about the first view or trigger with a missing reference.

    Renaming a table checks all of them. Empty if none is broken.
    """
    connection.execute(_sql.probe)
    try:
        connection.execute(_sql.rename)
    except sqlite3.OperationalError as error:
        return str(error)
    finally:
        connection.execute(_sql.drop_probe)
        connection.execute(_sql.drop_probed)
    return ""
