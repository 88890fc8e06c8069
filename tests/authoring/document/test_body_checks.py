"""The validator of patches: every problem at once, each with code, slot, node or edge, in an order that does not depend on the file."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from authoring.document.examples import (
    ACTIVE,
    AMEND,
    APPROVE,
    GONE,
    SUBMIT,
    ask,
    bills,
    body,
    body_data,
    codes,
    compiled,
    contract,
    patch,
    problems,
    usr,
    way,
)
from standfast import DefinitionError
from standfast.features.documents.body.checks import MOST_PROBLEMS, read_body
from standfast.features.documents.body.format import MOST_EDGES, MOST_NODES, Body
from standfast.features.documents.compiler.compiler import check_body, compile_effective, rebased
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.model import HumanOp, SplitOp

Plain = dict[str, object]


def test_a_sound_patch_has_no_problems() -> None:
    """Nothing is wrong with one question."""
    assert problems({APPROVE: patch([ask("a")])}) == []


@pytest.mark.row("E-133", "E-134", "ED-09", "EC-01")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"base": None}, "wrong_type"),
        ({"base": {"entity_type": "bill"}}, "missing_field"),
        ({"slots": []}, "wrong_type"),
        ({"slots": {APPROVE: {"nodes": [], "colour": "red"}}}, "unknown_field"),
        ({"slots": {APPROVE: {"entry": "parallel"}}}, "word"),
        ({"slots": {APPROVE: {"exit": "none"}}}, "word"),
        ({"slots": {APPROVE: {"window": "open"}}}, "word"),
        ({"slots": {APPROVE: {"edges": [{"from": "a", "to": "b", "rework": True}]}}}, "unknown_field"),
        ({"slots": {APPROVE: {"edges": [{"from": "a"}]}}}, "missing_field"),
        ({"nodes": []}, "unknown_field"),
    ],
)
def test_the_form_of_a_body_is_checked(changes: Plain, code: str) -> None:
    """What the format has no word for is refused, also a way back of the author's own."""
    found = check_body(bills(), json.dumps(body_data({}) | changes))
    assert code in [each.code for each in found]
    assert all(each.position.count(":") == 1 for each in found)


@pytest.mark.row("E-189")
def test_a_body_is_for_one_type_and_one_envelope() -> None:
    """Another type and another version are refused."""
    for base in ({"entity_type": "order", "envelope_version": 1}, {"entity_type": "bill", "envelope_version": 2}):
        assert [each.code for each in problems({}, base=base)] == ["base"]


@pytest.mark.row("E-020", "E-146", "E-056")
def test_a_slot_that_is_not_declared_is_unknown() -> None:
    """Nothing is put anywhere but into slots of the envelope."""
    (found,) = problems({"slot:submitted_to_aproved": patch([ask("a")])})
    assert (found.code, found.slot) == ("SLOT_UNKNOWN", "slot:submitted_to_aproved")
    assert f"did you mean '{APPROVE}'" in found.message


@pytest.mark.row("E-135", "E-056", "E-906", "E-020", "E-162")
@pytest.mark.parametrize(
    "name", [f"usr:{SUBMIT}:a", "sys:gate:approve", "usr:a", "a b", "ä", "in", "out", "a" * 65, ":", f"usr:{APPROVE}:"]
)
def test_ids_carry_the_slot(name: str) -> None:
    """Other prefixes, other slots' prefixes, `sys:` and unfit local names are refused."""
    assert "node_id" in codes([ask(name)])


@pytest.mark.row("E-135")
def test_a_full_id_and_its_short_form_are_the_same() -> None:
    """Names are written out before anything is looked at."""
    assert compile_effective(bills(), body({APPROVE: patch([ask("a")])})).graph_hash == (
        compile_effective(bills(), body({APPROVE: patch([ask(usr("a"))])})).graph_hash
    )


