"""An SQLite file as source or target of a copy. Its values are transferred without conversion."""

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
        """The path of the file after resolving links."""
        found = Path(self._database.path).stat()
        return f"{found.st_dev} {found.st_ino}"

    def bring_up(self, *, may_migrate: bool) -> None:
        """Migrate to the schema of this code."""
        bring_up(SQLiteSchema(self._database), read_migrations(__package__), may_migrate=may_migrate)

    @contextmanager
    def reading(self) -> Iterator[SQLiteTables]:
        """Open a consistent snapshot of the tables."""
        with self._database.reading() as connection:
            yield SQLiteTables(connection, self.url)

    @contextmanager
    def writing(self) -> Iterator[SQLiteTables]:
        """Open the tables with the file's only writer."""
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
        """Return all tables of Standfast."""
        return self._columns

    def workers(self) -> int:
        """Return the number of live workers."""
        now = self._connection.execute(_sql.clock).fetchone()
        return int(self._connection.execute(_sql.workers, now).fetchone()[0])

    def count(self, table: str) -> int:
        """Return the number of rows."""
        return int(self._connection.execute(f'select count(*) from "{table}"').fetchone()[0])  # noqa: S608 - all text is the engine's

    def rows(self, table: str, columns: Columns) -> Iterator[Row]:
        """Yield the rows as stored."""
        order = " order by position" if table == _EVENTS else ""
        return self._connection.execute(f'select {_listed(columns)} from "{table}"{order}')  # noqa: S608 - all text is the engine's

    def put(self, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        """Insert rows one at a time."""
        marks = ", ".join("?" * len(columns))
        statement = f'insert into "{table}" ({_listed(columns)}) values ({marks})'  # noqa: S608 - all text is the engine's
        self._connection.executemany(statement, rows)

    def note(self, facts: Mapping[str, str]) -> None:
        """Set facts."""
        for name, value in facts.items():
            self._connection.execute(*((_sql.set_fact, (name, value)) if value else (_sql.forget_fact, (name,))))

    def counters(self) -> Mapping[str, int]:
        """Return the last assigned numbers. Those of events are positions."""
        return {name: last for name, last in self._given().items() if name in self._columns and name != _EVENTS}

    def newest(self) -> int:
        """Return the last assigned position."""
        furthest = int(self._connection.execute(_sql.furthest).fetchone()[0])
        return max(furthest, self._given().get(_EVENTS, 0))

    def go_on(self, counters: Mapping[str, int], newest: int) -> None:
        """Set the next numbers and positions."""
        for name, last in {**counters, _EVENTS: newest}.items():
            self._connection.execute(_sql.forget_counter, (name,))
            self._connection.execute(_sql.set_counter, (name, last))

    def make_room(self, months: Collection[str]) -> None:
        """Do nothing: a file has no partitions."""

    def others(self) -> list[str]:
        """Returns the foreign tables."""
        return [name for (name,) in self._connection.execute(_sql.others) if name not in self._columns]

    def _given(self) -> dict[str, int]:
        return dict(self._connection.execute(_sql.counters).fetchall())


def _listed(columns: Columns) -> str:
    return ", ".join(f'"{name}"' for name in columns)
