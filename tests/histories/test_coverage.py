"""The golden histories hold everything that is written: what is new and has no file yet is told here."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from pathlib import Path

import msgspec

from histories.golden import FILES, Golden, Life, read, text_of
from standfast.features.batches.model import messages as batches
from standfast.features.schedules.model import messages as schedules
from standfast.graph.model import Node
from standfast.kernel.codec.message_types import wire_name
from standfast.kernel.history import TIMER_CANCELLED, TIMER_REQUEUED
from standfast.kernel.rows import kinds
from standfast.machine.model.commands.run_commands import RunStep
from standfast.machine.model.events import Event

REMEDY = "write a scenario in tests/histories and make its file: PYTHONPATH=tests .venv/bin/python -m histories.make"


def goldens() -> list[tuple[Path, Golden]]:
    """All files."""
    return [(path, read(path)) for path in sorted(FILES.glob("*.json"))]


def lives() -> Iterable[Life]:
    """All instances of all files."""
    return (life for _, golden in goldens() for life in golden.lives)


def test_every_event_has_a_golden_history() -> None:
    """Each name and version of an event of the machine, of schedules and batches, and each event of the kernel's own, occurs in a file."""
    held = {(fact.row["type"], fact.row["version"]) for life in lives() for fact in life.events}
    told = (Event, schedules.Event, batches.Event)
    written = {wire_name(cls) for each in told for cls in typing.get_args(each)} | {
        (TIMER_CANCELLED, 1),
        (TIMER_REQUEUED, 1),
    }
    assert written - held == set(), REMEDY


def test_every_effect_has_a_golden_history() -> None:
    """The effect that calls handlers, and those of schedules and batches, occur in their present versions."""
    held = {(work.row["type"], work.row["version"]) for _, golden in goldens() for work in golden.effects}
    effects = (RunStep, schedules.StartScheduled, *typing.get_args(batches.Effect))
    assert {wire_name(each) for each in effects} - held == set(), REMEDY


def test_every_kind_of_node_has_a_golden_history() -> None:
    """Each kind of node occurs in a stored graph."""
    ops = typing.get_args(typing.get_type_hints(Node)["op"])
    tags = {op.__struct_config__.tag for op in ops}
    held = {
        node["op"]["op"]
        for _, golden in goldens()
        for definition in golden.definitions
        for node in msgspec.convert(definition.row["compiled"], dict[str, typing.Any])["nodes"].values()
    }
    assert tags - held == set(), REMEDY


def test_every_kind_of_row_has_a_golden_history() -> None:
    """Each kind of row that is made from events occurs."""
    assert {kind.name for kind in kinds()} - {name for life in lives() for name in life.rows} == set(), REMEDY


def test_files_are_written_in_one_way() -> None:
    """Each file is what the maker writes: nobody has edited it by hand in another form."""
    assert [path.name for path, golden in goldens() if text_of(golden) != path.read_bytes()] == []