@pytest.mark.row("E-022", "E-056", "E-906")
@pytest.mark.parametrize(
    "target", ["sys:state:active", "sys:gate:approve", "sys:end", f"usr:{SUBMIT}:x", "sys:slot:draft_to_submit:out"]
)
def test_edges_stay_in_their_slot(target: str) -> None:
    """An edge to anything else is named."""
    found = problems({APPROVE: patch([ask("a")], [way(f"a {target}", id="e1")])})
    assert [(each.code, each.edge) for each in found if each.code == "edge_scope"] == [("edge_scope", "e1")]


@pytest.mark.row("E-136")
def test_a_serial_entry_has_one_start() -> None:
    """Two starts need the branching entry."""
    assert codes([ask("a"), ask("b")], ["a out approved", "b out approved"], exit="join") == [
        "entry_mode",
        "edge_shadowed",
    ]
    assert codes([ask("a")], [way("in a", when="entity.total > 5")]) == ["entry_mode"]


@pytest.mark.row("E-137")
def test_a_branching_entry_asks_on_its_edges() -> None:
    """Several starts, of which the conditions of the edges from `in` choose one; one that can never be chosen is refused."""
    edges: list[Plain | str] = [way("in a", when="entity.total > 5"), "in b"]
    assert codes([ask("a"), ask("b")], edges, entry="branch", exit="join") == []
    assert codes([ask("a"), ask("b")], ["in a", "in b"], entry="branch", exit="join") == ["edge_shadowed"]


@pytest.mark.row("E-138", "E-139")
def test_a_single_exit_has_one_end() -> None:
    """Two ends need the joining exit."""
    edges: list[Plain | str] = [way("in a", when="entity.total > 5"), "in b"]
    assert codes([ask("a"), ask("b")], edges, entry="branch") == ["exit_mode"]


@pytest.mark.row("E-138", "E-139", "E-402")
def test_a_way_behind_a_refusal_is_no_end_of_its_own() -> None:
    """It refuses the document, like an edge that leads out from `rejected`, unless an approval lies on it; where no gate follows it is a way like others."""
    told: Plain = {"id": "n", "type": "notification", "to": ["ann"], "subject": "no"}
    assert codes([ask("a"), told], ["a out", "a n rejected", "n out"]) == []
    assert codes([ask("a", timeout="1d")], ["a out", "a out timeout"]) == []
    assert codes([ask("a"), ask("b")], ["a out", "a b rejected", "b out"]) == ["exit_mode"]
    assert codes([ask("a"), told], ["a out", "a n rejected", "n out"], slot=ACTIVE) == ["exit_mode"]


@pytest.mark.row("E-141", "E-232", "E-233", "E-019", "E-027")
@pytest.mark.parametrize("slot", [SUBMIT, APPROVE, ACTIVE])
@pytest.mark.parametrize("window", ["editable", "amend_only", "locked"])
def test_a_window_is_only_made_stricter(slot: str, window: str) -> None:
    """For each slot and each window, and for a single node as well."""
    order = ["editable", "amend_only", "locked"]
    is_looser = order.index(window) < order.index(bills().slots[slot].window)
    assert codes([], slot=slot, window=window) == (["window_loosened"] if is_looser else [])
    script: Plain = {"id": "s", "type": "script", "formula": "1", "window": window}
    assert codes([script], slot=slot) == (["window_loosened"] if is_looser else [])


@pytest.mark.row("E-143")
def test_ids_are_unique_and_short() -> None:
    """A node id and an edge id stand for one thing, over all slots and the envelope."""
    assert "duplicate_node" in codes([ask("a"), ask(usr("a"))])
    twice = [way("a b approved", id="e"), way("b out approved", id="e")]
    assert "duplicate_edge" in codes([ask("a"), ask("b")], twice)
    assert "edge_id" in codes([ask("a")], [way("a out approved", id="e" * 129)])
    assert "edge_id" in codes([ask("a")], [way("a out approved", id="é")])
    over = {
        slot: patch([{"id": "s", "type": "script", "formula": "1"}], [way("s out", id="e")])
        for slot in (SUBMIT, APPROVE)
    }
    assert [(each.code, each.slot) for each in problems(over)] == [
        ("duplicate_edge", SUBMIT),
        ("duplicate_edge", APPROVE),
    ]
    taken = "edge:sys:state:active->sys:end"
    assert codes([ask("a")], [way("a out approved", id=taken)]) == ["edge_id"]


