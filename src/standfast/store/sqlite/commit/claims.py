"""Claims of work. They are exact, because only one connection writes at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

import msgspec

from standfast.kernel.ids import WorkerId
from standfast.store.records.instances import (
    DeadLetterRecord,
    EffectClaim,
    InboxClaim,
    StoredEffect,
    StoredMessage,
    TimerClaim,
    Wanted,
    Word,
)
from standfast.store.records.queries import DueWorkRecord
from standfast.store.sql.statements import read_statements
from standfast.store.sql.unreadable_rows import LEFT_ALONE, readable
from standfast.store.sqlite.commit.commits import accept
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.records import bury
from standfast.store.sqlite.connection.session import instant, instant_or_none, text, text_or_none


class _Sql(msgspec.Struct, frozen=True):
    clock: str
    next_effect_word: str
    waiting_handlers: str
    ready_effects: str
    own_effect: str
    leave_effect: str
    retry_effect: str
    release_effect: str
    take_effect: str
    wake_effects: str
    next_parked: str
    waiting_effects: str
    due_words: str
    due_timers: str
    claim_timer: str
    next_timer: str
    retry_timer: str
    take_timer: str
    waiting_words: str
    heads: str
    line: str
    claim_message: str
    retry_message: str
    free_target: str
    take_message: str
    waiting_messages: str
    inbox_depth: str
    next_message: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "claims.sql")


_NO_WORD = Word("", "", 0)


def words_of(connection: sqlite3.Connection, following: str, handler: str = "") -> Iterator[tuple[Word, str]]:
    """Yield the message types of waiting work, each with the stored time of its first row.

    `following` finds the next one.
    """
    word = _NO_WORD
    while (row := connection.execute(following, {**word._asdict(), "handler": handler}).fetchone()) is not None:
        word = Word(*row[:3])
        yield word, row[3]


def effect_words(connection: sqlite3.Connection, handler: str) -> Iterator[tuple[Word, str]]:
    """Yield the message types of effects that wait for a handler."""
    return words_of(connection, _sql.next_effect_word, handler)


def waiting_handlers(connection: sqlite3.Connection) -> list[str]:
    """Return the handlers that effects wait for."""
    return [handler for (handler,) in connection.execute(_sql.waiting_handlers)]


def read_clock(connection: sqlite3.Connection, now: datetime | None) -> datetime:
    """Return the given time, or SQLite's own."""
    return now if now is not None else instant(connection.execute(_sql.clock).fetchone()[0])


