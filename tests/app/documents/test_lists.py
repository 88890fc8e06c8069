"""Approvals of the entries of a list: what is asked is about an entry that the document has, and what counts was given to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.documents.walls import (
    ANN,
    BUD,
    FIN,
    OPERATOR,
    PUBLISHER,
    acting,
    again,
    opened,
    patch,
    stands,
    violations,
)
from app.documents.walls import GIVEN as INVOICE
from standfast import Actor
from standfast.testing import ManualEngine
from support.engines import Place

EVE = Actor(id="eve")
EACH = '{{id: f, type: for_each, items: {items}, item: line}}, {{id: q, type: approval, title: "Line {{context.line}}", approvers: [{{expression: context.line}}]}}'
LISTED = patch("before", EACH.format(items="entity.lines"), "{from: f, to: q}")
THEN = "{id: j, type: parallel_join}, {id: last, type: approval, approvers: [{user: zoe}]}"
ZOE = Actor(id="zoe")


def asked(engine: ManualEngine) -> list[str]:
    """The open questions about the invoice, in the words in which they are put."""
    calls = acting(engine, OPERATOR)
    run = calls.documents.get("invoice", "I-1").instance
    return sorted(each.subject for each in calls.run(run).tasks() if each.status == "open")


def approve(engine: ManualEngine, actor: Actor) -> None:
    """Somebody approves what they are asked."""
    calls = acting(engine, actor)
    (task,) = calls.tasks.list(mine=True)
    calls.tasks.approve(task, document_version=task.document_version)
    engine.drain()


def submitted(place: Place, *lines: str, body: str = LISTED) -> ManualEngine:
    """Ann has submitted an invoice with these lines; each names who approves it."""
    engine = opened(place.engine(), body)
    acting(engine, ANN).documents.create("invoice", {**INVOICE, "lines": list(lines)}, id="I-1")
    again(engine)
    return engine


def edit(engine: ManualEngine, **fields: object) -> None:
    """Ann edits her invoice."""
    acting(engine, ANN).documents.mutate("invoice", "I-1", fields)
    engine.drain()


@pytest.mark.row("E-751")
@pytest.mark.parametrize("approved", [[], [FIN]])
def test_an_edit_of_a_list_asks_about_its_new_entries(place: Place, approved: list[Actor]) -> None:
    """The branches of the old list end, its questions are closed, and each entry of the new list is asked about."""
    engine = submitted(place, "fin", "bud")
    for actor in approved:
        approve(engine, actor)
    edit(engine, lines=["fin", "eve"])
    assert asked(engine) == ["Line eve", "Line fin"]
    assert acting(engine, BUD).tasks.list(mine=True) == []
    approve(engine, FIN)
    assert stands(engine)[0] == "draft"
    approve(engine, EVE)
    assert (stands(engine)[0], asked(engine), violations(engine)) == ("submitted", [], [])


@pytest.mark.row("E-751", "E-682")
def test_an_edit_that_empties_a_list_approves_nothing(place: Place) -> None:
    """A list that was emptied meanwhile is no other than one that was empty from the beginning."""
    engine = submitted(place, "fin", "bud")
    approve(engine, FIN)
    edit(engine, lines=[])
    assert (stands(engine)[::2], asked(engine)) == (("draft", "paused"), [])
    edit(engine, lines=["eve"])
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    failed = run.why().reasons[0].step_number
    assert failed is not None
    run.retry(failed, reason="it has lines now")
    engine.drain()
    approve(engine, EVE)
    assert stands(engine)[0] == "submitted"


@pytest.mark.row("E-751")
def test_an_edit_beside_a_list_leaves_its_branches(place: Place) -> None:
    """Where the list is as it was, nothing begins anew but the questions that are about what was edited."""
    body = patch(
        "before",
        EACH.format(items="entity.lines").replace("approvers", "covers: [total], approvers"),
        "{from: f, to: q}",
    )
    engine = submitted(place, "fin", "bud", body=body)
    approve(engine, FIN)
    edit(engine, memo="x")
    assert asked(engine) == ["Line bud"]
    edit(engine, lines=["bud", "fin"])
    assert asked(engine) == ["Line bud", "Line fin"]


def test_a_step_of_an_old_entry_that_failed_holds_nothing_up(place: Place) -> None:
    """A run that waits for an operator because of a branch that an edit has ended goes on with the new list."""
    steps = "{id: f, type: for_each, items: entity.lines, item: line}, {id: t, type: task, handler: check, attempts: 1, input: {line: context.line}}"
    ways = "{from: f, to: t}, {from: t, to: q}"
    engine = place.engine().handle("check", lambda line: {"a": 1}[line])
    opened(engine, patch("before", f"{steps}, {{id: q, type: approval, approvers: [{{user: fin}}]}}", ways))
    acting(engine, ANN).documents.create("invoice", {**INVOICE, "lines": ["a", "b"]}, id="I-1")
    again(engine)
    assert stands(engine)[2:] == ("paused", "step_failed")
    edit(engine, lines=["a"])
    assert stands(engine)[2:] == ("running", "")
    approve(engine, FIN)
    assert stands(engine)[0] == "submitted"


@pytest.mark.row("E-751")
def test_an_approval_that_is_kept_is_kept_for_its_entry(place: Place) -> None:
    """A slot that is gone through again finds another entry at a place: the answer to the entry before is none to this one."""
    nodes = f"{EACH.format(items='org.owners')}, {THEN}"
    body = patch("before", nodes, "{from: f, to: q}, {from: q, to: j}, {from: j, to: last}")
    engine = opened(place.engine(), body)
    owner = acting(engine, PUBLISHER).charters
    owner.publish_settings({"owners": ["fin", "bud"]})
    acting(engine, ANN).documents.create("invoice", INVOICE, id="I-1")
    again(engine)
    (own,) = acting(engine, FIN).tasks.list(mine=True)
    for actor in (FIN, BUD):
        approve(engine, actor)
    acting(engine, FIN).tasks.withdraw_decision(own, "I saw the wrong one")
    owner.publish_settings({"owners": ["fin", "eve"]})
    approve(engine, ZOE)
    assert asked(engine) == ["Line eve", "Line fin"]
    for actor in (FIN, EVE):
        approve(engine, actor)
    assert (stands(engine)[0], violations(engine)) == ("submitted", [])


@pytest.mark.row("E-751")
def test_a_step_beside_a_list_that_changes_it_has_it_asked_about_anew(place: Place) -> None:
    """Who changes the list does not matter: the questions are about what the document has."""
    engine = place.engine()
    engine.handler("invoice.post")(lambda document: {"lines": ["eve"]})
    beside = '{id: w, type: wait_timer, duration: 1h}, {id: post, type: action, action: invoice.post, run_as: "system"}'
    nodes = f"{{id: sp, type: parallel_split}}, {EACH.format(items='entity.lines')}, {{id: i, type: parallel_join}}, {beside}, {{id: j, type: parallel_join}}"
    ways = "{from: sp, to: f}, {from: sp, to: w}, {from: f, to: q}, {from: q, to: i}, {from: i, to: j}, {from: w, to: post}, {from: post, to: j}"
    opened(engine, patch("before", nodes, ways))
    acting(engine, ANN).documents.create("invoice", {**INVOICE, "lines": ["fin", "bud"]}, id="I-1")
    again(engine)
    approve(engine, FIN)
    engine.advance(timedelta(hours=1))
    assert asked(engine) == ["Line eve"]
    approve(engine, EVE)
    assert (stands(engine)[0], violations(engine)) == ("submitted", [])


@pytest.mark.row("E-751")
def test_a_branch_that_changes_its_own_list_goes_on(place: Place) -> None:
    """A list whose branches write it is gone through as it was when it began."""
    engine, written = place.engine(), []

    @engine.handler("invoice.post")
    def post(document: dict[str, Any]) -> dict[str, object]:
        written.append(document["data"]["lines"])
        return {"lines": [*document["data"]["lines"], "x"]}

    nodes = '{id: f, type: for_each, items: entity.lines, limit: 1}, {id: post, type: action, action: invoice.post, run_as: "system"}'
    opened(engine, patch("before", nodes, "{from: f, to: post}"))
    acting(engine, ANN).documents.create("invoice", {**INVOICE, "lines": ["a", "b"]}, id="I-1")
    again(engine)
    assert (stands(engine)[0], sorted(map(len, written))) == ("submitted", [2, 3])


@pytest.mark.row("E-751")
def test_a_repair_of_the_data_that_a_list_is_made_of_asks_about_its_new_entries(place: Place) -> None:
    """A list that a step has computed is changed by an operator: the questions are about the list as it is now."""
    nodes = f"{{id: s, type: script, formula: entity.lines, into: found}}, {EACH.format(items='context.found')}"
    engine = submitted(place, "fin", "bud", body=patch("before", nodes, "{from: s, to: f}, {from: f, to: q}"))
    approve(engine, FIN)
    run = acting(engine, OPERATOR).run(acting(engine, ANN).documents.get("invoice", "I-1").instance)
    run.change_data({"found": ["eve"]}, reason="they have left")
    engine.drain()
    assert asked(engine) == ["Line eve"]
    approve(engine, EVE)
    assert stands(engine)[0] == "submitted"
