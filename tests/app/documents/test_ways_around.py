"""No document is moved to where it gets around an approval that it waits for."""

from __future__ import annotations

import pytest

from standfast import Actor
from standfast.app.api.sync import Calls
from standfast.testing import ManualEngine
from support.engines import Place

CONTRACT = """
entity_type: bill
version: 1
fields: {total: {type: money, required: true}}
lifecycle:
  version: 1
  initial: draft
  terminal: [cancelled]
  amended: amended
  states:
    draft: {window: editable}
    submitted: {window: amend_only}
    active: {window: locked}
    cancelled: {window: locked}
    amended: {window: editable}
  transitions:
    - {name: submit, from: [draft, amended], to: submitted}
    - {name: approve, from: [submitted], to: active, begins: by_itself, on_reject: draft}
    - {name: recall, from: [submitted], to: draft, kind: recall}
    - {name: cancel, from: [draft, active, amended], to: cancelled, kind: cancel}
slots:
  - {id: "slot:a", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
actions:
  - {name: bill.create, creates: true}
  - {name: bill.update}
"""
BODY = """
base: {entity_type: bill, envelope_version: 1}
slots:
  "slot:a": {nodes: [{id: boss, type: approval, approvers: [{role: boss}]}]}
"""
NEWER = CONTRACT.replace("version: 1", "version: 2")
BOB, EVE = Actor(id="bob"), Actor(id="eve")
REPAIRER = Actor(id="rita", capabilities=frozenset({"execution:repair"}))
OVERRIDER = Actor(id="otto", capabilities=frozenset({"execution:repair", "execution:override"}))
PAST = {
    "a transition": (
        "    - {name: recall",
        "    - {name: fast, from: [submitted], to: active}\n    - {name: recall",
        "'fast' leads from 'submitted' to 'active'",
    ),
    "a rejection": ("on_reject: draft", "on_reject: active", "a rejection before the gate"),
    "a way through a new status": (
        "  transitions:\n",
        "    near: {window: locked}\n  transitions:\n    - {name: approach, from: [submitted], to: near}\n    - {name: arrive, from: [near], to: active}\n",
        "'arrive' leads from 'submitted' to 'active'",
    ),
}


def waiting(place: Place, contract: str) -> ManualEngine:
    """A bill waits for an approval, and another version of the contract is published."""
    engine = place.engine()
    engine.contracts.publish(CONTRACT)
    engine.bodies.publish(engine.bodies.save(BODY).id)
    bob = engine.acting(BOB).documents
    bob.create("bill", {"total": 9}, id="B1")
    bob.transition("bill", "B1", "submit")
    engine.drain()
    engine.contracts.publish(contract, force=True)
    engine.bodies.publish(engine.bodies.save(BODY.replace("envelope_version: 1", "envelope_version: 2")).id)
    return engine


def moved(calls: Calls, *, dry_run: bool = False) -> str:
    """Why the bill is not moved; empty if it is."""
    return calls.workflows.move("bill", "1-org", "2-org", reason="a better one", dry_run=dry_run).items[0].problem


@pytest.mark.row("EO-11")
@pytest.mark.parametrize("how", PAST)
def test_a_document_is_not_moved_to_where_it_gets_around_its_approval(place: Place, how: str) -> None:
    """Neither by another transition, nor by a rejection, nor through a new status; whoever asks for it, and in a dry run too."""
    before, after, told = PAST[how]
    engine = waiting(place, NEWER.replace(before, after))
    for actor in (REPAIRER, OVERRIDER):
        calls = engine.acting(actor)
        assert told in moved(calls, dry_run=True)
        assert told in moved(calls)
    view = engine.acting(BOB).documents.get("bill", "B1")
    assert (view.status, view.workflow_version) == ("submitted", "1-org")


@pytest.mark.row("EO-11")
def test_a_recall_that_others_may_ask_for_takes_the_right_to_override(place: Place) -> None:
    """Without `kind: recall` anybody could take a document back, so the history names the transition."""
    engine = waiting(place, NEWER.replace(", kind: recall", ""))
    assert "'recall'" in moved(engine.acting(REPAIRER))
    assert moved(engine.acting(OVERRIDER)) == ""
