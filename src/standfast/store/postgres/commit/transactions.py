"""Open transactions. Statements are combined into round trips: BEGIN with the first query, COMMIT with the writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from itertools import chain
from typing import cast

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.facts import Gate
from standfast.store.ports.store import Rewritten
from standfast.store.postgres.commit.commit_statements import accept, calls_of
from standfast.store.postgres.commit.history_rewrite import empty, redact
from standfast.store.postgres.connection import loading
from standfast.store.postgres.connection.commit_parts import (
    TablePart,
    consumed_parts,
    gates_part,
    parts_of,
    receipts_part,
)
from standfast.store.postgres.connection.connection import (
    RETURN,
    Connection,
    HeldConnection,
    PostgresHandlerConnection,
    check_marker,
    lent,
)
from standfast.store.postgres.connection.pipeline import Statement, StatementCall, ask, rows_of, send
from standfast.store.postgres.connection.prepared_statements import drop_prepared
from standfast.store.postgres.connection.records import record_parts
from standfast.store.postgres.connection.session import Row
from standfast.store.postgres.facts.facts import PostgresFacts
from standfast.store.records.instances import (
    Address,
    Borrower,
    Claim,
    CommittedRows,
    InstanceChange,
    Loaded,
    Receipt,
    ReceiptKey,
    StoredMessage,
)
from standfast.store.sql.conflicts import VoidClaimError
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    begin: str
    commit: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "units.sql")
_BEGIN, _COMMIT = StatementCall(Statement(_sql.begin), []), StatementCall(Statement(_sql.commit), [])
_RETURN = StatementCall(Statement(RETURN), [])


class _Opening(psycopg.Transaction):
    """A transaction whose begin and end are sent with other statements.

    The driver tracks it and refuses to end it otherwise.
    """

    def _get_enter_commands(self) -> Iterator[bytes]:
        return iter(())

    def _get_commit_commands(self) -> Iterator[bytes]:
        return iter(()) if self._is_over else super()._get_commit_commands()

    def _get_rollback_commands(self) -> Iterator[bytes]:
        return iter(()) if self._is_over else super()._get_rollback_commands()

    @property
    def _is_over(self) -> bool:
        return self.pgconn.transaction_status == TransactionStatus.IDLE


@contextmanager
def opened(connection: Connection, base: int) -> Iterator[PostgresUnit]:
    """Open a transaction, committed at the end of the block and rolled back when it raises."""
    if connection.info.transaction_status != TransactionStatus.IDLE:  # It is nested in another one.
        with connection.transaction():
            yield PostgresUnit(connection, base)
        return
    try:
        with _Opening(connection):
            unit = PostgresUnit(connection, base, is_begun=False)
            yield unit
            unit.end()
    except BaseException:
        drop_prepared(connection)
        raise


class PostgresUnit:
    """An open transaction. It may begin with its first statement, and may delay its writes until the next query."""

    def __init__(self, connection: Connection, base: int, *, floor: int = 0, is_begun: bool = True) -> None:
        self._connection = connection
        self._base = base
        self._floor = floor
        """Position of the newest event that the transaction has written before."""
        self.written: list[InstanceId] = []
        """The instances whose events were written."""
        self._loan: PostgresHandlerConnection | None = None
        self._newest: dict[InstanceId, int] = {}
        """Positions of the newest events of instances that are locked and not written."""
        self._is_begun = is_begun
        self._may_wait = not is_begun
        """Whether `end` will be called, so that writes may be sent with the commit."""
        self._waiting: list[Iterable[StatementCall]] = []
        """Calls to send before any other."""
        self._marker = ""
        """Marker of the lent transaction, until it is verified that it is still the same one."""

    @property
    def connection(self) -> Connection:
        """The connection inside the transaction, with all delayed statements sent."""
        if not self._is_begun or self._waiting or self._marker:
            self._ask()
        return self._connection

    def end(self) -> None:
        """Commit."""
        if self._marker:
            self._ask()  # Before the commit, verifies that this is still the transaction that was lent.
        if self._is_begun or self._waiting:
            send(self._connection, chain(self._first(), *self._waiting, [_COMMIT]), at_once=False)

    @contextmanager
    def lend(
        self,
        limit: float | None = None,  # noqa: ARG002 - a lent connection blocks no other
        borrower: Borrower | None = None,
        claim: Claim | None = None,
    ) -> Iterator[Connection]:
        """Lend the connection to a handler."""
        self._loan = PostgresHandlerConnection(self._connection)
        owe = self._owe if self._may_wait else None
        with lent(self._loan, borrower, enter=partial(self._enter, claim), owe=owe) as connection:
            yield connection

    def _enter(self, claim: Claim | None, text: str, values: list[str]) -> None:
        """Begin a loan, unless its claim is void."""
        setting = StatementCall(_lending(text), [value.encode() for value in values])
        question = None if claim is None else loading.holding(claim)
        if claim is None or question is None:
            if claim is not None and self.void([claim]):
                raise VoidClaimError
            self._ask(setting)
            return
        found, _ = self._ask(question, setting)
        if not found:
            raise VoidClaimError

    def _owe(self, marker: str) -> None:
        self._marker = marker

    def take_back(self) -> None:
        """Cut the handler's connection."""
        if self._loan is not None:
            self._loan.call_back()

    def load(
        self, addresses: Sequence[Address], *, whole: bool = False, waits: bool = True, known: int = 0
    ) -> list[Loaded | None]:
        """Return the instances, locked in the order of their ids."""
        calls = loading.locking(addresses, waits=waits)
        is_known = known > 0 and len(addresses) == 1 and addresses[0].instance is not None
        if is_known:
            calls.append(loading.newest(addresses[0].instance, known))
        _, headers, *newest = self._ask(*calls)
        if is_known and headers and headers[0][9] == known:
            self._newest[headers[0][0]] = newest[0][0][0]
            return loading.assembled(addresses, headers, {}, whole=True)
        events = loading.events_behind(self._connection, headers, whole=whole)
        self._newest |= {each[-1].instance: each[-1].position for each in events.values()}
        return loading.assembled(addresses, headers, events, whole=whole)

    def void(self, claims: Sequence[Claim]) -> set[Claim]:
        """Return the void claims among these."""
        return loading.void_claims(self.connection, claims)

    def receipts(self, keys: Sequence[ReceiptKey]) -> dict[ReceiptKey, Receipt]:
        """Return the existing receipts."""
        return loading.receipts_of(self.connection, keys)

    def causes(self, instances: Sequence[InstanceId], causes: Sequence[str]) -> set[str]:
        """Return those causes that the histories contain."""
        return loading.causes_known(self.connection, instances, causes)

    def looking(self) -> PostgresFacts:
        """Open the facts as the transaction sees them."""
        return PostgresFacts(_UnitLine(self))

    def write(self, changes: Sequence[InstanceChange], now: datetime, *, gates: Sequence[Gate] = ()) -> None:
        """Write everything."""
        # Other rows may have been locked before the instances, and the transaction's number is as old as its first
        # lock.
        unknown = [change for change in changes if change.header.id not in self._newest and change.expected]
        known = [self._newest.pop(change.header.id, 0) for change in changes]
        older = loading.newest_position(self.connection, unknown) if unknown else 0
        self.written += [change.header.id for change in changes]
        parts = chain(parts_of(changes, now), record_parts(changes, now), [gates_part(gates)] if gates else ())
        self._run(parts, floor=max(self._floor, older, *known))

    def rewrite(
        self, change: InstanceChange, kinds: Sequence[RowKind[Record]], told: Sequence[CommittedRows], now: datetime
    ) -> None:
        """Replace the rows of these kinds by those of the history."""
        empty(self.connection, change.header, kinds)
        for at, records in told:
            part = InstanceChange(header=change.header, expected=change.expected, records=records)
            self._run(record_parts([part], at))
        self.write([change], now)

    def redact(self, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]) -> None:
        """Replace the content of events, and the texts of notifications."""
        redact(self.connection, instance, events, retold)

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Store messages in the inbox."""
        return accept(self.connection, messages, now)

    def consume(self, claims: Sequence[Claim]) -> None:
        """Consume claims without a change."""
        self._run(consumed_parts(claims))

    def remember(self, receipts: Sequence[Receipt], now: datetime) -> None:
        """Store the receipts of commands that changed nothing."""
        self._run([receipts_part(receipts, now)])

    def _run(self, parts: Iterable[TablePart], *, floor: int = 0) -> None:
        """Execute the parts, delayed until the commit if no query comes first."""
        calls = calls_of(parts, self._base, floor=floor)
        if self._may_wait:
            self._waiting.append(calls)
        else:
            send(self._connection, calls)

    def _ask(self, *calls: StatementCall) -> Sequence[list[Row]]:
        """Send the delayed calls and these in one round trip, and return the rows of these."""
        first, marker, waiting = self._first(), self._marker, self._waiting
        if marker:
            first.append(_RETURN)
        self._waiting = []
        said = ask(self._connection, chain(first, *waiting, calls))
        self._is_begun = True
        if marker:
            self._marker = ""
            check_marker(rows_of(self._connection, said[len(first) - 1])[0], marker)
        answers = said[len(said) - len(calls) :]
        return [cast("list[Row]", rows_of(self._connection, each)) for each in answers]

    def _first(self) -> list[StatementCall]:
        """Return the calls that turn the following statements into a transaction."""
        return [] if self._is_begun else [_BEGIN]


class _UnitLine(HeldConnection):
    """The connection of a unit. Its first use begins the transaction."""

    def __init__(self, unit: PostgresUnit) -> None:
        self.url = ""
        self._unit = unit

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Return the connection inside the transaction."""
        yield self._unit.connection


@cache
def _lending(text: str) -> Statement:
    return Statement(text)
