"""Lives of documents that between them write every event of documents, and use every kind of node of their workflows."""

from __future__ import annotations

from datetime import timedelta

from app.documents.orders import GIVEN as ORDER_GIVEN
from app.documents.orders import keep_stock, register
from histories.tape import Tape
from standfast import Actor
from standfast.graph import model as g
from standfast.graph.definition import Definition
from standfast.graph.document_spec import DocumentAction
from standfast.graph.model import DocumentRule, Edge, Node
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


def moved_documents(tape: Tape) -> None:
    """Invoices of which one approval is void and the other is kept, and that follow another version of their workflow then."""
    engine = tape.engine
    asked = approval("price", covers=["total"]), approval("rest", who="user:carl", covers=["note"])
    engine.register(Definition(graph=invoice({SUBMIT_SLOT: chain(*asked)})))
    mine = engine.acting(BOB).documents
    mine.create("invoice", GIVEN, id="I-1")
    mine.transition("invoice", "I-1", "submit")
    _decide(tape, ANN, "approved")
    mine.mutate("invoice", "I-1", {"total": 700})
    _decide(tape, CARL, "approved")
    later = approval("cost", covers=["total"]), asked[1]
    engine.register(Definition(graph=invoice({SUBMIT_SLOT: chain(*later)}, version="2")))
    mine.create("invoice", GIVEN, id="I-2")
    (moved,) = engine.workflows.move("invoice", "1", "2", nodes={"price": "cost"}, reason="another name").items
    assert moved.is_moved, moved.problem
    _decide(tape, ANN, "approved")
    for name in ("I-1", "I-2"):
        mine.transition("invoice", name, "cancel")
    tape.drain()


def audited_documents(tape: Tape) -> None:
    """An invoice that an operator paused, resumed and handed to another approver: acts that its audit tells by an event of their own."""
    engine = tape.engine
    engine.register(Definition(graph=invoice({SUBMIT_SLOT: chain(approval("price", who="user:carl"))})))
    mine = engine.acting(BOB).documents
    made = mine.create("invoice", GIVEN, id="I-1")
    mine.transition("invoice", "I-1", "submit")
    tape.drain()
    olga = engine.acting(Actor(id="olga", on_behalf_of="otto", capabilities=frozenset({"*"})), reason="carl is ill")
    olga.run(made.instance).pause("look first")
    olga.run(made.instance).resume()
    (task,) = engine.run(made.instance).tasks()
    olga.tasks.reassign(task, "ann", who="carl")
    _decide(tape, ANN, "approved")
    mine.transition("invoice", "I-1", "cancel")
    tape.drain()


def ruled_documents(tape: Tape) -> None:
    """Orders that take from stock and are posted to a ledger, by rules of the organisation; one is undone, and a request is not waited for."""
    engine = tape.engine
    keep_stock(engine)
    register(engine, "stock_item")
    register(engine, "gl_entry")
    register(engine, "sales_order", _ORDER)
    sam = Actor(id="sam", capabilities=frozenset({"*"}))
    engine.charters.publish_rules(
        "sales_order",
        [
            {"name": "big", "effect": "warn", "when": "entity.quantity > 1", "reason": "that is a lot"},
            {"name": "tell", "effect": "notify", "to": ["role:sales"], "subject": "{entity.number}", "on": ["submit"]},
        ],
    )
    mine = engine.acting(sam).documents
    mine.create("stock_item", {"name": "lamp", "on_hand": 5}, id="lamp")
    mine.create("sales_order", ORDER_GIVEN, id="O-1", reason="a call")
    mine.mutate("sales_order", "O-1", {"quantity": 3})
    mine.transition("sales_order", "O-1", "submit")
    tape.drain()
    engine.events.publish("credit", payload={"verdict": "bad"})
    tape.drain()
    mine.transition("sales_order", "O-1", "cancel")
    for kind in ("stock_item", "gl_entry"):
        for each in mine.list(kind).items:
            mine.transition(kind, each.id, "close")
    tape.drain()


