"""A Postgres database as source or target of a copy. It converts each column type to texts, numbers and bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple, cast

import msgspec
import psycopg
from psycopg import sql
from psycopg.types.numeric import Int8

from standfast.errors import ConfigurationError, PayloadError, StoreUnavailableError
from standfast.store.copy.port import Columns, Row, Value
from standfast.store.postgres.admin.schema import PostgresSchema
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.sql.migrations import bring_up, read_migrations
from standfast.store.sql.removal import made_by
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    place: str
    try_lock: str
    patient: str
    snapshot: str
    columns: str
    workers: str
    clock: str
    set_fact: str
    forget_fact: str
    counter: str
    base: str
    next_transaction: str
    furthest: str
    make_room: str
    others: str


_sql = read_numbered(_Sql, __package__, "copying.sql")

_SCHEMA, _EVENTS = "standfast", "events"
_PLACES: Final = 20
"""Bits of a position that count the events of one transaction."""
_MOST_ROWS, _MOST_BYTES = 500, 4 * 1024 * 1024
"""Limits of one batch. A larger row is sent alone."""


class _Type(NamedTuple):
    """How values of a type are read and written."""

    read: str
    written: str


_PLAIN = _Type("{}", "{}::text")
_NUMBER = _Type("{}", "{}::int8")
TYPES: Final[Mapping[str, _Type]] = {
    "text": _PLAIN,
    "uuid": _Type("{}::text", "{}::text::uuid"),
    "timestamptz": _Type(
        """to_char({} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')""", "{}::text::timestamptz"
    ),
    "bool": _Type("{}::int4", "{}::int8::int4::boolean"),
    "int2": _NUMBER,
    "int4": _NUMBER,
    "int8": _NUMBER,
    "bytea": _Type("{}", "{}::bytea"),
    "jsonb": _Type("{}::text", "{}::text::jsonb"),
}
"""All column types of the tables. A test checks that the list is complete."""


class _Column(NamedTuple):
    type: str
    is_counter: bool