@pytest.mark.row("E-144", "E-021", "ED-10")
@pytest.mark.parametrize("kind", ["start", "end", "lifecycle_gate", "policy_gate", "state", "slot_proxy"])
def test_system_types_are_not_for_patches(kind: str) -> None:
    """An author has no word for them."""
    assert codes([{"id": "a", "type": kind}]) == ["word"]


@pytest.mark.row("E-185", "EC-19")
def test_unknown_types_are_answered_with_the_known_ones() -> None:
    """The message lists them, and the nearest."""
    (found,) = problems({APPROVE: patch([{"id": "a", "type": "aproval"}])})
    assert "approval, condition, parallel_split" in found.message
    assert "did you mean 'approval'" in found.message


def _unreadable() -> list[Plain]:
    return [
        {"id": "odd", "type": "aproval", "into": "seen"},
        ask("boss", covers=["grand"], distinct_from=["odd"]),
        {"id": "count", "type": "script", "formula": "context.seen"},
        {"id": "wrong", "type": "script", "formula": "entity.total +"},
    ]


@pytest.mark.row("E-187")
def test_a_node_that_cannot_be_read_hides_nothing_else() -> None:
    """Everything is reported at once, in the order of the file; what names that node, or reads what it keeps, is not wrong by that."""
    edges = ["in odd", "odd boss approved", "boss count approved", "count wrong", "wrong out", "count ghost"]
    found = problems({APPROVE: patch(_unreadable(), edges, exit="join")})
    assert sorted(each.code for each in found) == ["covers", "expression", "unknown_node", "word"]
    assert [each.position for each in found] == sorted((each.position for each in found), key=_place)
    assert "approval" in next(each.message for each in found if each.code == "word")


@pytest.mark.row("E-187")
def test_nothing_is_said_of_ways_that_may_be_missing() -> None:
    """Where a node without a name or an edge cannot be read, nobody knows where the others lead; what they say themselves is still judged."""
    nodes: list[Plain] = [{"type": "script", "formula": "1"}, ask("a"), ask("b", covers=["grand"])]
    edges: list[Plain | str] = ["in a", {"from": "a", "on": "approved"}, "ghost b"]
    assert sorted(each.code for each in problems({APPROVE: patch(nodes, edges)})) == [
        "covers",
        "missing_field",
        "missing_field",
    ]


def _place(position: str) -> tuple[int, int]:
    line, column = position.split(":")
    return int(line), int(column)


@pytest.mark.row("E-662")
def test_a_chain_that_nobody_has_published_is_no_chain() -> None:
    """Where it is known which chains there are, a name that is none of them is found; otherwise nobody looks."""
    data = json.dumps(body_data({APPROVE: patch([{"id": "a", "type": "approval", "chain": "spent"}])}))
    assert check_body(bills(), data) == []
    assert check_body(bills(), data, chains={"spent"}) == []
    (wrong,) = check_body(bills(), data, chains={"spend"})
    assert (wrong.code, wrong.node) == ("unknown_chain", usr("a"))
    assert "spend" in wrong.message


@pytest.mark.row("E-145", "E-178", "E-711")
def test_every_node_lies_on_a_way_through_the_slot() -> None:
    """What nobody leads to and what leads nowhere is named: it would be a second beginning, a second end, or a circle."""
    nodes: list[Plain] = [ask("a"), ask("b"), ask("c")]
    orphan = problems({APPROVE: patch(nodes, ["in a", "a c approved", "c out approved", "b c approved"])})
    assert any(each.code == "entry_mode" and usr("b") in each.message for each in orphan)
    dead_end = problems({APPROVE: patch(nodes, ["in a", "a c approved", "c out approved", way("a b rejected")])})
    assert any(each.code == "exit_mode" and usr("b") in each.message for each in dead_end)
    lost = problems({APPROVE: patch(nodes, ["a out approved", "b c approved", "c b approved"])})
    assert [(each.code, each.node) for each in lost] == [("cycle", usr("b"))]


