"""Compiling: the same artifact everywhere, with every gate in its place, and everything that a run looks up."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import rfc8785

from authoring.document.examples import (
    ACTIVE,
    AMEND,
    APPROVE,
    CONTRACT,
    SUBMIT,
    ask,
    bills,
    body,
    body_data,
    changed,
    compiled,
    contract,
    patch,
    usr,
    way,
)
from standfast import DefinitionError
from standfast.features.documents.compiler.artifact import Effective, effective_data, read_effective
from standfast.features.documents.compiler.compatibility import (
    COMPILER_VERSION,
    advance_problem,
    repin_problem,
    start_problem,
)
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.diagram import mermaid_of
from standfast.features.documents.compiler.proof import prove_gates
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.loading import read_contract
from standfast.features.documents.contract.parts import EnvelopeEdge
from standfast.graph.diagrams.diagram_text import in_mermaid
from standfast.kernel.codec.canonical import canonical_hash

Plain = dict[str, object]

SPLIT: Plain = {"id": "s", "type": "parallel_split"}
POST: Plain = {"id": "post", "type": "action", "action": "bill.post"}
RICH: dict[str, Plain] = {
    SUBMIT: patch([{"id": "check", "type": "rule", "rules": [{"name": "r", "effect": "require_field", "field": "number"}]}]),
    APPROVE: patch(
        [SPLIT, ask("a"), ask("b", covers=["total"]), {"id": "j", "type": "parallel_join"}, {"id": "c", "type": "condition"}, ask("d")],
        [
            "c s", way("c d", when="entity.total > 500"), "s a", "s b", "a j approved", "b j approved", "j out", "d out approved",
        ],
        exit="join",
        window="locked",
    ),
    ACTIVE: patch([POST, {"id": "tell", "type": "notification", "to": ["role:x"], "subject": "posted"}], ["post tell"]),
}  # fmt: skip


OUT_OF_APPROVE = "sys:slot:submitted_to_approved:out"


def edges_of(effective: Effective) -> set[tuple[str, str, str]]:
    """From where to where by what."""
    return {(edge.source, edge.target, edge.on) for edge in effective.edges_by_id.values()}


@pytest.mark.row("E-161", "E-919", "E-014")
def test_compiling_is_a_pure_function() -> None:
    """The same input gives the same artifact."""
    assert compiled(RICH) == compiled(RICH)
    assert compiled({APPROVE: patch([ask("manager")])}).nodes_by_id[usr("manager")].type == "approval"


@pytest.mark.row("E-062", "E-063", "E-912", "E-913", "EC-04")
def test_the_hash_does_not_depend_on_order_machine_or_seed() -> None:
    """Shuffled nodes and edges, in processes with other hash seeds, give one hash and one order."""
    data = body_data(RICH)
    seen = {_hash_elsewhere(data, seed) for seed in (1, 2)}
    ours = compiled(RICH)
    assert {(each[0], each[1]) for each in seen} == {(ours.graph_hash, ",".join(ours.order))}


def _hash_elsewhere(data: Plain, seed: int) -> tuple[str, str]:
    shuffled = json.loads(json.dumps(data))
    for each in shuffled["slots"].values():
        random.Random(seed).shuffle(each["nodes"])
        random.Random(seed).shuffle(each["edges"])
    program = (
        "import json,sys\n"
        "from standfast.features.documents.body.checks import read_body\n"
        "from standfast.features.documents.compiler.compiler import compile_effective\n"
        "from standfast.features.documents.contract.envelope import generate_envelope\n"
        "from standfast.features.documents.contract.loading import read_contract\n"
        "contract, body = json.loads(sys.stdin.read())\n"
        "made = compile_effective(generate_envelope(read_contract(json.dumps(contract))), read_body(json.dumps(body)))\n"
        "print(made.graph_hash, ','.join(made.order))"
    )
    source = str(Path(__file__).parents[3] / "src")
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([CONTRACT, shuffled]),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": source},
    )
    first, _, second = done.stdout.strip().partition(" ")
    return first, second


@pytest.mark.row("E-163", "E-164", "E-919")
def test_a_patch_replaces_one_edge_and_adds_its_own() -> None:
    """The direct edge goes; the proxies, their ways and the ways back of the gate come; what the edge asked for moves to the way in."""
    bare, made = compile_effective(bills()), compiled({APPROVE: patch([ask("a")])})
    way_in, way_out, node = "sys:slot:submitted_to_approved:in", "sys:slot:submitted_to_approved:out", usr("a")
    state, gate = "sys:state:submitted", "sys:gate:approve"
    assert edges_of(bare) - edges_of(made) == {(state, gate, "approve")}
    assert edges_of(made) - edges_of(bare) == {
        (state, way_in, "approve"),
        (way_in, node, "ok"),
        (node, way_out, "approved"),
        (node, way_out, "rejected"),
        (way_out, gate, "ok"),
        (gate, way_in, "again"),
    }
    assert set(made.nodes_by_id) - set(bare.nodes_by_id) == {way_in, way_out, node}


def test_a_rejection_before_a_gate_without_a_word_for_it_leaves_the_document_where_it_is() -> None:
    """Of a gate with several sources each way back asks where the document is."""
    made = compiled({SUBMIT: patch([ask("a")]), AMEND: patch([ask("b")])})
    back = {
        (edge.target, edge.on, str((edge.when or {}).get("source")))
        for edge in made.edges_by_id.values()
        if edge.source == "sys:gate:submit" and edge.rework
    }
    assert back == {
        ("sys:state:draft", "reject", "entity.status == 'draft'"),
        ("sys:slot:draft_to_submit:in", "again", "entity.status == 'draft'"),
        ("sys:state:amended", "reject", "entity.status == 'amended'"),
        ("sys:slot:amendment_cycle:in", "again", "entity.status == 'amended'"),
    }


@pytest.mark.row("E-140")
def test_ways_in_and_out_may_be_written_or_left_out() -> None:
    """Both spellings have one hash."""
    short = compiled({APPROVE: patch([ask("a"), ask("b")], ["a b approved"])})
    long = compiled({APPROVE: patch([ask("a"), ask("b")], ["in a", "a b approved", "b out approved"])})
    assert short.hash == long.hash


@pytest.mark.row("E-142", "E-165", "E-172", "E-234", "E-713")
def test_every_node_has_a_window_and_an_empty_patch_can_tighten_one() -> None:
    """The slot's own, or a stricter one of the patch or of the node."""
    made = compiled(
        {SUBMIT: patch([], window="locked"), APPROVE: patch([ask("a"), ask("b", window="locked")], ["a b approved"])}
    )
    assert set(made.windows) == set(made.nodes_by_id)
    assert made.windows["sys:slot:draft_to_submit:in"] == made.windows["sys:slot:draft_to_submit:out"] == "locked"
    assert (made.windows[usr("a")], made.windows[usr("b")]) == ("amend_only", "locked")
    assert ("sys:slot:draft_to_submit:in", "sys:slot:draft_to_submit:out", "ok") in edges_of(made)