class PostgresCopyable:
    """A database on a server."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self.url = line.url
        self._line = line

    def place(self) -> str:
        """Identifies the database and the running server."""
        with self._line.use() as connection:
            return str(_one(connection, _sql.place))

    def bring_up(self, *, may_migrate: bool) -> None:
        """Migrate to the schema of this code."""
        bring_up(PostgresSchema(self._line), read_migrations(__package__), may_migrate=may_migrate)

    @contextmanager
    def reading(self) -> Iterator[PostgresTables]:
        """Opens a consistent snapshot of the tables. It blocks no writers."""
        with self._line.transaction() as connection:
            connection.execute(_sql.snapshot, prepare=False)
            connection.execute(_sql.patient)
            yield PostgresTables(connection, self.url)

    @contextmanager
    def writing(self) -> Iterator[PostgresTables]:
        """Open the tables with a lock against writers. Readers continue."""
        with self._line.transaction() as connection:
            connection.execute(_sql.patient)
            if not _one(connection, _sql.try_lock):
                raise StoreUnavailableError(
                    f"{self.url}: another process is copying or migrating it; wait for it, or check why it hangs"
                )
            tables = PostgresTables(connection, self.url)
            names = sql.SQL(", ").join(sql.Identifier(_SCHEMA, name) for name in tables.columns())
            try:
                connection.execute(sql.SQL("lock table {} in share row exclusive mode").format(names))
            except psycopg.errors.InsufficientPrivilege as error:
                raise ConfigurationError(
                    f"{self.url}: only who owns the tables can keep others from writing them; connect as the user that migrates"
                ) from error
            yield tables

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


class PostgresTables:
    """The tables of a database, inside one transaction."""

    has_unique_positions = False

    def __init__(self, connection: Connection, url: str) -> None:
        self.url = url
        self._connection = connection

    @cached_property
    def _tables(self) -> dict[str, dict[str, _Column]]:
        found: dict[str, dict[str, _Column]] = {}
        rows = self._connection.execute(_sql.columns, prepare=False).fetchall()
        for table, name, type_, is_counter in cast("Sequence[tuple[str, str, str, bool]]", rows):
            found.setdefault(table, {})[name] = _Column(type_, is_counter)
        return {name: found[name] for name in made_by(read_migrations(__package__)).tables if name in found}

    def columns(self) -> Mapping[str, Columns]:
        """Return all tables of Standfast, with partitions combined."""
        return {name: tuple(columns) for name, columns in self._tables.items()}

    def workers(self) -> int:
        """Return the number of live workers."""
        return cast("int", _one(self._connection, _sql.workers, _one(self._connection, _sql.clock)))

    def count(self, table: str) -> int:
        """Return the number of rows."""
        statement = sql.SQL("select count(*) from {}").format(sql.Identifier(_SCHEMA, table))
        row = self._connection.execute(statement, prepare=False).fetchone()
        return cast("int", row[0]) if row else 0

    def rows(self, table: str, columns: Columns) -> Iterator[Row]:
        """Yield the rows from a server-side cursor."""
        types = self._tables[table]
        values = sql.SQL(", ").join(
            sql.SQL(TYPES[types[name].type].read).format(sql.Identifier(name)) for name in columns
        )
        order = sql.SQL(" order by position, instance, sequence" if table == _EVENTS else "")
        statement = sql.SQL("select {} from {}{}").format(values, sql.Identifier(_SCHEMA, table), order)
        with self._connection.cursor() as cursor:
            yield from cast("Iterator[Row]", cursor.stream(statement, binary=True))

    def put(self, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        """Insert rows in batches. Tables with row-level security do not accept COPY."""
        types = [self._tables[table][name].type for name in columns]
        values = sql.SQL(", ").join(
            sql.SQL(TYPES[each].written).format(sql.SQL(f"${place}")) for place, each in enumerate(types, 1)
        )
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        statement = sql.SQL("insert into {} ({}) overriding system value values ({})").format(
            sql.Identifier(_SCHEMA, table), names, values
        )
        with self._connection.cursor() as cursor:
            for part in _parts(rows):
                try:
                    cursor.executemany(statement, [list(map(_sent, row)) for row in part])
                except psycopg.DataError as error:
                    raise _unfit(self.url, table, error) from error

    def note(self, facts: Mapping[str, str]) -> None:
        """Set facts."""
        for name, value in facts.items():
            self._connection.execute(*((_sql.set_fact, [name, value]) if value else (_sql.forget_fact, [name])))

    def counters(self) -> Mapping[str, int]:
        """Return the last assigned numbers."""
        given = {
            table: _one(self._connection, _sql.counter, f"{_SCHEMA}.{table}", name) for table, name in self._numbered()
        }
        return {table: cast("int", last) for table, last in given.items() if last is not None}

    def newest(self) -> int:
        """Return a position before that of the next transaction."""
        base = int(str(_one(self._connection, _sql.base) or 0))
        following = base + cast("int", _one(self._connection, _sql.next_transaction))
        return max((following << _PLACES) - 1, cast("int", _one(self._connection, _sql.furthest)))

    def go_on(self, counters: Mapping[str, int], newest: int) -> None:
        """Set the next numbers and positions. Unlike `setval`, this is undone with the transaction."""
        for table, name in self._numbered():
            statement = sql.SQL("alter table {} alter column {} restart with {}").format(
                sql.Identifier(_SCHEMA, table), sql.Identifier(name), sql.Literal(counters.get(table, 0) + 1)
            )
            self._connection.execute(statement, prepare=False)
        following = cast("int", _one(self._connection, _sql.next_transaction))
        self.note({"position_base": str(max(0, (newest >> _PLACES) + 1 - following))})

    def make_room(self, months: Collection[str]) -> None:
        """Create a partition of the partitioned tables for each of these months."""
        for month in sorted(months):
            year, number = map(int, month.split("-"))
            self._connection.execute(_sql.make_room, [datetime(year, number, 1, tzinfo=UTC)])

    def others(self) -> list[str]:
        """Returns the foreign tables."""
        return [str(row[0]) for row in self._connection.execute(_sql.others, prepare=False)]

    def _numbered(self) -> list[tuple[str, str]]:
        return [
            (table, name)
            for table, columns in self._tables.items()
            for name, each in columns.items()
            if each.is_counter
        ]


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Split the rows into batches within the limits."""
    part: list[Row] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(each) for each in row if isinstance(each, str | bytes))
        if len(part) == _MOST_ROWS or size >= _MOST_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _sent(value: Value) -> object:
    return Int8(value) if isinstance(value, int) else value


def _unfit(url: str, table: str, error: psycopg.DataError) -> PayloadError:
    said = str(error).strip().splitlines()[0]
    return PayloadError(
        f"{url} cannot keep a row of {table}: {said}; something other than Standfast has written it into the source, where it must be mended"
    )


def _one(connection: Connection, statement: str, *values: object) -> object:
    row = connection.execute(statement, values).fetchone()
    return row[0] if row else None
