"""Lives of documents that between them write every event of documents, and use every kind of node of their workflows."""

from __future__ import annotations

from histories.tape import Tape
from holdfast import Actor
from holdfast.authoring.definition import Definition
from holdfast.machine.graphs import graph as g
from holdfast.machine.graphs.document import DocumentAction
from holdfast.machine.graphs.graph import DocumentRule, Edge, Node
from support.envelopes import ACTIVE_SLOT, APPROVE_SLOT, SUBMIT_SLOT, Body, approval, chain, invoice, value, when

ANN, BOB, CARL = (Actor(id=name, capabilities=frozenset({"execution:read"})) for name in ("ann", "bob", "carl"))
GIVEN: dict[str, object] = {"vendor": "acme", "total": 500, "iban": "DE1"}


def documents(tape: Tape) -> None:
    """Invoices: edited while somebody decides, rejected, approved, posted, recalled, amended, cancelled, adopted."""
    engine = tape.engine
    engine.register(Definition(graph=_graph()))
    mine = engine.acting(BOB).documents
    mine.create("invoice", GIVEN, id="I-1", reason="a delivery")
    mine.transition("invoice", "I-1", "submit", reason="please")
    mine.mutate("invoice", "I-1", {"total": 700, "note": "Grüße ☃"}, reason="a typo")
    _decide(tape, ANN, "approved")
    _decide(tape, CARL, "rejected")
    mine.transition("invoice", "I-1", "submit")
    _decide(tape, ANN, "approved")
    mine.transition("invoice", "I-1", "recall")
    mine.transition("invoice", "I-1", "submit")
    _decide(tape, ANN, "approved")
    _decide(tape, CARL, "approved")
    tape.drain()
    mine.amend("invoice", "I-1", {"total": 900}, new_id="I-2", reason="a discount")
    mine.transition("invoice", "I-2", "cancel", reason="enough")
    engine.documents.adopt("invoice", "I-3", {**GIVEN, "currency": "USD", "posting": "P"}, status="active", version=3)
    engine.documents.transition("invoice", "I-3", "cancel")
    tape.drain()


def _graph() -> g.Graph:
    script = Node(id="size", op=g.Script(formula=when("entity.total > 100"), into="is_large"))
    rule = Node(
        id="judge",
        op=g.Rule(rules=(DocumentRule(name="usd", when=when("entity.currency == 'USD'"), reason="no dollars"),)),
    )
    ask = approval("second", who="user:carl")
    body = Body(
        nodes=(script, rule, ask),
        first="size",
        last=("second:approved", "judge:blocked"),
        edges=[Edge(source="size", target="judge"), Edge(source="judge", target="second")],
    )
    gate = Node(id="sys:policy:post", op=g.PolicyGate(action="post"), run_as="system")
    post = Node(id="post", op=g.Action(action="post", payload={"posting": value("'GL-1'")}), run_as="system")
    return invoice(
        {SUBMIT_SLOT: chain(approval("first", covers=["total"])), APPROVE_SLOT: body, ACTIVE_SLOT: chain(gate, post)},
        actions=[DocumentAction(name="post", workflow_allowed=True, capability="invoice.post")],
    )


def _decide(tape: Tape, actor: Actor, decision: str) -> None:
    (task,) = tape.engine.tasks.list()
    calls = tape.engine.acting(actor).tasks
    calls.decide(task, decision, document_version=task.document_version, comment="because")
