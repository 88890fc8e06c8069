"""The fold of a run that follows another version of its graph: what is at a node is at that one's counterpart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from standfast.graph.index import GraphIndex
from standfast.machine.model.events import WorkflowSwitched
from standfast.machine.model.state import Followed, RunState, Token

V = TypeVar("V")


def switched(_routes: GraphIndex, state: RunState, event: WorkflowSwitched) -> None:
    """The run goes on there."""
    nodes = event.nodes
    for token in (*state.tokens.values(), *state.parked.values()):
        _token(token, nodes)
    for step in (*state.open.values(), *state.dead.values(), *state.frozen.values()):
        step.node = nodes.get(step.node, step.node)
    for executed in state.executed.values():
        executed.node = nodes.get(executed.node, executed.node)
    state.deciders = _renamed(state.deciders, nodes)
    if state.document is not None:
        for approval in state.document.approvals.values():
            approval.node = nodes.get(approval.node, approval.node)
    state.workflow = Followed(tenant=event.tenant, version=event.version)


def _token(token: Token, nodes: Mapping[str, str]) -> None:
    token.node = nodes.get(token.node, token.node)
    token.visits = _renamed(token.visits, nodes)
    stay = token.stay
    if stay is not None:
        stay.target, stay.node = nodes.get(stay.target, stay.target), nodes.get(stay.node, stay.node)


def _renamed(named: Mapping[str, V], nodes: Mapping[str, str]) -> dict[str, V]:
    """The same by the names of now; where a name was another's before, that one is no more."""
    gone = {new for old, new in nodes.items() if old in named}
    return {nodes.get(name, name): value for name, value in named.items() if name in nodes or name not in gone}
