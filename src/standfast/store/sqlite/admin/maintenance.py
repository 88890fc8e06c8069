"""Maintenance of the file: dead letters, retention and maintenance mode."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from standfast.kernel.ids import InstanceId, make_uuid7
from standfast.kernel.rows import kinds
from standfast.store.ports.maintenance import CompressionResult, packed
from standfast.store.records.claim_order import DEFAULT_AGEING, rank_of
from standfast.store.records.instances import Address, DeadLetterRecord, Maintenance, Receipt, ReceiptKey
from standfast.store.records.queries import (
    BacklogRecord,
    GivenUpRecord,
    NeededError,
    PartError,
    Remains,
    Unhandled,
    WaitingWord,
)
from standfast.store.sql.statements import read_statements
from standfast.store.sql.unreadable_rows import readable
from standfast.store.sqlite.admin.workers import live_workers
from standfast.store.sqlite.commit.claims import effect_words, read_clock, waiting_handlers, words_of
from standfast.store.sqlite.commit.commits import accept
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.records import deleting
from standfast.store.sqlite.connection.session import instant, text


class _Sql(msgspec.Struct, frozen=True):
    dead_letter: str
    discard: str
    revive_effect: str
    finished: str
    part_of: str
    remains: str
    allow: str
    disallow: str
    delete_events: str
    delete_instance: str
    delete_snapshot: str
    delete_effects: str
    delete_timers: str
    delete_messages: str
    delete_letters: str
    delete_observations: str
    delete_notification_reads: str
    delete_notifications: str
    prune_receipts: str
    old_steps: str
    pack_step: str
    expired: str
    expired_events: str
    late_readers: str
    set_maintenance: str
    end_maintenance: str
    note: str
    forget: str
    noted: str
    receipted: str
    next_number: str
    backlog: str
    given_up: str
    waiting_work: str
    next_timer_word: str
    next_message_word: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "keeping.sql")

_WHOLE = (
    _sql.delete_events, _sql.delete_snapshot, _sql.delete_timers, _sql.delete_observations,
    _sql.delete_notification_reads, _sql.delete_notifications, _sql.delete_instance,
)  # fmt: skip
_WORK = (_sql.delete_effects, _sql.delete_messages, _sql.delete_letters)


class SQLiteKeeper:
    """Maintenance of the file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def dead_letter(self, letter: int, *, tenant: str) -> DeadLetterRecord | None:
        """Return a dead letter."""
        with self._database.reading() as connection:
            row = connection.execute(_sql.dead_letter, (letter, tenant)).fetchone()
        return rows.dead_letter(row) if row else None

    def requeue(self, letter: DeadLetterRecord, *, now: datetime, ageing: float = DEFAULT_AGEING) -> bool:
        """Requeue a dead effect or message."""
        with self._database.writing() as connection:
            if connection.execute(_sql.discard, (letter.id, letter.tenant)).rowcount != 1:
                return False
            _revive(connection, letter, now, ageing)
            return True

    def discard(self, letter: int, *, tenant: str) -> bool:
        """Delete a dead letter."""
        with self._database.writing() as connection:
            return connection.execute(_sql.discard, (letter, tenant)).rowcount == 1

    def delete(self, instance: InstanceId, *, tenant: str, force: bool = False) -> bool:
        """Delete a finished instance with all its rows."""
        name = (str(instance),)
        with self._database.writing() as connection:
            if connection.execute(_sql.finished, (*name, tenant)).fetchone() is None:
                return False
            whole = connection.execute(_sql.part_of, name).fetchone()
            if whole is not None:
                raise PartError(rows.instance_id(whole[0]))
            effects, letters, messages, readers = connection.execute(_sql.remains, name).fetchone()
            remains = Remains(effects, letters, messages, json.loads(readers))
            if any(remains) and not force:
                raise NeededError(remains)
            connection.execute(_sql.allow, name)
            rows_of_kinds = [deleting(kind) for kind in kinds() if kind.goes_with_instance]
            for statement in (*(_WORK if force else ()), *rows_of_kinds, *_WHOLE):
                connection.execute(statement, name)
            connection.execute(_sql.disallow, name)
            return True

    def prune(self, *, receipts_before: datetime, limit: int) -> int:
        """Delete expired receipts."""
        with self._database.writing() as connection:
            return connection.execute(_sql.prune_receipts, (text(receipts_before), limit)).rowcount

    def fade(self, *, before: datetime, after: tuple[InstanceId, int] | None, limit: int) -> CompressionResult:
        """Compress inputs and outputs of old steps. Values that changed since they were read are left unchanged."""
        name, number = ("", 0) if after is None else (str(after[0]), after[1])
        bound = str(make_uuid7(before, 0))
        with self._database.reading() as connection:
            found = connection.execute(_sql.old_steps, (text(before), name, number, bound, limit)).fetchall()
        told = [(packed(row[2]), packed(row[3]), *row) for row in found if row[4]]
        changed = [row for row in told if row[:2] != row[4:6]]
        if changed:
            with self._database.writing() as connection:
                connection.executemany(_sql.pack_step, [row[:6] for row in changed])
        last = (rows.instance_id(found[-1][0]), found[-1][1]) if len(found) == limit else None
        return CompressionResult(len(changed), last)

    def expired(self, *, ended_before: datetime, limit: int, kind: Literal["event", ""] = "") -> list[Address]:
        """Return finished instances that are no longer needed."""
        with self._database.reading() as connection:
            statement = _sql.expired_events if kind else _sql.expired
            found = connection.execute(statement, {"before": text(ended_before), "limit": limit}).fetchall()
        return [Address(tenant=tenant, instance=rows.instance_id(name)) for tenant, name in found]

    def late_readers(self, *, before: datetime) -> list[str]:
        """Return the projections that have not read events before a time."""
        with self._database.reading() as connection:
            return [name for (name,) in connection.execute(_sql.late_readers, {"before": text(before)})]

    def tidy(self, now: datetime) -> None:  # noqa: ARG002 - the other driver needs the time
        """Checkpoint the log."""
        self._database.checkpoint()

    def maintain(self, mode: Maintenance) -> None:
        """Set the maintenance mode."""
        with self._database.writing() as connection:
            if mode:
                connection.execute(_sql.set_maintenance, (mode,))
            else:
                connection.execute(_sql.end_maintenance)

    def note(self, name: str, value: str) -> None:
        """Store a note."""
        with self._database.writing() as connection:
            connection.execute(*((_sql.note, (name, value)) if value else (_sql.forget, (name,))))

    def noted(self, name: str) -> str:
        """Return a note."""
        with self._database.reading() as connection:
            row = connection.execute(_sql.noted, (name,)).fetchone()
        return str(row[0]) if row else ""

    def receipted(self, tenant: str, scopes: Sequence[str]) -> list[Receipt]:
        """Return the receipts of these scopes."""
        with self._database.reading() as connection:
            found = connection.execute(_sql.receipted, {"tenant": tenant, "scopes": json.dumps(scopes)}).fetchall()
        return [Receipt(ReceiptKey(*row[:3]), rows.instance_or_none(row[3]), row[4], row[5]) for row in found]

    def next_number(self, counter: str) -> int:
        """Return the next number of a counter."""
        with self._database.writing() as connection:
            (number,) = connection.execute(_sql.next_number, (counter,)).fetchone()
        return int(number)

    def backlog(self, now: datetime | None = None) -> list[BacklogRecord]:
        """Return the pending work."""
        with self._database.reading() as connection:
            found: list[rows.Row] = connection.execute(
                _sql.backlog, {"now": text(read_clock(connection, now))}
            ).fetchall()
        return [
            BacklogRecord(kind, name, count, taken, left, None if since is None else instant(since))
            for kind, name, count, taken, left, since in found
        ]

    def given_up(self) -> list[GivenUpRecord]:
        """Return the number of dead letters by tenant."""
        with self._database.reading() as connection:
            return [GivenUpRecord(*row) for row in connection.execute(_sql.given_up)]

    def unhandled(self, *, waited: timedelta, now: datetime | None, most: int = 1000) -> list[Unhandled]:
        """Return the handlers without a live worker that work waits for."""
        with self._database.reading() as connection:
            moment = read_clock(connection, now)
            known = {name for worker in live_workers(connection, moment) for name in worker.handlers}
            wanted = [name for name in waiting_handlers(connection) if name not in known]
            until = text(moment - waited)
            found = ((name, *connection.execute(_sql.waiting_work, (name, until, most)).fetchone()) for name in wanted)
            return [Unhandled(name, count, instant(since)) for name, count, since in found if count]

    def waiting_words(self, handlers: Sequence[str], *, waited: timedelta, now: datetime | None) -> list[WaitingWord]:
        """Return the message types of work that has waited this long."""
        with self._database.reading() as connection:
            until = read_clock(connection, now) - waited
            found: list[rows.Row] = [
                *(("effect", each, *word) for each in handlers for word in effect_words(connection, each)),
                *(("inbox", "", *word) for word in words_of(connection, _sql.next_message_word)),
                *(("timer", "", *word) for word in words_of(connection, _sql.next_timer_word)),
            ]
        return [each for each in readable(_waiting_word, found) if each.since <= until]


def _waiting_word(row: rows.Row) -> WaitingWord:
    kind, handler, word, since = row
    return WaitingWord(kind, handler, word, instant(since))


def _revive(connection: sqlite3.Connection, letter: DeadLetterRecord, now: datetime, ageing: float) -> None:
    match letter.source:
        case "effect":
            rank = rank_of(now, letter.priority, ageing=ageing)
            values = (
                str(letter.instance), letter.number, letter.tenant, letter.definition, letter.language, letter.name, letter.type,
                letter.version, letter.data, letter.options, letter.priority, rank, letter.fence, text(now),
                letter.context,
            )  # fmt: skip
            connection.execute(_sql.revive_effect, values)
        case "inbox":
            accept(connection, [letter.message], now)
        case "timer" | "step" | "compensation":
            raise AssertionError("it is requeued by a command for its instance, which decides what happens")