@pytest.mark.row("E-166", "E-228", "E-954")
def test_stable_slots_protect_their_nodes_and_their_ends() -> None:
    """The flag of the slot is the source: nodes, proxies, the state before and the gate behind, patched or not."""
    ends = {"sys:state:submitted", "sys:gate:approve"}
    assert set(compile_effective(bills()).stable) == ends
    inside = {usr("a"), "sys:slot:submitted_to_approved:in", "sys:slot:submitted_to_approved:out"}
    assert set(compiled({APPROVE: patch([ask("a")]), SUBMIT: patch([ask("b")])}).stable) == ends | inside
    free = generate_envelope(contract(slots__1__stable=False))
    assert compile_effective(free).stable == []


@pytest.mark.row("E-167", "E-188", "E-712")
def test_the_proof_of_the_gates_is_part_of_the_artifact() -> None:
    """Which gates there have to be, and which there are, in order."""
    made = compiled(RICH)
    assert made.gates.is_valid
    assert made.gates.required == ["sys:gate:approve", "sys:gate:cancel", "sys:gate:submit"]
    assert made.gates.present == ["sys:gate:submit", "sys:gate:approve", "sys:gate:cancel"]


@pytest.mark.row("E-058", "E-179", "E-180", "E-188")
@pytest.mark.parametrize(
    ("gone", "added", "told"),
    [
        ("edge:sys:slot:submitted_to_approved:out->sys:gate:approve", None, "no way leads from"),
        ("", EnvelopeEdge(id="x", source=usr("a"), target="sys:state:active"), "that the envelope does not have"),
        (
            "",
            EnvelopeEdge(id="x", source="sys:state:draft", target="sys:state:active"),
            "that the envelope does not have",
        ),
        (
            "",
            EnvelopeEdge(id="x", source=usr("a"), target="sys:state:draft", rework=True),
            "leads back, and not from a gate",
        ),
        (
            "",
            EnvelopeEdge(id="x", source="sys:gate:submit", target="sys:state:active", rework=True),
            "not from a gate to what",
        ),
        ("edge:sys:gate:approve->sys:state:draft", None, "the way back"),
        ("", EnvelopeEdge(id="x", source="sys:end", target="sys:start"), "leads on from the end"),
        ("", EnvelopeEdge(id="x", source="sys:start", target="ghost"), "a node that is not there"),
        (
            "",
            EnvelopeEdge(id="x", source="sys:slot:approved_to_active:in", target=f"usr:{ACTIVE}:post"),
            "past its policy gate",
        ),
        ("", EnvelopeEdge(id="x", source="sys:state:submitted", target="sys:gate:approve"), "leads past the slot"),
        ("", EnvelopeEdge(id="x", source=usr("d"), target="sys:gate:approve", on="approved"), "crosses the border"),
        ("", EnvelopeEdge(id="x", source="sys:state:submitted", target=usr("d")), "crosses the border"),
        (
            "",
            EnvelopeEdge(id="x", source="sys:gate:submit", target=usr("d"), on="again", rework=True),
            "crosses the border",
        ),
        ("", EnvelopeEdge(id="x", source=usr("a"), target=OUT_OF_APPROVE, on="approved"), "without a join"),
        ("", EnvelopeEdge(id="x", source=usr("a"), target=usr("d"), on="approved"), "without a join"),
        ("", EnvelopeEdge(id="x", source=usr("d"), target=usr("j"), on="error"), "without a join"),
    ],
)
def test_the_proof_finds_what_is_broken(gone: str, added: EnvelopeEdge | None, told: str) -> None:
    """Whatever would let a token past a gate, or end a chain of gates."""
    made = compiled(RICH)
    edges = {name: edge for name, edge in made.edges_by_id.items() if name != gone}
    if added is not None:
        edges[added.id] = added
    assert prove_gates(bills(), made.nodes_by_id, made.edges_by_id) == []
    assert told in " ".join(each.message for each in prove_gates(bills(), made.nodes_by_id, edges))


