"""Names that are stored or emitted are written down in the source, so that a class may get another name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

import standfast
from standfast import CommandError, Decider, Decision, Moment, Settings, message
from standfast.engine.common.telemetry import CommandRefused
from standfast.features.batches.model.decider import BatchDecider
from standfast.features.events.model import PublicationDecider
from standfast.features.operations.alert_model import AlertDecider
from standfast.features.schedules.model.decider import ScheduleDecider
from standfast.kernel.codec.message_types import _WIRE, members_of, wire_name
from standfast.kernel.decider import Decider as AnyDecider
from standfast.kernel.decider import declared_types
from standfast.machine.machine import GraphMachine
from standfast.people.directory import Directory, StaticDirectory
from standfast.people.directory_files import Roster
from standfast.people.directory_tables import TableDirectory
from standfast.store.opening import open_store
from support.engines import Place

NAMES = Path(__file__).parent / "stored-names.txt"
"""A line for each command, event and effect: decider, kind, name and version. Stored work has these names; lines are added, never changed."""
BUILT_IN: dict[str, type[AnyDecider[object, object, object, object]]] = {
    "graph": GraphMachine,  # type: ignore[dict-item]
    "event": PublicationDecider,  # type: ignore[dict-item]
    "schedule": ScheduleDecider,  # type: ignore[dict-item]
    "batch": BatchDecider,  # type: ignore[dict-item]
    "alert": AlertDecider,  # type: ignore[dict-item]
}
KINDS = ("state", "command", "event", "effect")
MESSAGES = {"command", "event", "effect", "errand", "said"}
"""What the source calls a value that has a stored name."""
NOT_STORED = {
    "type(error).__name__",  # Exceptions go by the names of their classes, as everywhere in Python.
    "type(given).__name__",  # The rest is in messages about values and code of the caller, and in the hash of a fold.
    "type(each).__name__",
    "type(build).__name__",
    "type(function).__name__",
    "type(value).__name__",
    "type(decider).__name__",
    "type(projection).__name__",
    "type(status).__name__",
    "type(happening).__name__",
    "type(self).__name__",
    "kind.__name__",
    "cls.__name__",
    "shape.cls.__name__",
    "each.__name__",
    "base.__qualname__",
    "read.__name__",
    "factory.__name__",
    "self.handler.__name__",
}
"""Uses outside of texts."""


def members() -> Iterator[tuple[str, str, type]]:
    """Every command, event and effect of the built-in deciders."""
    for name, decider in BUILT_IN.items():
        for kind, declared in zip(KINDS[1:], declared_types(decider)[1:], strict=True):
            for cls in members_of(declared):
                yield name, kind, cls


def test_stored_names_never_change() -> None:
    """Commands, events and effects of built-in deciders have the names and versions under which they were stored before."""
    lines = [" ".join([name, kind, *map(str, wire_name(cls))]) for name, kind, cls in members()]
    assert sorted(lines) == NAMES.read_text(encoding="utf-8").splitlines()


def test_every_stored_name_is_explicit() -> None:
    """Every command, event and effect of a built-in decider names itself with `@message(name=…)`, so that its class can be renamed."""
    assert [f"{name} {kind} {cls.__name__}" for name, kind, cls in members() if _WIRE not in cls.__dict__] == []


def test_directories_have_stored_names() -> None:
    """What a built-in directory vouches for is stored with a name of its own, not with that of its class."""
    assert all(kind.name is not Directory.name for kind in (StaticDirectory, TableDirectory))
    with closing(open_store("sqlite://")) as store:
        names = (StaticDirectory(Roster()).name, TableDirectory(store).name)
    assert names == ("StaticDirectory", "TableDirectory")


def test_no_emitted_name_is_that_of_a_class() -> None:
    """Commands, events and effects are shown under their stored names in rows, telemetry and errors: the source never asks for their class."""
    root = Path(standfast.__file__).parent
    odd = []
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {id(part) for text in ast.walk(tree) if isinstance(text, ast.JoinedStr) for part in ast.walk(text)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr not in {"__name__", "__qualname__"}:
                continue
            told, asked = ast.unparse(node), ast.unparse(node.value)
            is_message = asked.removeprefix("type(").removesuffix(")").rpartition(".")[2] in MESSAGES
            if is_message or (id(node) not in texts and told not in NOT_STORED):
                odd.append(f"{path.relative_to(root)}:{node.lineno} {told}")
    assert odd == []


@message(name="open")
@dataclass(frozen=True)
class Open:
    """A command that is not stored under the name of its class."""

    workflow_id: str
    is_wrong: bool = False


@message(name="opened")
@dataclass(frozen=True)
class Opened:
    """An event that is not stored under the name of its class."""


class Door(Decider[int, Open, Opened, None]):
    """Counts how often it was opened."""

    type = "door"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Opened) -> int:
        del event
        return state + 1

    def decide(self, state: int, command: Open, moment: Moment) -> Decision:
        del state, moment
        if command.is_wrong:
            raise ValueError("it is locked")
        return Decision.event(Opened())


def test_commands_are_shown_under_their_stored_names(place: Place) -> None:
    """Observations, telemetry and errors name a command as it is stored."""
    engine = place.engine(Settings(observe_inputs=True)).register(Door())
    heard: list[object] = []
    engine.listen(heard.append)
    engine.deciders.execute(Door, Open("d-1"))
    assert [each.input for each in engine.deciders.observations("door")] == ["open"]
    with pytest.raises(CommandError, match=r"on open$"):
        engine.deciders.execute(Door, Open("d-1", is_wrong=True))
    assert [each.command for each in heard if isinstance(each, CommandRefused)] == ["open"]
