"""Proof that what is stored about an instance is what its history says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from standfast.calls.catalog.registry import Registry
from standfast.engine.commit.cache import CachedInstance
from standfast.errors import CommandError, NotFoundError, PayloadError, StandfastError
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.codec.equality import difference
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import DEAD_LETTERS
from standfast.kernel.rows import Record, RowKind, kinds, writing_of
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address, InstanceHeader, Loaded

Row = Mapping[str, object]


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison found."""

    instance: InstanceId
    version: int
    """How many events were folded."""
    differences: list[str]
    """Each says what is stored and what the history says; empty when all is well."""

    @property
    def is_sound(self) -> bool:
        """Whether what is stored is what the history says."""
        return not self.differences


def verified(reader: TenantReader, registry: Registry, address: Address) -> Verification:
    """Fold the whole history of an instance again and compare; `reader` must answer as of one moment."""
    cached = reader.load(address)
    whole = cached if cached is None or cached.snapshot is None else reader.load(address, whole=True)
    if whole is None or cached is None:
        raise NotFoundError("instance", address.instance or address.key)
    header = whole.header
    program = registry.get(header.tenant, header.definition, header.definition_version)
    state, records = program.rebuild(whole.events)
    found = [
        *_compare_header(header, program, state, whole.events),
        *_compare_snapshot(cached, program, state),
        *(() if records is None else _compare_rows(reader, header.id, records)),
    ]
    return Verification(instance=header.id, version=header.version, differences=found)


def _compare_snapshot(cached: Loaded, program: Program, state: object) -> Iterable[str]:
    """The state as a snapshot and the events since tell it; without a snapshot there is nothing to compare."""
    kept = cached.snapshot
    if kept is None or not program.takes_snapshot(kept.state_version, kept.fingerprint):
        return  # One of other code is not read, and made anew when the instance goes on.
    try:
        stored = CachedInstance.of(cached, program).state
    except StandfastError as error:
        yield f"snapshot: it cannot be read: {error}"
        return
    if stored != state and difference(stored, state, may_retype=False) and _encoded(stored) != _encoded(state):
        yield from _compare("state", stored, state)


def _encoded(state: object) -> object:
    """What tells states apart whose classes do not say when they are equal; only states that can be encoded have snapshots."""
    try:
        return JsonCodec().encode(state)
    except PayloadError:
        return state


def _compare_header(
    header: InstanceHeader, program: Program, state: object, events: Sequence[StoredEvent]
) -> Iterable[str]:
    yield from _compare("number of events", header.version, len(events))
    yield from _compare("number of commits", header.commits, len({event.cause for event in events}))
    try:
        status = program.status(state)
    except CommandError as error:
        yield f"status: {error}"
        return
    yield from _compare("status", header.status, status.word)
    yield from _compare("reason", header.reason, status.reason)
    yield from _compare("whether it has ended", header.ended_at is not None, status.is_terminal)


def _compare_rows(reader: TenantReader, instance: InstanceId, records: Sequence[Record]) -> Iterable[str]:
    told = rows_told(records)
    for kind in kinds():
        for each in row_differences(kind, reader.rows(kind, instance), told.get(kind, {})):
            yield str(each)


class RowDifference(NamedTuple):
    """A row that is not what the history says of it."""

    kind: RowKind[Record]
    key: object
    stored: Row | None
    told: Row | None

    def __str__(self) -> str:
        """What is stored and what the history says."""
        name = f"{self.kind.name} {_shown(self.key)}"
        return f"{name}: stored is {self.stored!r}, the history says {self.told!r}"


def rows_told(records: Sequence[Record]) -> dict[RowKind[Record], dict[object, Row]]:
    """The rows that the merged records of a whole history leave, by their keys."""
    told: dict[RowKind[Record], dict[object, Row]] = {}
    for record in records:
        kind, act, _ = writing_of(type(record))
        if act == "open":
            told.setdefault(kind, {})[kind.key_of(record)] = msgspec.structs.asdict(record)
        elif act == "change":
            told.setdefault(kind, {})[kind.key_of(record)] = {"changed": "before it was opened"}
    return told


def row_differences(
    kind: RowKind[Record], found: Sequence[Record], told: Mapping[object, Row]
) -> Iterator[RowDifference]:
    """Where the stored rows of a kind are not those of the history."""
    names = kind.row.__struct_fields__
    stored = {kind.key_of(row): {name: getattr(row, name) for name in names} for row in found}
    if stored == told:
        return
    keys: set[Any] = {*stored, *told}  # Those of one kind can be sorted.
    for key in sorted(keys):
        if key in stored or not _may_be_gone(kind, told[key]):
            one, other = stored.get(key), told.get(key)
            if one != other:
                yield RowDifference(kind, key, one, other)


def _may_be_gone(kind: RowKind[Record], row: Row) -> bool:
    """Whether an operator may have discarded it without a word: nothing waits for what could not be undone."""
    return kind is DEAD_LETTERS and row["source"] == "compensation"


def _shown(key: object) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _compare(what: str, stored: object, told: object) -> Iterable[str]:
    if stored != told:
        yield f"{what}: stored is {stored!r}, the history says {told!r}"
