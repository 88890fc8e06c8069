"""Writes commits. With one writer at a time every check is exact."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, WorkerId, id_text
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.facts import Gate
from standfast.store.ports.store import LostRaceError, Rewritten
from standfast.store.records.instances import (
    Address,
    Borrower,
    Claim,
    CommittedRows,
    EffectClaim,
    InboxClaim,
    InstanceChange,
    LetterClaim,
    Loaded,
    ObservationRecord,
    Receipt,
    ReceiptKey,
    StoredEffect,
    StoredMessage,
    StoredRecall,
    StoredTimer,
    TimerClaim,
)
from standfast.store.sql.conflicts import VoidClaimError
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.commit.history_rewrite import emptied, redact
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.handler_connection import (
    SQLiteHandlerConnection,
    SQLiteLentConnection,
)
from standfast.store.sqlite.connection.loading import load
from standfast.store.sqlite.connection.records import write_records
from standfast.store.sqlite.connection.session import text, text_or_none
from standfast.store.sqlite.facts.facts import SQLiteFacts, check_gates


class _Sql(msgspec.Struct, frozen=True):
    effect_is_held: str
    timer_is_set: str
    message_is_there: str
    letter_is_there: str
    receipt: str
    cause_is_known: str
    insert_instance: str
    update_instance: str
    touch_instance: str
    mark_instance: str
    insert_event: str
    insert_effect: str
    consume_effect: str
    withdraw_effect: str
    withdraw_letter: str
    recall_effect: str
    stop_effect: str
    owned_effects: str
    free_effect: str
    hold_effect: str
    set_timer: str
    hold_timer: str
    cancel_timer: str
    consume_timer: str
    insert_message: str
    insert_message_here: str
    consume_message: str
    consume_letter: str
    insert_receipt: str
    save_snapshot: str
    insert_observation: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "commits.sql")


class SQLiteUnit:
    """An open transaction. It holds the file's write lock, so no row locks are needed."""

    def __init__(self, connection: sqlite3.Connection, database: Database) -> None:
        self.connection = connection
        self._database = database
        self._loan: SQLiteHandlerConnection | None = None

    def lend(
        self,
        limit: float | None = None,
        borrower: Borrower | None = None,  # noqa: ARG002 - a file has no roles
        claim: Claim | None = None,
    ) -> AbstractContextManager[SQLiteLentConnection]:
        """Lend the connection to a handler for a limited time, because no other code can write meanwhile."""
        if claim is not None and not self._holds(claim):
            raise VoidClaimError
        self._loan = SQLiteHandlerConnection(self.connection)
        return self._database.lending(self._loan, limit)

    def take_back(self) -> None:
        """Revoke the handler's connection, and give the file a new writer."""
        if self._loan is not None:
            self._database.call_back(self._loan)

    def load(
        self,
        addresses: Sequence[Address],
        *,
        whole: bool = False,
        waits: bool = True,  # noqa: ARG002 - no other connection writes meanwhile
        known: int = 0,
    ) -> list[Loaded | None]:
        """Return the instances. They stay unchanged until the transaction ends."""
        return [load(self.connection, address, whole=whole, known=known) for address in addresses]

    def void(self, claims: Sequence[Claim]) -> set[Claim]:
        """Return the void claims among these."""
        return {claim for claim in claims if not self._holds(claim)}

    def receipts(self, keys: Sequence[ReceiptKey]) -> dict[ReceiptKey, Receipt]:
        """Return the existing receipts."""
        found = {key: self.connection.execute(_sql.receipt, key).fetchone() for key in keys}
        return {
            key: Receipt(key, rows.instance_or_none(row[0]), row[1], row[2])
            for key, row in found.items()
            if row is not None
        }

    def causes(self, instances: Sequence[InstanceId], causes: Sequence[str]) -> set[str]:
        """Return those causes that the histories contain."""
        look = self.connection.execute
        return {
            cause
            for instance, cause in zip(instances, causes, strict=True)
            if look(_sql.cause_is_known, (id_text(instance), cause)).fetchone()
        }

    def looking(self) -> SQLiteFacts:
        """Open the facts. They stay unchanged until the transaction ends."""
        return SQLiteFacts(self.connection)

    def write(self, changes: Sequence[InstanceChange], now: datetime, *, gates: Sequence[Gate] = ()) -> None:
        """Write everything."""
        check_gates(self.connection, gates)
        _write(self.connection, changes, text(now))

    def rewrite(
        self, change: InstanceChange, kinds: Sequence[RowKind[Record]], told: Sequence[CommittedRows], now: datetime
    ) -> None:
        """Replace the rows of these kinds by those of the history."""
        with emptied(self.connection, change.header, kinds) as name:
            for at, records in told:
                part = InstanceChange(header=change.header, expected=change.expected, records=records)
                write_records(self.connection, [(name, part)], text(at))
            self.write([change], now)

    def redact(self, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]) -> None:
        """Replace the content of events, and the texts of notifications."""
        redact(self.connection, instance, events, retold)

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Store messages in the inbox."""
        return accept(self.connection, messages, now)

    def consume(self, claims: Sequence[Claim]) -> None:
        """Consume claims without a change."""
        if _consume(self.connection, claims) != len(claims):
            raise LostRaceError("a claim is void")

    def remember(self, receipts: Sequence[Receipt], now: datetime) -> None:
        """Store the receipts of commands that changed nothing."""
        self.connection.executemany(_sql.insert_receipt, [_receipt(each, text(now)) for each in receipts])

    def _holds(self, claim: Claim) -> bool:
        query, values = _proof(claim)
        return self.connection.execute(query, values).fetchone() is not None


def _proof(claim: Claim) -> tuple[str, tuple[object, ...]]:
    match claim:
        case EffectClaim():
            return _sql.effect_is_held, _effect_key(claim)
        case TimerClaim():
            return _sql.timer_is_set, (id_text(claim.instance), claim.key, claim.number)
        case InboxClaim():
            return _sql.message_is_there, (claim.id,)
        case LetterClaim():
            return _sql.letter_is_there, (claim.id,)


class SQLiteWriter:
    """The file as a committer uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, addresses: Sequence[Address], *, whole: bool = False) -> list[Loaded | None]:
        """Return the instances as of the last commit."""
        with self._database.reading() as connection:
            return [load(connection, address, whole=whole) for address in addresses]

    def write(
        self,
        changes: Sequence[InstanceChange],
        *,
        finished: Sequence[Claim] = (),
        observations: Sequence[ObservationRecord] = (),
        gates: Sequence[Gate] = (),
        now: datetime,
    ) -> None:
        """Write everything in one transaction."""
        with self._database.writing() as connection:
            if gates:
                check_gates(connection, gates)
            if changes:
                _write(connection, changes, text(now))
            _consume(connection, finished)
            if observations:
                connection.executemany(_sql.insert_observation, map(_observation, observations))

    @contextmanager
    def looking(self) -> Iterator[SQLiteFacts]:
        """Open the facts as of the last commit."""
        with self._database.reading() as connection:
            yield SQLiteFacts(connection)

    @contextmanager
    def unit(self) -> Iterator[SQLiteUnit]:
        """Open a transaction that holds the write lock."""
        with self._database.writing() as connection:
            yield SQLiteUnit(connection, self._database)

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Store messages in the inbox."""
        with self._database.writing() as connection:
            return accept(connection, messages, now)

    def disown(self, worker: WorkerId, held: Sequence[EffectClaim]) -> int:
        """Release the effects that a worker owns without knowing it."""
        known = {(id_text(claim.instance), claim.number, claim.fence) for claim in held}
        with self._database.writing() as connection:
            owned = connection.execute(_sql.owned_effects, (id_text(worker),)).fetchall()
            unknown = [key for key in owned if key not in known]
            connection.executemany(_sql.free_effect, unknown)
            return len(unknown)


def accept(connection: sqlite3.Connection, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
    """Store messages in the inbox within the caller's open transaction, and return their ids."""
    cursor = connection.cursor()
    ids = []
    for each in messages:
        cursor.execute(_sql.insert_message, _message(each, text(now)))
        ids.append(cursor.lastrowid or 0)
    return ids


