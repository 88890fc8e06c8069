"""From an envelope and an organisation's patches to the workflow that its documents run through: pure, and the same everywhere.

The validator of bodies: everything that is wrong with the patches of an organisation, without publishing anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

import msgspec

from standfast.errors import DefinitionError
from standfast.features.documents.body.checks import NOTHING, examine, read_partly
from standfast.features.documents.body.diagnostics import BodyDiagnostic, ordered
from standfast.features.documents.body.format import Body
from standfast.features.documents.body.node_checks import Chains
from standfast.features.documents.compiler.artifact import (
    ArtifactHeader,
    Effective,
    Gates,
    JoinRequirement,
    sealed,
)
from standfast.features.documents.compiler.assembly import Merger, merged
from standfast.features.documents.compiler.compatibility import COMPILER_VERSION
from standfast.features.documents.compiler.graph import graph_findings
from standfast.features.documents.compiler.proof import check_envelope, prove_gates
from standfast.features.documents.contract.envelope import Envelope
from standfast.features.documents.contract.expressions import Related
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.ids import ENVELOPE
from standfast.features.documents.contract.loading import by_place
from standfast.features.documents.contract.parts import EnvelopeEdge, EnvelopeNode
from standfast.graph.source_files.reading import StructReader
from standfast.kernel.codec.canonical import canonical_hash


def compile_effective(
    envelope: Envelope,
    body: Body | None = None,
    *,
    related: Mapping[str, Contract] = NOTHING,
    chains: Chains = None,
) -> Effective:
    """The workflow of an envelope with an organisation's body, or of the bare one; DefinitionError with every problem.

    `related` are the contracts of types that the documents refer to, so that their fields are checked too; `chains` are the approval
    chains that there are, and without them none is looked for.
    """
    wrong = check_envelope(envelope)
    if not wrong and body is not None:
        merger, wrong = merged(envelope, body, related=related, chains=chains)
    else:
        merger = Merger(envelope, {})
    broken = wrong or prove_gates(envelope, merger.nodes, merger.edges)
    if broken:
        raise DefinitionError(f"the workflow of {envelope.entity_type}", broken)
    return sealed(artifact(envelope, merger))


def artifact(envelope: Envelope, merger: Merger) -> Effective:
    """What was put together and is sound, not sealed yet."""
    nodes = {name: merger.nodes[name] for name in sorted(merger.nodes)}
    edges = {name: merger.edges[name] for name in sorted(merger.edges)}
    tried = sorted(edges.values(), key=lambda edge: (edge.priority, edge.id))
    order = _order(nodes, edges)
    slot_map = {name: node.slot for name, node in nodes.items()}
    required = sorted(name for name, node in envelope.nodes.items() if node.type == "lifecycle_gate")
    return Effective(
        entity_type=envelope.entity_type,
        envelope_version=envelope.version,
        envelope_hash=envelope.hash,
        compiler_version=COMPILER_VERSION,
        contract=envelope.contract,
        nodes_by_id=nodes,
        edges_by_id=edges,
        adjacency=_lists(nodes, tried),
        reverse_adjacency=_back_lists(nodes, edges),
        order=order,
        joins={
            name: JoinRequirement(split=split, tokens=tokens, mode="any" if mode == "any" else "all")
            for name, (split, mode, tokens) in sorted(merger.joins.items())
        },
        windows={name: node.window for name, node in nodes.items()},
        stable=_stable(envelope, nodes),
        slot_map=slot_map,
        gates=Gates(required=required, present=[name for name in order if name in set(required)], is_valid=True),
        header=ArtifactHeader(
            nodes=len(nodes), edges=len(edges), order=len(order), slot_map_hash=canonical_hash(slot_map)
        ),
    )


def _lists(nodes: Mapping[str, EnvelopeNode], tried: list[EnvelopeEdge]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in tried:
        lists[edge.source].append(edge.id)
    return lists


def _back_lists(nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in edges.values():
        lists[edge.target].append(edge.id)
    return lists


def _stable(envelope: Envelope, nodes: Mapping[str, EnvelopeNode]) -> list[str]:
    """The nodes of stable slots, with the state before and the gate behind: a slot that nobody filled protects too."""
    slots = {name: slot for name, slot in envelope.slots.items() if slot.stable}
    ends = {end for slot in slots.values() for end in (slot.entry, slot.exit)}
    return [name for name, node in nodes.items() if node.slot in slots or (node.slot == ENVELOPE and name in ends)]


def _order(nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]) -> list[str]:
    """The nodes in topological order, rework apart; the lowest id first wherever there is a choice."""
    counts = dict.fromkeys(nodes, 0)
    out: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in edges.values():
        if not edge.rework:
            counts[edge.target] += 1
            out[edge.source].append(edge.target)
    free = [name for name, count in counts.items() if not count]
    heapify(free)
    order: list[str] = []
    while free:
        name = heappop(free)
        order.append(name)
        for target in out[name]:
            counts[target] -= 1
            if not counts[target]:
                heappush(free, target)
    assert len(order) == len(nodes), "patches and envelopes have no circles"
    return order


def check_body(
    envelope: Envelope, body: Body | str | bytes, *, related: Related = NOTHING, chains: Chains = None
) -> list[BodyDiagnostic]:
    """Everything that is wrong with a body for this envelope: each problem with code, slot, node or edge; none if it compiles.

    A body that is given as text is reported on with line and column. `related` are contracts of types that the documents refer to,
    `chains` the approval chains that there are; without them none is looked for.
    """
    reader: StructReader | None = None
    if not isinstance(body, Body):
        read = read_partly(body)
        mistakes = [BodyDiagnostic(each.code, each.message, each.position) for each in read.mistakes]
        if read.body is None:
            return mistakes
        body, reader = read.body, read.reader
        if mistakes:
            _, problems = examine(envelope, body, related=related, reader=reader, chains=chains)
            return sorted([*mistakes, *problems], key=by_place)
    merger, problems = merged(envelope, body, related=related, reader=reader, chains=chains)
    return problems or ordered(_late(envelope, merger, body, reader))


def rebased(body: Body, envelope: Envelope) -> Body:
    """The same body for another version of the envelope; what does not fit there any more, the validator says."""
    return msgspec.structs.replace(
        body, base=msgspec.structs.replace(body.base, envelope_version=envelope.version), hash=None
    )


def _late(envelope: Envelope, merger: Merger, body: Body, reader: StructReader | None) -> Iterator[BodyDiagnostic]:
    """What is wrong with the whole though every patch is sound: a contract that nobody has read lets more through than one of a file."""
    found = prove_gates(envelope, merger.nodes, merger.edges) or graph_findings(artifact(envelope, merger))
    for each in found:
        node = merger.nodes.get(each.position)
        slot = "" if node is None or node.slot == ENVELOPE else node.slot
        place, written = each.position, merger.written(each.position)
        if reader is not None:
            place = str(reader.inner(body, "slots", slot) if written is None else reader.at(written))
        yield BodyDiagnostic(each.code, each.message, place, slot=slot, node="" if node is None else node.id)
