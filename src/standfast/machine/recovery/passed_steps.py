"""What a run has left behind, and what is under way: a fork takes over the one and asks for the other again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from standfast.graph.index import GraphIndex
from standfast.graph.model import CallOp, HumanOp
from standfast.kernel.facts import asks_fact
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.state import RunState, StepState


def approvals_passed(routes: GraphIndex, state: RunState) -> list[str]:
    """The questions to people that a run has left behind: with other data they are void, and have to be asked again."""
    return list(dict.fromkeys(node for node in nodes_passed(state) if isinstance(routes.node(node).op, HumanOp)))


def approvals_kept(routes: GraphIndex, state: RunState) -> list[str]:
    """The questions whose answers stay when the run is given other data: those it has left behind and does not ask again. A document voids its approvals."""
    if state.document is not None:
        return []
    again = {(step.token, step.node) for step in under_way(state)}
    nodes = dict.fromkeys(node for token, node in _places_passed(state) if (token, node) not in again)
    return [node for node in nodes if isinstance(routes.node(node).op, HumanOp)]


class Called(NamedTuple):
    """A definition that a run calls."""

    definition: str
    version: str
    """Empty for the newest one."""


def decisions_passed(turn: DecisionBuilder, state: RunState) -> list[str]:
    """The same, with the calls that a run has left behind whose workflows ask people."""
    calls = calls_passed(turn.routes, state)
    asking = (node for node, called in calls.items() if turn.fact(asks_fact(*called)).value)
    return list(dict.fromkeys((*approvals_passed(turn.routes, state), *asking)))


def calls_passed(routes: GraphIndex, state: RunState) -> dict[str, Called]:
    """The calls of other workflows that a run has left behind, by the names of their nodes."""
    ops = {node: routes.node(node).op for node in nodes_passed(state)}
    return {node: Called(op.definition, op.version) for node, op in ops.items() if isinstance(op, CallOp)}


def nodes_passed(state: RunState) -> Iterator[str]:
    """The nodes that were entered and left, as far as the state remembers them."""
    return (node for _, node in _places_passed(state))


def _places_passed(state: RunState) -> Iterator[tuple[str, str]]:
    """The same, with the tokens that were there."""
    yield from ((each.token, each.node) for each in state.executed.values())
    present = Counter((step.token, step.node) for step in under_way(state))
    for token in (*state.tokens.values(), *state.parked.values()):
        yield from ((token.id, node) for node, count in token.visits.items() if count > present[token.id, node])


def under_way(state: RunState) -> list[StepState]:
    """The steps of a run that have not ended, in the order in which they began: these are asked for again."""
    steps = [*state.open.values(), *state.dead.values(), *state.frozen.values()]
    return sorted(steps, key=lambda step: step.number)
