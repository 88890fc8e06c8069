"""Loading instances and writing commits. A commit is one statement, put together from the parts that it needs.

If the statement loses a race (the version gate, a unique key, a void claim) the database undoes all of it, and LostRaceError says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import psycopg
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8

from holdfast.kernel.ids import InstanceId, WorkerId
from holdfast.store.postgres.lines import Connection, Line, lent
from holdfast.store.postgres.loading import (
    causes_known,
    disown,
    load,
    lock,
    newest_position,
    receipts_of,
    void_claims,
)
from holdfast.store.postgres.parts import (
    Part,
    consumed_parts,
    finished_parts,
    message_columns,
    observations_part,
    parts_of,
)
from holdfast.store.postgres.records import letter_columns, record_parts
from holdfast.store.shapes import (
    Address,
    Change,
    Claim,
    DeadLetter,
    EffectClaim,
    Loaded,
    Observation,
    Receipt,
    ReceiptKey,
    StoredMessage,
)
from holdfast.store.statements import numbered, read_statements


class _Sql(msgspec.Struct, frozen=True):
    tx: str
    born: str
    moved: str
    consumed_effects: str
    consumed_timers: str
    consumed_messages: str
    finished_effects: str
    finished_timers: str
    finished_messages: str
    withdrawn: str
    recalled: str
    recall_messages: str
    stopped: str
    cancelled: str
    events: str
    effects: str
    timers: str
    messages: str
    receipts: str
    snapshots: str
    observations: str
    opened_steps: str
    moved_steps: str
    opened_tasks: str
    closed_tasks: str
    raised_letters: str
    settled_letters: str
    opened_subscriptions: str
    closed_subscriptions: str


_sql = read_statements(_Sql, __package__, "commits.sql")


class PostgresUnit:
    """One open transaction."""

    def __init__(self, connection: Connection, base: int) -> None:
        self.connection = connection
        self._base = base

    def lend(self) -> AbstractContextManager[Connection]:
        """The connection, for a handler."""
        return lent(self.connection)

    def load(self, addresses: Sequence[Address], *, whole: bool = False) -> list[Loaded | None]:
        """The instances, locked in the order of their ids."""
        lock(self.connection, addresses)
        return load(self.connection, addresses, whole=whole)

    def void(self, claims: Sequence[Claim]) -> set[Claim]:
        """Which of the claims are no longer good."""
        return void_claims(self.connection, claims)

    def receipts(self, keys: Sequence[ReceiptKey]) -> dict[ReceiptKey, Receipt]:
        """The receipts that exist."""
        return receipts_of(self.connection, keys)

    def causes(self, instances: Sequence[InstanceId], causes: Sequence[str]) -> set[str]:
        """Which of the causes the histories already name."""
        return causes_known(self.connection, instances, causes)

    def write(self, changes: Sequence[Change], now: datetime) -> None:
        """Write everything."""
        # Rows may have been locked before the instances were, and the transaction's number is as old as its first lock.
        floor = newest_position(self.connection, changes)
        run(self.connection, [*parts_of(changes, now), *record_parts(changes, now)], self._base, floor=floor)

    def consume(self, claims: Sequence[Claim]) -> None:
        """Use up claims without a change."""
        run(self.connection, consumed_parts(claims), self._base)


class PostgresWriter:
    """The committer's side, on a line of its own."""

    def __init__(self, line: Line, base: int) -> None:
        self._line = line
        self._base = base

    def load(self, addresses: Sequence[Address], *, whole: bool = False) -> list[Loaded | None]:
        """The instances as of now, without a lock."""
        with self._line.use() as connection:
            return load(connection, addresses, whole=whole)

    def write(
        self,
        changes: Sequence[Change],
        *,
        finished: Sequence[Claim] = (),
        observations: Sequence[Observation] = (),
        now: datetime,
    ) -> None:
        """One statement for everything."""
        parts = [*parts_of(changes, now), *record_parts(changes, now)]
        if observations:
            parts.append(observations_part(observations))
        if finished and any(change.recalls for change in changes):
            self._write_in_turn(parts, finished_parts(finished))
            return
        if finished:
            parts += finished_parts(finished)
        if parts:
            with self._line.use() as connection:
                run(connection, parts, self._base)

    def _write_in_turn(self, *statements: Sequence[Part]) -> None:
        """Two parts of one statement that touch the same row undo one another: an effect may be recalled and finished."""
        with self._line.transaction() as connection:
            for parts in statements:
                run(connection, parts, self._base)

    @contextmanager
    def unit(self) -> Iterator[PostgresUnit]:
        """A transaction that locks."""
        with self._line.transaction() as connection:
            yield PostgresUnit(connection, self._base)

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Put messages into the inbox."""
        with self._line.use() as connection:
            return accept(connection, messages, now)

    def disown(self, worker: WorkerId, held: Sequence[EffectClaim]) -> int:
        """Free the effects that a worker owns without knowing it."""
        with self._line.use() as connection:
            return disown(connection, worker, held)


def accept(connection: Connection, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
    """Put messages into the inbox, in the transaction of the connection; their ids."""
    rows = connection.execute(numbered(_sql.messages), message_columns(messages, now), binary=True).fetchall()
    return [row[0] for row in rows]  # type: ignore[misc]


def accept_within(connection: psycopg.Connection[Any], message: StoredMessage, now: datetime) -> int:
    """Put a message into the inbox with a connection that is not ours, and knows nothing of packed columns."""
    where = message.address
    values = [
        [where.tenant], [message.target], [where.definition], [where.key], [where.instance], [message.type], [message.version],
        [message.data], [message.command_id], [message.actor], [message.comment], [message.definition_version], [message.parent],
        now,
    ]  # fmt: skip
    with psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
        row = cursor.execute(numbered(_sql.messages), values).fetchone()
    return int(row[0]) if row else 0


def bury(connection: Connection, letter: DeadLetter) -> None:
    """Write a dead letter."""
    connection.execute(numbered(_sql.raised_letters), letter_columns([letter]))


def run(connection: Connection, parts: Sequence[Part], base: int, *, floor: int = 0) -> None:
    """Carry out the parts as one statement; all of them, or none and LostRaceError."""
    if not parts:
        return
    arguments: list[object] = []
    if any(part.name == "events" for part in parts):
        arguments += [Int8(base), Int8(floor)]
    for part in parts:
        arguments += part.arguments
    arguments += [Int8(part.must_touch) for part in parts if part.must_touch is not None]
    connection.execute(_compose(tuple((part.name, part.must_touch is not None) for part in parts)), arguments)


@cache
def _compose(shape: tuple[tuple[str, bool], ...]) -> str:
    """The statement for parts of these names; those that are marked must touch a given number of rows."""
    clauses = [f"tx as materialized ({_sql.tx})"] if any(name == "events" for name, _ in shape) else []
    clauses += [f"{name}_part as ({getattr(_sql, name)})" for name, _ in shape]
    proofs = [f"(select count(*) from {name}_part) = ?::int8" for name, is_gate in shape if is_gate]  # noqa: S608 - our own names
    last = f"select holdfast.require({' and '.join(proofs)})" if proofs else "select 1"
    return numbered(f"with {', '.join(clauses)} {last}")
