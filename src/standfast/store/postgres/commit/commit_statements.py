"""Statements of commits: each affected table becomes one call with packed arguments.

If one call loses a race (a version gate, a unique key, a void claim), the database rolls all of them back, and
LostRaceError is raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import msgspec
import psycopg
from psycopg.rows import tuple_row

from standfast.store.postgres.connection.commit_parts import TablePart, message_row
from standfast.store.postgres.connection.connection import Connection
from standfast.store.postgres.connection.packing import columns_of, kinds_of, pack_instant, pack_long
from standfast.store.postgres.connection.pipeline import Statement, StatementCall, send
from standfast.store.postgres.connection.records import STATEMENTS, letter_row
from standfast.store.records.instances import DeadLetterRecord, StoredMessage
from standfast.store.sql.statements import numbered, read_statements


class _Sql(msgspec.Struct, frozen=True):
    born: str
    moved: str
    marked: str
    consumed_effects: str
    consumed_timers: str
    consumed_messages: str
    consumed_letters: str
    finished_effects: str
    finished_timers: str
    finished_messages: str
    finished_letters: str
    withdrawn: str
    withdrawn_letters: str
    recalled: str
    recalled_letters: str
    stopped: str
    cancelled: str
    events: str
    effects: str
    timers: str
    held_effects: str
    held_timers: str
    messages: str
    message_here: str
    receipts: str
    snapshots: str
    observations: str
    raised_letters: str
    gates: str


_sql = read_statements(_Sql, "standfast.store.postgres", "commits.sql")
STATEMENTS.update(msgspec.structs.asdict(_sql))


def accept(connection: Connection, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
    """Store messages in the inbox within the connection's transaction, and return their ids."""
    values = [*columns_of(_sql.messages, [message_row(each) for each in messages]), now]
    rows = connection.execute(numbered(_sql.messages), values, binary=True).fetchall()
    return [row[0] for row in rows]  # type: ignore[misc]


def accept_within(
    connection: psycopg.Connection[Any], message: StoredMessage, now: datetime, *, identity: str
) -> int | None:
    """Store a message in the inbox through a caller's connection.

    Return its id, or None if the connection is to another database.
    """
    with psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
        row = cursor.execute(numbered(_sql.message_here), [*message_row(message), now, identity]).fetchone()
    return int(row[0]) if row else None


def bury(connection: Connection, letter: DeadLetterRecord) -> None:
    """Insert a dead letter."""
    connection.execute(numbered(_sql.raised_letters), columns_of(_sql.raised_letters, [letter_row(letter)]))


def run(connection: Connection, parts: Iterable[TablePart], base: int, *, floor: int = 0) -> None:
    """Execute the parts in one round trip, all of them or none. Raises LostRaceError after a lost race."""
    send(connection, calls_of(parts, base, floor=floor))


def calls_of(parts: Iterable[TablePart], base: int, *, floor: int = 0) -> Iterator[StatementCall]:
    """Yield the calls for the parts, packing each when it is sent."""
    return (_call(part, base, floor) for part in parts)


def _call(part: TablePart, base: int, floor: int) -> StatementCall:
    rows = part.rows
    text = STATEMENTS[part.name]
    is_few = len(rows) <= _FEW and part.name not in _ARRAYS
    arguments: list[bytes | None]
    if is_few:
        kinds = kinds_of(text)
        arguments = [
            None if value is None else kind.pack(value) for row in rows for kind, value in zip(kinds, row, strict=True)
        ]
    else:
        arguments = [column.array() for column in columns_of(text, rows)]
    if part.name == "events":
        arguments = [pack_long(base), pack_long(floor), *arguments]
    if part.now is not None:
        arguments.append(pack_instant(part.now))
    if part.must_touch is not None:
        arguments.append(pack_long(part.must_touch))
    return StatementCall(_statement(part.name, part.must_touch is not None, len(rows) if is_few else 0), arguments)


@cache
def _statement(name: str, is_gate: bool, rows: int) -> Statement:  # noqa: FBT001 - it is a part of the key of a cache
    """Return the statement of a part for this many rows, 0 for any number.

    A gate fails unless the part changes the expected number of rows.
    """
    text = STATEMENTS[name]
    if rows:
        text = _UNNEST.sub(partial(_plain, rows), text)
    if is_gate:
        text = f"with part as ({text}) select standfast.require((select count(*) from part) = ?::int8)"  # noqa: S608 - all text is the engine's
    return Statement(numbered(text))


_FEW = 4
"""Up to this many rows are sent as plain values, because the database needs time to unpack arrays: a tenth of a
single saga's commit."""

_UNNEST = re.compile(r"unnest\(((?: ?\?::\w+\[\],?)+) ?\)( with ordinality)?")


def _plain(rows: int, found: re.Match[str]) -> str:
    """Return the placeholders of these rows as plain values."""
    row = found[1].replace("[]", "")
    values = [f"({row}, {place}::int8)" if found[2] else f"({row})" for place in range(1, rows + 1)]
    return f"(values {', '.join(values)})"


_ARRAYS = {name for name in _Sql.__struct_fields__ if len(_UNNEST.findall(getattr(_sql, name))) != 1}
"""Parts that require arrays, however few rows they have."""
