"""The copy's view of a database: tables, rows, and a few facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

Value = str | int | bytes | None
Row = tuple[Value, ...]
"""A row in SQLite's format: ids and times are texts, booleans are numbers."""
Columns = tuple[str, ...]
Stage = Literal["copy", "compare", "verify"]


class Progress(NamedTuple):
    """Progress of a copy."""

    stage: Stage
    table: str
    """The table that is copied or compared. Empty while instances are verified."""
    done: int
    """Number of rows of the table, or of instances of all tenants."""
    total: int


Hear = Callable[[Progress], None]


class Tables(Protocol):
    """The tables of a database, inside one transaction."""

    url: str
    has_unique_positions: bool
    """Whether event positions are unique."""

    def columns(self) -> Mapping[str, Columns]:
        """Returns all tables of Standfast with their columns, in the order of creation.

        No table refers to a later one.
        """
        ...

    def workers(self) -> int:
        """Returns the number of live workers."""
        ...

    def count(self, table: str) -> int:
        """Returns the number of rows of a table."""
        ...

    def rows(self, table: str, columns: Columns) -> Iterator[Row]:
        """Yields the rows of a table; events in the order of the feed."""
        ...

    def put(self, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        """Inserts rows, in batches."""
        ...

    def note(self, facts: Mapping[str, str]) -> None:
        """Sets facts. An empty value deletes one."""
        ...

    def counters(self) -> Mapping[str, int]:
        """Returns the last assigned number of each table that numbers its rows."""
        ...

    def newest(self) -> int:
        """Returns a position after all events and all readers of the feed."""
        ...

    def go_on(self, counters: Mapping[str, int], newest: int) -> None:
        """Assigns only higher numbers and positions from now on."""
        ...

    def make_room(self, months: Collection[str]) -> None:
        """Prepares for instances created in these months, such as 2026-11."""
        ...

    def others(self) -> list[str]:
        """Returns the foreign tables."""
        ...


class Copyable(Protocol):
    """A database that can be copied from and to."""

    url: str

    def place(self) -> str:
        """Identifies the database, however its URL is written. Equal values mean the same database."""
        ...

    def bring_up(self, *, may_migrate: bool) -> None:
        """Migrates it to the schema of this code, or raises SchemaMismatchError."""
        ...

    def reading(self) -> AbstractContextManager[Tables]:
        """Opens a consistent snapshot of the tables. It blocks no writers."""
        ...

    def writing(self) -> AbstractContextManager[Tables]:
        """Opens the tables with an exclusive write lock. Raises StoreUnavailableError if another process is writing."""
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...
