"""Databases that can be copied from and to, as the copy sees them: tables, rows, and a few facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

Value = str | int | bytes | None
Row = tuple[Value, ...]
"""As SQLite keeps it: ids and instants are texts, truth values are numbers."""
Columns = tuple[str, ...]
Stage = Literal["copy", "compare", "verify"]


class Progress(NamedTuple):
    """How far a copy is."""

    stage: Stage
    table: str
    """The table that is copied or compared; empty while instances are verified."""
    done: int
    """Rows of it, or instances of all tenants."""
    total: int


Hear = Callable[[Progress], None]


class Tables(Protocol):
    """The tables of a database, inside one transaction."""

    url: str
    has_unique_positions: bool
    """Whether no two events may have one position."""

    def columns(self) -> Mapping[str, Columns]:
        """All tables of Standfast with their columns, in the order in which they were made: none refers to a later one."""
        ...

    def workers(self) -> int:
        """How many workers are alive."""
        ...

    def count(self, table: str) -> int:
        """How many rows a table has."""
        ...

    def rows(self, table: str, columns: Columns) -> Iterator[Row]:
        """The rows of a table, one at a time; events in the order of the feed."""
        ...

    def put(self, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        """Add rows, a few at a time."""
        ...

    def note(self, facts: Mapping[str, str]) -> None:
        """Set facts; an empty one is taken away."""
        ...

    def counters(self) -> Mapping[str, int]:
        """The last number that was given, by the tables that number their rows."""
        ...

    def newest(self) -> int:
        """A position that no event so far lies behind, and no reader of the feed either."""
        ...

    def go_on(self, counters: Mapping[str, int], newest: int) -> None:
        """Give only numbers and positions behind these from now on."""
        ...

    def make_room(self, months: Collection[str]) -> None:
        """Get ready for instances that were born in these months, such as 2026-11."""
        ...

    def others(self) -> list[str]:
        """Tables of somebody else."""
        ...


class Copyable(Protocol):
    """A database that can be copied from and to."""

    url: str

    def place(self) -> str:
        """Where it is: two of them are the same database if they say the same here, however their URLs are written."""
        ...

    def bring_up(self, *, may_migrate: bool) -> None:
        """See to it that it has the schema of this code, or raise SchemaMismatchError."""
        ...

    def reading(self) -> AbstractContextManager[Tables]:
        """The tables as of one moment, while others go on."""
        ...

    def writing(self) -> AbstractContextManager[Tables]:
        """The tables for one who may write, while nobody else does; StoreUnavailableError if somebody does already."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...
