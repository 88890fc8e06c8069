"""Pauses in the file, and the port for their propagation. The single writer excludes concurrent passes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

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
from standfast.store.records.instances import EffectClaim
from standfast.store.sql.pause_propagation import ChangedEffect, ChangedTimer, propagate_batch
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import (
    Row,
    instance_id,
    instant,
    instant_or_far,
    instant_or_none,
    text,
    text_or_none,
)


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
    hold_timer: str
    prune: str
    read_walk: str
    write_walk: str
    walked: str
    next_effects: str
    next_timers: str
    change_effect: str
    change_timer: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "pauses.sql")


class SQLitePauses:
    """Pauses and the work that they hold."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, pause: PauseRecord) -> PauseRecord:
        """Begin a pause, unless one with the same scope is active."""
        with self._database.writing() as connection:
            said = (pause.clock, pause.reason, pause.paused_by, text(pause.paused_at), text_or_none(pause.until))
            connection.execute(_sql.begin, (*pause.scope, *said))
            return _pause(connection.execute(_sql.standing_for, pause.scope).fetchone())

    def end(self, number: int, *, by: str, why: str, at: datetime) -> bool:
        """End a pause."""
        with self._database.writing() as connection:
            return connection.execute(_sql.end, (text(at), by, why, number)).rowcount == 1

    def standing(self) -> list[PauseRecord]:
        """Return the active pauses, and ended ones that are not settled."""
        with self._database.reading() as connection:
            return _standing(connection)

    def get(self, number: int) -> PauseRecord | None:
        """Return a pause."""
        with self._database.reading() as connection:
            row = connection.execute(_sql.get, (number,)).fetchone()
        return None if row is None else _pause(row)

    def listed(self, tenant: str, *, before: int | None, limit: int) -> list[PauseRecord]:
        """Return all pauses that concern a tenant, newest first."""
        with self._database.reading() as connection:
            found = connection.execute(_sql.listed, {"tenant": tenant, "before": before, "limit": limit})
            return [_pause(row) for row in found]

    def counts(self) -> list[HeldCount]:
        """Return the amount of held work."""
        with self._database.reading() as connection:
            return [HeldCount(*row) for row in connection.execute(_sql.counts)]

    def held_effects(self, tenant: str, definition: str) -> list[PausedEffect]:
        """Return the held effects of a definition."""
        with self._database.reading() as connection:
            found = connection.execute(_sql.held_effects, {"tenant": tenant, "definition": definition})
            return [_effect(row) for row in found]

    def stride(self, step_of: StepOf, *, now: datetime, limit: int) -> Stride:
        """Update the next batch."""
        with self._database.writing() as connection:
            return propagate_batch(_Ground(connection), step_of, now=now, limit=limit)

    def is_astray(self) -> bool:
        """Return whether work is held without a pause to propagate."""
        with self._database.reading() as connection:
            return not _standing(connection) and _Ground(connection).is_astray()

    def versions(self, instances: Sequence[InstanceId]) -> dict[InstanceId, str]:
        """Return the definition versions of instances."""
        with self._database.reading() as connection:
            found = ((each, connection.execute(_sql.versions, (str(each),)).fetchone()) for each in instances)
            return {each: row[0] for each, row in found if row is not None}

    def hold_back(self, claims: Sequence[EffectClaim], *, at: datetime) -> None:
        """Put claimed effects back as held."""
        with self._database.writing() as connection:
            keys = ((text(at), str(each.instance), each.number, str(each.worker), each.fence) for each in claims)
            connection.executemany(_sql.hold_back, keys)

    def hold_timers(self, timers: Sequence[HeldTimer], *, at: datetime) -> None:
        """Put claimed timers back as held."""
        with self._database.writing() as connection:
            values = (
                (text(at), text_or_none(frozen_at), str(claim.instance), claim.key, claim.number)
                for claim, frozen_at in timers
            )
            connection.executemany(_sql.hold_timer, values)

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete pauses that ended long ago."""
        with self._database.writing() as connection:
            return connection.execute(_sql.prune, (text(before), limit)).rowcount


class _Ground:
    """One transaction of the propagation."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_walk(self) -> str:
        row = self._connection.execute(_sql.read_walk).fetchone()
        return "" if row is None else str(row[0])

    def write_walk(self, walk: str) -> None:
        self._connection.execute(_sql.write_walk, (walk,))

    def standing(self) -> list[PauseRecord]:
        return _standing(self._connection)

    def walked(self, pause: PauseRecord, walks: int) -> None:
        self._connection.execute(_sql.walked, (walks, pause.id, text_or_none(pause.ended_at)))

    def is_astray(self) -> bool:
        return bool(self._connection.execute(_sql.is_astray).fetchone()[0])

    def effects(self, after: tuple[UUID, int], limit: int, *, whole: bool) -> list[PausedEffect]:
        instance, number = after
        values = {"instance": str(instance), "number": number, "limit": limit, "whole": whole}
        return [_effect(row) for row in self._connection.execute(_sql.next_effects, values)]

    def timers(self, after: tuple[UUID, str], limit: int) -> list[PausedTimer]:
        instance, key = after
        values = {"instance": str(instance), "key": key, "limit": limit}
        return [_timer(row) for row in self._connection.execute(_sql.next_timers, values)]

    def change_effects(self, changed: Sequence[ChangedEffect]) -> None:
        values = ((each.rank, text_or_none(each.held_at), str(each.instance), each.number) for each in changed)
        self._connection.executemany(_sql.change_effect, values)

    def change_timers(self, changed: Sequence[ChangedTimer]) -> None:
        values = (
            (
                text(each.due_at), text_or_none(each.held_at), text_or_none(each.frozen_at), str(each.instance), each.key, each.number,
                text(each.due_before),
            )
            for each in changed
        )  # fmt: skip
        self._connection.executemany(_sql.change_timer, values)


def _standing(connection: sqlite3.Connection) -> list[PauseRecord]:
    return [_pause(row) for row in connection.execute(_sql.standing)]


def _pause(row: Row) -> PauseRecord:
    instants = (instant(row[8]), instant_or_none(row[9]), instant_or_none(row[10]))
    return pause_of((*row[:8], *instants, *row[11:]))


def _effect(row: Row) -> PausedEffect:
    return PausedEffect._make((instance_id(row[0]), *row[1:10], instant_or_none(row[10])))


def _timer(row: Row) -> PausedTimer:
    instants = (instant_or_far(row[7]), instant_or_none(row[8]), instant_or_none(row[9]))
    return PausedTimer._make((instance_id(row[0]), *row[1:7], *instants))
