"""All events in one order. With one writer, positions are in the order of commits."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from standfast.store.records.queries import FedEvent, Headline, ProjectionState
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.handler_connection import SQLiteHandlerConnection
from standfast.store.sqlite.connection.session import text


class _Sql(msgspec.Struct, frozen=True):
    read: str
    headlines: str
    newest: str
    checkpoint: str
    enter: str
    drop: str
    move: str
    fail: str
    projections: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "feed.sql")


class SQLiteFeed:
    """The feed that projections read."""

    def __init__(self, database: Database, owner: object = None) -> None:
        self._database = database
        self._owner = owner
        """The share of the store that owns these projections."""

    def read(self, *, after: int, limit: int) -> list[FedEvent]:
        """Return the events after a position."""
        with self._database.reading() as connection:
            return _read(connection, after, limit)

    def headlines(self, *, after: int, limit: int) -> list[Headline]:
        """Return the same events without their content."""
        with self._database.reading() as connection:
            return [rows.headline(row) for row in connection.execute(_sql.headlines, (after, limit))]

    def newest(self) -> int:
        """Return the current end of the feed."""
        with self._database.reading() as connection:
            return int(connection.execute(_sql.newest).fetchone()[0])

    def checkpoint(self, name: str) -> int:
        """Return how far a projection has read."""
        with self._database.reading() as connection:
            return _checkpoint(connection, name)

    def enter(self, name: str) -> None:
        """Register a projection before it reads."""
        with self._database.writing() as connection:
            connection.execute(_sql.enter, (name,))

    def drop(self, name: str) -> bool:
        """Delete a projection."""
        with self._database.writing() as connection:
            return connection.execute(_sql.drop, (name,)).rowcount == 1

    def advance(
        self, name: str, *, limit: int, apply: Callable[[Sequence[FedEvent], object], None], now: datetime
    ) -> int:
        """Apply the next events and move the checkpoint in one transaction."""
        with self._database.writing() as connection:
            events = _read(connection, _checkpoint(connection, name), limit)
            if events:
                with self._database.lending(SQLiteHandlerConnection(connection, self._owner), None) as theirs:
                    apply(events, theirs)
                connection.execute(_sql.move, (name, events[-1].position, text(now)))
            return len(events)

    def rewind(self, name: str, *, clear: Callable[[object], None], now: datetime) -> None:
        """Reset a projection to the beginning."""
        with self._database.writing() as connection:
            with self._database.lending(SQLiteHandlerConnection(connection, self._owner), None) as theirs:
                clear(theirs)
            connection.execute(_sql.move, (name, 0, text(now)))

    def fail(self, name: str, *, error: str, now: datetime) -> None:
        """Store why a projection does not progress."""
        with self._database.writing() as connection:
            connection.execute(_sql.fail, {"name": name, "now": text(now), "error": error})

    def projections(self, names: Sequence[str], *, most: int) -> list[ProjectionState]:
        """Return how far each projection has read."""
        asked = {"names": json.dumps(list(names)), "most": most}
        with self._database.reading() as connection:
            return [rows.projection(row) for row in connection.execute(_sql.projections, asked)]


def _read(connection: sqlite3.Connection, after: int, limit: int) -> list[FedEvent]:
    return [rows.fed_event(row) for row in connection.execute(_sql.read, (after, limit))]


def _checkpoint(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute(_sql.checkpoint, (name,)).fetchone()
    return row[0] if row else 0
