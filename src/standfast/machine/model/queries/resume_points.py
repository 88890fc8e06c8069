"""Where a paused run stands and which step it goes on with, as its state and its graph tell it."""

from __future__ import annotations

from typing import Final, NamedTuple

from standfast.graph.model import OK, Graph, HumanOp
from standfast.machine.model.state import RunState, StepState

_EXECUTE: Final = "/execute/"


class ResumePoint(NamedTuple):
    """Where a run stands, and where it goes on."""

    paused_step: str
    next_step: str


def action_name(step: str, number: int) -> str:
    """The name of the node for an action that a step of rules executes."""
    return f"{step}{_EXECUTE}{number + 1}"


def step_name(node: str) -> str:
    """The step of rules that a node belongs to, by its id in the file."""
    return node.rpartition(_EXECUTE)[0] or node


def resume_point(state: RunState, graph: Graph) -> ResumePoint:
    """The step at which a run is paused, and the one that it goes on with: of parallel ways, those of the first one.

    Rules that wait are paused too: they go on where the answer leads that they wait for.
    """
    found = _resume_point(state, graph)
    return ResumePoint(*map(step_name, found)) if graph.kind == "rules" else found


def _resume_point(state: RunState, graph: Graph) -> ResumePoint:
    if state.status != "paused":
        waiting = next((each.node for each in state.open.values()), "")
        return ResumePoint(waiting, _behind(graph, waiting) if waiting else "")
    for token in state.tokens.values():
        step = _step_of(state, token.id)
        if token.stay is not None:
            return ResumePoint(token.stay.node or token.node, token.stay.target)
        if step is not None:
            return ResumePoint(step.node, step.node)
    return ResumePoint("", "")


def _behind(graph: Graph, node: str) -> str:
    """The node that a good answer leads to; empty if the run ends there."""
    op = graph.nodes[node].op
    good = op.approval if isinstance(op, HumanOp) else OK
    return next((edge.target for edge in graph.edges if edge.source == node and edge.on == good), "")


def _step_of(state: RunState, token: str) -> StepState | None:
    steps = (*state.dead.values(), *state.frozen.values(), *state.open.values())
    return next((each for each in steps if each.token == token), None)
