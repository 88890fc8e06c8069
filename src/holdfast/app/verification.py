"""Proof that what is stored about an instance is what its history says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from holdfast.app.registry import Registry
from holdfast.errors import CommandError, HoldfastError, NotFoundError, PayloadError
from holdfast.kernel.codecs import JsonCodec
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.program import Program
from holdfast.kernel.records import (
    DeadLetterRaised,
    Record,
    StepMoved,
    StepOpened,
    SubscriptionOpened,
    TaskOpened,
)
from holdfast.kernel.sameness import difference
from holdfast.machine.machine import GraphMachine
from holdfast.machine.runs.events import Event
from holdfast.runtime.commit.cache import CachedInstance
from holdfast.store.reading import Reader
from holdfast.store.shapes import Address, Header, Loaded

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


def verified(reader: Reader, registry: Registry, address: Address) -> Verification:
    """Fold the whole history of an instance again and compare; `reader` must answer as of one moment."""
    cached = reader.load(address)
    whole = cached if cached is None or cached.snapshot is None else reader.load(address, whole=True)
    if whole is None or cached is None:
        raise NotFoundError("instance", address.instance or address.key)
    header = whole.header
    program = registry.get(header.tenant, header.definition, header.definition_version)
    decider = program.decider
    state: object
    rows: Iterable[str]
    if isinstance(decider, GraphMachine):
        events = [program.decode(event) for event in whole.events if not event.is_system]
        state, records = decider.rebuild(cast("list[Event]", events))
        rows = _compare_rows(reader, header.id, records)
    else:
        state, rows = CachedInstance.of(whole, program).state, ()
    found = [
        *_compare_header(header, program, state, len(whole.events)),
        *_compare_snapshot(cached, program, state),
        *rows,
    ]
    return Verification(instance=header.id, version=header.version, differences=found)


def _compare_snapshot(cached: Loaded, program: Program, state: object) -> Iterable[str]:
    """The state as a snapshot and the events since tell it; without a snapshot there is nothing to compare."""
    if cached.snapshot is None:
        return
    try:
        stored = CachedInstance.of(cached, program).state
    except HoldfastError as error:
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


def _compare_header(header: Header, program: Program, state: object, events: int) -> Iterable[str]:
    yield from _compare("number of events", header.version, events)
    try:
        status = program.status(state)
    except CommandError as error:
        yield f"status: {error}"
        return
    yield from _compare("status", header.status, status.word)
    yield from _compare("reason", header.reason, status.reason)
    yield from _compare("whether it has ended", header.ended_at is not None, status.is_terminal)


def _compare_rows(reader: Reader, instance: InstanceId, records: Sequence[Record]) -> Iterable[str]:
    expected = _expected(records)
    stored: dict[str, dict[int, Row]] = {
        "step": {row.number: _shown(row, _STEP) for row in reader.steps(instance)},
        "task": {row.number: _shown(row, _TASK) for row in reader.tasks(instance)},
        "subscription": {row.number: _shown(row, _SUBSCRIPTION) for row in reader.subscriptions(instance)},
        "letter": {
            row.number: {**_shown(row, _LETTER), "payload": row.data}
            for row in reader.dead_letters(instance=instance, limit=_MANY)
            if row.source in {"step", "compensation"}
        },
    }
    for kind, rows in stored.items():
        if kind == "letter":  # Those of compensations may be discarded: nothing waits for them.
            discarded = {n for n, row in expected[kind].items() if row["source"] == "compensation" and n not in rows}
            expected[kind] = {n: row for n, row in expected[kind].items() if n not in discarded}
        for number in sorted({*rows, *expected[kind]}):
            yield from _compare(f"{kind} {number}", rows.get(number), expected[kind].get(number))


_MANY = 100_000
_STEP = (
    "node",
    "token",
    "visit",
    "kind",
    "status",
    "compensates",
    "retry_of",
    "wait_kind",
    "attempts",
    "outcome",
    "error",
    "input",
    "output",
)
_LETTER = ("source", "name", "type", "reason", "error")
_TASK = ("subject", "role", "data", "outcome", "actor", "comment")
_SUBSCRIPTION = ("signal", "correlation")


def _expected(records: Sequence[Record]) -> dict[str, dict[int, Row]]:
    rows: dict[str, dict[int, Row]] = {"step": {}, "task": {}, "subscription": {}, "letter": {}}
    for record in records:
        match record:
            case StepOpened():
                rows["step"][record.number] = _shown(record, _STEP)
            case TaskOpened():
                rows["task"][record.number] = _shown(record, _TASK)
            case SubscriptionOpened():
                rows["subscription"][record.number] = _shown(record, _SUBSCRIPTION)
            case DeadLetterRaised():
                rows["letter"][record.number] = {**_shown(record, _LETTER), "payload": record.payload}
            case StepMoved():
                rows["step"][record.number] = {"moved": "before it was opened"}
            case _:
                pass  # A row that has gone.
    return rows


def _shown(row: object, names: Sequence[str]) -> Row:
    return {name: getattr(row, name) for name in names}


def _compare(what: str, stored: object, told: object) -> Iterable[str]:
    if stored != told:
        yield f"{what}: stored is {stored!r}, the history says {told!r}"
