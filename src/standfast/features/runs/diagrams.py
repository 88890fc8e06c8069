"""Drawings of workflows with what is stored about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from standfast.errors import PayloadError
from standfast.features.runs.views import Step
from standfast.graph.diagrams import graph_diagram as drawing
from standfast.graph.model import ANY_OUTCOME, BRANCH, Graph
from standfast.kernel.history import StoredEvent
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import StoredStep
from standfast.machine.model.events import StepCompleted, StepSkipped

Format = Literal["mermaid", "dot", "json"]

_LANGUAGES = {"mermaid": drawing.mermaid, "dot": drawing.dot, "json": drawing.graph_json}
_ENDS = {"step_completed", "step_skipped"}
_UNDOING = {"pending": "running", "completed": "completed", "running": "running"}


def drawn(
    graph: Graph,
    format: Format,  # noqa: A002 - the word that everybody uses for it
    *,
    steps: Sequence[Step] = (),
    rows: Sequence[StoredStep] = (),
    chosen: Collection[str] = (),
) -> str:
    """A graph in one of the languages for drawings; with steps, it shows what became of each node and which ways were taken.

    `chosen` are the edges that the history names; of ways that the rows cannot tell apart, these were taken.
    """
    draw = _LANGUAGES.get(format)
    if draw is None:
        raise PayloadError(f"there is no drawing as {format!r}; there are {', '.join(_LANGUAGES)}")
    return draw(graph, _lives(graph, steps, rows), taken=_taken(graph, rows, chosen)) if rows else draw(graph)


def _lives(graph: Graph, steps: Sequence[Step], rows: Sequence[StoredStep]) -> dict[str, drawing.NodeLife]:
    lives: dict[str, drawing.NodeLife] = {}
    for step in steps:
        before = lives.get(step.name)
        visits = 1 if before is None else before.visits + 1
        lives[step.name] = drawing.NodeLife(status=step.status, visits=visits, attempts=step.retry_count)
    for row in rows:
        name = graph.nodes[row.node].compensation_name
        if row.compensates is not None and name and row.outcome != "rolled_back":
            status = _UNDOING.get(row.status, row.status)
            lives[name] = drawing.NodeLife(status=status, visits=1, attempts=row.attempts)
    return lives


def rivals(graph: Graph) -> set[str]:
    """The edges that lead to the same node by the same outcome as others, and differ in what they ask for."""
    ends = Counter((edge.source, edge.on, edge.target) for edge in graph.edges)
    return {edge.id for edge in graph.edges if ends[edge.source, edge.on, edge.target] > 1}


def chosen_edges(events: Iterable[StoredEvent], program: Program) -> set[str]:
    """The edges that a history names: those that were chosen among several."""
    ends = (program.decode(each) for each in events if each.type in _ENDS)
    return {each.edge for each in ends if isinstance(each, StepCompleted | StepSkipped)}


def _taken(graph: Graph, rows: Sequence[StoredStep], chosen: Collection[str]) -> set[str]:
    """The edges that tokens went along: those of an outcome that a step had, to a node that was entered."""
    entered = {row.node for row in rows}
    left = {(row.node, row.outcome) for row in rows if row.kind == "forward" and row.status == "completed"}
    nodes, alike = {node for node, _ in left}, rivals(graph)
    return {
        edge.id
        for edge in graph.edges
        if edge.target in entered
        and (edge.id not in alike or edge.id in chosen)
        and ((edge.source, edge.on) in left or (edge.on in {BRANCH, ANY_OUTCOME} and edge.source in nodes))
    }