def accept_within(
    connection: sqlite3.Connection, message: StoredMessage, now: datetime, *, identity: str
) -> int | None:
    """Store a message in the inbox through a caller's connection.

    Return its id, or None if the connection is to another database.
    """
    cursor = connection.cursor()
    cursor.execute(_sql.insert_message_here, (*_message(message, text(now)), identity))
    return cursor.lastrowid if cursor.rowcount == 1 else None


def _write(connection: sqlite3.Connection, changes: Sequence[InstanceChange], now: str) -> None:
    named = [(id_text(change.header.id), change) for change in changes]
    _write_instances(connection, named)
    claims = [claim for change in changes for claim in change.consumed]
    if _consume(connection, claims) != len(claims):
        raise LostRaceError("a claim is void")
    has_more = any(map(_has_more, changes))
    if has_more:
        _remove(connection, named, now)
    many = connection.executemany
    many(_sql.insert_event, [_event(name, event, now) for name, each in named for event in each.events])
    effects = [_effect(name, effect, now) for name, each in named for effect in each.effects]
    if effects:
        many(_sql.insert_effect, effects)
    if has_more:
        _add(connection, named, now)
    write_records(connection, named, now)


def _has_more(change: InstanceChange) -> bool:
    """Return whether a change uses rare features. A simple commit skips their statements."""
    return bool(
        change.withdrawn
        or change.recalls
        or change.cancelled
        or change.timers
        or change.held_effects
        or change.messages
        or change.receipts
        or change.snapshot
    )


