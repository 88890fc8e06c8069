"""What lies in a slot is on every way through it: of a time that is over, of a request for the next transition, of approvals that an edit has voided."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.documents.blueprints import of, published
from standfast import Actor, RejectedError
from standfast.testing import ManualEngine
from support.engines import Place

CONTRACT = """
entity_type: file
version: 1
fields:
  title: {type: string, required: true}
  note: {type: string}
lifecycle:
  version: 1
  initial: draft
  terminal: [gone]
  states:
    draft: {window: editable, timeout: 3d, on_timeout: submit}
    ready: {window: editable}
    active: {window: locked}
    gone: {window: locked}
  transitions:
    - {name: submit, from: [draft], to: ready}
    - {name: approve, from: [ready], to: active}
    - {name: cancel, from: [draft, ready, active], to: gone, kind: cancel}
slots:
  - {id: "slot:before", entry: "sys:state:draft", exit: "sys:gate:submit", window: editable, stable: false}
  - {id: "slot:behind", entry: "sys:gate:submit", exit: "sys:state:ready", window: editable, stable: false}
"""
TWO = """
base: {entity_type: file, envelope_version: 1}
slots:
  "slot:%s":
    exit: join
    nodes:
      - {id: one, type: approval, approvers: [{role: manager}], covers: [title]}
      - {id: two, type: approval, approvers: [{role: manager}], covers: [note]}
      - {id: no, type: notification, to: ["user:ann"], subject: no}
    edges:
      - {from: in, to: one}
      - {from: one, to: two, on: approved}
      - {from: one, to: no, on: rejected}
      - {from: two, to: out, on: approved}
      - {from: two, to: no, on: rejected}
      - {from: no, to: out}
"""
WAITING = """
base: {entity_type: file, envelope_version: 1}
slots:
  "slot:before":
    nodes:
      - {id: wait, type: wait_timer, duration: 1d}
      - {id: mark, type: action, action: file.mark, payload: {note: "'marked'"}}
    edges: [{from: wait, to: mark}]
"""
ANN = Actor(id="ann")
MEG = Actor(id="meg", roles=frozenset({"manager"}), capabilities=frozenset({"execution:read"}))


def opened(slot: str) -> ManualEngine:
    """An engine with two approvals in a slot, and a file of ann's."""
    engine = ManualEngine()
    engine.contracts.publish(CONTRACT)
    published(engine, TWO % slot)
    of(engine, ANN).documents.create("file", {"title": "x"}, id="F-1")
    return engine


def stands(engine: ManualEngine) -> tuple[str, list[str], str]:
    """Status, places and how the run is."""
    view = of(engine, ANN).documents.get("file", "F-1")
    return view.status, [each.rpartition(":")[2] for each in view.places], view.run_status


def approve(engine: ManualEngine) -> None:
    """Meg agrees to what she is asked."""
    (task,) = of(engine, MEG).tasks.list()
    of(engine, MEG).tasks.decide(task, "approved", document_version=task.document_version)


@pytest.mark.row("E-058")
def test_a_time_that_is_over_leads_through_the_slot() -> None:
    """A transition that is asked for because nobody did anything takes the steps of its slot, like one that somebody asks for."""
    engine = opened("before")
    engine.advance(timedelta(days=4))
    assert stands(engine) == ("draft", ["one"], "running")
    with pytest.raises(RejectedError, match="under way"):
        of(engine, ANN).documents.transition("file", "F-1", "submit")
    approve(engine)
    approve(engine)
    assert stands(engine)[0] == "ready"
    assert engine.as_tenant("acme").invariants.check().items == []


def test_what_was_voided_holds_up_no_other_gate() -> None:
    """An edit has voided an approval, and the document is cancelled before that is asked again: the gate to its end has nothing to do with it.

    The timer of its draft was taken back then, which the history tells and the audit does not.
    """
    engine = opened("before")
    mine = of(engine, ANN).documents
    mine.transition("file", "F-1", "submit")
    approve(engine)
    mine.mutate("file", "F-1", {"title": "y"})
    assert mine.transition("file", "F-1", "cancel").status == "gone"
    assert (mine.audit("file", "F-1")[0].what, mine.mutations("file", "F-1")[0].action) == ("create", "create")
    assert engine.as_tenant("acme").invariants.check().items == []


