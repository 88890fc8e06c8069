"""Claims of work. They skip rows locked by others, so that workers do not wait for one another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast

import msgspec
from psycopg.types.numeric import Int4, Int8

from standfast.kernel.ids import WorkerId
from standfast.store.postgres.commit.commit_statements import accept, bury
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.commit_parts import effect_key
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.packing import Integers, Texts, columns_of
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
from standfast.store.sql.statements import read_numbered
from standfast.store.sql.unreadable_rows import readable


class _Sql(msgspec.Struct, frozen=True):
    clock: str
    claim_effects: str
    retry_effect: str
    release_effects: str
    take_effect: str
    wake_effects: str
    next_parked: str
    waiting_effects: str
    claim_timers: str
    next_timer: str
    retry_timer: str
    take_timer: str
    claim_heads: str
    claim_behind: str
    retry_message: str
    free_target: str
    take_message: str
    waiting_messages: str
    inbox_depth: str
    next_message: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "claims.sql")


class PostgresEffects:
    """Effects that wait for a handler."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

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
        handlers, limits = Texts([each.handler for each in wanted]), Integers([each.limit for each in wanted])
        values = [handlers, limits, worker, now, *_columns(words), Int8(limit)]
        with self._line.use() as connection:
            found = connection.execute(_sql.claim_effects, values, binary=True).fetchall()
        effects = readable(rows.effect, cast("list[rows.Row]", found))
        return sorted(effects, key=lambda effect: (effect.rank, effect.instance.int, effect.number))

    def retry(self, claim: EffectClaim, *, error: str, until: datetime | None, counts: bool = True) -> bool:
        """Release the effect after an attempt."""
        with self._line.use() as connection:
            values = [until, error, Int4(not counts), *_key(claim)]
            return connection.execute(_sql.retry_effect, values).rowcount == 1

    def release(self, claims: Sequence[EffectClaim]) -> int:
        """Release effects without counting an attempt."""
        if not claims:
            return 0
        with self._line.use() as connection:
            columns = columns_of(_sql.release_effects, [effect_key(claim) for claim in claims])
            return connection.execute(_sql.release_effects, columns).rowcount

    def bury(self, claim: EffectClaim, letter: DeadLetterRecord, told: StoredMessage | None = None) -> bool:
        """Move the effect to the dead letters, with a message for its instance in the inbox."""
        with self._line.transaction() as connection:
            is_moved = _move(connection, _sql.take_effect, _key(claim), letter)
            if is_moved and told is not None:
                accept(connection, [told], letter.created_at)
            return is_moved

    def wake(self, now: datetime | None) -> tuple[list[str], datetime | None]:
        """Make parked effects claimable whose time has come."""
        with self._line.use() as connection:
            handlers = {str(row[0]) for row in connection.execute(_sql.wake_effects, [now])}
            following = connection.execute(_sql.next_parked).fetchone()
        return sorted(handlers), _instant(following)

    def waiting(self, handler: str, *, waited: timedelta, now: datetime | None, limit: int) -> list[StoredEffect]:
        """Return claimable effects that have waited this long, unchanged."""
        values = [handler, now, waited, Int8(limit)]
        with self._line.use() as connection:
            found = connection.execute(_sql.waiting_effects, values, binary=True).fetchall()
        return [rows.effect(cast("rows.Row", row)) for row in found]


class PostgresTimers:
    """Commands that wait for their time."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> DueWorkRecord:
        """Claim the due timers."""
        columns = _columns(words)
        with self._line.use() as connection:
            # The same instant for both statements: a timer that becomes due between them is then the next one, and not
            # missed.
            moment = now or _instant(connection.execute(_sql.clock).fetchone())
            assert moment is not None
            values = [moment + hold, *columns, moment, Int8(limit), Int8(limit)]
            found = connection.execute(_sql.claim_timers, values, binary=True).fetchall()
            following = connection.execute(_sql.next_timer, [*columns, moment]).fetchone()
        timers = readable(rows.timer, cast("list[rows.Row]", found))
        return DueWorkRecord(sorted(timers, key=lambda timer: timer.due_at), _instant(following))

    def retry(self, claim: TimerClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Reschedule the timer."""
        with self._line.use() as connection:
            values = [until, Int4(counts), error, *_timer_key(claim)]
            return connection.execute(_sql.retry_timer, values).rowcount == 1

    def bury(self, claim: TimerClaim, letter: DeadLetterRecord) -> bool:
        """Move the timer to the dead letters."""
        with self._line.transaction() as connection:
            return _move(connection, _sql.take_timer, _timer_key(claim), letter)


class PostgresInbox:
    """Commands that wait for delivery."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> list[StoredMessage]:
        """Claim the next messages, in order."""
        columns, most = _columns(words), Int8(limit)
        with self._line.transaction() as connection:
            heads = connection.execute(_sql.claim_heads, [*columns, now, most, most]).fetchall()
            if not heads:
                return []
            tenants, targets = Texts([str(row[0]) for row in heads]), Texts([str(row[1]) for row in heads])
            values = [*columns, now, hold, tenants, targets, most, most]
            found = connection.execute(_sql.claim_behind, values, binary=True).fetchall()
        messages = readable(rows.message, cast("list[rows.Row]", found))
        return sorted(messages, key=lambda message: message.id)

    def retry(self, claim: InboxClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Reschedule the message."""
        with self._line.transaction() as connection:
            connection.execute(_sql.free_target, [Int8(claim.id)])
            values = [until, Int4(counts), error, Int8(claim.id)]
            return connection.execute(_sql.retry_message, values).rowcount == 1

    def bury(self, claim: InboxClaim, letter: DeadLetterRecord) -> bool:
        """Move the message to the dead letters."""
        with self._line.transaction() as connection:
            return _move(connection, _sql.take_message, [Int8(claim.id)], letter)

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
        values = [Int8(after), tenant, definition, type_, Int8(limit), partition]
        with self._line.use() as connection:
            found = connection.execute(_sql.waiting_messages, values, binary=True).fetchall()
        return [rows.message(cast("rows.Row", row)) for row in found]

    def depth(self) -> int:
        """Return the number of messages."""
        with self._line.use() as connection:
            row = connection.execute(_sql.inbox_depth).fetchone()
        return cast("int", row[0]) if row else 0

    def next_at(self, now: datetime | None) -> datetime | None:
        """Return when the next failed message is due."""
        with self._line.use() as connection:
            return _instant(connection.execute(_sql.next_message, [now]).fetchone())


def _columns(words: Sequence[Word]) -> list[object]:
    """Return message types as columns for Postgres."""
    return [
        Texts([each.language for each in words]),
        Texts([each.type for each in words]),
        Integers([each.version for each in words]),
    ]


def _move(connection: Connection, take: str, key: Sequence[object], letter: DeadLetterRecord) -> bool:
    """Replace a row by a dead letter, in one transaction."""
    if connection.execute(take, key).rowcount != 1:
        return False
    bury(connection, letter)
    return True


def _key(claim: EffectClaim) -> list[object]:
    return [claim.instance, Int4(claim.number), claim.worker, Int4(claim.fence)]


def _timer_key(claim: TimerClaim) -> list[object]:
    return [claim.instance, claim.key, Int4(claim.number)]


def _instant(row: Sequence[object] | None) -> datetime | None:
    return cast("datetime | None", row[0]) if row else None