def _remove(connection: sqlite3.Connection, named: Sequence[tuple[str, InstanceChange]], now: str) -> None:
    """Delete before inserting, because a timer may replace another."""
    many = connection.executemany
    withdrawn = [(name, number) for name, each in named for number in each.withdrawn]
    if withdrawn:
        many(_sql.withdraw_effect, withdrawn)
        many(_sql.withdraw_letter, withdrawn)
    for name, each in named:
        if each.recalls:
            _recall(connection, name, each.recalls, now)
    dropped = [(name, key) for name, each in named for key in each.cancelled]
    if dropped and many(_sql.cancel_timer, dropped).rowcount != len(dropped):
        raise LostRaceError("a timer is gone")


def _add(connection: sqlite3.Connection, named: Sequence[tuple[str, InstanceChange]], now: str) -> None:
    many = connection.executemany
    many(_sql.set_timer, [_timer(name, timer) for name, each in named for timer in each.timers])
    for name, each in named:
        if each.held_effects or each.held_timers:
            _hold(connection, name, each, now)
    many(_sql.insert_message, [_message(message, now) for _, each in named for message in each.messages])
    many(_sql.insert_receipt, [_receipt(receipt, now) for _, each in named for receipt in each.receipts])
    many(_sql.save_snapshot, [_snapshot(name, each) for name, each in named if each.snapshot])


def _hold(connection: sqlite3.Connection, name: str, change: InstanceChange, now: str) -> None:
    """Yield the parts that mark new work under a pause as held."""
    connection.executemany(_sql.hold_effect, [(now, name, number) for number in change.held_effects])
    frozen = [(now, now if is_frozen else None, name, key) for key, is_frozen in change.held_timers]
    connection.executemany(_sql.hold_timer, frozen)


def _recall(connection: sqlite3.Connection, name: str, recalls: Sequence[StoredRecall], now: str) -> None:
    run = connection.execute
    for each in recalls:
        key = (name, each.number)
        if run(_sql.recall_effect, key).rowcount == 1 or run(_sql.withdraw_letter, key).rowcount == 1:
            run(_sql.insert_message, _message(each.message, now))
        elif each.stop:
            run(_sql.stop_effect, key)


def _write_instances(connection: sqlite3.Connection, named: Sequence[tuple[str, InstanceChange]]) -> None:
    born = [_birth(name, each) for name, each in named if each.expected == 0]
    moved = [_move(name, each) for name, each in named if each.expected != 0 and not each.keeps_status]
    touched = [_touch(name, each) for name, each in named if each.expected != 0 and each.keeps_status]
    if born:
        connection.executemany(_sql.insert_instance, born)
    for statement, values in ((_sql.update_instance, moved), (_sql.touch_instance, touched)):
        if values and connection.executemany(statement, values).rowcount != len(values):
            raise LostRaceError("an instance has a newer version")
    marked = [_mark(name, each) for name, each in named if each.moves_marks]
    if marked:
        connection.executemany(_sql.mark_instance, marked)


