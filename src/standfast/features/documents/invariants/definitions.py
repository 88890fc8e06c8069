"""Published workflows of documents: whether they are what was published, and still what an envelope must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import msgspec

from standfast.errors import DefinitionError
from standfast.features.documents.compiler.compatibility import advance_problem
from standfast.features.documents.invariants.rules import InvariantBreach
from standfast.graph.compiler import compile_graph, graph_bytes, read_graph
from standfast.graph.document_spec import DocumentSpec
from standfast.graph.model import IR_VERSION, Edge, GateOp, Graph, Node, ProxyOp, RestOp, StartOp, StateOp
from standfast.store.records.instances import StoredDefinition

_ENVELOPE = (StartOp, StateOp, RestOp, GateOp)
"""What lies outside of slots."""


def workflow_findings(stored: StoredDefinition) -> Iterator[InvariantBreach]:
    """Everything that is wrong with a published workflow of documents."""
    try:
        graph = read_graph(stored.compiled)
    except DefinitionError as error:
        yield InvariantBreach("WF-04", str(error))
        return
    if graph.hash != stored.hash:
        yield InvariantBreach(
            "WF-04", f"it was published with the hash {stored.hash}, and what is stored has {graph.hash}"
        )
    if stored.compiler != str(IR_VERSION):
        yield InvariantBreach(
            "WF-07", f"it was compiled for the form {stored.compiler}, and this code runs {IR_VERSION}"
        )
    spec = graph.document
    if spec is None:
        yield InvariantBreach("WF-08", "it says nothing of the documents that it manages")
        return
    stale = advance_problem(spec.compiler_version) if spec.compiler_version else None
    if stale is not None:
        yield InvariantBreach("WF-07", stale.message)
    yield from _again(graph, stored.compiled)
    yield from _slots(graph, spec)
    yield from _gates(graph, spec)


def _again(graph: Graph, compiled: bytes) -> Iterator[InvariantBreach]:
    """Whether the compiler makes the same of it, in the same order."""
    try:
        again = compile_graph(
            kind=graph.kind,
            name=graph.name,
            version=graph.version,
            entry=graph.entry,
            nodes=sorted(graph.nodes.values(), key=lambda node: node.id, reverse=True),
            edges=graph.edges[::-1],
            policies=graph.policies,
            rights=graph.rights,
            triggers=graph.triggers,
            document=graph.document,
        )
    except DefinitionError as error:
        yield InvariantBreach("WF-12", f"it does not compile any more: {error}")
        return
    # What was stored before hashes went by value says some defaults, and is the same graph under another hash.
    if msgspec.structs.replace(again, hash=graph.hash) != graph:
        yield InvariantBreach(
            "WF-12", f"compiled again it has the hash {again.hash}, and was published with {graph.hash}"
        )
    if again.edges != graph.edges or compiled != graph_bytes(graph):
        yield InvariantBreach("WF-13", "its nodes or ways are stored in another order than the compiler's")


def _slots(graph: Graph, spec: DocumentSpec) -> Iterator[InvariantBreach]:
    """Whether what lies in a slot is entered and left only where the slot begins and ends."""
    regions = {region.id: region for region in spec.regions}
    for node in graph.nodes.values():
        if node.region and node.region not in regions:
            yield InvariantBreach("WF-06", f"{node.id!r} lies in {node.region!r}, which is no slot of the contract")
        if not node.region and not isinstance(node.op, _ENVELOPE):
            yield InvariantBreach("WF-06", f"{node.id!r} lies in no slot, and is no part of the envelope")
    for edge in graph.edges:
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        if source.region == target.region:
            continue
        one, other = regions.get(source.region), regions.get(target.region)
        leaves = one is None or (_is_proxy(source, "out") and edge.target == one.exit)
        enters = other is None or (_is_proxy(target, "in") and edge.source in {other.entry, other.exit})
        if not (leaves and enters):
            yield InvariantBreach("WF-06", f"the way {edge.id!r} crosses the border of a slot")


def _is_proxy(node: Node, side: str) -> bool:
    return isinstance(node.op, ProxyOp) and node.op.side == side


def _gates(graph: Graph, spec: DocumentSpec) -> Iterator[InvariantBreach]:
    """Whether every status is reached through the gates that lead to it, and through nothing else."""
    nodes = graph.nodes.values()
    states = Counter(node.op.status for node in nodes if isinstance(node.op, StateOp))
    gates = Counter(node.op.transition for node in nodes if isinstance(node.op, GateOp))
    names = chain(
        ((each, states[each]) for each in spec.states), ((each.name, gates[each.name]) for each in spec.transitions)
    )
    for name, count in names:
        if count != 1:
            yield InvariantBreach("WF-08", f"{name!r} has {count} nodes; it must have one")
    targets = {each.name: each.target for each in spec.transitions}
    into: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        into.setdefault(edge.target, []).append(edge)
    for node in nodes:
        if isinstance(node.op, StateOp):
            for origin in _origins(graph, into, node.id):
                op = graph.nodes[origin].op
                is_gate = isinstance(op, GateOp) and targets.get(op.transition) == node.op.status
                if not is_gate and not isinstance(op, StartOp):
                    yield InvariantBreach("WF-08", f"{node.op.status!r} can be reached from {origin!r} past its gates")


def _origins(graph: Graph, into: dict[str, list[Edge]], node: str) -> list[str]:
    """The nodes of the envelope from which a way leads to a node, through slots; ways back are left out."""
    found: dict[str, None] = {}
    seen, waiting = {node}, [node]
    while waiting:
        for edge in into.get(waiting.pop(), ()):
            if edge.rework or edge.source in seen:
                continue
            seen.add(edge.source)
            if isinstance(graph.nodes[edge.source].op, _ENVELOPE):
                found[edge.source] = None
            else:
                waiting.append(edge.source)
    return list(found)