@pytest.mark.row("E-177", "E-711", "ED-09", "EC-01")
def test_circles_are_named() -> None:
    """The message lists the nodes of the circle."""
    found = problems({APPROVE: patch([ask("a"), ask("b")], ["in a", "a b approved", "b a rejected", "b out approved"])})
    (circle,) = [each for each in found if each.code == "cycle"]
    assert usr("a") in circle.message
    assert usr("b") in circle.message


@pytest.mark.row("E-186")
@pytest.mark.parametrize(
    ("edge", "code"),
    [
        ("a a approved", "self_loop"),
        ("a in approved", "edge_direction"),
        ("out a", "edge_direction"),
        ("a ghost", "unknown_node"),
        ("ghost a", "unknown_node"),
    ],
)
def test_edges_have_ends_that_exist_and_lead_on(edge: str, code: str) -> None:
    """Each way that cannot be one is refused by its own code."""
    assert code in codes([ask("a")], [edge])


@pytest.mark.row("E-183")
@pytest.mark.parametrize(
    ("edges", "code"),
    [
        (["a j approved", "j b"], "join_without_split"),
        (["s a", "s b", "a j approved", "b k approved"], "two_joins"),
        (["s a", "s b", "a j approved", "b out approved", "j out"], "branch_misses_join"),
        (["s a", "a j approved", "j b"], "branches"),
        (["in s", "in b", "s a", "s c", "a b approved", "c j approved"], "mixed_scope"),
    ],
)
def test_splits_and_joins_belong_together(edges: list[str], code: str) -> None:
    """Every join has one split, and the branches of a split meet at one join."""
    nodes: list[Plain] = [ask("a"), ask("b"), ask("c"), {"id": "s", "type": "parallel_split"}]
    nodes += [{"id": "j", "type": "parallel_join"}, {"id": "k", "type": "parallel_join"}]
    named = {name for edge in edges for name in edge.split(" ")[:2]}
    used = [each for each in nodes if each["id"] in named]
    assert code in codes(used, edges, entry="branch", exit="join")


@pytest.mark.row("EO-18", "EO-35")
def test_a_list_goes_on_by_one_edge_and_its_items_have_names_of_their_own() -> None:
    """Several edges, two lists inside of one another with one name; an approval in it covers the list whose items it is about."""
    each: Plain = {"id": "e", "type": "for_each", "items": "entity.tags"}
    assert "branches" in codes([each, ask("a"), ask("b")], ["e a", "e b"], exit="join")
    inner: Plain = {"id": "i", "type": "for_each", "items": "entity.tags"}
    assert codes([each, inner, ask("a")], ["e i", "i a"]) == ["item_clash"]
    assert codes([each, {**inner, "item": "tag"}, ask("a")], ["e i", "i a"]) == []
    made = compiled({APPROVE: patch([each, ask("a", covers=["total"])], ["e a"])})
    (node,) = [node for node in graph_of(made).nodes.values() if isinstance(node.op, HumanOp)]
    (split,) = [node for node in graph_of(made).nodes.values() if isinstance(node.op, SplitOp)]
    assert isinstance(node.op, HumanOp)
    assert isinstance(split.op, SplitOp)
    assert (node.op.covers, split.op.limit, split.op.most) == (("total", "tags"), 60, 60)
    policies = graph_of(made).policies
    assert (policies.max_visits, policies.max_tokens, policies.max_bytes) == (100, 64, 262_144)


@pytest.mark.row("ED-05")
def test_branches_of_a_split_may_ask_and_the_branch_of_a_list_may_not() -> None:
    """Every branch of a split whose condition holds is taken; a list has one branch for all of its items."""
    nodes: list[Plain] = [{"id": "s", "type": "parallel_split"}, ask("a"), ask("b")]
    assert codes(nodes, [way("s a", when="entity.total > 5"), "s b"], exit="join") == []
    assert codes(nodes, [way("s a", when="entity.total >"), "s b"], exit="join") == ["expression"]
    each: list[Plain] = [{"id": "s", "type": "for_each", "items": "entity.tags"}, ask("a")]
    assert codes(each, [way("s a", when="entity.total > 5")], exit="join") == ["branch_condition"]


