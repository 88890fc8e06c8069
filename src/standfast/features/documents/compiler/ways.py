"""The edges of an artifact as the machine has them.

A refusal that leaves its slot is no edge of the graph: the machine ends everything in the slot and tells the gate.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator

import msgspec

from standfast.expressions import ExpressionOptions, parse
from standfast.features.documents.body import format as b
from standfast.features.documents.body.outcomes import refusal_of, spelt_out
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.contract.expressions import Stored
from standfast.features.documents.contract.parts import ANY, OK, SYSTEM_TYPES, EnvelopeEdge, EnvelopeNode
from standfast.graph import model as g
from standfast.kernel.codec.type_cache import settled


def machine_edges(effective: Effective) -> dict[str, str]:
    """For each edge of the graph, by its id, the edge of the artifact that it stands for: what histories name, and what authors know."""
    return {machine.id: edge.id for edge, machine in _pairs(effective)}


def edges_of(effective: Effective) -> Iterator[g.Edge]:
    """The edges of the graph."""
    return (machine for _, machine in _pairs(effective))


def _pairs(effective: Effective) -> Iterator[tuple[EnvelopeEdge, g.Edge]]:
    for name, leaving in effective.adjacency.items():
        node = effective.nodes_by_id[name]
        said = {effective.edges_by_id[each].on for each in leaving}
        for place, edge_id in enumerate(leaving):
            edge = effective.edges_by_id[edge_id]
            if not _is_refusal(effective, node, edge):
                for word in _words(node, edge, said):
                    yield edge, _edge(node, msgspec.structs.replace(edge, on=word), place)


def _words(node: EnvelopeNode, edge: EnvelopeEdge, said: Collection[str]) -> Collection[str]:
    """What an edge is for."""
    if edge.on != ANY or node.type in SYSTEM_TYPES or "split" in node.config:
        return (edge.on,)
    words = spelt_out(patch_node(node), said)
    return (edge.on,) if words is None else words


def _is_refusal(effective: Effective, node: EnvelopeNode, edge: EnvelopeEdge) -> bool:
    """Whether an edge is a refusal that leaves its slot."""
    is_out = effective.nodes_by_id[edge.target].type == "slot_proxy" and edge.target.endswith(":out")
    return is_out and node.type in {"approval", "rule"} and edge.on == refusal_of(patch_node(node))


def _edge(node: EnvelopeNode, edge: EnvelopeEdge, place: int) -> g.Edge:
    on, assign = edge.on, {}
    if node.type == "wait_event" and on == "event":
        on = g.OK
        into = node.config.get("into")
        assign = {str(into): brought("event.payload")} if into else {}
    if node.type == "condition" and "expression" not in node.config and on == OK:
        on = g.TRUE
    return g.Edge(
        source=edge.source,
        target=edge.target,
        on=on,
        when=edge.when,
        priority=place,
        rework=edge.rework,
        assign=assign,
    )


def patch_node(node: EnvelopeNode) -> b.PatchNode:
    """What the author wrote of a node."""
    found: b.PatchNode = msgspec.convert({**node.config, "id": node.id, "type": node.type}, settled(b.PatchNode))
    return found


@functools.cache
def brought(text: str) -> Stored:
    """A value that comes with an answer or an event."""
    return parse(
        text, spelling="mapping", options=ExpressionOptions(namespaces=frozenset({text.partition(".")[0]}))
    ).to_data()
