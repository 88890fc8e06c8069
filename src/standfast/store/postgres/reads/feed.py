"""All events in one order. Transactions commit out of order, so readers stop below the oldest running one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import cast

import msgspec
from psycopg.types.numeric import Int8

from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.connection import (
    Connection,
    PostgresHandlerConnection,
    ReconnectingConnection,
    lent,
)
from standfast.store.postgres.connection.packing import Texts
from standfast.store.records.queries import FedEvent, Headline, ProjectionState
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    read: str
    headlines: str
    newest: str
    horizon: str
    current: str
    checkpoint: str
    enter: str
    drop: str
    hold: str
    move: str
    fail: str
    projections: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "feed.sql")

_PLACES = 20
"""Bits of a position that count the events of one transaction."""


class PostgresFeed:
    """The feed that projections read."""

    def __init__(self, line: ReconnectingConnection, base: int) -> None:
        self._line = line
        self._base = base

    def read(self, *, after: int, limit: int) -> list[FedEvent]:
        """Return the events after a position."""
        with self._line.use() as connection:
            return self._read(connection, after, limit)

    def headlines(self, *, after: int, limit: int) -> list[Headline]:
        """Return the same events without their content."""
        values = [Int8(after), Int8(self._base), Int8(limit)]
        with self._line.use() as connection:
            found = connection.execute(_sql.headlines, values, binary=True).fetchall()
        return sorted(map(Headline._make, found), key=_place)

    def newest(self) -> int:
        """Return the current end of the feed."""
        with self._line.use() as connection:
            return _number(connection, _sql.horizon, [Int8(self._base)]) - 1

    def checkpoint(self, name: str) -> int:
        """Return how far a projection has read."""
        with self._line.use() as connection:
            return _number(connection, _sql.checkpoint, [name])

    def enter(self, name: str) -> None:
        """Register a projection before it reads."""
        with self._line.use() as connection:
            connection.execute(_sql.enter, [name])

    def drop(self, name: str) -> bool:
        """Delete a projection."""
        with self._line.use() as connection:
            return connection.execute(_sql.drop, [name]).rowcount == 1

    def advance(
        self, name: str, *, limit: int, apply: Callable[[Sequence[FedEvent], object], None], now: datetime
    ) -> int:
        """Apply the next events and move the checkpoint in one transaction."""
        with self._line.transaction() as connection:
            connection.execute(_sql.enter, [name])
            events = self._read(connection, _number(connection, _sql.hold, [name]), limit)
            if events:
                with lent(PostgresHandlerConnection(connection)) as theirs:
                    apply(events, theirs)
                connection.execute(_sql.move, [Int8(events[-1].position), now, name])
            return len(events)

    def rewind(self, name: str, *, clear: Callable[[object], None], now: datetime) -> None:
        """Reset a projection to the beginning."""
        with self._line.transaction() as connection:
            connection.execute(_sql.enter, [name])
            _number(connection, _sql.hold, [name])
            with lent(PostgresHandlerConnection(connection)) as theirs:
                clear(theirs)
            connection.execute(_sql.move, [Int8(0), now, name])

    def fail(self, name: str, *, error: str, now: datetime) -> None:
        """Store why a projection does not progress."""
        with self._line.transaction() as connection:
            connection.execute(_sql.enter, [name])
            connection.execute(_sql.fail, [error, now, name])

    def projections(self, names: Sequence[str], *, most: int) -> list[ProjectionState]:
        """Return how far each projection has read."""
        fields = ProjectionState.__struct_fields__
        with self._line.use() as connection:
            found = connection.execute(_sql.projections, [Int8(most), Texts(names)]).fetchall()
        return [ProjectionState(**dict(zip(fields, cast("rows.Row", row), strict=True))) for row in found]

    def _read(self, connection: Connection, after: int, limit: int) -> list[FedEvent]:
        values = [Int8(after), Int8(self._base), Int8(limit)]
        found = connection.execute(_sql.read, values, binary=True).fetchall()
        events = [rows.fed_event(cast("rows.Row", row)) for row in found]
        events.sort(key=_place)
        return events


def _place(event: FedEvent | Headline) -> tuple[int, int]:
    """Order equal positions identically for all readers."""
    return event.position, event.instance.int


def missing_base(connection: Connection, base: int) -> int:
    """Return the base that places the next event after all stored ones.

    Positions derive from transaction numbers. A database restored into another cluster starts with lower numbers, and
    the base compensates for that.
    """
    newest = _number(connection, _sql.newest, []) >> _PLACES
    current = _number(connection, _sql.current, [])
    return base if newest < base + current else newest - current + 1


def _number(connection: Connection, statement: str, values: Sequence[object]) -> int:
    row = connection.execute(statement, values).fetchone()
    return cast("int", row[0]) if row and row[0] is not None else 0
