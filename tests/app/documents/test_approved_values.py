"""What an approval covers stays as it was approved, computed fields included."""

from __future__ import annotations

import pytest

from standfast import Actor
from standfast.testing import ManualEngine
from support.engines import Place

CONTRACT = """
entity_type: bill
version: 1
system_fields: [rate, fee]
fields:
  total: {type: money, required: true}
  rate: {type: int, default: 1}
  fee: {type: int, default: 1}
  net: {type: computed, formula: entity.total, times: entity.rate, as: money}
  gross: {type: computed, formula: entity.net, as: money}
  share: {type: computed, formula: entity.fee, as: int}
  shares: {type: computed, formula: entity.share, times: entity.fee, as: int}
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
    - {name: cancel, from: [draft, active, amended], to: cancelled, kind: cancel}
slots:
  - {id: "slot:a", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
  - {id: "slot:p", entry: "sys:gate:approve", exit: "sys:state:active", window: locked, stable: true}
actions:
  - {name: bill.create, creates: true}
  - {name: bill.update}
  - {name: bill.post, workflow_allowed: true, handler: post}
"""
BODY = """
base: {{entity_type: bill, envelope_version: 1}}
slots:
  "slot:a": {{nodes: [{{id: boss, type: approval, approvers: [{{role: boss}}]{covers}}}{first}], edges: [{way}]}}
  "slot:p": {{nodes: [{last}]}}
"""
POST = "{id: post, type: action, action: bill.post}"
BOB, MIA = Actor(id="bob"), Actor(id="mia", roles=frozenset({"boss"}))


def approved(place: Place, body: str, field: str) -> ManualEngine:
    """A bill that was approved once, where a step writes a system field behind the gate or beside the question."""
    engine = place.engine()
    engine.contracts.publish(CONTRACT)
    engine.handler("post")(lambda document: {field: 1000})
    engine.bodies.publish(engine.bodies.save(body).id)
    bob = engine.acting(BOB).documents
    bob.create("bill", {"total": 100}, id="B1")
    bob.transition("bill", "B1", "submit")
    engine.drain()
    decide(engine)
    return engine


def decide(engine: ManualEngine) -> None:
    """The boss approves what is asked."""
    (task,) = engine.acting(MIA).tasks.list(mine=True)
    engine.acting(MIA).tasks.approve(task, document_version=task.document_version)
    engine.drain()


def behind(covers: str) -> str:
    """The step comes behind the gate."""
    return BODY.format(covers=covers, first="", way="", last=POST)


def beside(covers: str) -> str:
    """The step comes behind the question, before the gate."""
    return BODY.format(covers=covers, first=f", {POST}", way="{from: boss, to: post}", last="{id: wait, type: wait_event, event: x, key: k}")  # fmt: skip


@pytest.mark.row("E-231")
@pytest.mark.parametrize("covers", ["", ", covers: [net]", ", covers: [gross]", ", covers: [total, gross]"])
def test_no_step_behind_a_gate_changes_a_computed_field_that_was_approved(place: Place, covers: str) -> None:
    """A field that only the workflow writes changes nothing that people approved by way of a formula."""
    engine = approved(place, behind(covers), "rate")
    view = engine.acting(BOB).documents.get("bill", "B1")
    assert (view.run_status, view.data["net"], view.data["gross"]) == ("paused", 100, 100)
    assert "which was approved as it is" in engine.run(view.instance).why().words
    assert engine.invariants.check().items == []


@pytest.mark.row("E-231")
@pytest.mark.parametrize(
    ("covers", "field"), [("", "fee"), (", covers: [total]", "fee"), (", covers: [total]", "rate")]
)
def test_what_only_the_workflow_writes_stays_free(place: Place, covers: str, field: str) -> None:
    """A system field, and what is computed from such fields alone, may change behind the gate; so may what an approval does not cover."""
    engine = approved(place, behind(covers), field)
    view = engine.acting(BOB).documents.get("bill", "B1")
    assert (view.status, view.run_status, view.data[field]) == ("active", "running", 1000)
    assert view.data["shares"] == (1_000_000 if field == "fee" else 1)
    assert engine.invariants.check().items == []


@pytest.mark.row("E-231")
@pytest.mark.parametrize(
    ("covers", "field", "count"), [("", "rate", 2), ("", "fee", 1), (", covers: [shares]", "fee", 2)]
)
def test_a_step_before_the_gate_voids_what_covers_a_computed_field(
    place: Place, covers: str, field: str, count: int
) -> None:
    """The question is put anew, unless only what the workflow alone decides has changed and the approval does not name that."""
    engine = approved(place, beside(covers), field)
    for _ in range(count - 1):
        assert engine.acting(BOB).documents.get("bill", "B1").status == "submitted"
        decide(engine)
    view = engine.acting(BOB).documents.get("bill", "B1")
    assert (view.status, view.data[field]) == ("active", 1000)
    assert engine.invariants.check().items == []
