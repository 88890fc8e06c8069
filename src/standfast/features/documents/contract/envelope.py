"""From a contract to its envelope: the skeleton of system nodes and edges that every organisation's workflow keeps.

Nobody writes an envelope. It follows from the lifecycle, so the two cannot disagree, and its ids are the same wherever it is generated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from standfast.errors import Diagnostic
from standfast.features.documents.contract.edit_windows import strictest
from standfast.features.documents.contract.format import Contract, LifecycleTransition, Slot, Window
from standfast.features.documents.contract.ids import END, START, edge_id, gate_id, state_id
from standfast.features.documents.contract.parts import (
    AMEND,
    AMENDED,
    OK,
    PASS,
    REJECT,
    TIMEOUT,
    EnvelopeEdge,
    EnvelopeNode,
)
from standfast.kernel.codec.canonical import canonical_hash

REUSED: Final = "ENVELOPE_VERSION_REUSED"
OUTDATED: Final = "ENVELOPE_OUTDATED"


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The skeleton of a type of documents."""

    entity_type: str
    version: int
    """That of the lifecycle."""
    nodes: dict[str, EnvelopeNode]
    edges: dict[str, EnvelopeEdge]
    slots: dict[str, Slot]
    contract: Contract
    """What it was generated from; its fields are not part of the envelope's hash."""
    hash: str = ""

    def content_hash(self) -> str:
        """The hash over nodes, edges and slots."""
        plain = msgspec.to_builtins(self)
        return canonical_hash({name: plain[name] for name in ("entity_type", "version", "nodes", "edges", "slots")})


def generate_envelope(contract: Contract) -> Envelope:
    """The envelope of a contract that was found sound."""
    nodes = {node.id: node for node in sorted(_nodes(contract), key=lambda node: node.id)}
    edges = sorted(_with_rework(_numbered(_edges(contract))), key=lambda edge: edge.id)
    made = Envelope(
        entity_type=contract.entity_type,
        version=contract.lifecycle.version,
        nodes=nodes,
        edges={edge.id: edge for edge in edges},
        slots={slot.id: slot for slot in sorted(contract.slots, key=lambda slot: slot.id)},
        contract=contract,
    )
    return msgspec.structs.replace(made, hash=made.content_hash())


def direct_edges(contract: Contract) -> set[tuple[str, str]]:
    """The pairs of system nodes that a slot can lie between."""
    return {(edge.source, edge.target) for edge in _with_rework(_numbered(_edges(contract))) if not edge.rework}


def version_problem(old: Envelope, new: Envelope) -> Diagnostic | None:
    """What is wrong with putting a new envelope beside an old one: another skeleton under the same version."""
    if old.version != new.version or old.hash == new.hash:
        return None
    message = f"version {new.version} of the envelope of {new.entity_type!r} exists and is another one; raise `lifecycle.version`"
    return Diagnostic(REUSED, message, new.entity_type)


def outdated_warning(pinned: Envelope, newest: Envelope) -> Diagnostic | None:
    """What is odd about a body on an older envelope: it is compiled against that one, and another is there."""
    if pinned.version >= newest.version:
        return None
    message = f"the body is written for version {pinned.version} of the envelope, and there is version {newest.version}; rebase it"
    return Diagnostic(OUTDATED, message, newest.entity_type)


def gate_window(contract: Contract, transition: LifecycleTransition) -> Window:
    """The window of a gate: the document still is what it was, unless that was open; before an end nothing is edited."""
    life = contract.lifecycle
    if transition.window is not None:
        return transition.window
    if transition.to in life.terminal:
        return "locked"
    before = strictest(*(life.states[name].window for name in transition.sources))
    return life.states[transition.to].window if before == "editable" else before


def completes(contract: Contract, state: str) -> bool:
    """Whether a round of work is over at a state: nothing but cancelling leads on from it."""
    said = contract.lifecycle.states[state].completes
    if said is not None:
        return said
    return all(each.kind == "cancel" for each in contract.lifecycle.transitions if state in each.sources)


def _nodes(contract: Contract) -> Iterator[EnvelopeNode]:
    life = contract.lifecycle
    yield EnvelopeNode(id=START, type="start", window="editable")
    for name, state in life.states.items():
        config: dict[str, object] = {"status": name}
        if state.timeout is not None:
            config |= {"timeout": state.timeout}
        yield EnvelopeNode(id=state_id(name), type="state", window=state.window, config=config)
    for each in life.transitions:
        window = gate_window(contract, each)
        yield EnvelopeNode(
            id=gate_id(each.name), type="lifecycle_gate", window=window, config={"transition": each.name}
        )
    yield EnvelopeNode(id=END, type="end", window="locked")


def _edges(contract: Contract) -> Iterator[EnvelopeEdge]:
    """The edges in the order of the contract, which says which of them lead back where several could."""
    life = contract.lifecycle
    yield _edge(START, state_id(life.initial))
    for each in life.transitions:
        for source in each.sources:
            yield _edge(state_id(source), gate_id(each.name), each.name)
        yield _edge(gate_id(each.name), state_id(each.to), PASS)
    for name, state in life.states.items():
        if name in life.terminal or completes(contract, name):
            yield _edge(state_id(name), END)
        if state.on_timeout is not None:
            yield _edge(state_id(name), gate_id(state.on_timeout), TIMEOUT)
    for each in life.transitions:
        if each.on_reject is not None:
            yield _edge(gate_id(each.name), state_id(each.on_reject), REJECT, rework=True)
    if life.amended is not None:
        yield _edge(START, state_id(life.amended), AMENDED)
        yield from _amendments(contract, life.amended)


def _amendments(contract: Contract, amended: str) -> Iterator[EnvelopeEdge]:
    """The ways of documents that stay the same when they are amended."""
    life = contract.lifecycle
    for name, state in life.states.items():
        if contract.amendment == "in_place" and state.window != "editable" and name not in life.terminal:
            yield _edge(state_id(name), state_id(amended), AMEND, rework=True)


def _edge(source: str, target: str, on: str = OK, *, rework: bool = False) -> EnvelopeEdge:
    return EnvelopeEdge(id="", source=source, target=target, on=on, label="" if on == OK else on, rework=rework)


def _numbered(edges: Iterator[EnvelopeEdge]) -> list[EnvelopeEdge]:
    """The edges with their ids; a number tells those apart that lead from and to the same."""
    counts: Counter[tuple[str, str]] = Counter()
    named: list[EnvelopeEdge] = []
    for edge in edges:
        counts[edge.source, edge.target] += 1
        name = edge_id(edge.source, edge.target, counts[edge.source, edge.target])
        named.append(msgspec.structs.replace(edge, id=name))
    return named


def _with_rework(edges: list[EnvelopeEdge]) -> list[EnvelopeEdge]:
    """The edges, those marked that lead back: the walk from the start, in the order of the contract, finds them."""
    out: dict[str, list[EnvelopeEdge]] = {}
    for edge in edges:
        if not edge.rework:
            out.setdefault(edge.source, []).append(edge)
    is_open = {START}
    done: set[str] = set()
    back: set[str] = set()
    trail = [(START, iter(out.get(START, ())))]
    while trail:
        name, following = trail[-1]
        onward = next(following, None)
        if onward is None:
            trail.pop()
            is_open.discard(name)
            done.add(name)
        elif onward.target in is_open:
            back.add(onward.id)
        elif onward.target not in done:
            is_open.add(onward.target)
            trail.append((onward.target, iter(out.get(onward.target, ()))))
    return [msgspec.structs.replace(edge, rework=edge.rework or edge.id in back) for edge in edges]
