"""From nodes and edges to a graph: checked, put in canonical order, hashed; and from a graph to its stored form and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from holdfast.errors import DefinitionError, Diagnostic, PayloadError
from holdfast.kernel.canonical import canonical_hash
from holdfast.machine.checks import check_graph
from holdfast.machine.graph import IR_VERSION, Edge, Graph, Kind, Node, Policies

_encoder = msgspec.json.Encoder(order="deterministic")


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
    found = check_graph(kind=kind, name=name, version=version, entry=entry, nodes=nodes, edges=edges, policies=policies)
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
    """The stored form of a graph: the same bytes for the same graph."""
    return _encoder.encode(graph)


def read_graph(data: bytes) -> Graph:
    """A stored graph. DefinitionError if it was changed since it was compiled, or comes from code that is newer than this."""
    try:
        header = msgspec.json.decode(data, type=_Header)
        _check_version(header)
        graph = msgspec.json.decode(data, type=Graph)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the stored graph cannot be read: {error}; restore it, or publish the workflow again"
        raise _refusal("", "unreadable_graph", message) from error
    if graph.hash != _hash_as_read(graph):
        message = "the stored graph is not the one that was compiled: something changed it; restore it from a backup"
        raise _refusal(graph.name, "changed_graph", message)
    return graph


class _Header(msgspec.Struct):
    """What can be read of a graph from any version of the code."""

    name: str
    ir_version: int


def _check_version(header: _Header) -> None:
    """Refuse what this code would misread, before it tries."""
    if 1 <= header.ir_version <= IR_VERSION:
        return
    message = (
        f"the stored graph has the form {header.ir_version}, and this code knows the forms up to {IR_VERSION}; "
        "run it with the version of Holdfast that compiled it, or a newer one"
    )
    raise _refusal(header.name, "unknown_ir_version", message)


def _hash_as_read(graph: Graph) -> str:
    try:
        return graph_hash(graph)
    except PayloadError:
        return ""  # What has no hash was never compiled.


def _refusal(name: str, code: str, message: str) -> DefinitionError:
    return DefinitionError(name or "the workflow", [Diagnostic(code, message)])
