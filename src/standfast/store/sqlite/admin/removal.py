"""Taking the tables of Standfast out of an SQLite file."""

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
    """A file that Standfast may have made tables in."""

    def __init__(self, database: Database) -> None:
        self.url = database.url
        self._database = database

    def remove(self, made: Made, *, with_unfinished: bool, with_workers: bool) -> Removal:
        """Drop every view and table by its name; its indexes and triggers go with it. The mark of the schema in the file's header goes too."""
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
            told = f"things of somebody else build on those of Standfast in {self.url}, and have to go first: {others}"
            raise refusal(RemovalRefusal.DEPENDED_ON, told)


def _referring(connection: sqlite3.Connection, made: Made) -> list[str]:
    """Tables whose keys refer to ours, which SQLite would let stand."""
    ours = set(made.tables)
    found = connection.execute(_sql.references).fetchall()
    return [f"table {name}" for name, of in found if of.lower() in ours and name not in ours]


def _unsound(connection: sqlite3.Connection) -> str:
    """What SQLite says of the first view or trigger that names what is not there, which it looks for when a table is renamed; empty if none does."""
    connection.execute(_sql.probe)
    try:
        connection.execute(_sql.rename)
    except sqlite3.OperationalError as error:
        return str(error)
    finally:
        connection.execute(_sql.drop_probe)
        connection.execute(_sql.drop_probed)
    return ""
