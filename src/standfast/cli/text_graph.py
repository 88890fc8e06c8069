"""A run as a text graph: the status of each step, and the edges between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import click
import msgspec

from standfast.cli.framework import is_terminal
from standfast.cli.output import cell, coloured
from standfast.features.runs import views

_MARKS: Final = {
    "": "○",
    "pending": "◌",
    "completed": "✓",
    "confirmed": "✓",
    "paused": "‖",
    "failed": "✗",
    "rejected": "✗",
    "skipped": "↷",
    "compensation": "↶",
    "rolled_back": "↺",
    "cancelled": "⊘",
}
"""Status marks, next to the status word. An active step has a dot."""
_UNDER_WAY: Final = "●"
_NOTHING: Final[Mapping[str, int]] = {}


class _Life(msgspec.Struct):
    """The status of a step; a step that was never entered counts as pending."""

    status: str = "pending"
    visits: int = 0
    attempts: int = 0


class _Node(msgspec.Struct):
    id: str
    live: _Life | None = None
    compensation_name: str = ""
    compensation_live: _Life | None = None


class _Edge(msgspec.Struct):
    source: str
    target: str
    label: str
    is_taken: bool = False


class _Drawing(msgspec.Struct):
    """The used part of the engine's JSON graph."""

    nodes: list[_Node]
    """In the order in which a token meets them."""
    edges: list[_Edge]


def drawn_run(diagram: str, steps: Iterable[views.Step]) -> Iterator[str]:
    """The lines of a run's graph; `steps` are those that it has begun."""
    drawing = msgspec.json.decode(diagram, type=_Drawing)
    width = max((len(node.id) for node in drawing.nodes), default=0)
    errors: dict[str, str] = {}
    states: dict[str, Counter[str]] = {}
    for step in steps:
        states.setdefault(step.name, Counter())[step.status] += 1
        if step.error:
            errors[step.name] = step.error
    for node in drawing.nodes:
        life = node.live or _Life()
        yield _line(node.id, life, width, error=errors.get(node.id, ""), states=states.get(node.id, _NOTHING))
        if node.compensation_live is not None:
            yield "    " + _line(node.compensation_name, node.compensation_live, max(0, width - 4))
        yield from (_way(edge) for edge in drawing.edges if edge.source == node.id)


def _line(name: str, life: _Life, width: int, *, error: str = "", states: Mapping[str, int] = _NOTHING) -> str:
    status = life.status if life.visits else ""
    mark = _MARKS.get(status, _UNDER_WAY)
    counts = [f"{count} {what}" for count, what in ((life.visits, "visits"), (life.attempts, "calls")) if count > 1]
    if len(states) > 1:  # The last visit stands for all of them only if it is like them.
        counts[0] += f": {', '.join(f'{count} {state}' for state, count in states.items())}"
    told = ", ".join([*counts, *([cell(error)] if error else [])])
    return f"{mark} {cell(name):<{width}}  {coloured(status)}{f' ({told})' if told else ''}".rstrip()


def _way(edge: _Edge) -> str:
    label = f"  ({cell(edge.label)})" if edge.label else ""
    line = f"    {'═▶' if edge.is_taken else '─▶'} {cell(edge.target)}{label}"
    return click.style(line, dim=True) if is_terminal() and not edge.is_taken else line
