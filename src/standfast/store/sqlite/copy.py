"""An SQLite file that is copied from or to. Its values are what crosses the line, so nothing has to be translated here."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import msgspec

from standfast.store.copy.port import Columns, Row
from standfast.store.sql.migrations import bring_up, read_migrations
from standfast.store.sql.removal import made_by
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.store import SQLiteSchema


class _Sql(msgspec.Struct, frozen=True):
    columns: str
    workers: str
    clock: str
    set_fact: str
    forget_fact: str
    counters: str
    forget_counter: str
    set_counter: str
    furthest: str
    others: str


_sql = read_statements(_Sql, __package__, "copying.sql")
_EVENTS = "events"


class SQLiteCopyable:
    """A file."""

    def __init__(self, database: Database) -> None:
        self.url = database.url
        self._database = database

    def place(self) -> str:
        """The file that it is, whatever leads to it."""
        found = Path(self._database.path).stat()
        return f"{found.st_dev} {found.st_ino}"

    def bring_up(self, *, may_migrate: bool) -> None:
        """See to it that it has the schema of this code."""
        bring_up(SQLiteSchema(self._database), read_migrations(__package__), may_migrate=may_migrate)

    @contextmanager
    def reading(self) -> Iterator[SQLiteTables]:
        """The tables as of one moment."""
        with self._database.reading() as connection:
            yield SQLiteTables(connection, self.url)

    @contextmanager
    def writing(self) -> Iterator[SQLiteTables]:
        """The tables, with the file's only writer."""
        with self._database.writing() as connection:
            yield SQLiteTables(connection, self.url)
        self._database.checkpoint()

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class SQLiteTables:
    """The tables of a file, inside one transaction."""

    has_unique_positions = True

    def __init__(self, connection: sqlite3.Connection, url: str) -> None:
        self.url = url
        self._connection = connection

    @cached_property
    def _columns(self) -> dict[str, Columns]:
        ask = self._connection.execute
        names = made_by(read_migrations(__package__)).tables
        found = {name: tuple(each for (each,) in ask(_sql.columns, (name,))) for name in names}
        return {name: columns for name, columns in found.items() if columns}

    def columns(self) -> Mapping[str, Columns]:
        """All tables of Standfast."""
        return self._columns

    def workers(self) -> int:
        """Those that are alive."""
        now = self._connection.execute(_sql.clock).fetchone()
        return int(self._connection.execute(_sql.workers, now).fetchone()[0])

    def count(self, table: str) -> int:
        """How many rows there are."""
        return int(self._connection.execute(f'select count(*) from "{table}"').fetchone()[0])  # noqa: S608 - our own

    def rows(self, table: str, columns: Columns) -> Iterator[Row]:
        """The rows, as the file has them."""
        order = " order by position" if table == _EVENTS else ""
        return self._connection.execute(f'select {_listed(columns)} from "{table}"{order}')  # noqa: S608 - our own

    def put(self, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        """Add rows; each is asked for when the one before it is written."""
        marks = ", ".join("?" * len(columns))
        statement = f'insert into "{table}" ({_listed(columns)}) values ({marks})'  # noqa: S608 - our own
        self._connection.executemany(statement, rows)

    def note(self, facts: Mapping[str, str]) -> None:
        """Set facts."""
        for name, value in facts.items():
            self._connection.execute(*((_sql.set_fact, (name, value)) if value else (_sql.forget_fact, (name,))))

    def counters(self) -> Mapping[str, int]:
        """The last numbers that were given; those of events are positions."""
        return {name: last for name, last in self._given().items() if name in self._columns and name != _EVENTS}

    def newest(self) -> int:
        """The last position that was given."""
        furthest = int(self._connection.execute(_sql.furthest).fetchone()[0])
        return max(furthest, self._given().get(_EVENTS, 0))

    def go_on(self, counters: Mapping[str, int], newest: int) -> None:
        """Number rows and events from here on."""
        for name, last in {**counters, _EVENTS: newest}.items():
            self._connection.execute(_sql.forget_counter, (name,))
            self._connection.execute(_sql.set_counter, (name, last))

    def make_room(self, months: Collection[str]) -> None:
        """Nothing to do: a file has no parts."""

    def others(self) -> list[str]:
        """Tables of somebody else."""
        return [name for (name,) in self._connection.execute(_sql.others) if name not in self._columns]

    def _given(self) -> dict[str, int]:
        return dict(self._connection.execute(_sql.counters).fetchall())


def _listed(columns: Columns) -> str:
    return ", ".join(f'"{name}"' for name in columns)
