"""Pauses in Postgres, and the port for their propagation.

One process propagates at a time; the others do not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int2, Int4, Int8

from standfast.kernel.ids import InstanceId
from standfast.store.ports.pauses import (
    HeldCount,
    HeldTimer,
    PausedEffect,
    PausedTimer,
    PauseRecord,
    StepOf,
    Stride,
    pause_of,
)
from standfast.store.postgres.connection.commit_parts import effect_key, timer_key
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.packing import Uuids, columns_of
from standfast.store.postgres.connection.session import Row
from standfast.store.records.instances import EffectClaim
from standfast.store.sql.pause_propagation import ChangedEffect, ChangedTimer, propagate_batch
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    begin: str
    standing_for: str
    end: str
    standing: str
    get: str
    listed: str
    counts: str
    held_effects: str
    is_astray: str
    versions: str
    hold_back: str
    hold_timers: str
    prune: str
    lock_walk: str
    read_walk: str
    write_walk: str
    walked: str
    next_effects: str
    next_timers: str
    change_effects: str
    change_timers: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "pauses.sql")


class PostgresPauses:
    """Pauses and the work that they hold."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def begin(self, pause: PauseRecord) -> PauseRecord:
        """Begin a pause, unless one with the same scope is active."""
        with self._line.transaction() as connection:
            said = [pause.clock, pause.reason, pause.paused_by, pause.paused_at, pause.until]
            while True:  # The conflicting pause may have ended before it is read.
                connection.execute(_sql.begin, [*pause.scope, *said])
                row = connection.execute(_sql.standing_for, list(pause.scope)).fetchone()
                if row is not None:
                    return pause_of(row)

    def end(self, number: int, *, by: str, why: str, at: datetime) -> bool:
        """End a pause."""
        with self._line.use() as connection:
            return connection.execute(_sql.end, [at, by, why, Int8(number)]).rowcount == 1

    def standing(self) -> list[PauseRecord]:
        """Return the active pauses, and ended ones that are not settled."""
        with self._line.use() as connection:
            return _standing(connection)

    def get(self, number: int) -> PauseRecord | None:
        """Return a pause."""
        with self._line.use() as connection:
            row = connection.execute(_sql.get, [Int8(number)]).fetchone()
        return None if row is None else pause_of(row)

    def listed(self, tenant: str, *, before: int | None, limit: int) -> list[PauseRecord]:
        """Return all pauses that concern a tenant, newest first."""
        with self._line.use() as connection:
            values = [tenant, None if before is None else Int8(before), Int8(limit)]
            return [pause_of(row) for row in connection.execute(_sql.listed, values).fetchall()]

    def counts(self) -> list[HeldCount]:
        """Return the amount of held work."""
        with self._line.use() as connection:
            return [HeldCount(*cast("Row", row)) for row in connection.execute(_sql.counts).fetchall()]

    def held_effects(self, tenant: str, definition: str) -> list[PausedEffect]:
        """Return the held effects of a definition."""
        with self._line.use() as connection:
            return _effects(connection, _sql.held_effects, [tenant, definition])

    def stride(self, step_of: StepOf, *, now: datetime, limit: int) -> Stride:
        """Update the next batch, unless another process is doing so."""
        with self._line.transaction() as connection:
            if not cast("Row", connection.execute(_sql.lock_walk).fetchone())[0]:
                return Stride(0, 0, is_over=True)
            return propagate_batch(_Ground(connection), step_of, now=now, limit=limit)

    def is_astray(self) -> bool:
        """Return whether work is held without a pause to propagate."""
        with self._line.use() as connection:
            return not _standing(connection) and _Ground(connection).is_astray()

    def versions(self, instances: Sequence[InstanceId]) -> dict[InstanceId, str]:
        """Return the definition versions of instances."""
        with self._line.use() as connection:
            found = connection.execute(_sql.versions, [Uuids(instances)]).fetchall()
        return {InstanceId(cast("UUID", row[0])): str(row[1]) for row in found}

    def hold_back(self, claims: Sequence[EffectClaim], *, at: datetime) -> None:
        """Put claimed effects back as held."""
        with self._line.use() as connection:
            columns = columns_of(_sql.hold_back, [effect_key(claim) for claim in claims])
            connection.execute(_sql.hold_back, [*columns, at])

    def hold_timers(self, timers: Sequence[HeldTimer], *, at: datetime) -> None:
        """Put claimed timers back as held."""
        with self._line.use() as connection:
            values = [(*timer_key(claim), frozen_at) for claim, frozen_at in timers]
            connection.execute(_sql.hold_timers, [*columns_of(_sql.hold_timers, values), at])

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete pauses that ended long ago."""
        with self._line.use() as connection:
            return connection.execute(_sql.prune, [before, Int8(limit)]).rowcount


class _Ground:
    """One transaction of the propagation."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read_walk(self) -> str:
        row = self._connection.execute(_sql.read_walk).fetchone()
        return "" if row is None else str(row[0])

    def write_walk(self, walk: str) -> None:
        self._connection.execute(_sql.write_walk, [walk])

    def standing(self) -> list[PauseRecord]:
        return _standing(self._connection)

    def walked(self, pause: PauseRecord, walks: int) -> None:
        self._connection.execute(_sql.walked, [Int2(walks), Int8(pause.id), pause.ended_at])

    def is_astray(self) -> bool:
        return bool(cast("Row", self._connection.execute(_sql.is_astray).fetchone())[0])

    def effects(self, after: tuple[UUID, int], limit: int, *, whole: bool) -> list[PausedEffect]:
        instance, number = after
        return _effects(self._connection, _sql.next_effects, [instance, Int4(number), Int8(limit), whole])

    def timers(self, after: tuple[UUID, str], limit: int) -> list[PausedTimer]:
        found = self._connection.execute(_sql.next_timers, [*after, Int8(limit)], binary=True).fetchall()
        return [PausedTimer(*cast("Row", row)) for row in found]

    def change_effects(self, changed: Sequence[ChangedEffect]) -> None:
        self._connection.execute(_sql.change_effects, columns_of(_sql.change_effects, changed))

    def change_timers(self, changed: Sequence[ChangedTimer]) -> None:
        self._connection.execute(_sql.change_timers, columns_of(_sql.change_timers, changed))


def _standing(connection: Connection) -> list[PauseRecord]:
    return [pause_of(row) for row in connection.execute(_sql.standing).fetchall()]


def _effects(connection: Connection, statement: str, values: Sequence[object]) -> list[PausedEffect]:
    found = connection.execute(statement, values, binary=True).fetchall()
    return [PausedEffect(*cast("Row", row)) for row in found]