def reading_documents(tape: Tape) -> None:
    """Orders that wait, and whose conditions read the settings of the organisation and a customer afterwards, which have changed meanwhile."""
    engine = tape.engine
    register(engine, "customer")
    register(engine, "sales_order", _READING)
    sam = Actor(id="sam", capabilities=frozenset({"*"}))
    engine.charters.publish_settings({"limit": 1})
    mine = engine.acting(sam).documents
    mine.create("customer", {"name": "Mrs Smith", "credit_available": 1}, id="C-1")
    mine.create("sales_order", {**ORDER_GIVEN, "customer": "C-1"}, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    mine.mutate("customer", "C-1", {"credit_available": 1_000_000})
    engine.charters.publish_settings({"limit": 1_000_000})
    engine.advance(timedelta(hours=2))
    assert mine.get("sales_order", "O-1").status == "active"
    mine.transition("sales_order", "O-1", "cancel")
    mine.transition("customer", "C-1", "close")
    tape.drain()


_READING = """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes:
      - {id: later, type: wait_timer, duration: 1h}
      - {id: enough, type: condition, expression: entity.customer.credit_available >= entity.grand_total}
      - {id: small, type: condition, expression: entity.grand_total <= org.limit}
      - {id: ask, type: approval, approvers: [{user: ann}]}
    edges:
      - {from: later, to: enough}
      - {from: enough, to: small, on: "true"}
      - {from: enough, to: ask, on: "false"}
      - {from: small, to: out, on: "true"}
      - {from: small, to: ask, on: "false"}
"""


def redacted_documents(tape: Tape) -> None:
    """A document whose account was taken out of its history, and what happened to it afterwards."""
    engine, bob = tape.engine, Actor(id="bob", capabilities=frozenset({"documents:redact"}))
    engine.register(Definition(graph=invoice()))
    mine = engine.acting(bob).documents
    mine.create("invoice", {"vendor": "acme", "total": 500, "iban": "DE89370400440532013000"}, id="INV-1")
    mine.mutate("invoice", "INV-1", {"iban": "GB29NWBK60161331926819"}, reason="DE89370400440532013000 was closed")
    mine.redact("invoice", "INV-1", reason="erasure")
    mine.transition("invoice", "INV-1", "submit")
    tape.drain()


_ORDER = """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes:
      - {id: begin, type: script, formula: "'unknown'", into: verdict}
      - {id: fork, type: parallel_split}
      - {id: reserve, type: action, action: stock_item.reserve, target: entity.stock_item, payload: {quantity: entity.quantity}, undo: stock_item.release}
      - {id: credit, type: wait_event, event: credit, into: credit}
      - {id: verdict, type: script, formula: context.credit.verdict, into: verdict}
      - {id: meet, type: parallel_join, abort: context.verdict == 'bad'}
      - {id: post, type: action, action: gl_entry.create, run_as: system, payload: {account: "'1200'", amount: entity.grand_total}}
      - {id: tell, type: webhook_out, url: "https://127.0.0.1:1/", await: false}
    edges:
      - {from: begin, to: fork}
      - {from: fork, to: reserve}
      - {from: fork, to: credit}
      - {from: reserve, to: meet}
      - {from: credit, to: verdict}
      - {from: verdict, to: meet}
      - {from: meet, to: out}
      - {from: meet, to: post, on: abort}
      - {from: post, to: tell}
"""


def _graph() -> g.Graph:
    script = Node(id="size", op=g.ScriptOp(formula=when("entity.total > 100"), into="is_large"))
    rule = Node(
        id="judge",
        op=g.RuleOp(rules=(DocumentRule(name="usd", when=when("entity.currency == 'USD'"), reason="no dollars"),)),
    )
    ask = approval("second", who="user:carl")
    body = Body(
        nodes=(script, rule, ask),
        first="size",
        last=("second:approved", "judge:blocked"),
        edges=[Edge(source="size", target="judge"), Edge(source="judge", target="second")],
    )
    gate = Node(id="sys:policy:post", op=g.PolicyGateOp(action="post"), run_as="system")
    post = Node(id="post", op=g.ActionOp(action="post", payload={"posting": value("'GL-1'")}), run_as="system")
    return invoice(
        {SUBMIT_SLOT: chain(approval("first", covers=["total"])), APPROVE_SLOT: body, ACTIVE_SLOT: chain(gate, post)},
        actions=[DocumentAction(name="post", workflow_allowed=True, capability="invoice.post")],
    )


def _decide(tape: Tape, actor: Actor, decision: str) -> None:
    (task,) = tape.engine.tasks.list()
    calls = tape.engine.acting(actor).tasks
    calls.decide(task, decision, document_version=task.document_version, comment="because")
