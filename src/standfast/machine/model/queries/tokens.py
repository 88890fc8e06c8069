"""How a token comes to a node, and where the run of one token is."""

from __future__ import annotations

from standfast.graph.index import GraphIndex
from standfast.machine.model.events import StepCompleted, StepSkipped, StepStarted
from standfast.machine.model.state import ROOT, RunState, Token

OWN = "#"
"""How the names of nodes begin that the compiler of a process has added."""


def enter(routes: GraphIndex, state: RunState, event: StepStarted | StepCompleted | StepSkipped) -> None:
    """A token is at the node of a step that begins with this event."""
    state.next_step = event.step + 1
    token, node = state.tokens[event.token], event.node
    token.visits[node] = token.visits.get(node, 0) + 1
    if node.startswith(OWN):
        leave(routes, state, token)
    token.node = node
    if token.scope is not None and routes.is_answering(node):
        token.answerer = node
    token.retry_of, token.first = None, 0


def leave(routes: GraphIndex, state: RunState, token: Token) -> None:
    """Remember the step of a process that its token goes away from without coming to another one."""
    if routes.graph.kind == "process" and not token.node.startswith(OWN):
        state.at = token.node


def place_of(state: RunState) -> str:
    """The node that a process is at, or was at last; empty if it has not entered any."""
    token = state.token(ROOT)
    return state.at if token is None or token.node.startswith(OWN) else token.node