@pytest.mark.row("E-183")
def test_the_proof_finds_branches_that_leave_their_slot() -> None:
    """Where branches do not meet, several tokens would come to the gate; and no join takes those of another split."""
    made = compiled({APPROVE: patch([SPLIT, ask("a"), ask("b")], ["s a", "s b"], exit="join")})
    join = f"sys:join:{usr('s')}"
    edges = {
        name: msgspec.structs.replace(edge, target=OUT_OF_APPROVE) if edge.target == join else edge
        for name, edge in made.edges_by_id.items()
    }
    found = prove_gates(bills(), made.nodes_by_id, edges)
    assert [each.message for each in found if "without its join" in each.message] != []
    other = msgspec.structs.replace(made.nodes_by_id[join], config={"split": usr("t")})
    found = prove_gates(bills(), {**made.nodes_by_id, join: other}, made.edges_by_id)
    assert [each.node for each in found if "no branch of its split" in each.message] == [join]


@pytest.mark.row("E-058", "E-179", "E-181")
@pytest.mark.parametrize("name", sorted(bills().nodes))
def test_the_proof_misses_every_system_node(name: str) -> None:
    """A graph without one of them is no workflow."""
    made = compiled(RICH)
    nodes = {each: node for each, node in made.nodes_by_id.items() if each != name}
    assert any(each.node == name for each in prove_gates(bills(), nodes, made.edges_by_id))


