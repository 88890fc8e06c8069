"""Loading instances and writing commits. A commit is made of the parts that it needs, which are sent together.

If one of them loses a race (the version gate, a unique key, a void claim) the database undoes all of it, and LostRaceError says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cache, partial
from itertools import chain
from typing import Any

import msgspec
import psycopg
from psycopg.rows import tuple_row

from holdfast.kernel.ids import InstanceId, WorkerId
from holdfast.kernel.rows import Record, RowKind
from holdfast.store.postgres.commit_parts import (
    Part,
    consumed_parts,
    finished_parts,
    message_row,
    observations_part,
    parts_of,
    receipts_part,
)
from holdfast.store.postgres.connections import Connection, Line, Loan, lent
from holdfast.store.postgres.loading import (
    causes_known,
    disown,
    load,
    lock,
    newest_position,
    receipts_of,
    void_claims,
)
from holdfast.store.postgres.packing import columns_of, kinds_of, pack_instant, pack_long
from holdfast.store.postgres.pipeline import Call, Statement, forget_prepared, send
from holdfast.store.postgres.records import STATEMENTS, letter_row, record_parts
from holdfast.store.postgres.rewriting import empty, redact
from holdfast.store.rewriting import Rewritten
from holdfast.store.shapes import (
    Address,
    Borrower,
    Change,
    Claim,
    DeadLetter,
    EffectClaim,
    Loaded,
    Observation,
    Receipt,
    ReceiptKey,
    StoredMessage,
    Told,
)
from holdfast.store.statements import numbered, read_statements


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


_sql = read_statements(_Sql, __package__, "commits.sql")
STATEMENTS.update(msgspec.structs.asdict(_sql))


class PostgresUnit:
    """One open transaction."""

    def __init__(self, connection: Connection, base: int, *, floor: int = 0) -> None:
        self.connection = connection
        self._base = base
        self._floor = floor
        """The position of the newest event that the transaction has written before."""
        self.written: list[InstanceId] = []
        """The instances whose events were written."""
        self._loan: Loan | None = None
        self._newest: dict[InstanceId, int] = {}
        """The positions of the newest events of instances that it has locked and not written to."""

    def lend(
        self,
        limit: float | None = None,  # noqa: ARG002 - it keeps nobody waiting
        borrower: Borrower | None = None,
    ) -> AbstractContextManager[Connection]:
        """The connection, for a handler."""
        self._loan = Loan(self.connection)
        return lent(self._loan, borrower)

    def take_back(self) -> None:
        """Cut the connection that the handler has."""
        if self._loan is not None:
            self._loan.call_back()

    def load(self, addresses: Sequence[Address], *, whole: bool = False, waits: bool = True) -> list[Loaded | None]:
        """The instances, locked in the order of their ids."""
        lock(self.connection, addresses, waits=waits)
        found = load(self.connection, addresses, whole=whole)
        self._newest |= {each.header.id: each.events[-1].position for each in found if each is not None and each.events}
        return found

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
        unknown = [change for change in changes if change.header.id not in self._newest]
        known = [self._newest.pop(change.header.id, 0) for change in changes]
        floor = max(self._floor, newest_position(self.connection, unknown), *known)
        self.written += [change.header.id for change in changes]
        run(self.connection, chain(parts_of(changes, now), record_parts(changes, now)), self._base, floor=floor)

    def rewrite(self, change: Change, kinds: Sequence[RowKind[Record]], told: Sequence[Told], now: datetime) -> None:
        """Put the rows that a history tells in the place of all that there are of these kinds."""
        empty(self.connection, change.header, kinds)
        for at, records in told:
            part = Change(header=change.header, expected=change.expected, records=records)
            run(self.connection, record_parts([part], at), self._base)
        self.write([change], now)

    def redact(self, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]) -> None:
        """Put other content into events, and other words into what people were told."""
        redact(self.connection, instance, events, retold)

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Put messages into the inbox."""
        return accept(self.connection, messages, now)

    def consume(self, claims: Sequence[Claim]) -> None:
        """Use up claims without a change."""
        run(self.connection, consumed_parts(claims), self._base)

    def remember(self, receipts: Sequence[Receipt], now: datetime) -> None:
        """Keep the receipts of commands that changed nothing."""
        run(self.connection, [receipts_part(receipts, now)], self._base)


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
        """One round trip for everything."""
        if not changes and not finished and not observations:
            return
        parts = chain(
            parts_of(changes, now),
            record_parts(changes, now),
            [observations_part(observations)] if observations else (),
            finished_parts(finished),
        )
        with self._line.use() as connection:
            run(connection, parts, self._base)

    @contextmanager
    def unit(self) -> Iterator[PostgresUnit]:
        """A transaction that locks."""
        with self._line.transaction() as connection:
            try:
                yield PostgresUnit(connection, self._base)
            except BaseException:
                forget_prepared(connection)
                raise

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
    values = [*columns_of(_sql.messages, [message_row(each) for each in messages]), now]
    rows = connection.execute(numbered(_sql.messages), values, binary=True).fetchall()
    return [row[0] for row in rows]  # type: ignore[misc]


def accept_within(
    connection: psycopg.Connection[Any], message: StoredMessage, now: datetime, *, identity: str
) -> int | None:
    """Put a message into the inbox with a connection that is not ours; its id, or None if that is to another database."""
    with psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
        row = cursor.execute(numbered(_sql.message_here), [*message_row(message), now, identity]).fetchone()
    return int(row[0]) if row else None


def bury(connection: Connection, letter: DeadLetter) -> None:
    """Write a dead letter."""
    connection.execute(numbered(_sql.raised_letters), columns_of(_sql.raised_letters, [letter_row(letter)]))


def run(connection: Connection, parts: Iterable[Part], base: int, *, floor: int = 0) -> None:
    """Carry out the parts in one round trip; all of them, or none and LostRaceError."""
    send(connection, (_call(part, base, floor) for part in parts))


def _call(part: Part, base: int, floor: int) -> Call:
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
    return Call(_statement(part.name, part.must_touch is not None, len(rows) if is_few else 0), arguments)


@cache
def _statement(name: str, is_gate: bool, rows: int) -> Statement:  # noqa: FBT001 - it is a part of the key of a cache
    """The statement of a part for this many rows, 0 for any number. A gate fails unless the part touches a given number of rows."""
    text = STATEMENTS[name]
    if rows:
        text = _UNNEST.sub(partial(_plain, rows), text)
    if is_gate:
        text = f"with part as ({text}) select holdfast.require((select count(*) from part) = ?::int8)"  # noqa: S608 - our own
    return Statement(numbered(text))


_FEW = 4
"""Up to so many rows are sent as plain values, because arrays cost the database time to take apart: a tenth of a lone saga's."""

_UNNEST = re.compile(r"unnest\(((?: ?\?::\w+\[\],?)+) ?\)( with ordinality)?")


def _plain(rows: int, found: re.Match[str]) -> str:
    """The same rows from plain values."""
    row = found[1].replace("[]", "")
    values = [f"({row}, {place}::int8)" if found[2] else f"({row})" for place in range(1, rows + 1)]
    return f"(values {', '.join(values)})"


_ARRAYS = {name for name in _Sql.__struct_fields__ if len(_UNNEST.findall(getattr(_sql, name))) != 1}
"""Parts that want arrays, however few rows there are."""
