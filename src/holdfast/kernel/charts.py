"""State machines as pictures: what a workflow's author declares, or what was observed, as Mermaid or DOT."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec

S_contra = TypeVar("S_contra", contravariant=True)

START, END = "[*]", "[*]"

_HARMLESS = str.maketrans(
    dict.fromkeys([*map(chr, range(32)), "\x85", "\u2028", "\u2029", ":", ";"], " ") | {"\\": "/", '"': "'"}
)


class StateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a workflow, in the author's words."""

    status: str
    fields: dict[str, str] = {}
    """What else is worth knowing about the state."""
    is_terminal: bool = False


class TransitionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an input does in a state."""

    input: str
    target: str
    source: str = ""
    effects: tuple[str, ...] = ()
    timers: tuple[str, ...] = ()
    count: int | None = None
    """How often it was observed; None for a transition that is declared."""


class StateMachineView(Protocol[S_contra]):
    """An author's description of a workflow: where it stands, and where it can go from there."""

    def state_info(self, state: S_contra) -> StateInfo:
        """What this state is."""
        ...

    def transitions(self, state: S_contra) -> list[TransitionInfo]:
        """What can happen in this state."""
        ...

    def machine(self) -> StateMachineDefinition | None:
        """The whole graph, if the author draws it."""
        ...


class StateMachineDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A whole graph of states and transitions."""

    name: str
    initial: str = ""
    states: tuple[StateInfo, ...]
    transitions: tuple[TransitionInfo, ...]

    def to_mermaid(self) -> str:
        """The graph as a Mermaid state diagram."""
        names = {state.status: f"s{number}" for number, state in enumerate(self.states)}
        lines = ["stateDiagram-v2"]
        lines += [f'    state "{_quoted(status)}" as {name}' for status, name in names.items()]
        if self.initial in names:
            lines.append(f"    {START} --> {names[self.initial]}")
        for each in self.transitions:
            source = names.get(each.source, START)
            lines.append(f"    {source} --> {names.get(each.target, END)}: {_label(each)}")
        lines += [f"    {names[state.status]} --> {END}" for state in self.states if state.is_terminal]
        return "\n".join(lines) + "\n"

    def to_dot(self) -> str:
        """The graph in the DOT language."""
        lines = [f'digraph "{_quoted(self.name)}" {{', "    rankdir=LR;", "    node [shape=box, style=rounded];"]
        for state in self.states:
            shape = ", peripheries=2" if state.is_terminal else ""
            lines.append(f'    "{_quoted(state.status)}" [label="{_quoted(state.status)}"{shape}];')
        if self.initial or not all(each.source for each in self.transitions):
            lines.append(f'    "{START}" [shape=point];')
        if self.initial:
            lines.append(f'    "{START}" -> "{_quoted(self.initial)}";')
        for each in self.transitions:
            source = _quoted(each.source) if each.source else START
            lines.append(f'    "{source}" -> "{_quoted(each.target)}" [label="{_label(each)}"];')
        return "\n".join([*lines, "}"]) + "\n"


def observed_machine(name: str, moves: Iterable[tuple[str, str, str, int]]) -> StateMachineDefinition:
    """The graph of observed moves (from, input, to, count): it shows only what really happened."""
    seen = list(moves)
    statuses = dict.fromkeys(status for source, _, target, _ in seen for status in (source, target) if status)
    leaving = {source for source, _, target, _ in seen if source != target}
    return StateMachineDefinition(
        name=name,
        states=tuple(StateInfo(status=status, is_terminal=status not in leaving) for status in statuses),
        transitions=tuple(
            TransitionInfo(source=source, input=given, target=target, count=count)
            for source, given, target, count in seen
        ),
    )


def _label(each: TransitionInfo) -> str:
    extras = [*(f"+{name}" for name in each.effects), *(f"after {name}" for name in each.timers)]
    counted = f" ({each.count}x)" if each.count is not None else ""
    return _quoted(" / ".join([each.input, *extras]) + counted)


def _quoted(text: str) -> str:
    """Text that cannot break out of a label."""
    return text.translate(_HARMLESS)
