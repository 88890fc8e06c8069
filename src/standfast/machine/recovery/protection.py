"""What no operator can get past: gates, and approvals that one of them needs."""

from __future__ import annotations

from collections.abc import Iterable

from standfast.graph.index import GraphIndex
from standfast.graph.model import GateOp, HumanOp, Node
from standfast.kernel.decision import Rejection
from standfast.machine.model.rejections import Refusal, refused


def is_protected(node: Node) -> bool:
    """Whether no operator can go past a node: a gate, or an approval that one of them needs."""
    return node.op.is_protected or (isinstance(node.op, HumanOp) and node.op.pins)


def protected(node: Node) -> Rejection:
    """What is said to whoever tries."""
    told = f"{node.id!r} is a protected gate: it opens by what it waits for, and no operator can go past it"
    return refused(Refusal.PROTECTED, told)


def before_gates(routes: GraphIndex, place: str) -> list[Node]:
    """The nodes that a token at a node may come to before it comes to a gate."""
    found: dict[str, None] = {}
    waiting = [place]
    while waiting:
        at = waiting.pop()
        for edge in routes.graph.edges:
            if edge.source == at and edge.target not in found and not isinstance(routes.node(edge.target).op, GateOp):
                found[edge.target] = None
                waiting.append(edge.target)
    return [routes.node(each) for each in found]


def ahead(routes: GraphIndex, places: Iterable[str], *, until: str) -> list[Node]:
    """The nodes that tokens at these places are at, or may come to before a node; the graph is walked, which only operators cause."""
    found: dict[str, None] = {}
    waiting = [place for place in places if place and place != until]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found[place] = None
            waiting += [edge.target for edge in routes.graph.edges if edge.source == place and edge.target != until]
    return [routes.node(place) for place in found]