@pytest.mark.row("E-184")
@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"type": "approval"}, "approvers"),
        ({"type": "approval", "approvers": [{"role": "a"}], "chain": "c"}, "approvers"),
        ({"type": "approval", "approvers": [{}]}, "approvers"),
        ({"type": "approval", "approvers": [{"role": "a", "user": "b"}]}, "approvers"),
        ({"type": "approval", "approvers": [{"role": "a", "of": "b"}]}, "approvers"),
        ({"type": "approval", "approvers": [{"role": "a"}], "agree": "n"}, "agree"),
        ({"type": "approval", "approvers": [{"role": "a"}], "least": 2}, "agree"),
        ({"type": "approval", "chain": "c", "agree": "any"}, "agree"),
        ({"type": "approval", "chain": "c", "covers": ["totl"]}, "covers"),
        ({"type": "approval", "chain": "c", "covers": ["posting"]}, "covers"),
        ({"type": "approval", "chain": "c", "self_approval": True}, "self_approval"),
        ({"type": "approval", "chain": "c", "distinct_from": ["ghost"]}, "distinct_from"),
        ({"type": "approval", "chain": "c", "timeout": "1d", "due": "2d"}, "times"),
        ({"type": "approval", "chain": "c", "escalate_to": "boss"}, "times"),
        ({"type": "approval", "chain": "c", "remind": ["1h", "1h"]}, "times"),
        ({"type": "approval", "chain": "c", "form": {"type": "strin"}}, "form"),
        ({"type": "action"}, "missing_field"),
        ({"type": "action", "action": "bill.psot"}, "unknown_action"),
        ({"type": "action", "action": "bill.shred"}, "action_not_allowed"),
        ({"type": "action", "action": "bill.post", "run_as": "root"}, "run_as"),
        ({"type": "action", "action": "bill.post", "undo": "bill.mark"}, "undo"),
        ({"type": "action", "action": "bill.post", "run_as": "service_account:"}, "run_as"),
        ({"type": "wait_timer"}, "wait"),
        ({"type": "wait_timer", "duration": "1d", "cron": "0 9 * * *"}, "wait"),
        ({"type": "wait_timer", "cron": "every day"}, "wait"),
        ({"type": "wait_timer", "duration": "1d", "time_zone": "UTC"}, "wait"),
        ({"type": "wait_timer", "duration": "one day"}, "duration"),
        ({"type": "wait_event"}, "missing_field"),
        ({"type": "webhook_out"}, "missing_field"),
        ({"type": "notification", "subject": "x"}, "missing_field"),
        ({"type": "notification", "subject": "x", "to": []}, "empty"),
        ({"type": "script"}, "missing_field"),
        ({"type": "rule"}, "missing_field"),
        ({"type": "rule", "rules": [{"name": "r", "effect": "require_field"}]}, "rule"),
        ({"type": "rule", "rules": [{"name": "r", "effect": "require_field", "field": "totl"}]}, "rule"),
        ({"type": "rule", "rules": [{"name": "r", "effect": "block", "outcome": "x"}]}, "rule"),
        ({"type": "rule", "rules": [{"name": "r", "effect": "block"}, {"name": "r", "effect": "warn"}]}, "rule"),
        ({"type": "task"}, "missing_field"),
        ({"type": "call"}, "missing_field"),
        ({"type": "call", "workflow": "w", "input": {"x": "entity.totl"}}, "expression"),
        ({"type": "for_each"}, "missing_field"),
        ({"type": "for_each", "items": "entity.tags", "limit": 0}, "number"),
        ({"type": "for_each", "items": "entity.tagz"}, "expression"),
    ],
)  # fmt: skip
def test_what_a_node_needs_is_checked(node: Plain, code: str) -> None:
    """Each type with an empty or contradictory configuration is refused."""
    assert code in codes([{"id": "a", **node}])


