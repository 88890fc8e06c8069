"""State machines as pictures: what a workflow's author declares, or what was observed, as Mermaid or DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import msgspec

from standfast.graph.diagrams.diagram_text import digraph, dot_arrow, dot_box, in_mermaid, written

S_contra = TypeVar("S_contra", contravariant=True)

OUTSIDE = "[*]"
"""How Mermaid writes where a machine begins and where it ends."""


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
        keys = self._keys()
        lines = [f'state "{in_mermaid(status)}" as {key}' for status, key in keys.items()]
        lines += [f"{OUTSIDE} --> {keys[self.initial]}"] if self.initial else []
        for each in self.transitions:
            source, target = keys.get(each.source, OUTSIDE), keys.get(each.target, OUTSIDE)
            lines.append(f"{source} --> {target}: {_label(each, in_mermaid)}")
        lines += [f"{keys[state.status]} --> {OUTSIDE}" for state in self.states if state.is_terminal]
        return written("stateDiagram-v2", lines)

    def to_dot(self) -> str:
        """The graph in the DOT language."""
        keys = self._keys()
        ends = {state.status for state in self.states if state.is_terminal}
        ways = [("outside", keys[self.initial], "")] if self.initial else []
        ways += [
            (keys.get(each.source, "outside"), keys.get(each.target, "outside"), _label(each, str))
            for each in self.transitions
        ]
        lines = ["rankdir=LR;", "node [shape=box, style=rounded];"]
        lines += [dot_box(key, [name], *(["peripheries=2"] if name in ends else [])) for name, key in keys.items()]
        lines += ["outside [shape=point];"] if any("outside" in way[:2] for way in ways) else []
        return digraph(self.name, [*lines, *(dot_arrow(*way) for way in ways)])

    def _keys(self) -> dict[str, str]:
        """A key for each state, also for one that only a transition speaks of; what has no name is outside of the machine."""
        spoken_of = [self.initial, *(name for each in self.transitions for name in (each.source, each.target))]
        names = dict.fromkeys([*(state.status for state in self.states), *filter(None, spoken_of)])
        return {name: f"s{number}" for number, name in enumerate(names)}


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


def _label(each: TransitionInfo, spelt: Callable[[str], str]) -> str:
    """What a transition says; the names in it are spelt as the language wants them."""
    effects = [f"+{spelt(name)}" for name in each.effects]
    timers = [f"after {spelt(name)}" for name in each.timers]
    counted = f" ({each.count}x)" if each.count is not None else ""
    return " / ".join([spelt(each.input), *effects, *timers]) + counted
