"""What is taken back before a gate relies on it: a document by whoever wants it, and a decision by whoever gave it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.documents.blueprints import of, published
from app.documents.walls import BUD, FIN, OPERATOR, acting, open_tasks, patch, stands, submit, violations
from app.documents.walls import decide as decide_next
from app.documents.walls import opened as invoices
from standfast import Actor, RejectedError
from standfast.features.documents.contract.library import ready_contract
from standfast.testing import ManualEngine
from support.engines import Place

ORDER = "purchase_order"
GIVEN: dict[str, object] = {"number": "P-1", "vendor_id": "V-1", "grand_total": 40_000, "cost_center": "c"}
CLERK = Actor(id="bob", capabilities=frozenset({"purchase_order.*"}))
COLLEAGUE = Actor(id="cora", capabilities=frozenset({"purchase_order.*", "execution:read"}))
MANAGER = Actor(id="mia", roles=frozenset({"manager"}))
BOARD = Actor(id="ben", roles=frozenset({"board"}))
READER = Actor(id="olga", capabilities=frozenset({"execution:*"}))
TWO = """
base: {entity_type: purchase_order, envelope_version: 1}
slots:
  "slot:draft_to_submit":
    nodes:
      - {id: checked, type: approval, approvers: [{role: manager}]}
  "slot:submitted_to_approved":
    nodes:
      - {id: first, type: approval, approvers: [{role: manager}]}
      - {id: second, type: approval, approvers: [{role: board}]}
    edges: [{from: first, to: second}]