@pytest.mark.row("E-406")
def test_a_step_that_makes_a_document_of_its_own_type_says_which() -> None:
    """An action that creates is done to no document; without the id of a new one, a step would do it to its own."""
    envelope = generate_envelope(contract(actions__4={"name": "bill.copy", "creates": True, "workflow_allowed": True}))
    copying: dict[str, object] = {
        "id": "a",
        "type": "action",
        "action": "bill.copy",
        "payload": {"number": "'2'", "total": "entity.total"},
    }
    for node, expected in ((copying, ["action_not_allowed"]), ({**copying, "target": "entity.owner"}, [])):
        found = check_body(envelope, json.dumps(body_data({ACTIVE: patch([node])})))
        assert [each.code for each in found] == expected
    undone: dict[str, object] = {"id": "a", "type": "action", "action": "bill.post", "undo": "bill.copy"}
    found = check_body(envelope, json.dumps(body_data({ACTIVE: patch([undone])})))
    assert "action_not_allowed" in {each.code for each in found}


def test_a_pattern_that_is_not_taken_is_found_where_it_stands() -> None:
    """A form whose pattern looks ahead is refused with the line and column of the pattern, and the character in it."""
    text = """
base: {entity_type: invoice, envelope_version: 1}
name: Forms
slots:
  "slot:submitted_to_approved":
    nodes:
      - id: manager
        type: approval
        approvers: [{role: manager}]
        form:
          properties:
            note:
              pattern: "^a(?=b)"
"""
    (wrong,) = check_body(generate_envelope(ready_contract("invoice")), text)
    assert (wrong.code, wrong.position) == ("form", "13:24")
    assert "at character 3: '(?=' looks ahead" in wrong.message


@pytest.mark.row("E-182", "E-604", "E-605", "E-606", "E-607", "E-608", "E-029", "E-710", "E-931", "EH-04")
@pytest.mark.parametrize(
    "condition",
    [
        "entity.totl > 5", "entity.total > 'x'", "entity.kind == 'goods '", "__import__('os')", "entity.total + 1 > 2",
        "total > 5", "context.score > 5", "entity.total", "entity.iban contains 5", "org.x > 1 &&", "lambda: 1",
        "entity.total > 1" + " " * 500, " || ".join(["entity.total > 1"] * 21), "(" * 60 + "true" + ")" * 60 + " && entity.x",
        "entity.vendor.address.city == 'x'", "input.total > 5",
    ],
)  # fmt: skip
def test_expressions_are_checked_against_the_contract(condition: str) -> None:
    """Unknown names, wrong types, code and what breaks a limit are refused, with the edge and the character."""
    found = problems(
        {APPROVE: patch([ask("a")], [way("in a", when=condition, id="e1"), way("in out")], entry="branch", exit="join")}
    )
    wrong = [each for each in found if each.code == "expression"]
    assert [each.edge for each in wrong] == ["e1"]
    assert "at character" in wrong[0].message


@pytest.mark.row("E-619")
@pytest.mark.parametrize(("count", "edges"), [(10, []), (11, ["e1"])])
def test_reads_through_a_reference_count_as_two_names(count: int, edges: list[str]) -> None:
    """Twenty names is the limit for what is read of other documents too; beyond it the edge and the character are told."""
    condition = " || ".join(["entity.vendor.name == 'x'"] * count)
    given = {
        APPROVE: patch([ask("a")], [way("in a", when=condition, id="e1"), way("in out")], entry="branch", exit="join")
    }
    wrong = [
        each
        for each in check_body(bills(), body(given), related={"vendor": ready_contract("vendor")})
        if each.code == "expression"
    ]
    assert [each.edge for each in wrong] == edges
    assert all("at character" in each.message for each in wrong)


