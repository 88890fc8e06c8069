"""The proof that a compiled workflow keeps its envelope: all system nodes, unaltered, and no way between them that the envelope does not have.

It looks at the finished graph alone and knows nothing of how it was made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from standfast.features.documents.body.diagnostics import BodyDiagnostic, ordered
from standfast.features.documents.contract.envelope import Envelope, generate_envelope
from standfast.features.documents.contract.ids import (
    END,
    ENVELOPE,
    IN,
    OUT,
    START,
    gate_id,
    policy_id,
    proxy_id,
    state_id,
)
from standfast.features.documents.contract.parts import (
    BLOCKED,
    BRANCH,
    REJECTED,
    EnvelopeEdge,
    EnvelopeNode,
)

BROKEN: Final = "envelope_broken"


def check_envelope(envelope: Envelope) -> list[BodyDiagnostic]:
    """What is wrong with an envelope: it is the one that its contract gives, or it is none."""
    genuine = generate_envelope(envelope.contract)
    found: list[BodyDiagnostic] = []
    for what, has, wants in (("node", envelope.nodes, genuine.nodes), ("edge", envelope.edges, genuine.edges)):
        for name in sorted(has.keys() | wants.keys()):
            if has.get(name) != wants.get(name):
                told = (
                    "is missing" if name not in has else "does not belong there" if name not in wants else "was altered"
                )
                found.append(
                    _broken(f"the {what} {name!r} of the envelope {told}; generate the envelope anew", **{what: name})
                )
    if envelope.slots != genuine.slots or envelope.version != genuine.version:
        found.append(_broken("the slots or the version of the envelope were altered; generate the envelope anew"))
    return ordered(found)


def prove_gates(
    envelope: Envelope, nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]
) -> list[BodyDiagnostic]:
    """Everything by which a graph fails to keep an envelope; nothing if it keeps it."""
    return ordered(
        [
            *_system_nodes(envelope, nodes),
            *_ends(nodes, edges),
            *_ways(envelope, nodes, edges),
            *_shortcuts(envelope, nodes, edges),
            *_borders(envelope, nodes, edges),
            *_branches(envelope, nodes, edges),
            *_ways_back(envelope, edges),
            *_policies(nodes, edges),
        ]
    )


def _system_nodes(envelope: Envelope, nodes: Mapping[str, EnvelopeNode]) -> Iterator[BodyDiagnostic]:
    for name, wanted in envelope.nodes.items():
        if nodes.get(name) != wanted:
            told = "was altered" if name in nodes else "is missing"
            yield _broken(f"the system node {name!r} {told}; take it as the envelope has it", node=name)
    for name, node in nodes.items():
        if (node.slot == ENVELOPE) is not (name in envelope.nodes):
            yield _broken(f"{name!r} is said to be of {node.slot!r}, which it is not", node=name)


def _ends(nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]) -> Iterator[BodyDiagnostic]:
    for name in (START, END):
        if name not in nodes:
            yield _broken(f"the graph has no {name!r}", node=name)
    for edge in edges.values():
        if edge.source not in nodes or edge.target not in nodes:
            yield _broken(f"{edge.id!r} leads from or to a node that is not there", edge=edge.id)
        if edge.source == END or edge.target == START:
            yield _broken(f"{edge.id!r} leads on from the end, or back to the start", edge=edge.id)


def _ways(
    envelope: Envelope, nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]
) -> Iterator[BodyDiagnostic]:
    """With the inside of slots taken together, the ways between system nodes are those of the envelope."""
    wanted = {(edge.source, edge.target) for edge in envelope.edges.values() if not edge.rework}
    found = set(_contracted(nodes, edges))
    for source, target in sorted(wanted - found):
        yield _broken(f"no way leads from {source!r} to {target!r} any more", node=source)
    for source, target in sorted(found - wanted):
        yield _broken(f"a way leads from {source!r} to {target!r} that the envelope does not have", node=source)


def _shortcuts(
    envelope: Envelope, nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]
) -> Iterator[BodyDiagnostic]:
    """What an organisation has put into a slot lies on every way through it."""
    filled = {(each.entry, each.exit) for each in envelope.slots.values() if proxy_id(each.id, IN) in nodes}
    for edge in edges.values():
        if (edge.source, edge.target) in filled and not edge.rework:
            yield _broken(f"{edge.id!r} leads past the slot between the two", edge=edge.id)


def _borders(
    envelope: Envelope, nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]
) -> Iterator[BodyDiagnostic]:
    """A slot is entered by its way in and left by its way out: that is where its approvals begin anew, and where its branches are waited for."""
    for edge in edges.values():
        source, target = nodes.get(edge.source), nodes.get(edge.target)
        if source is None or target is None or source.slot == target.slot:
            continue
        left, entered = envelope.slots.get(source.slot), envelope.slots.get(target.slot)
        is_left = left is None or (edge.source, edge.target) == (proxy_id(left.id, OUT), left.exit)
        is_entered = entered is None or (
            edge.target == proxy_id(entered.id, IN) and edge.source in {entered.entry, entered.exit}
        )
        if not (is_left and is_entered):
            yield _broken(f"{edge.id!r} crosses the border of a slot, and not at its ends", edge=edge.id)


def _branches(
    envelope: Envelope, nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]
) -> Iterator[BodyDiagnostic]:
    """Branches meet inside of their slot, so that it is the one token of the document that leaves it."""
    out: defaultdict[str, list[EnvelopeEdge]] = defaultdict(list)
    for edge in edges.values():
        if edge.source in nodes and edge.target in nodes and not edge.rework and not _is_refusal(nodes, edge):
            out[edge.source].append(edge)
    for slot in envelope.slots.values():
        if proxy_id(slot.id, IN) in nodes:
            yield from _scopes(slot.id, nodes, out)


def _scopes(
    slot: str, nodes: Mapping[str, EnvelopeNode], out: Mapping[str, list[EnvelopeEdge]]
) -> Iterator[BodyDiagnostic]:
    """Follow a token through a slot, with the splits that it is inside of, from the outermost."""
    pending = [proxy_id(slot, IN)]
    scopes: dict[str, tuple[str, ...]] = {pending[0]: ()}
    while pending:
        name = pending.pop()
        node, scope = nodes[name], scopes[name]
        if node.slot != slot or name == proxy_id(slot, OUT):
            if scope:
                yield _broken(f"a branch of {scope[-1]!r} leaves {slot!r} without its join", node=name)
            continue
        if node.type == "parallel_join":
            if scope[-1:] != (node.config.get("split"),):
                yield _broken(f"a way leads to the join {name!r} that is no branch of its split", node=name)
                continue
            scope = scope[:-1]
        for edge in out[name]:
            inner = (*scope, name) if edge.on == BRANCH else scope
            if edge.target not in scopes:
                scopes[edge.target] = inner
                pending.append(edge.target)
            elif scopes[edge.target] != inner:
                yield _broken(f"{edge.id!r} leads into a branch, or out of one, without a join", edge=edge.id)


def _is_refusal(nodes: Mapping[str, EnvelopeNode], edge: EnvelopeEdge) -> bool:
    """Whether an edge stands for a refusal that leaves the slot: then everything in it is ended first."""
    source = nodes[edge.source]
    return (
        source.type in {"approval", "rule"}
        and edge.on in {REJECTED, BLOCKED}
        and edge.target == proxy_id(source.slot, OUT)
    )


def _contracted(nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]) -> Iterator[tuple[str, str]]:
    out: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges.values():
        if not edge.rework and edge.source in nodes and edge.target in nodes:
            out[edge.source].append(edge.target)
    for name, node in nodes.items():
        if node.slot != ENVELOPE:
            continue
        seen: set[str] = set()
        pending = list(out[name])
        while pending:
            target = pending.pop()
            if target in seen:
                continue
            seen.add(target)
            if nodes[target].slot == ENVELOPE:
                yield name, target
            else:
                pending += out[target]


def _ways_back(envelope: Envelope, edges: Mapping[str, EnvelopeEdge]) -> Iterator[BodyDiagnostic]:
    """A way back is one of the envelope, or leads from a gate to what lies before it."""
    before: dict[str, set[str]] = {
        gate_id(each.name): {state_id(source) for source in each.sources}
        for each in envelope.contract.lifecycle.transitions
    }
    for slot in envelope.slots.values():
        if slot.exit in before:
            before[slot.exit].add(proxy_id(slot.id, IN))
    for edge in edges.values():
        if not edge.rework or envelope.edges.get(edge.id) == edge:
            continue
        if edge.target not in before.get(edge.source, set()):
            yield _broken(f"{edge.id!r} leads back, and not from a gate to what lies before it", edge=edge.id)
    for edge in envelope.edges.values():
        if edge.rework and edges.get(edge.id) != edge:
            yield _broken(f"the way back {edge.id!r} is missing or was altered", edge=edge.id)


def _policies(nodes: Mapping[str, EnvelopeNode], edges: Mapping[str, EnvelopeEdge]) -> Iterator[BodyDiagnostic]:
    """Nothing leads to an action but its policy gate."""
    for edge in edges.values():
        target = nodes.get(edge.target)
        if target is not None and target.type == "action" and edge.source != policy_id(edge.target):
            yield _broken(f"{edge.id!r} leads to an action past its policy gate", edge=edge.id)
    for name, node in nodes.items():
        if node.type == "action" and policy_id(name) not in nodes:
            yield _broken(f"the action {name!r} has no policy gate", node=name)


def _broken(message: str, *, node: str = "", edge: str = "") -> BodyDiagnostic:
    return BodyDiagnostic(BROKEN, message, edge or node, node=node, edge=edge)