@pytest.mark.row("E-168", "E-940")
def test_adjacency_names_edges() -> None:
    """What leaves a node and what enters it, by the ids of edges, in the order in which they are tried."""
    made = compiled(RICH)
    for name in made.nodes_by_id:
        leaving = [made.edges_by_id[each] for each in made.adjacency[name]]
        assert all(edge.source == name for edge in leaving)
        assert leaving == sorted(leaving, key=lambda edge: (edge.priority, edge.id))
        assert all(made.edges_by_id[each].target == name for each in made.reverse_adjacency[name])
    assert (
        sum(map(len, made.adjacency.values()))
        == sum(map(len, made.reverse_adjacency.values()))
        == len(made.edges_by_id)
    )


@pytest.mark.row("E-169", "E-444")
def test_edges_have_a_priority_and_a_provenance() -> None:
    """A way with a condition is tried before one without; each says which layer it comes from."""
    made = compiled(RICH)
    asked = {made.edges_by_id[each].target: made.edges_by_id[each].priority for each in made.adjacency[usr("c")]}
    assert asked == {usr("d"): 100, usr("s"): 1000}
    assert made.adjacency[usr("c")][0].endswith(usr("d"))
    assert {edge.provenance for edge in made.edges_by_id.values()} == {"envelope", SUBMIT, APPROVE, ACTIVE}
    assert all("priority" in each for each in effective_data(made)["edges_by_id"].values())  # type: ignore[attr-defined]


@pytest.mark.row("E-170", "ED-09", "EC-04")
def test_the_order_is_topological() -> None:
    """Each node comes after those that lead to it, ways back apart."""
    made = compiled(RICH)
    places = {name: place for place, name in enumerate(made.order)}
    assert set(places) == set(made.nodes_by_id)
    assert all(places[edge.source] < places[edge.target] for edge in made.edges_by_id.values() if not edge.rework)


@pytest.mark.row("E-171", "E-709", "E-016")
def test_joins_wait_for_the_branches_of_their_split() -> None:
    """The number is that of the branches, however many edges lead to the join."""
    nodes: list[Plain] = [
        SPLIT,
        ask("a"),
        ask("b"),
        ask("c"),
        {"id": "x", "type": "condition", "expression": "entity.total > 5"},
    ]
    edges: list[Plain | str] = [
        "s a",
        "s b",
        "s x",
        "x c true",
        "x j false",
        "a j approved",
        "b j approved",
        "c j approved",
    ]
    made = compiled({APPROVE: patch([*nodes, {"id": "j", "type": "parallel_join", "mode": "any"}], edges)})
    assert {name: (each.split, each.tokens, each.mode) for name, each in made.joins.items()} == {
        usr("j"): (usr("s"), 3, "any")
    }


@pytest.mark.row("E-139", "E-183")
def test_a_join_that_was_left_out_is_added() -> None:
    """Branches that lead to the end of the slot meet before it, the inner ones first."""
    nodes: list[Plain] = [SPLIT, ask("a"), {"id": "t", "type": "parallel_split"}, ask("b"), ask("c")]
    made = compiled({APPROVE: patch(nodes, ["s a", "s t", "t b", "t c"], exit="join")})
    outer, inner = f"sys:join:{usr('s')}", f"sys:join:{usr('t')}"
    assert {name: each.tokens for name, each in made.joins.items()} == {outer: 2, inner: 2}
    assert {
        (usr("a"), outer, "approved"),
        (usr("b"), inner, "approved"),
        (usr("c"), inner, "approved"),
        (inner, outer, "ok"),
        (outer, "sys:slot:submitted_to_approved:out", "ok"),
    } <= edges_of(made)