@pytest.mark.row("E-182", "E-619")
def test_expressions_of_nodes_are_checked_where_they_stand() -> None:
    """Payloads, texts, keys, approvers and rules alike; of related documents one level."""
    nodes: list[Plain] = [
        {"id": "a", "type": "action", "action": "bill.mark", "payload": {"owner": "entity.ownr"}},
        {"id": "b", "type": "notification", "to": ["{entity.ownr}"], "subject": "x"},
        {"id": "c", "type": "wait_event", "event": "e", "key": "{entity.ownr}"},
        ask("d", approvers=[{"expression": "entity.ownr"}]),
        {"id": "e", "type": "rule", "rules": [{"name": "r", "effect": "block", "when": "entity.ownr == 'x'"}]},
        {"id": "f", "type": "condition", "expression": "entity.vendor.nmae == 'x'"},
        {"id": "g", "type": "webhook_out", "url": "https://x/{entity.ownr}"},
        {"id": "h", "type": "wait_timer", "until": "entity.deu"},
    ]
    names = [str(each["id"]) for each in nodes]
    edges: list[Plain | str] = [
        f"{one} {other} {'event' if one == 'c' else 'approved' if one == 'd' else 'true' if one == 'f' else 'ok'}"
        for one, other in pairwise(names)
    ]
    found = check_body(bills(), body({APPROVE: patch(nodes, edges)}), related={"vendor": ready_contract("vendor")})
    assert [each.node for each in found if each.code == "expression"] == [usr(name) for name in names]


@pytest.mark.row("E-604", "E-768")
def test_context_is_known_only_behind_what_writes_it() -> None:
    """A name under `context` comes from a node before, from another slot, or is declared."""
    script: Plain = {"id": "s", "type": "script", "formula": "entity.total > 5", "into": "is_big"}
    asks: Plain = {"id": "c", "type": "condition"}
    after = [script, asks, ask("a")]
    ways: list[Plain | str] = ["s c", way("c a", when="context.is_big == true"), way("c out"), "a out approved"]
    assert codes(after, ways, exit="join") == []
    before: list[Plain | str] = [way("c s", when="context.is_big == true"), way("c a"), "s out", "a out approved"]
    assert codes(after, before, exit="join") == ["expression"]
    assert [
        each.code for each in problems({APPROVE: patch(after, before, exit="join")}, context={"is_big": "bool"})
    ] == []
    elsewhere = {SUBMIT: patch([script]), APPROVE: patch([asks, ask("a")], ways[1:], exit="join")}
    assert problems(elsewhere) == []


@pytest.mark.row("E-442", "E-441")
def test_a_label_that_is_an_outcome_routes() -> None:
    """`approved` on an edge of an approval is enough; a word that is none of its outcomes is refused."""
    labelled = [way("a b", label="approved"), way("a out", label="rejected"), way("b out", label="looks good")]
    assert codes([ask("a"), ask("b")], labelled) == []
    assert codes([ask("a")], ["a out aproved"]) == ["outcome", "outcome_unrouted"]
    assert "outcome" in codes([ask("a")], ["a out approved", "a out timeout"], exit="join")


@pytest.mark.row("E-680")
def test_a_refusal_behind_a_gate_must_be_routed() -> None:
    """Where no gate follows, nothing could send the document back."""
    assert codes([ask("a")], slot=ACTIVE) == ["rejection_unrouted"]
    routed = ["a out approved", "a s rejected", "s out"]
    assert codes([ask("a"), {"id": "s", "type": "script", "formula": "1"}], routed, slot=ACTIVE, exit="join") == []
    assert codes([{"id": "r", "type": "rule", "rules": [{"name": "r", "effect": "block"}]}], slot=ACTIVE) == [
        "rejection_unrouted"
    ]


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"type": "notification", "subject": "x", "to": ["a"] * 101}, "recipients"),
        ({"type": "approval", "approvers": [{"user": "ann"}, {"user": "ann"}]}, "asks"),
        ({"type": "approval", "approvers": [{"user": "ann"}], "agree": "n", "least": 2}, "agree"),
        ({"type": "task", "handler": "$mine"}, "reserved_handler"),
        ({"type": "wait_event", "event": "a\u202eb"}, "hidden_character"),
        ({"type": "wait_timer", "duration": "9999999w"}, "wait_duration"),
    ],
)
def test_what_the_machine_could_not_run_is_a_problem_too(node: Plain, code: str) -> None:
    """A body without problems has a graph: its nodes are judged in the machine's own words."""
    (found,) = problems({APPROVE: patch([{"id": "a", **node}])})
    assert (found.code, found.node, found.slot) == (code, usr("a"), APPROVE)


