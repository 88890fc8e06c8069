"""A rule that blocks a document in a slot refuses it, as somebody does who rejects it."""

from __future__ import annotations

import pytest

from authoring.document.examples import APPROVE, SUBMIT, Plain, ask, compiled, patch
from machine.documents import ANN, Case
from standfast.features.documents.compiler.graph import graph_of

RULE: Plain = {
    "id": "r",
    "type": "rule",
    "rules": [{"name": "owner", "effect": "require_field", "field": "owner", "reason": "Say who it is for."}],
}


@pytest.mark.row("E-703", "E-416")
def test_what_a_rule_blocks_before_the_gate_stays_where_it_is_and_can_be_submitted_again() -> None:
    """The draft stays a draft, with the reason of the rule; once the field is there the same submission passes."""
    case = Case(graph_of(compiled({SUBMIT: patch([RULE])})), number="1")
    assert case.ask("submit") == ""
    assert (case.document.status, case.at) == ("draft", ["sys:state:draft"])
    assert any("Say who it is for." in str(row.why) for row in case.audit)
    assert case.edit(owner="ann") == ""
    assert case.ask("submit") == ""
    assert case.document.status == "submitted"


@pytest.mark.row("E-139", "E-416", "E-680")
def test_a_rule_in_a_branch_ends_the_others() -> None:
    """A question that is open in another branch is withdrawn, and the gate sends the document where a rejection does."""
    nodes: list[Plain] = [{"id": "s", "type": "parallel_split"}, ask("a", approvers=[{"user": "ann"}]), RULE]
    graph = graph_of(compiled({APPROVE: patch(nodes, ["s a", "s r"], exit="join")}))
    refused, sound = Case(graph, number="1"), Case(graph, number="1", owner="bob")
    for case in (refused, sound):
        assert case.ask("submit") == ""
    assert (refused.document.status, refused.at) == ("draft", ["sys:state:draft"])
    assert sound.decide(f"usr:{APPROVE}:a", ANN) == ""
    assert sound.document.status == "active"


@pytest.mark.row("E-416", "E-402", "EC-10")
def test_a_block_that_is_routed_goes_where_its_author_says() -> None:
    """With an edge for `blocked` the steps on it run. The gate refuses at their end, unless somebody has approved on the way."""
    slot = patch([RULE, {"id": "x", "type": "script", "formula": "1"}], ["r out ok", "r x blocked"])
    case = Case(graph_of(compiled({SUBMIT: slot})), number="1")
    assert case.ask("submit") == ""
    assert any(row.what == f"pass usr:{SUBMIT}:x" for row in case.audit)
    assert case.document.status == "draft"
    asked = patch([RULE, ask("x", approvers=[{"user": "ann"}])], ["r out ok", "r x blocked"], exit="join")
    case = Case(graph_of(compiled({SUBMIT: asked})), number="1")
    assert case.ask("submit") == ""
    assert case.decide(f"usr:{SUBMIT}:x", ANN) == ""
    assert case.document.status == "submitted"
