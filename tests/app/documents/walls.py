"""Invoices of one organisation whose slots are filled in many ways, and the people who decide on them."""

from __future__ import annotations

from standfast import Actor, RequestContext
from standfast.app.api.sync import Calls
from standfast.features.runs.views import HumanTask
from standfast.testing import ManualEngine

CONTRACT = """
entity_type: invoice
version: 1
fields:
  number: {type: string, required: true}
  total: {type: money}
  memo: {type: string}
  lines: {type: list, items: {type: string}}
  posting: {type: string}
system_fields: [posting]
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
    - {name: cancel, from: [draft, submitted, active], to: cancelled, kind: cancel}
slots:
  - {id: "slot:before", entry: "sys:state:draft", exit: "sys:gate:submit", window: editable, stable: false%(before)s}
  - {id: "slot:asking", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
  - {id: "slot:behind", entry: "sys:gate:approve", exit: "sys:state:active", window: locked, stable: false}
actions:
  - {name: invoice.create, creates: true}
  - {name: invoice.update}
  - {name: invoice.amend}
  - {name: invoice.note, workflow_allowed: true}
  - {name: invoice.post, workflow_allowed: true, handler: invoice.post}
  - {name: invoice.reserve, workflow_allowed: true, handler: invoice.reserve}
  - {name: invoice.release, workflow_allowed: true, handler: invoice.release}
"""
ANN, FIN, BUD = (Actor(id=name) for name in ("ann", "fin", "bud"))
PUBLISHER = Actor(id="paul", capabilities=frozenset({"*"}))
OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:*"}))
GIVEN: dict[str, object] = {"number": "A-1", "total": 100}


def patch(slot: str, nodes: str, edges: str = "", **more: str) -> str:
    """A patch of a body, of nodes and edges as lists in YAML."""
    told = f'  "slot:{slot}":\n    exit: join\n    nodes: [{nodes}]\n'
    told += "".join(f"    {name}: {value}\n" for name, value in more.items())
    return told + (f"    edges: [{edges}]\n" if edges else "")


def covering(fields: str) -> str:
    """What an approval says of the fields that it is about; nothing, if it is about all of them."""
    return f", covers: [{fields}]" if fields else ""


def first_of_two(loser: str, ways: str, losers: str = "finish", *, covers: str = "", slot: str = "asking") -> str:
    """A patch in which fin's approval is enough, and another branch goes beside it: `b` and what follows up to the join."""
    nodes = (
        f"{{id: sp, type: parallel_split}}, {{id: a, type: approval, approvers: [{{user: fin}}]{covering(covers)}}}, {loser}, "
        f"{{id: j, type: parallel_join, mode: any, losers: {losers}}}"
    )
    return patch(slot, nodes, f"{{from: sp, to: a}}, {{from: sp, to: b}}, {{from: a, to: j}}, {ways}")


BUD_ASKED = "{id: b, type: approval, approvers: [{user: bud}]}"
POST = patch("behind", '{id: post, type: action, action: invoice.post, run_as: "system"}')


def opened(engine: ManualEngine, *patches: str, before: str = "", amendment: str = "new_row") -> ManualEngine:
    """An engine with these patches published; what is posted is counted by its handler."""
    engine.contracts.publish(CONTRACT % {"before": before} + f"amendment: {amendment}\n")
    own = acting(engine, PUBLISHER)
    own.bodies.publish(
        own.bodies.save("base: {entity_type: invoice, envelope_version: 1}\nslots:\n" + "".join(patches)).id
    )
    return engine


def acting(engine: ManualEngine, actor: Actor) -> Calls:
    """The calls of somebody in the organisation."""
    return engine.acting(RequestContext(tenant="acme", actor=actor))


def submit(engine: ManualEngine, **data: object) -> None:
    """Ann creates an invoice and submits it."""
    acting(engine, ANN).documents.create("invoice", {**GIVEN, **data}, id="I-1")
    again(engine)


def again(engine: ManualEngine) -> None:
    """Ann submits her invoice."""
    acting(engine, ANN).documents.transition("invoice", "I-1", "submit")
    engine.drain()


def open_tasks(engine: ManualEngine) -> dict[str, HumanTask]:
    """The open questions about the invoice, by the names of their nodes."""
    calls = acting(engine, OPERATOR)
    run = calls.documents.get("invoice", "I-1").instance
    return {each.name.rpartition(":")[2]: each for each in calls.run(run).tasks() if each.status == "open"}


def decide(engine: ManualEngine, node: str, actor: Actor, decision: str = "approved") -> None:
    """Somebody decides an open question, on the version that it asks about."""
    answer(engine, open_tasks(engine)[node], actor, decision)


def answer(engine: ManualEngine, task: HumanTask, actor: Actor, decision: str = "approved") -> None:
    """Somebody decides a question, open or not."""
    acting(engine, actor).tasks.decide(task, decision, document_version=task.document_version, comment="because")
    engine.drain()


def stands(engine: ManualEngine) -> tuple[str, object, str, str]:
    """Status and total of the invoice, and how its run is."""
    view = acting(engine, OPERATOR).documents.get("invoice", "I-1")
    return view.status, view.data["total"], view.run_status, view.run_reason


def violations(engine: ManualEngine) -> list[str]:
    """The rules that do not hold."""
    return sorted({each.rule for each in acting(engine, OPERATOR).invariants.check().items})
