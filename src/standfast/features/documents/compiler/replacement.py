"""Whether a tenant's contract may stand before the shared one of its type: only if that allows it, and never with fewer rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.format import Contract
from standfast.graph import rights_diff as rights
from standfast.graph.model import Graph

Related = Mapping[str, Contract]


def fewer_rights(shared: Contract, own: Contract, *, related: Related) -> Iterator[str]:
    """What the tenant's contract lets callers do that the shared one does not, each with what to do. Any slot may be filled with approvals."""
    slots = {each.id for each in shared.slots}
    for each in rights.fewer_rights(_graph(shared, related), _graph(own, related), slots):
        yield f"{each.told} in the shared contract; {each.remedy}"


def _graph(contract: Contract, related: Related) -> Graph:
    """The graph of a contract, as it is where slots are filled: then some transitions begin by themselves."""
    graph = graph_of(compile_effective(generate_envelope(contract), related=related))
    assert graph.document is not None
    begins = {each.name: each.begins for each in contract.lifecycle.transitions}
    transitions = tuple(replace(each, begins=begins[each.name]) for each in graph.document.transitions)
    return replace(graph, document=replace(graph.document, transitions=transitions))
