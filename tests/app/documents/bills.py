"""Bills that finance approves, and the people around them."""

from __future__ import annotations

from itertools import pairwise

from standfast import Actor, RequestContext
from standfast.app.api.sync import Calls
from standfast.features.documents.content.views import DocumentView
from standfast.testing import ManualEngine

CONTRACT = """
entity_type: bill
version: 1
fields:
  vendor: {type: string, required: true}
  total: {type: money, required: true}
  note: {type: string}
  iban: {type: string, sensitive: true}
  salary: {type: int, visible_to: [hr]}
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
    - {name: cancel, from: [draft, submitted, active, amended], to: cancelled, kind: cancel}
slots:
  - {id: "slot:draft", entry: "sys:state:draft", exit: "sys:gate:submit", window: editable, stable: false}
  - {id: "slot:approval", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
actions:
  - {name: bill.create, creates: true}
  - {name: bill.update}
"""
APPROVED = """
base: {entity_type: bill, envelope_version: 1}
slots:
  "slot:approval":
    nodes:
      - {id: finance, type: approval, title: "Pay {entity.vendor}?", approvers: [{role: finance}]}
"""
CLERK = Actor(id="bob", capabilities=frozenset({"bill.*", "execution:read"}))
OPERATOR = Actor(id="otto", capabilities=frozenset({"execution:*", "dead_letter:*"}))
OFFICER = Actor(id="olga", capabilities=frozenset({"documents:redact", "execution:read"}))
FAY = Actor(id="fay", roles=frozenset({"finance"}))
IBAN = "DE89370400440532013000"


def with_fields(*lines: str) -> str:
    """The contract with more fields."""
    return CONTRACT.replace("lifecycle:", "".join(f"  {each}\n" for each in lines) + "lifecycle:", 1)


def draft_body(*nodes: str) -> str:
    """A body that does these one after the other before a bill is submitted."""
    names = [each.split("id: ")[1].split(",")[0] for each in nodes]
    edges = ", ".join(f"{{from: {one}, to: {other}}}" for one, other in pairwise(names))
    listed = "".join(f"      - {each}\n" for each in nodes)
    slot = f'  "slot:draft":\n    nodes:\n{listed}' + (f"    edges: [{edges}]\n" if edges else "")
    return f"base: {{entity_type: bill, envelope_version: 1}}\nslots:\n{slot}"


def publish(engine: ManualEngine, body: str = APPROVED, contract: str = CONTRACT) -> ManualEngine:
    """Have bills managed by a body."""
    engine.contracts.publish(contract)
    draft = engine.bodies.save(body)
    assert not draft.problems, draft.problems
    engine.bodies.publish(draft.id)
    return engine


def by(engine: ManualEngine, actor: Actor) -> Calls:
    """The calls of somebody."""
    return engine.acting(RequestContext(actor=actor))


def created(engine: ManualEngine, name: str = "B-1", **data: object) -> DocumentView:
    """A bill of bob's."""
    given: dict[str, object] = {"vendor": "acme", "total": 5, **data}
    return by(engine, CLERK).documents.create("bill", given, id=name)


def submitted(engine: ManualEngine, name: str = "B-1", **data: object) -> DocumentView:
    """A bill of bob's that was submitted, with all that follows from it."""
    created(engine, name, **data)
    by(engine, CLERK).documents.transition("bill", name, "submit")
    engine.drain()
    return engine.documents.get("bill", name)


def approve(engine: ManualEngine) -> None:
    """Decide all questions that are open."""
    calls = by(engine, FAY)
    for task in calls.tasks.list(mine=True):
        calls.tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()


def offered(view: DocumentView) -> dict[str, str]:
    """The transitions that a document offers, each with what stands against it."""
    return {each.name: each.why_not for each in view.transitions}
