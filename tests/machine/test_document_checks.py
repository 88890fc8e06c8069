"""What the checks refuse of a document: every rule by its code, with the place and the remedy."""

from __future__ import annotations

import pytest

from machine.broken_documents import BROKEN_DOCUMENTS, RIGHT
from standfast.graph.checks import check_graph
from standfast.graph.compiler import graph_bytes, read_graph
from standfast.graph.model import Graph


def findings(graph: Graph) -> list[tuple[str, str, str]]:
    """What is wrong with a graph."""
    found = check_graph(
        kind=graph.kind,
        name=graph.name,
        version=graph.version,
        entry=graph.entry,
        nodes=list(graph.nodes.values()),
        edges=graph.edges,
        policies=graph.policies,
        document=graph.document,
    )
    return [(each.code, each.position, each.message) for each in found]


@pytest.mark.row("E-172", "E-184", "E-186")
@pytest.mark.parametrize("case", BROKEN_DOCUMENTS)
def test_each_rule_names_the_place_and_the_remedy(case: str) -> None:
    """What is wrong is told with the code of its rule, the place, and a sentence with the remedy."""
    code, position, graph = BROKEN_DOCUMENTS[case]
    found = findings(graph)
    assert (code, position) in [(each, place) for each, place, _ in found]
    assert all("; " in message or "does not have" in message for _, _, message in found)


def test_a_sound_envelope_passes_and_comes_back() -> None:
    """Nothing is found in the standard envelope, and a store gives it back with its documents."""
    assert findings(RIGHT) == []
    assert read_graph(graph_bytes(RIGHT)) == RIGHT
