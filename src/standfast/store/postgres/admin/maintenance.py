"""Maintenance in Postgres: dead letters, retention, partitions and maintenance mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, cast
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int2, Int4, Int8

from standfast.kernel.ids import InstanceId, make_uuid7
from standfast.store.ports.maintenance import CompressionResult, packed
from standfast.store.postgres.admin.workers import free_orphans
from standfast.store.postgres.commit.commit_statements import accept
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.packing import Texts
from standfast.store.postgres.connection.records import deleting
from standfast.store.records.claim_order import DEFAULT_AGEING, rank_of
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    Maintenance,
    Receipt,
    ReceiptKey,
    Word,
)
from standfast.store.records.queries import (
    BacklogRecord,
    GivenUpRecord,
    NeededError,
    PartError,
    Remains,
    Unhandled,
    WaitingWord,
)
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    dead_letter: str
    discard: str
    hold_instance: str
    revive_effect: str
    finished: str
    part_of: str
    remains: str
    allow: str
    delete_whole: str
    delete_work: str
    prune_receipts: str
    old_steps: str
    pack_step: str
    expired: str
    expired_events: str
    late_readers: str
    make_partitions: str
    set_maintenance: str
    end_maintenance: str
    note: str
    forget: str
    noted: str
    receipted: str
    next_number: str
    backlog: str
    given_up: str
    unhandled: str
    waiting_words: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "keeping.sql")

_MONTHS_AHEAD = 2

_OldStep = tuple[UUID, int, bytes | None, bytes | None, bool]


class PostgresKeeper:
    """Maintenance of the database."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def dead_letter(self, letter: int, *, tenant: str) -> DeadLetterRecord | None:
        """Return a dead letter."""
        with self._line.use() as connection:
            row = connection.execute(_sql.dead_letter, [Int8(letter), tenant], binary=True).fetchone()
        return rows.dead_letter(cast("rows.Row", row)) if row else None

    def requeue(self, letter: DeadLetterRecord, *, now: datetime, ageing: float = DEFAULT_AGEING) -> bool:
        """Requeue a dead effect or message."""
        with self._line.transaction() as connection:
            if letter.source == "effect":
                connection.execute(_sql.hold_instance, [letter.instance])
            if connection.execute(_sql.discard, [Int8(letter.id), letter.tenant]).rowcount != 1:
                return False
            _revive(connection, letter, now, ageing)
            return True

    def discard(self, letter: int, *, tenant: str) -> bool:
        """Delete a dead letter."""
        with self._line.use() as connection:
            return connection.execute(_sql.discard, [Int8(letter), tenant]).rowcount == 1

    def delete(self, instance: InstanceId, *, tenant: str, force: bool = False) -> bool:
        """Delete a finished instance with all its rows."""
        with self._line.transaction() as connection:
            if connection.execute(_sql.finished, [instance, tenant]).fetchone() is None:
                return False
            whole = connection.execute(_sql.part_of, [instance]).fetchone()
            if whole is not None:
                raise PartError(InstanceId(cast("UUID", whole[0])))
            remains = Remains(*cast("rows.Row", connection.execute(_sql.remains, [instance]).fetchone()))
            if any(remains):
                if not force:
                    raise NeededError(remains)
                connection.execute(_sql.delete_work, [instance])
            connection.execute(_sql.allow, [str(instance)])
            connection.execute(deleting(), [instance])
            connection.execute(_sql.delete_whole, [instance])
            return True

    def prune(self, *, receipts_before: datetime, limit: int) -> int:
        """Delete expired receipts."""
        with self._line.use() as connection:
            return connection.execute(_sql.prune_receipts, [receipts_before, Int8(limit)]).rowcount

    def fade(self, *, before: datetime, after: tuple[InstanceId, int] | None, limit: int) -> CompressionResult:
        """Compress inputs and outputs of old steps. Values that changed since they were read are left unchanged."""
        instance, number = (UUID(int=0), 0) if after is None else after
        bound = make_uuid7(before, 0)
        with self._line.use() as connection:
            values = [before, instance, Int8(number), bound, Int8(limit)]
            found = cast("list[_OldStep]", connection.execute(_sql.old_steps, values).fetchall())
        told = [(row[0], Int4(row[1]), packed(row[2]), packed(row[3]), row[2], row[3]) for row in found if row[4]]
        changed = [row for row in told if row[2:4] != row[4:]]
        if changed:
            with self._line.transaction() as connection:
                for each in changed:
                    connection.execute(_sql.pack_step, each)
        last = (InstanceId(found[-1][0]), found[-1][1]) if len(found) == limit else None
        return CompressionResult(len(changed), last)

    def expired(self, *, ended_before: datetime, limit: int, kind: Literal["event", ""] = "") -> list[Address]:
        """Return finished instances that are no longer needed."""
        with self._line.use() as connection:
            statement = _sql.expired_events if kind else _sql.expired
            found = connection.execute(statement, [ended_before, Int8(limit)]).fetchall()
        return [Address(tenant=str(row[0]), instance=InstanceId(cast("UUID", row[1]))) for row in found]

    def late_readers(self, *, before: datetime) -> list[str]:
        """Return the projections that have not read events before a time."""
        with self._line.use() as connection:
            found = connection.execute(_sql.late_readers, [before]).fetchall()
        return [cast("str", row[0]) for row in found]

    def tidy(self, now: datetime) -> None:
        """Create future partitions, and release orphaned work."""
        with self._line.use() as connection:
            make_partitions(connection, now)
            free_orphans(connection)

    def maintain(self, mode: Maintenance) -> None:
        """Set the maintenance mode."""
        with self._line.use() as connection:
            if mode:
                connection.execute(_sql.set_maintenance, [mode])
            else:
                connection.execute(_sql.end_maintenance)

    def note(self, name: str, value: str) -> None:
        """Store a note."""
        with self._line.use() as connection:
            connection.execute(*((_sql.note, [name, value]) if value else (_sql.forget, [name])))

    def noted(self, name: str) -> str:
        """Return a note."""
        with self._line.use() as connection:
            row = connection.execute(_sql.noted, [name]).fetchone()
        return cast("str", row[0]) if row else ""

    def receipted(self, tenant: str, scopes: Sequence[str]) -> list[Receipt]:
        """Return the receipts of these scopes."""
        with self._line.use() as connection:
            found = connection.execute(_sql.receipted, [tenant, Texts(scopes)], binary=True).fetchall()
        return [Receipt(ReceiptKey(*row[:3]), *row[3:]) for row in cast("list[rows.Row]", found)]

    def next_number(self, counter: str) -> int:
        """Return the next number of a counter."""
        with self._line.use() as connection:
            (number,) = cast("rows.Row", connection.execute(_sql.next_number, [counter]).fetchone())
        return cast("int", number)

    def backlog(self, now: datetime | None = None) -> list[BacklogRecord]:
        """Return the pending work."""
        with self._line.use() as connection:
            found = cast("list[rows.Row]", connection.execute(_sql.backlog, [now]).fetchall())
        return [BacklogRecord(*row) for row in found]

    def given_up(self) -> list[GivenUpRecord]:
        """Return the number of dead letters by tenant."""
        with self._line.use() as connection:
            found = cast("list[rows.Row]", connection.execute(_sql.given_up).fetchall())
        return [GivenUpRecord(*row) for row in found]

    def unhandled(self, *, waited: timedelta, now: datetime | None, most: int = 1000) -> list[Unhandled]:
        """Return the handlers without a live worker that work waits for."""
        with self._line.use() as connection:
            found = cast("list[rows.Row]", connection.execute(_sql.unhandled, [now, waited, Int8(most)]).fetchall())
        return [Unhandled(*row) for row in found]

    def waiting_words(self, handlers: Sequence[str], *, waited: timedelta, now: datetime | None) -> list[WaitingWord]:
        """Return the message types of work that has waited this long."""
        with self._line.use() as connection:
            found = connection.execute(_sql.waiting_words, [Texts(handlers), now, waited]).fetchall()
        return [
            WaitingWord(kind, handler, Word(*word), since)
            for kind, handler, *word, since in cast("list[rows.Row]", found)
        ]


def make_partitions(connection: Connection, now: datetime) -> None:
    """Create the partitions of this month and the next ones."""
    connection.execute(_sql.make_partitions, [now, Int4(_MONTHS_AHEAD)])


def _revive(connection: Connection, letter: DeadLetterRecord, now: datetime, ageing: float) -> None:
    match letter.source:
        case "effect":
            where = [
                letter.instance,
                Int4(letter.number),
                letter.tenant,
                letter.definition,
                letter.language,
                letter.name,
            ]
            what = [letter.type, Int2(letter.version), letter.data]
            order = [Int2(letter.priority), Int8(rank_of(now, letter.priority, ageing=ageing))]
            fence = Int4(letter.fence)
            connection.execute(_sql.revive_effect, [*where, *what, letter.options, *order, fence, now, letter.context])
        case "inbox":
            accept(connection, [letter.message], now)
        case "timer" | "step" | "compensation":
            raise AssertionError("it is requeued by a command for its instance, which decides what happens")