"""
ONE = TWO[: TWO.index('  "slot:draft')] + TWO[TWO.index('  "slot:submitted') :]


def code(call: Any, *given: Any, **named: Any) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


def submitted(place: Place, body: str) -> ManualEngine:
    """An order that a clerk has submitted."""
    engine = place.engine()
    engine.contracts.publish(ready_contract(ORDER))
    engine.handle("purchase_order.send", lambda: None)
    published(engine, body)
    mine = of(engine, CLERK).documents
    mine.create(ORDER, GIVEN, id="I-1")
    mine.transition(ORDER, "I-1", "submit")
    return engine


def decide(engine: ManualEngine, actor: Actor, name: str) -> Any:
    """Somebody approves; the question that they have decided."""
    task = next(each for each in of(engine, READER).tasks.list() if each.name.endswith(name))
    of(engine, actor).tasks.decide(task, "approved", document_version=task.document_version)
    return task


def status(engine: ManualEngine) -> str:
    """Where the order is."""
    return of(engine, CLERK).documents.get(ORDER, "I-1").status


def offered(engine: ManualEngine, actor: Actor) -> bool:
    """Whether somebody is offered a recall."""
    seen = of(engine, actor).documents.get(ORDER, "I-1")
    return next(each.is_allowed for each in seen.transitions if each.name == "recall")


@pytest.mark.row("EO-02")
def test_a_document_is_recalled_by_whoever_wants_it(place: Place) -> None:
    """Nobody else recalls it, whatever they may; open questions are withdrawn, and decisions that no gate has used count no more."""
    engine = submitted(place, ONE)
    decide(engine, MANAGER, "first")
    assert (offered(engine, COLLEAGUE), offered(engine, CLERK)) == (False, True)
    assert code(of(engine, COLLEAGUE).documents.transition, ORDER, "I-1", "recall") == "not_allowed"
    of(engine, CLERK).documents.transition(ORDER, "I-1", "recall")
    assert (status(engine), of(engine, READER).tasks.list()) == ("draft", [])


@pytest.mark.row("EO-02")
def test_a_document_is_not_recalled_once_a_gate_has_used_a_decision(place: Place) -> None:
    """Those who decided have been relied on; what leads on then is a rejection, a cancellation or an amendment."""
    engine = submitted(place, TWO)
    decide(engine, MANAGER, "checked")
    assert (status(engine), offered(engine, CLERK)) == ("submitted", False)
    assert code(of(engine, CLERK).documents.transition, ORDER, "I-1", "recall") == "WORKFLOW_TRANSITION_ILLEGAL"
    assert status(engine) == "submitted"


@pytest.mark.row("EO-03")
def test_a_decision_is_withdrawn_until_a_gate_has_used_it(place: Place) -> None:
    """Its decider alone does so; the gate then asks again, the history keeps both, and after the gate it is too late."""
    engine = submitted(place, ONE)
    first = decide(engine, MANAGER, "first")
    assert code(of(engine, BOARD).tasks.withdraw_decision, first) != ""
    of(engine, MANAGER).tasks.withdraw_decision(first, "I saw the wrong one")
    assert code(of(engine, MANAGER).tasks.withdraw_decision, first) == "not_waiting"
    (given,) = of(engine, READER).tasks.get(first).decisions
    assert (given.decided_by, given.is_withdrawn, given.is_applied) == ("mia", True, False)
    second = decide(engine, BOARD, "second")
    assert status(engine) == "submitted"
    assert [each.name.rpartition(":")[2] for each in of(engine, READER).tasks.list()] == ["first"]
    again = decide(engine, MANAGER, "first")
    assert status(engine) == "ordered"
    for actor, task in ((MANAGER, first), (MANAGER, again), (BOARD, second)):
        with pytest.raises(RejectedError, match=None if task == first else "has used it") as refused:
            of(engine, actor).tasks.withdraw_decision(task)
        assert refused.value.reason == "not_waiting"
    told = [each for each in of(engine, CLERK).documents.audit(ORDER, "I-1") if "withdraw" in each.what]
    assert [(each.what.rpartition(":")[2], each.who, each.why, each.how) for each in told] == [
        ("first", "mia", "I saw the wrong one", "workflow")
    ]
    made = [each for each in of(engine, CLERK).documents.mutations(ORDER, "I-1") if "withdraw" in each.action]
    assert [(each.actor, each.reason) for each in made] == [("mia", "I saw the wrong one")]


@pytest.mark.row("EO-03", "E-053")
def test_a_decision_is_withdrawn_until_the_slot_is_left_that_no_gate_follows(place: Place) -> None:
    """Inside of such a slot it is void and asked for again; the way out uses it up, and then it is too late, however the document goes on."""
    asked = "{{id: {0}, type: approval, approvers: [{{user: {1}}}]}}"
    nodes = f"{asked.format('a', 'fin')}, {asked.format('b', 'bud')}, {{id: x, type: script, formula: 1}}"
    refused = "{from: a, to: x, on: rejected}, {from: b, to: x, on: rejected}, {from: x, to: out}"
    behind = patch("behind", nodes, f"{{from: a, to: b}}, {{from: b, to: out}}, {refused}")
    engine = invoices(place.engine(), patch("asking", asked.format("c", "fin")), behind)
    submit(engine)
    decide_next(engine, "c", FIN)
    first = open_tasks(engine)["a"]
    decide_next(engine, "a", FIN)
    acting(engine, FIN).tasks.withdraw_decision(first, "I saw the wrong one")
    with pytest.raises(RejectedError, match="is void already"):
        acting(engine, FIN).tasks.withdraw_decision(first)
    decide_next(engine, "b", BUD)
    again = open_tasks(engine)["a"]
    decide_next(engine, "a", FIN)
    assert stands(engine) == ("active", 100, "running", "round_completed")
    engine.advance(timedelta(days=90))
    with pytest.raises(RejectedError, match="the end of 'slot:behind' has used it"):
        acting(engine, FIN).tasks.withdraw_decision(again, "oops")
    (given,) = acting(engine, OPERATOR).tasks.get(again).decisions
    assert (given.applied, given.is_applied, given.is_withdrawn) == (True, True, False)
    told = [each.what for each in acting(engine, OPERATOR).documents.audit("invoice", "I-1")]
    assert ([each for each in told if each.startswith("withdraw ")], told.count("apply approvals")) == (
        ["withdraw usr:slot:behind:a"],
        2,
    )
    assert violations(engine) == []


def test_a_decision_that_a_gate_has_used_is_refused_with_the_gate(place: Place) -> None:
    """Whoever is too late is told what has used the decision, and until when it could be withdrawn."""
    engine = submitted(place, ONE)
    first = decide(engine, MANAGER, "first")
    decide(engine, BOARD, "second")
    with pytest.raises(
        RejectedError, match="the gate of 'approve' has used it; a decision can be withdrawn until then"
    ):
        of(engine, MANAGER).tasks.withdraw_decision(first)


@pytest.mark.row("EO-03", "E-664")
def test_a_former_stand_in_takes_no_decision_back(place: Place) -> None:
    """What somebody has decided in the place of another is that one's; they take it back as long as they stand in."""
    engine = submitted(place, ONE)
    people = engine.as_tenant("acme").directory
    for name in ("mia", "ben", "vic"):
        people.put(name)
    people.grant("mia", "manager")
    people.grant("ben", "board")
    vic = Actor(id="vic")
    decisions = of(engine, vic).tasks
    delegation = people.delegate("mia", "vic")
    decisions.withdraw_decision(decide(engine, vic, "first"), "hers")
    decide(engine, BOARD, "second")
    assert status(engine) == "submitted"  # It has to be approved again.
    decide(engine, vic, "first")
    assert status(engine) == "ordered"
    other = of(engine, CLERK).documents
    other.create(ORDER, GIVEN, id="I-2")
    other.transition(ORDER, "I-2", "submit")
    engine.drain()
    task = decide(engine, vic, "first")
    people.end_delegation(delegation.id)
    assert code(decisions.withdraw_decision, task) in {"not_waiting", "not_allowed"}
