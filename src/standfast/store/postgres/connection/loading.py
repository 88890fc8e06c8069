"""Reads the data that a decision needs: instances with histories, and the state of claims, receipts and causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, WorkerId
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.commit_parts import effect_key, timer_key
from standfast.store.postgres.connection.connection import Connection
from standfast.store.postgres.connection.packing import (
    Integers,
    Longs,
    PackedColumn,
    Texts,
    Uuids,
    columns_of,
)
from standfast.store.postgres.connection.pipeline import Statement, StatementCall
from standfast.store.records.instances import (
    Address,
    Claim,
    EffectClaim,
    InboxClaim,
    InstanceChange,
    LetterClaim,
    Loaded,
    PendingTimerRecord,
    Receipt,
    ReceiptKey,
    Snapshot,
    TimerClaim,
)
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    headers: str
    events: str
    lock: str
    disown: str
    held_effects: str
    set_timers: str
    kept_messages: str
    kept_letters: str
    receipts: str
    newest_position: str
    causes: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "loading.sql")
_LOCK, _LOCK_NOW = Statement(_sql.lock), Statement(f"{_sql.lock} nowait")
_HEADERS, _NEWEST, _HELD = Statement(_sql.headers), Statement(_sql.newest_position), Statement(_sql.held_effects)


def load(connection: Connection, addresses: Sequence[Address], *, whole: bool) -> list[Loaded | None]:
    """Return the instances at these addresses, in the same order; None for missing ones."""
    found = _headers(connection, addresses)
    return assembled(addresses, found, events_behind(connection, found, whole=whole), whole=whole)


def events_behind(connection: Connection, found: list[rows.Row], *, whole: bool) -> dict[int, list[StoredEvent]]:
    """Return the events of instances after their snapshots, or all of them, by integer instance id."""
    # An instance may be named twice, by id and by key, but its events are read once.
    stretches = {row[0].int: (row[0], 0 if whole else row[22] or 0, row[9]) for row in found}
    return _events(connection, list(stretches.values())) if stretches else {}


def assembled(
    addresses: Sequence[Address], found: list[rows.Row], events: dict[int, list[StoredEvent]], *, whole: bool
) -> list[Loaded | None]:
    """Arrange the results in the order of the addresses."""
    by_id: dict[object, Loaded] = {}
    by_key: dict[object, Loaded] = {}
    for row in found:
        loaded = Loaded(
            header=rows.header(row),
            snapshot=None
            if whole or row[22] is None
            else Snapshot(version=row[22], state_version=row[23], data=row[24], fingerprint=row[25]),
            events=events.get(row[0].int, []),
            timers={} if row[26] is None else dict(zip(row[26], map(PendingTimerRecord, *row[27:30]), strict=True)),
        )
        by_id[row[1], row[0].int] = by_key[row[1], row[2], row[5], loaded.header.partition] = loaded
    return [_at(each, by_id, by_key) for each in addresses]


def _at(
    address: Address,
    by_id: dict[object, Loaded],
    by_key: dict[object, Loaded],
) -> Loaded | None:
    if address.instance is None:
        return by_key.get((address.tenant, address.definition, address.key, address.partition))
    # It may have been found by another address without a partition.
    found = by_id.get((address.tenant, address.instance.int))
    return None if found is None or address.partition not in {"", found.header.partition} else found


def _headers(connection: Connection, addresses: Sequence[Address]) -> list[rows.Row]:
    found = connection.execute(_sql.headers, _address_columns(addresses), binary=True).fetchall()
    return cast("list[rows.Row]", found)


def _address_columns(addresses: Sequence[Address]) -> list[PackedColumn[Any]]:
    by_id = [each for each in addresses if each.instance is not None]
    by_key = [each for each in addresses if each.instance is None]
    return [
        Texts([each.tenant for each in by_id]),
        Uuids([each.instance for each in by_id]),
        Texts([each.partition for each in by_id]),
        Texts([each.tenant for each in by_key]),
        Texts([each.definition for each in by_key]),
        Texts([each.key for each in by_key]),
        Texts([each.partition for each in by_key]),
    ]


def _events(connection: Connection, stretches: Sequence[tuple[UUID, int, int]]) -> dict[int, list[StoredEvent]]:
    """Return the events of instances, each from one number up to another. The upper bound is that of the row read before.

    Instances are identified by integers, because Python hashes UUID objects slowly.
    """
    instances, after, upto = zip(*stretches, strict=True)
    arguments = [Uuids(instances), Integers(after), Integers(upto)]
    events: defaultdict[int, list[StoredEvent]] = defaultdict(list)
    for row in connection.execute(_sql.events, arguments, binary=True):
        event = rows.event(cast("rows.Row", row))
        events[event.instance.int].append(event)
    return events


def locking(addresses: Sequence[Address], *, waits: bool) -> list[StatementCall]:
    """Return two calls that lock the rows of these instances and then read them. The second one sees the changes that the first one waited for.

    Without `waits` a locked row raises an error.
    """
    arguments: list[bytes | None] = [column.array() for column in _address_columns(addresses)]
    return [StatementCall(_LOCK if waits else _LOCK_NOW, arguments), StatementCall(_HEADERS, arguments)]


def newest(instance: InstanceId | None, version: int) -> StatementCall:
    """Return a call that reads the position of an instance's newest event."""
    return StatementCall(_NEWEST, [Uuids([instance]).array(), Integers([version]).array()])