def test_an_approval_behind_the_last_gate_is_asked_again_when_it_is_void() -> None:
    """No gate follows that would see to it, so the way out of the slot does; and nobody goes on before, except to the end."""
    engine = opened("behind")
    mine = of(engine, ANN).documents
    mine.transition("file", "F-1", "submit")
    assert stands(engine) == ("ready", ["one"], "running")
    with pytest.raises(RejectedError, match="once these are done") as refused:
        mine.transition("file", "F-1", "approve")
    assert refused.value.reason == "WORKFLOW_GATE_NOT_READY"
    assert [each.is_allowed for each in mine.get("file", "F-1").transitions] == [False, True]
    approve(engine)
    mine.mutate("file", "F-1", {"title": "y"})
    approve(engine)
    assert stands(engine) == ("ready", ["one"], "running")
    approve(engine)  # What the edit has not touched stays in force.
    assert stands(engine) == ("ready", ["ready"], "running")
    assert mine.transition("file", "F-1", "approve").status == "active"
    assert engine.as_tenant("acme").invariants.check().items == []


@pytest.mark.row("E-571")
def test_what_begins_by_itself_acts_for_whoever_created_the_document() -> None:
    """Also once time has gone by, when it is the engine that goes on: a body gives nobody a right by having them wait."""
    engine = ManualEngine()
    mark = "actions: [{name: file.mark, workflow_allowed: true, permission: file.mark}]\n"
    engine.contracts.publish(CONTRACT.replace("to: ready}", "to: ready, begins: by_itself}") + mark)
    published(engine, WAITING)
    for name, capabilities in (("ann", ()), ("bob", ("file.mark",))):
        actor = Actor(id=name, capabilities=frozenset(capabilities))
        of(engine, actor).documents.create("file", {"title": "x"}, id=name)
    engine.advance(timedelta(days=2))
    found = {each.id: each for each in engine.as_tenant("acme").documents.list("file").items}
    assert [(name, found[name].status, found[name].data.get("note")) for name in ("ann", "bob")] == [
        ("ann", "draft", None),
        ("bob", "ready", "marked"),
    ]


RECALLED = """
entity_type: bill
version: 1
fields: {title: {type: string}}
lifecycle:
  version: 1
  initial: draft
  terminal: [gone]
  states:
    draft: {window: editable}
    ready: {window: locked, timeout: 1d, on_timeout: recall}
    gone: {window: locked}
  transitions:
    - {name: submit, from: [draft], to: ready, permission: bill.submit}
    - {name: recall, from: [ready], to: draft, kind: recall, permission: bill.recall}
    - {name: cancel, from: [draft, ready], to: gone, kind: cancel}
slots:
  - {id: "slot:back", entry: "sys:state:ready", exit: "sys:gate:recall", window: locked, stable: false}
"""


@pytest.mark.row("E-578", "E-111")
@pytest.mark.parametrize("slot", ["", "slot:back"])
def test_what_a_timeout_leads_to_is_told_as_done_by_the_engine(place: Place, slot: str) -> None:
    """Whoever asked for the transition before has not asked for this one, and may not even do so. The timer is the cause."""
    engine = place.engine()
    engine.contracts.publish(RECALLED)
    if slot:
        asked = "nodes: [{id: a, type: approval, approvers: [{user: meg}]}]"
        body = f'base: {{entity_type: bill, envelope_version: 1}}\nslots:\n  "{slot}": {{{asked}}}\n'
        published(engine, body)
    bob = of(engine, Actor(id="bob", capabilities=frozenset({"bill.submit"}))).documents
    bob.create("bill", {"title": "x"}, id="B-1")
    bob.transition("bill", "B-1", "submit")
    engine.advance(timedelta(hours=25))
    calls = of(engine, MEG)
    for task in calls.tasks.list():
        calls.tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    assert bob.get("bill", "B-1").status == "draft"
    last = bob.mutations("bill", "B-1")[-1]
    assert (last.action, last.actor, last.reason) == ("passed recall", "system", "timeout of 'ready' after 1d")
    told = [each for each in bob.audit("bill", "B-1") if "recall" in each.what]
    assert {(each.who, each.place) for each in told if "usr:" not in each.what} == {("system", "engine")}
    bob.transition("bill", "B-1", "submit")
    assert bob.mutations("bill", "B-1")[-1].actor == "bob"
