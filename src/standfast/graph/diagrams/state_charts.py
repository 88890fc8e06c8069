"""State charts as Mermaid or DOT, declared by an author or observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import msgspec

from standfast.graph.diagrams.diagram_text import digraph, dot_arrow, dot_box, in_mermaid, written

S_contra = TypeVar("S_contra", contravariant=True)

OUTSIDE = "[*]"
"""Mermaid's symbol for the start and end of a chart."""


class StateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a workflow, as the author describes it."""

    status: str
    fields: dict[str, str] = {}
    """Further information about the state."""
    is_terminal: bool = False


class TransitionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A transition from a state by an input."""

    input: str
    target: str
    source: str = ""
    effects: tuple[str, ...] = ()
    timers: tuple[str, ...] = ()
    count: int | None = None
    """How often it was observed. None for a declared transition."""


class StateMachineView(Protocol[S_contra]):
    """An author's description of a workflow: its current state and the possible transitions."""

    def state_info(self, state: S_contra) -> StateInfo:
        """Describe a state."""
        ...

    def transitions(self, state: S_contra) -> list[TransitionInfo]:
        """Return the transitions from a state."""
        ...

    def machine(self) -> StateMachineDefinition | None:
        """Return the whole chart, if the author provides one."""
        ...


class StateMachineDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A complete chart of states and transitions."""

    name: str
    initial: str = ""
    states: tuple[StateInfo, ...]
    transitions: tuple[TransitionInfo, ...]

    def to_mermaid(self) -> str:
        """Return the chart as a Mermaid state diagram."""
        keys = self._keys()
        lines = [f'state "{in_mermaid(status)}" as {key}' for status, key in keys.items()]
        lines += [f"{OUTSIDE} --> {keys[self.initial]}"] if self.initial else []
        for each in self.transitions:
            source, target = keys.get(each.source, OUTSIDE), keys.get(each.target, OUTSIDE)
            lines.append(f"{source} --> {target}: {_label(each, in_mermaid)}")
        lines += [f"{keys[state.status]} --> {OUTSIDE}" for state in self.states if state.is_terminal]
        return written("stateDiagram-v2", lines)

    def to_dot(self) -> str:
        """Return the chart in the DOT language."""
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
        """Return a key for each state, including those named only by transitions.

        The empty name is outside the chart.
        """
        spoken_of = [self.initial, *(name for each in self.transitions for name in (each.source, each.target))]
        names = dict.fromkeys([*(state.status for state in self.states), *filter(None, spoken_of)])
        return {name: f"s{number}" for number, name in enumerate(names)}


def observed_machine(name: str, moves: Iterable[tuple[str, str, str, int]]) -> StateMachineDefinition:
    """Build a chart of observed transitions (from, input, to, count). It contains only what happened."""
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
    """Return the label of a transition, with names escaped for the language."""
    effects = [f"+{spelt(name)}" for name in each.effects]
    timers = [f"after {spelt(name)}" for name in each.timers]
    counted = f" ({each.count}x)" if each.count is not None else ""
    return " / ".join([spelt(each.input), *effects, *timers]) + counted