def holding(claim: Claim) -> StatementCall | None:
    """Return a call that finds a row if an effect's claim is valid. None for other claims."""
    if not isinstance(claim, EffectClaim):
        return None
    return StatementCall(_HELD, [column.array() for column in columns_of(_sql.held_effects, [effect_key(claim)])])


def disown(connection: Connection, worker: WorkerId, held: Sequence[EffectClaim]) -> int:
    """Release the effects that a worker owns without knowing it."""
    columns = columns_of(_sql.disown, [effect_key(claim) for claim in held])
    return connection.execute(_sql.disown, [worker, *columns]).rowcount


def void_claims(connection: Connection, claims: Sequence[Claim]) -> set[Claim]:
    """Return the void claims among these."""
    effects = [claim for claim in claims if isinstance(claim, EffectClaim)]
    timers = [claim for claim in claims if isinstance(claim, TimerClaim)]
    messages = [claim for claim in claims if isinstance(claim, InboxClaim)]
    letters = [claim for claim in claims if isinstance(claim, LetterClaim)]
    void: set[Claim] = set()
    if effects:
        columns = columns_of(_sql.held_effects, [effect_key(claim) for claim in effects])
        held = set(connection.execute(_sql.held_effects, columns, binary=True).fetchall())
        void.update(claim for claim in effects if msgspec.structs.astuple(claim) not in held)
    if timers:
        columns = columns_of(_sql.set_timers, [timer_key(claim) for claim in timers])
        pending = set(connection.execute(_sql.set_timers, columns, binary=True).fetchall())
        void.update(claim for claim in timers if msgspec.structs.astuple(claim) not in pending)
    if messages:
        kept = set(connection.execute(_sql.kept_messages, [Longs([claim.id for claim in messages])]).fetchall())
        void.update(claim for claim in messages if (claim.id,) not in kept)
    if letters:
        kept = set(connection.execute(_sql.kept_letters, [Longs([claim.id for claim in letters])]).fetchall())
        void.update(claim for claim in letters if (claim.id,) not in kept)
    return void


def receipts_of(connection: Connection, keys: Sequence[ReceiptKey]) -> dict[ReceiptKey, Receipt]:
    """Return the existing receipts."""
    columns = [Texts([each[place] for each in keys]) for place in range(3)]
    found = cast("list[rows.Row]", connection.execute(_sql.receipts, columns, binary=True).fetchall())
    receipts = (Receipt(ReceiptKey(*row[:3]), *row[3:]) for row in found)
    return {receipt.key: receipt for receipt in receipts}


def newest_position(connection: Connection, changes: Sequence[InstanceChange]) -> int:
    """Return the position of the newest event of these instances."""
    columns = [Uuids([change.header.id for change in changes]), Integers([change.expected for change in changes])]
    row = connection.execute(_sql.newest_position, columns).fetchone()
    return cast("int", row[0]) if row and row[0] is not None else 0


def causes_known(connection: Connection, instances: Sequence[InstanceId], causes: Sequence[str]) -> set[str]:
    """Return those causes that the histories contain."""
    found = connection.execute(_sql.causes, [Uuids(instances), Texts(causes)], binary=True).fetchall()
    return {str(row[0]) for row in found}
