"""The form of a golden file: one scenario with all that the store held of it, as JSON that people can read.

Bytes that are JSON are written as that JSON, exactly so that the same bytes come back; other bytes as `{"$text": …}`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import msgspec

from standfast.engine.commit.work_rows import options_of
from standfast.graph.compiler import read_graph
from standfast.graph.index import GraphIndex
from standfast.kernel.actor import request_of
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.history import StoredEvent
from standfast.kernel.program import Program
from standfast.kernel.rows import Record, kinds, writing_of
from standfast.machine.machine import GraphMachine
from standfast.store.records.instances import StoredDefinition, StoredEffect

FILES = Path(__file__).parent / "files"

Plain = dict[str, object]
S = TypeVar("S", bound=msgspec.Struct)

_TEXT = "$text"


class Kin(msgspec.Struct, frozen=True, kw_only=True):
    """A stored definition, and the graph that is read in it, with all defaults."""

    row: Plain
    graph: object


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A stored event, and what its class has beside its data: defaults, and what upcasters make of it."""

    row: Plain
    beside: Plain


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """An effect, a timer or a message that waited, and what today's code reads in it."""

    row: Plain
    says: object
    """The effect or the command, with all defaults."""
    asked: object
    """For whom it is done."""
    options: object = None
    """How an effect is delivered."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot, which must be the fold of the events up to its version."""

    version: int
    state_version: int
    data: object


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One instance: its events, and what they come to."""

    header: Plain
    state_version: int
    """The `state_version` of the machine that the state is told in."""
    state: object
    rows: dict[str, list[Plain]]
    """The rows that are made from the events, by kind."""
    snapshot: Kept | None
    events: list[Fact]


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """What one file holds."""

    scenario: str
    about: str
    definitions: list[Kin]
    lives: list[Life]
    effects: list[Work]
    timers: list[Work]
    messages: list[Work]
    letters: list[Plain]
    """The dead letters at the end, those of effects, timers and messages included."""


def read(path: Path) -> Golden:
    """A golden file."""
    return msgspec.json.decode(path.read_bytes(), type=Golden)


def text_of(golden: Golden) -> bytes:
    """What is written into its file."""
    return msgspec.json.format(msgspec.json.encode(golden), indent=1) + b"\n"


# -- bytes and rows


def shown(data: bytes) -> object:
    """Bytes as they are written into a file."""
    try:
        value: object = msgspec.json.decode(data)
    except msgspec.DecodeError:
        value = None
    is_exact = value is not None and msgspec.json.encode(value) == data
    return value if is_exact else {_TEXT: data.decode()}


def body(value: object) -> bytes:
    """The bytes that were written so."""
    if isinstance(value, dict) and set(value) == {_TEXT}:
        return str(value[_TEXT]).encode()
    return msgspec.json.encode(value)


def row(struct: msgspec.Struct) -> Plain:
    """A stored row as it is written into a file."""
    return {name: _shown(getattr(struct, name)) for name in struct.__struct_fields__}


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        return shown(value)
    if isinstance(value, msgspec.Struct):
        return row(value)
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


def stored(plain: Plain, as_type: type[S]) -> S:
    """The row that was written so."""
    hints = typing.get_type_hints(as_type)
    bodies = {name for name, hint in hints.items() if hint is bytes or bytes in typing.get_args(hint)}
    whole = {name: body(value) if name in bodies and value is not None else value for name, value in plain.items()}
    return msgspec.convert(whole, as_type)


# -- what is read in them


def plain(value: object) -> object:
    """A value of any class as the codec writes it."""
    decoded: object = msgspec.json.decode(JsonCodec().encode(value))
    return decoded


def whole(value: object) -> object:
    """A value of any class as plain data, with the fields that are not written because they have their defaults."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {} if config.tag is None else {str(config.tag_field): config.tag}
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return tag | {name: whole(each) for name, each in fields.items() if each is not msgspec.UNSET}
    if isinstance(value, dict):
        return {str(name): whole(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole(each) for each in value]
    return plain(value)


def beside(event: StoredEvent, value: object) -> Plain:
    """What a decoded event has beside its data."""
    told, data = whole(value), msgspec.json.decode(event.data, type=Plain)
    assert isinstance(told, dict)
    return {name: each for name, each in told.items() if name not in data or data[name] != each}


def lacks(found: object, expected: object, place: str = "") -> list[str]:
    """Where something else is found than expected; a field that was added since is not asked for."""
    if isinstance(found, dict) and isinstance(expected, dict):
        places = [lacks(found.get(name), each, f"{place}.{name}") for name, each in expected.items()]
        return [each for some in places for each in some]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        several = zip(found, expected, strict=True)
        return [each for number, pair in enumerate(several) for each in lacks(*pair, f"{place}[{number}]")]
    return [] if found == expected else [f"{place}: {found!r} instead of {expected!r}"]


def asked(context: bytes | None) -> object:
    """For whom something is done."""
    return whole(request_of(context))


def delivery(effect: StoredEffect) -> object:
    """How an effect is delivered."""
    return whole(options_of(effect))


def graph_programs(definitions: Iterable[StoredDefinition]) -> dict[tuple[str, str], Program]:
    """What runs stored graphs, by name and version; a document may have been moved from one version to another."""
    machines: dict[tuple[str, str], GraphMachine] = {}
    for each in definitions:

        def others(_tenant: str, version: str, name: str = each.name) -> GraphIndex | None:
            found = machines.get((name, version))
            return None if found is None else found.routes

        machines[each.name, each.version] = GraphMachine(read_graph(each.compiled), others=others)
    return {key: Program(machine, JsonCodec()) for key, machine in machines.items()}


def folded(program: Program, events: list[StoredEvent]) -> tuple[object, dict[str, list[Plain]]]:
    """The state that events lead to, as plain data, and the rows that they tell."""
    state, records = program.rebuild(events)
    return plain(state), _told(records or [])


def _told(records: list[Record]) -> dict[str, list[Plain]]:
    told: dict[str, list[Plain]] = {kind.name: [] for kind in kinds()}
    for record in records:
        kind, act, _ = writing_of(type(record))
        assert act != "change", f"a {kind.name} is changed before it is opened: {record}"
        if act == "open":
            told[kind.name].append(row(record))
    return {name: sorted(rows, key=str) for name, rows in told.items() if rows}