@pytest.mark.row("E-403", "E-025", "E-575")
def test_a_policy_gate_stands_before_every_action() -> None:
    """All ways to an action lead through its gate, and what is denied leaves from there."""
    made = compiled({APPROVE: patch([POST, ask("a")], ["post a denied", "post out ok", "a out approved"], exit="join")})
    gate = f"sys:policy:{usr('post')}"
    assert made.nodes_by_id[gate].type == "policy_gate"
    assert made.reverse_adjacency[usr("post")] == [f"edge:{gate}->{usr('post')}"]
    assert (gate, usr("a"), "denied") in edges_of(made)
    assert made.windows[gate] == made.windows[usr("post")]


@pytest.mark.row("E-680")
def test_a_rejection_that_nobody_routes_leaves_the_slot() -> None:
    """The compiler adds the way; one that the author wrote stands instead."""
    way_out = "sys:slot:submitted_to_approved:out"
    assert (usr("a"), way_out, "rejected") in edges_of(
        compiled({APPROVE: patch([ask("a"), ask("b")], ["a b approved"])})
    )
    routed = compiled({APPROVE: patch([ask("a"), ask("b")], ["a out approved", "a b rejected"], exit="join")})
    assert (usr("a"), usr("b"), "rejected") in edges_of(routed)
    assert (usr("a"), way_out, "rejected") not in edges_of(routed)


@pytest.mark.row("E-174", "E-201")
def test_the_hash_can_be_computed_by_others() -> None:
    """It is the SHA-256 of the canonical JSON of the artifact without it."""
    plain = effective_data(compiled(RICH))
    given = plain.pop("hash")
    assert hashlib.sha256(rfc8785.dumps(plain)).hexdigest() == given  # type: ignore[arg-type]
    assert plain["compiler_version"] == COMPILER_VERSION
    assert plain["envelope_version"] == 1


@pytest.mark.row("E-175", "E-057", "E-832", "ED-22")
def test_what_was_changed_is_not_read() -> None:
    """One approver, one edge, one window: whatever is touched is found by the hash."""
    stored = msgspec.json.encode(compiled(RICH))
    assert read_effective(stored) == compiled(RICH)
    for old, new in (
        (b'"boss"', b'"thief"'),
        (b'"amend_only"', b'"editable"'),
        (b"entity.total > 500", b"entity.total > 501"),
    ):
        assert old in stored
        with pytest.raises(DefinitionError) as caught:
            read_effective(stored.replace(old, new, 1))
        assert [each.code for each in caught.value.diagnostics] == ["WORKFLOW_HASH_MISMATCH"]
    with pytest.raises(DefinitionError, match="cannot be read"):
        read_effective(b"{}")


@pytest.mark.row("E-173")
def test_every_node_is_mapped_to_its_slot() -> None:
    """The nodes of a patch, their policy gates and the two proxies of its slot belong to that slot, all others to the envelope."""
    made = compiled(RICH)
    assert set(made.slot_map) == set(made.nodes_by_id)
    for name, slot in made.slot_map.items():
        _, _, inside = name.partition("slot:")
        assert slot == (f"slot:{inside.partition(':')[0]}" if inside else "envelope"), name
    assert set(made.slot_map.values()) == {"envelope", SUBMIT, APPROVE, ACTIVE}


