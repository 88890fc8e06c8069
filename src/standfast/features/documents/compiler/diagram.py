"""A compiled workflow as a picture: a box for each node, those of a slot in a frame of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.contract.ids import ENVELOPE
from standfast.features.documents.contract.parts import OK, EnvelopeEdge, EnvelopeNode
from standfast.graph.diagrams.diagram_text import in_mermaid, written

_SHAPES: Final = {
    "start": ('(["', '"])'),
    "end": ('(["', '"])'),
    "state": ('("', '")'),
    "lifecycle_gate": ('{{"', '"}}'),
    "policy_gate": ('{{"', '"}}'),
    "slot_proxy": ('(("', '"))'),
    "approval": ('[/"', '"/]'),
    "condition": ('{"', '"}'),
    "rule": ('{"', '"}'),
}
_BOX: Final = ('["', '"]')


def mermaid_of(effective: Effective) -> str:
    """The workflow as a Mermaid flowchart that names every node by its id; the same workflow gives the same text."""
    title = in_mermaid(f"{effective.entity_type}, envelope {effective.envelope_version}")
    return written(f"%% {title}\nflowchart TD", _statements(effective))


def _statements(effective: Effective) -> Iterator[str]:
    keys = {name: f"n{place}" for place, name in enumerate(effective.order)}
    slots = sorted({slot for slot in effective.slot_map.values() if slot != ENVELOPE})
    for name in effective.order:
        if effective.slot_map[name] == ENVELOPE:
            yield _box(keys[name], effective.nodes_by_id[name])
    for place, slot in enumerate(slots):
        yield f'subgraph s{place}["{in_mermaid(slot)}"]'
        for name in effective.order:
            if effective.slot_map[name] == slot:
                yield _box(keys[name], effective.nodes_by_id[name])
        yield "end"
    for name in effective.order:
        for edge_id in effective.adjacency[name]:
            edge = effective.edges_by_id[edge_id]
            yield _arrow(keys[edge.source], keys[edge.target], edge)


def _box(key: str, node: EnvelopeNode) -> str:
    before, after = _SHAPES.get(node.type, _BOX)
    title = str(node.config.get("title", ""))
    lines = [node.id, *([title] if title else []), f"{node.type}, {node.window}"]
    return f"{key}{before}{in_mermaid(*lines)}{after}"


def _arrow(source: str, target: str, edge: EnvelopeEdge) -> str:
    asks = "" if edge.when is None else str(edge.when.get("source", ""))
    label = ": ".join(text for text in ("" if edge.on == OK else edge.on, asks) if text)
    told = f'|"{in_mermaid(label)}"|' if label else ""
    return f"{source} {'-.->' if edge.rework else '-->'}{told} {target}"