def _consume(connection: sqlite3.Connection, claims: Sequence[Claim]) -> int:
    """Delete the claimed rows, and return the number of valid claims."""
    if not claims:
        return 0
    effects = [_effect_key(claim) for claim in claims if isinstance(claim, EffectClaim)]
    done = connection.executemany(_sql.consume_effect, effects).rowcount if effects else 0
    if len(effects) == len(claims):
        return done  # The usual case.
    timers = [(id_text(claim.instance), claim.key, claim.number) for claim in claims if isinstance(claim, TimerClaim)]
    messages = [(claim.id,) for claim in claims if isinstance(claim, InboxClaim)]
    letters = [(claim.id,) for claim in claims if isinstance(claim, LetterClaim)]
    ways = (
        (_sql.consume_timer, timers),
        (_sql.consume_message, messages),
        (_sql.consume_letter, letters),
    )
    return done + sum(connection.executemany(statement, keys).rowcount for statement, keys in ways if keys)


def _birth(name: str, change: InstanceChange) -> tuple[object, ...]:
    head = change.header
    return (
        name, head.tenant, head.definition, head.definition_version, head.kind, head.key or None, head.status, head.reason,
        head.begun, head.version, head.issued, head.commits, None if head.parent is None else id_text(head.parent), text(head.created_at), text(head.updated_at),
        text_or_none(head.ended_at), head.partition or None, head.started_by, text_or_none(head.paused_at),
        text_or_none(head.deadline_at), head.search or None, head.next_step or None,
    )  # fmt: skip


def _move(name: str, change: InstanceChange) -> tuple[object, ...]:
    head = change.header
    return (
        head.status, head.reason, head.begun, head.version, head.issued, head.commits, text(head.updated_at),
        text_or_none(head.ended_at), name, head.tenant, change.expected,
    )  # fmt: skip


def _touch(name: str, change: InstanceChange) -> tuple[object, ...]:
    head = change.header
    return (head.version, head.issued, head.commits, text(head.updated_at), name, head.tenant, change.expected)


def _mark(name: str, change: InstanceChange) -> tuple[object, ...]:
    head = change.header
    marks = (text_or_none(head.paused_at), text_or_none(head.deadline_at), head.search or None, head.next_step or None)
    return (*marks, name)


def _event(name: str, event: StoredEvent, now: str) -> tuple[object, ...]:
    return (
        name, event.sequence, event.tenant, event.type, event.version, event.data, now, event.actor, event.comment, event.cause,
        event.on_behalf_of or None, event.trace or None,
    )  # fmt: skip


def _effect(name: str, each: StoredEffect, now: str) -> tuple[object, ...]:
    return (
        name, each.number, each.tenant, each.definition, each.language, each.handler, each.type, each.version, each.data,
        each.options, each.priority, each.rank, text_or_none(each.parked_until),
        None if each.owner is None else id_text(each.owner), each.fence, each.attempts, each.error, now,
        None if each.owner is None else now, each.context,
    )  # fmt: skip


def _timer(name: str, timer: StoredTimer) -> tuple[object, ...]:
    return (
        name, timer.key, timer.number, timer.tenant, timer.definition, timer.language, timer.type, timer.version, timer.data,
        text(timer.due_at), timer.context,
    )  # fmt: skip


def _message(each: StoredMessage, now: str) -> tuple[object, ...]:
    where = each.address
    return (
        where.tenant, each.target, where.definition, where.key, None if where.instance is None else id_text(where.instance),
        each.language, each.type, each.version, each.data, each.command_id, each.actor, each.comment, each.definition_version,
        None if each.parent is None else id_text(each.parent), each.context, where.partition, now,
    )  # fmt: skip


def _receipt(receipt: Receipt, now: str) -> tuple[object, ...]:
    instance = None if receipt.instance is None else id_text(receipt.instance)
    return (*receipt.key, instance, receipt.version, receipt.digest, now)


def _snapshot(name: str, change: InstanceChange) -> tuple[object, ...]:
    kept = change.snapshot
    assert kept is not None
    return (name, change.header.tenant, kept.version, kept.state_version, kept.data, kept.fingerprint)


def _effect_key(claim: EffectClaim) -> tuple[object, ...]:
    return (id_text(claim.instance), claim.number, id_text(claim.worker), claim.fence)


def _observation(each: ObservationRecord) -> tuple[object, ...]:
    return (
        each.tenant, id_text(each.instance), each.definition, each.input, each.from_status, each.to_status, each.skipped,
        text(each.at),
    )  # fmt: skip
