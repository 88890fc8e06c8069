"""All that is stored of documents, read for many of them at once and as of one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, kinds
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.seals import StoredSeal
from standfast.store.records.instances import (
    InstanceHeader,
    Receipt,
    Snapshot,
    StoredEffect,
    StoredTimer,
    escaped,
    within,
)

S = TypeVar("S", StoredEvent, StoredEffect, StoredTimer, StoredSeal, Record)


class Evidence(NamedTuple):
    """What is stored of one document."""

    header: InstanceHeader
    events: Sequence[StoredEvent]
    snapshot: Snapshot | None
    rows: Mapping[RowKind[Record], Sequence[Record]]
    effects: Sequence[StoredEffect]
    timers: Sequence[StoredTimer]
    receipts: Sequence[Receipt]
    seals: Sequence[StoredSeal]


def gathered(
    reader: TenantReader, headers: Sequence[InstanceHeader], receipts: Sequence[Receipt], seals: Sequence[StoredSeal]
) -> list[Evidence]:
    """What is stored of these; the reader answers as of one moment, and receipts and seals are older than that."""
    names = [each.id for each in headers]
    events = _by_instance(reader.histories(names))
    effects = _by_instance(reader.effects_of(names))
    timers = _by_instance(reader.timers_of(names))
    snapshots = reader.snapshots(names)
    sealed = _by_instance(seals)
    rows = {kind: _by_instance(reader.rows_of(kind, names)) for kind in kinds()}
    by_scope: defaultdict[str, list[Receipt]] = defaultdict(list)
    for receipt in receipts:
        by_scope[receipt.key.scope].append(receipt)
    return [
        Evidence(
            header=header,
            events=events.get(header.id, ()),
            snapshot=snapshots.get(header.id),
            rows={kind: found[header.id] for kind, found in rows.items() if header.id in found},
            effects=effects.get(header.id, ()),
            timers=timers.get(header.id, ()),
            seals=sealed.get(header.id, ()),
            receipts=[each for scope in scopes_of(header) for each in by_scope.get(scope, ())],
        )
        for header in headers
    ]


def scopes_of(header: InstanceHeader) -> set[str]:
    """Under which names commands for an instance have receipts: its id, for those who name its partition and those who do not, and its key."""
    identity, key = str(header.id), f"{escaped(header.definition)}:{header.key}"
    return {identity, within(header.partition, identity), within(header.partition, key)}


def _by_instance(found: Sequence[S]) -> dict[InstanceId, list[S]]:
    grouped: defaultdict[InstanceId, list[S]] = defaultdict(list)
    for each in found:
        grouped[each.instance].append(each)  # type: ignore[attr-defined]
    return dict(grouped)
