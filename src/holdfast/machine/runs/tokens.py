"""How a token comes to a node."""

from __future__ import annotations

from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs.events import StepCompleted, StepSkipped, StepStarted
from holdfast.machine.runs.state import State


def enter(routes: GraphIndex, state: State, event: StepStarted | StepCompleted | StepSkipped) -> None:
    """A token is at the node of a step that begins with this event."""
    state.next_step = event.step + 1
    token, node = state.tokens[event.token], event.node
    token.visits[node] = token.visits.get(node, 0) + 1
    token.node = node
    if token.scope is not None and routes.is_answering(node):
        token.answerer = node
    token.retry_of, token.first = None, 0


def come_to(state: State, node: str) -> None:
    """Remember where the run is: one that has ended has no token any more that would tell."""
    if not node.startswith("#"):
        state.at = node
