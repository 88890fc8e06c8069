"""From nodes and edges to a graph: checked, put in canonical order, hashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from holdfast.errors import DefinitionError
from holdfast.kernel.canonical import canonical_hash
from holdfast.machine.checks import check_graph
from holdfast.machine.graph import Edge, Graph, Kind, Node, Policies

LOOPING: frozenset[Kind] = frozenset({"process", "rules"})


def compile_graph(
    *,
    kind: Kind,
    name: str,
    version: str,
    entry: str,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    policies: Policies,
) -> Graph:
    """The graph of these nodes and edges; DefinitionError with every finding if it is not sound."""
    found = check_graph(nodes, edges, entry, may_loop=kind in LOOPING)
    if found:
        raise DefinitionError(name, found)
    graph = Graph(
        kind=kind,
        name=name,
        version=version,
        entry=entry,
        nodes={node.id: node for node in sorted(nodes, key=lambda node: node.id)},
        edges=tuple(sorted(edges, key=lambda edge: (edge.source, edge.priority, edge.id))),
        policies=policies,
    )
    return msgspec.structs.replace(graph, hash=graph_hash(graph))


def graph_hash(graph: Graph) -> str:
    """The hash over everything that a run depends on."""
    plain = cast("dict[str, object]", msgspec.to_builtins(graph))
    del plain["hash"]
    return canonical_hash(plain)


def graph_bytes(graph: Graph) -> bytes:
    """The stored form of a graph."""
    return msgspec.json.encode(graph)


def read_graph(data: bytes) -> Graph:
    """A stored graph; one that was changed is refused."""
    graph = msgspec.json.decode(data, type=Graph)
    if graph.hash != graph_hash(graph):
        raise DefinitionError(graph.name, [])
    return graph
