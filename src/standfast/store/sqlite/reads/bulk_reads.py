"""Reads many instances of one tenant together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, id_text
from standfast.kernel.rows import RowKind
from standfast.store.records.instances import Snapshot, StoredEffect, StoredTimer
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.records import S, reading, selecting_many
from standfast.store.sqlite.connection.session import Row


class _Sql(msgspec.Struct, frozen=True):
    histories: str
    snapshots: str
    effects: str
    timers: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "surveying.sql")


class SQLiteBulkReads:
    """Reads many instances of one tenant. Subclasses provide the connection."""

    _tenant: str

    def histories(self, instances: Sequence[InstanceId]) -> list[StoredEvent]:
        """Return all events of these instances."""
        return [rows.event(row) for row in self._of_all(_sql.histories, instances)]

    def snapshots(self, instances: Sequence[InstanceId]) -> dict[InstanceId, Snapshot]:
        """Return the existing snapshots."""
        found = self._of_all(_sql.snapshots, instances)
        return {
            rows.instance_id(row[0]): Snapshot(version=row[1], state_version=row[2], data=row[3], fingerprint=row[4])
            for row in found
        }

    def rows_of(self, kind: RowKind[S], instances: Sequence[InstanceId]) -> list[S]:
        """Return the rows of a kind of these instances."""
        return [*map(reading(kind), self._of_all(selecting_many(kind), instances))]

    def effects_of(self, instances: Sequence[InstanceId]) -> list[StoredEffect]:
        """Return their pending effects."""
        return [rows.effect(row) for row in self._of_all(_sql.effects, instances)]

    def timers_of(self, instances: Sequence[InstanceId]) -> list[StoredTimer]:
        """Return their timers."""
        return [rows.timer(row) for row in self._of_all(_sql.timers, instances)]

    def _of_all(self, statement: str, instances: Sequence[InstanceId]) -> list[Row]:
        values = {"tenant": self._tenant, "instances": json.dumps([*map(id_text, instances)])}
        return self._all(statement, values)

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[Row]:
        raise NotImplementedError
