"""Reads an instance with all data that a decision needs."""

from __future__ import annotations

import sqlite3

import msgspec

from standfast.kernel.ids import id_text
from standfast.store.records.instances import Address, Loaded, PendingTimerRecord, Snapshot
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection import session as rows


class _Sql(msgspec.Struct, frozen=True):
    instance_by_id: str
    instance_by_key: str
    snapshot: str
    events_after: str
    pending_timers: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "loading.sql")


def load(connection: sqlite3.Connection, address: Address, *, whole: bool, known: int = 0) -> Loaded | None:
    """Return an instance with its snapshot, later events and timers. Events are omitted if `known` of them exist."""
    run = connection.execute
    if address.instance is not None:
        row = run(
            _sql.instance_by_id,
            {"instance": id_text(address.instance), "tenant": address.tenant, "partition": address.partition},
        ).fetchone()
    else:
        row = run(_sql.instance_by_key, (address.tenant, address.definition, address.key, address.partition)).fetchone()
    if row is None:
        return None
    header = rows.header(row)
    is_known = address.instance is not None and header.version == known
    kept = None if whole or is_known else run(_sql.snapshot, (row[0],)).fetchone()
    snapshot = (
        None if kept is None else Snapshot(version=kept[0], state_version=kept[1], data=kept[2], fingerprint=kept[3])
    )
    after = snapshot.version if snapshot else 0
    return Loaded(
        header=header,
        snapshot=snapshot,
        events=[] if is_known else [rows.event(each) for each in run(_sql.events_after, (row[0], after))],
        timers={
            key: PendingTimerRecord(number, rows.instant_or_far(due_at), rows.instant_or_none(frozen_at))
            for key, number, due_at, frozen_at in run(_sql.pending_timers, (row[0],))
        },
    )