@pytest.mark.row("E-312")
def test_the_header_matches() -> None:
    """Figures that can be judged without the artifact, and a hash that tells where each node lies."""
    made = compiled(RICH)
    assert made.header.slot_map_hash == canonical_hash(made.slot_map)
    moved = {**RICH, SUBMIT: patch([ask("check")], ["check out approved"])}
    del moved[ACTIVE]
    assert compiled(moved).header.slot_map_hash != made.header.slot_map_hash
    assert (made.header.nodes, made.header.edges, made.header.order) == (
        len(made.nodes_by_id),
        len(made.edges_by_id),
        len(made.order),
    )


@pytest.mark.row("E-190", "E-443", "E-617", "E-015")
def test_a_condition_is_the_same_as_text_and_as_data() -> None:
    """Both have one meaning, down to the hash of their tree."""
    forms = [
        "entity.total > 500 && !(entity.kind == 'goods')",
        {
            "all": [
                {"field": "entity.total", "op": "gt", "value": 500},
                {"not": {"field": "entity.kind", "operator": "eq", "value": "goods"}},
            ]
        },
        {"all": [{"expression": "entity.total > 500"}, {"not": {"expression": "entity.kind == 'goods'"}}]},
    ]
    seen = set()
    for form in forms:
        made = compiled(
            {
                APPROVE: patch(
                    [ask("a")],
                    [way("in a", when=form, id="e"), "in out", "a out approved"],
                    entry="branch",
                    exit="join",
                )
            }
        )
        when = made.edges_by_id["e"].when
        assert when is not None
        seen.add(when["hash"])
    assert len(seen) == 1


@pytest.mark.row("E-191")
def test_the_picture_names_every_node() -> None:
    """Every id is in it, slots are frames, and it is the same each time."""
    made = compiled(RICH)
    picture = mermaid_of(made)
    assert picture == mermaid_of(compiled(RICH))
    assert all(in_mermaid(name) in picture for name in made.nodes_by_id)
    assert picture.count("subgraph") == picture.count("\n    end\n") == len(RICH)


@pytest.mark.row("E-267", "E-920", "E-907", "ED-16")
def test_a_stale_compiler_is_told_of_by_rule() -> None:
    """New documents need the very version; open ones the major; a move needs the same graph."""
    assert start_problem("1.0.0", "1.0.0") is None
    for other in ("1.0.1", "1.1.0", "2.0.0"):
        found = start_problem("1.0.0", other)
        assert found is not None
        assert found.code == "WORKFLOW_COMPILER_STALE"
    assert advance_problem("1.0.0", "1.4.2") is None
    stale = advance_problem("1.9.9", "2.0.0")
    assert stale is not None
    assert stale.code == "WORKFLOW_COMPILER_STALE"
    made = compiled(RICH)
    newer = msgspec.structs.replace(made, compiler_version="1.1.0")
    assert repin_problem(made, newer) is None
    assert repin_problem(made, compile_effective(bills())) is not None


@pytest.mark.row("E-263", "E-268")
def test_the_same_body_has_the_same_graph() -> None:
    """Publishing it again, or an older one once more, is told by the hash of the graph."""
    first, second = body(RICH), body(RICH, description="words change nothing that runs")
    assert compile_effective(bills(), first).graph_hash == compile_effective(bills(), second).graph_hash


def test_contracts_with_other_names_compile_with_patches() -> None:
    """The compiler knows no state by name."""
    text = json.dumps(CONTRACT).replace("submitted", "waiting").replace("approve", "agree").replace("draft", "open")
    other = read_contract(text)
    slots = {
        text.replace("submitted", "waiting").replace("approved", "agreed").replace("draft", "open"): patch([ask("a")])
        for text in (SUBMIT, APPROVE)
    }
    names = {slot.id for slot in other.slots}
    assert set(slots) <= names
    assert compile_effective(generate_envelope(other), body(slots)).gates.is_valid


def test_a_contract_that_changed_is_another_graph() -> None:
    """Fields are part of what a run depends on."""
    later = read_contract(json.dumps(changed(CONTRACT, {"fields__note": {"type": "string"}})))
    assert compile_effective(generate_envelope(later)).graph_hash != compile_effective(bills()).graph_hash