@pytest.mark.row("E-148")
def test_a_body_is_rebased_and_judged_again() -> None:
    """For a newer envelope it says so, and what has no place there any more is found."""
    later = generate_envelope(contract(lifecycle__version=2, slots__3=GONE))
    kept = body({APPROVE: patch([ask("a")]), AMEND: patch([ask("b")])})
    assert [each.code for each in check_body(later, kept)] == ["base", "SLOT_UNKNOWN"]
    assert [each.code for each in check_body(later, rebased(kept, later))] == ["SLOT_UNKNOWN"]


@pytest.mark.row("EO-35")
def test_sizes_are_limited() -> None:
    """A patch has at most two hundred nodes."""
    many = [ask(f"n{number}") for number in range(MOST_NODES + 1)]
    edges: list[Plain | str] = [f"n{number} n{number + 1} approved" for number in range(MOST_NODES)]
    assert codes(many, edges) == ["too_many"]
    assert codes(many[:-1], edges[:-1]) == []
    flood = [ask("a", approvers=[], chain="c", agree="n") for _ in range(5 * MOST_NODES)]
    assert codes(flood, ["a b"] * 2 * MOST_EDGES) == [
        "too_many",
        "too_many",
    ]  # And nothing that takes for ever to find.
    faulty = [ask(f"n{number}", approvers=[], window="editable", chain="c", agree="n") for number in range(MOST_NODES)]
    found = codes(faulty, edges[:-1])
    assert (len(found), found[-1]) == (MOST_PROBLEMS + 1, "too_many_findings")


@pytest.mark.row("E-147", "E-187")
def test_all_problems_come_together_in_one_order() -> None:
    """Several faults are as many entries, whatever the order in which they were written, with the place where each stands."""
    nodes: list[Plain] = [
        ask("a", window="editable"),
        ask("b", approvers=[]),
        {"id": "c", "type": "action", "action": "bill.fly"},
        {"id": "d", "type": "script", "formula": "entity.nope"},
        {"id": "e", "type": "wait_timer"},
    ]
    edges: list[Plain | str] = ["a b approved", "b c approved", "c d", "d e", way("e sys:end", id="x")]
    seen = []
    for seed in range(5):
        shuffled = random.Random(seed)
        patch_of = patch(shuffled.sample(nodes, len(nodes)), shuffled.sample(edges, len(edges)))
        found = check_body(bills(), body({APPROVE: patch_of}))
        seen.append([(each.code, each.slot, each.node, each.edge, each.message) for each in found])
    assert all(each == seen[0] for each in seen)
    assert {code for code, *_ in seen[0]} == {
        "window_loosened",
        "empty",
        "unknown_action",
        "expression",
        "wait",
        "edge_scope",
    }
    text = json.dumps(body_data({APPROVE: patch(nodes, edges)}), indent=1)
    assert all(int(each.position.split(":")[0]) > 1 for each in check_body(bills(), text))


@pytest.mark.row("E-147", "E-707")
def test_the_validator_needs_no_publishing_and_compiling_says_the_same() -> None:
    """A body with problems can be read and kept; compiling it is refused with the same list."""
    kept: Body = body({APPROVE: patch([ask("a", approvers=[])])})
    found = check_body(bills(), kept)
    with pytest.raises(DefinitionError) as caught:
        compile_effective(bills(), kept)
    assert list(caught.value.diagnostics) == found


def test_what_is_no_text_is_refused() -> None:
    """Null bytes, lists, numbers and deep nesting have a finding and no traceback."""
    for text in ("", "[]", "\x00", "{" * 50, "a: *b"):
        assert check_body(bills(), text)
        with pytest.raises(DefinitionError):
            read_body(text)