class SQLiteEffects:
    """Effects that wait for a handler."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self,
        worker: WorkerId,
        wanted: Sequence[Wanted],
        limit: int,
        now: datetime | None = None,
        *,
        words: Sequence[Word],
    ) -> list[StoredEffect]:
        """Claim the most urgent effects for these handlers."""
        known = frozenset(words)
        with self._database.writing() as connection:
            # One query finds all waiting handlers, because a process may have a thousand.
            waiting = frozenset(waiting_handlers(connection))
            found = [
                row for each in wanted if each.handler in waiting for row in _ready(connection, each, known, limit)
            ]
            found.sort(key=_urgency)
            if not found:
                return []
            moment = read_clock(connection, now)
            by, later = (str(worker), text(moment)), text(moment + LEFT_ALONE)
            owned = (connection.execute(_sql.own_effect, (*by, *row[:2])).fetchone() for row in found[:limit])
            return readable(rows.effect, owned, lambda row: connection.execute(_sql.leave_effect, (later, *row[:2])))

    def retry(self, claim: EffectClaim, *, error: str, until: datetime | None, counts: bool = True) -> bool:
        """Release the effect after an attempt."""
        with self._database.writing() as connection:
            values = (text_or_none(until), error, not counts, *_key(claim))
            return connection.execute(_sql.retry_effect, values).rowcount == 1

    def release(self, claims: Sequence[EffectClaim]) -> int:
        """Release effects without counting an attempt."""
        with self._database.writing() as connection:
            return connection.executemany(_sql.release_effect, map(_key, claims)).rowcount if claims else 0

    def bury(self, claim: EffectClaim, letter: DeadLetterRecord, told: StoredMessage | None = None) -> bool:
        """Move the effect to the dead letters, with a message for its instance in the inbox."""
        with self._database.writing() as connection:
            is_moved = _move(connection, _sql.take_effect, _key(claim), letter)
            if is_moved and told is not None:
                accept(connection, [told], letter.created_at)
            return is_moved

    def wake(self, now: datetime | None) -> tuple[list[str], datetime | None]:
        """Make parked effects claimable whose time has come."""
        with self._database.writing() as connection:
            moment = text(read_clock(connection, now))
            handlers = sorted({handler for (handler,) in connection.execute(_sql.wake_effects, (moment,))})
            return handlers, instant_or_none(connection.execute(_sql.next_parked).fetchone()[0])

    def waiting(self, handler: str, *, waited: timedelta, now: datetime | None, limit: int) -> list[StoredEffect]:
        """Return claimable effects that have waited this long, unchanged."""
        with self._database.reading() as connection:
            until = text(read_clock(connection, now) - waited)
            return [rows.effect(row) for row in connection.execute(_sql.waiting_effects, (handler, until, limit))]


class SQLiteTimers:
    """Commands that wait for their time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> DueWorkRecord:
        """Claim the due timers."""
        with self._database.writing() as connection:
            run = connection.execute
            moment = read_clock(connection, now)
            at = text(moment)
            asked = {"words": json.dumps(words), "now": at}
            due = [
                row
                for word in run(_sql.due_words, asked).fetchall()
                for row in run(_sql.due_timers, (*word, at, at, limit))
            ]
            until = text(moment + hold)
            taken = [run(_sql.claim_timer, (until, *row[1:])).fetchone() for row in sorted(due)[:limit]]
            following = readable(instant_or_none, run(_sql.next_timer, asked).fetchone())
            return DueWorkRecord(readable(rows.timer, taken), following[0] if following else None)

    def retry(self, claim: TimerClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Reschedule the timer."""
        with self._database.writing() as connection:
            values = (text(until), counts, error, *_timer_key(claim))
            return connection.execute(_sql.retry_timer, values).rowcount == 1

    def bury(self, claim: TimerClaim, letter: DeadLetterRecord) -> bool:
        """Move the timer to the dead letters."""
        with self._database.writing() as connection:
            return _move(connection, _sql.take_timer, _timer_key(claim), letter)


class SQLiteInbox:
    """Commands that wait for delivery."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> list[StoredMessage]:
        """Claim the next messages, in order."""
        with self._database.writing() as connection:
            run = connection.execute
            moment = read_clock(connection, now)
            at = text(moment)
            heads = [
                row
                for word in run(_sql.waiting_words, {"words": json.dumps(words)}).fetchall()
                for row in run(_sql.heads, (*word, at, at, limit))
            ]
            known = set(words)
            found = [each for head in sorted(heads)[:limit] for each in _line(connection, head[1:], known, limit)]
            until = text(moment + hold)
            taken = [run(_sql.claim_message, (until, each)).fetchone() for each in sorted(found)[:limit]]
            return readable(rows.message, taken)

    def retry(self, claim: InboxClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Reschedule the message."""
        with self._database.writing() as connection:
            connection.execute(_sql.free_target, (claim.id,))
            return connection.execute(_sql.retry_message, (text(until), counts, error, claim.id)).rowcount == 1

    def bury(self, claim: InboxClaim, letter: DeadLetterRecord) -> bool:
        """Move the message to the dead letters."""
        with self._database.writing() as connection:
            return _move(connection, _sql.take_message, (claim.id,), letter)

    def waiting(
        self,
        tenant: str,
        *,
        partition: str = "",
        definition: str = "",
        type_: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> list[StoredMessage]:
        """Return the messages of a tenant, unchanged."""
        values = {"tenant": tenant, "definition": definition, "type": type_, "after": after, "limit": limit}
        values["partition"] = partition
        with self._database.reading() as connection:
            return [rows.message(row) for row in connection.execute(_sql.waiting_messages, values)]

    def depth(self) -> int:
        """Return the number of messages."""
        with self._database.reading() as connection:
            count: int = connection.execute(_sql.inbox_depth).fetchone()[0]
            return count

    def next_at(self, now: datetime | None) -> datetime | None:
        """Return when the next failed message is due."""
        with self._database.reading() as connection:
            moment = text(read_clock(connection, now))
            return instant_or_none(connection.execute(_sql.next_message, (moment,)).fetchone()[0])


def _ready(connection: sqlite3.Connection, wanted: Wanted, known: Collection[Word], limit: int) -> list[rows.Row]:
    """Return the most urgent effects of one handler."""
    most = min(wanted.limit, limit)
    found = [
        row
        for word, _ in effect_words(connection, wanted.handler)
        if word in known
        for row in connection.execute(_sql.ready_effects, (wanted.handler, *word, most))
    ]
    return sorted(found, key=_urgency)[:most]


def _urgency(row: rows.Row) -> tuple[object, ...]:
    return row[2], row[0], row[1]


def _line(connection: sqlite3.Connection, target: rows.Row, known: Collection[Word], limit: int) -> list[int]:
    """Return a target's messages up to the first one that this process cannot read. Later ones wait with it."""
    waiting = connection.execute(_sql.line, (*target, limit))
    return [row[0] for row in takewhile(lambda row: Word(*row[1:]) in known, waiting)]


def _move(connection: sqlite3.Connection, take: str, key: tuple[object, ...], letter: DeadLetterRecord) -> bool:
    """Replace a row by a dead letter, in one transaction."""
    if connection.execute(take, key).rowcount != 1:
        return False
    bury(connection, letter)
    return True


def _key(claim: EffectClaim) -> tuple[object, ...]:
    return (str(claim.instance), claim.number, str(claim.worker), claim.fence)


def _timer_key(claim: TimerClaim) -> tuple[object, ...]:
    return (str(claim.instance), claim.key, claim.number)
