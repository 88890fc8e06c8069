"""How a document may be edited now: the strictest of what its status and the places of its tokens say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from standfast.graph.document_index import DocumentIndex, strictest
from standfast.graph.document_spec import Window
from standfast.graph.index import GraphIndex
from standfast.graph.model import GateOp
from standfast.graph.model import StateOp as StateNode
from standfast.kernel.actor import Actor
from standfast.machine.model.document_state import Document
from standfast.machine.model.state import RunState


class EffectiveWindow(NamedTuple):
    """A window, and what it comes from."""

    window: Window
    places: tuple[str, ...]
    """The nodes that tokens are at."""
    is_stable: bool
    """Whether the content may not change there."""


def index_of(routes: GraphIndex) -> DocumentIndex:
    """What the graph says of its documents."""
    assert routes.documents is not None
    return routes.documents


def recall_objection(state: RunState, actor: Actor) -> str:
    """Why somebody cannot recall a document: only whoever wants it does, as long as no gate has used a decision up; empty if they can."""
    document = document_of(state)
    intent = document.intent
    asked = set() if intent is None else {intent.by, intent.on_behalf_of, *intent.before}
    if actor.kind != "system" and not {actor.id, actor.on_behalf_of} & ({state.requester, *asked} - {""}):
        return "only whoever created it or asked for its transition recalls it"
    if document.sealed:
        return "a gate has used decisions on it, so it is not recalled any more"
    return ""


def document_of(state: RunState) -> Document:
    """The document of a run that has one."""
    assert state.document is not None
    return state.document


def is_behind_gate(routes: GraphIndex, state: RunState) -> bool:
    """Whether steps are under way that lie between a gate and the state that it leads to: the document has the status, and has not arrived."""
    regions = index_of(routes).regions
    for token in (*state.tokens.values(), *state.parked.values()):
        region = regions.get(routes.node(token.node).region) if token.node else None
        if region is not None and isinstance(routes.node(region.exit).op, StateNode):
            return True
    return False


def _places(routes: GraphIndex, state: RunState) -> Iterator[str]:
    """The nodes that tokens are at: a branch that has arrived waits at its join."""
    joins = _joins(routes, state) if state.scopes else {}
    for name, token in (*state.tokens.items(), *state.parked.items()):
        place = joins.get(name, token.node)
        held = token.stay.target if token.stay is not None else ""
        if held and isinstance(routes.node(held).op, StateNode):  # It was led back, and arrives when the run goes on.
            place = held
        if place:
            yield place


def _joins(routes: GraphIndex, state: RunState) -> dict[str, str]:
    """The joins where branches wait that have arrived, by their tokens."""
    return {
        name: join.id
        for scope in state.scopes.values()
        if (join := routes.join_of(scope.node)) is not None
        for name in scope.arrived
    }


def _closed_gates(routes: GraphIndex, state: RunState) -> set[str]:
    """The gates that let the document not through: it has stayed where it was."""
    return {step.node for step in state.dead.values() if isinstance(routes.node(step.node).op, GateOp)}


def window_of(routes: GraphIndex, state: RunState) -> EffectiveWindow:
    """How the document may be edited."""
    index, document = index_of(routes), document_of(state)
    places = () if document.is_resting else tuple(dict.fromkeys(_places(routes, state)))
    closed = _closed_gates(routes, state) if state.dead else set()
    window = strictest(
        index.spec.states[document.status],
        *(index.spec.windows.get(place, "editable") for place in places if place not in closed),
    )
    is_stable = not index.stable.isdisjoint(places)
    return EffectiveWindow("amend_only" if is_stable and window == "editable" else window, places, is_stable)
