"""Steps of a document that act on other documents: by the same commands as everybody, in the commit that ends the step, exactly once."""

from __future__ import annotations

import msgspec
import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, body, keep_stock, register
from app.documents.walls import CONTRACT, PUBLISHER, acting, patch
from standfast import Actor, DefinitionError, RequestContext
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import check_body, compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.definition import Definition
from standfast.machine.model.document_state import MOST_MADE
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from support.engines import Place

SLOT = '"slot:submitted_to_approved"'
RESERVE = "{id: reserve, type: action, action: stock_item.reserve, target: entity.stock_item, payload: {quantity: entity.quantity}, undo: stock_item.release}"
POST = (
    "{id: post, type: action, action: gl_entry.create, run_as: system, "
    "payload: {account: \"'1200'\", amount: entity.grand_total, source_type: \"'sales_order'\", source_id: entity.id}}"
)
BOTH = body(SLOT, f"{RESERVE}, {POST}", "{from: reserve, to: post}")


def prepare(engine: ManualEngine, patch: str = BOTH) -> None:
    """An engine that knows orders with a body, stock and ledger."""
    keep_stock(engine)
    for kind in ("stock_item", "gl_entry"):
        register(engine, kind)
    register(engine, "sales_order", patch)


def sent(engine: ManualEngine, *, actor: Actor = SELLER, changes: dict[str, object] | None = None) -> None:
    """An order that was submitted, and all that follows from it."""
    mine = asking(engine, actor).documents
    mine.create("sales_order", {**GIVEN, **(changes or {})}, id="O-1", idempotency_key="create")
    mine.transition("sales_order", "O-1", "submit", idempotency_key="submit")
    engine.drain()


def stock(engine: ManualEngine, name: str = "lamp", *, on_hand: int = 5) -> None:
    """Something on the shelf."""
    asking(engine, SELLER).documents.create(
        "stock_item", {"name": name, "on_hand": on_hand}, id=name, idempotency_key="stock"
    )


def reserved(engine: ManualEngine, name: str = "lamp") -> object:
    """How much of it is set aside."""
    return engine.documents.get("stock_item", name).data["reserved"]


@pytest.mark.row("E-406", "E-405", "E-008", "E-067", "E-934", "E-573", "EH-15", "EO-19")
def test_a_step_changes_one_document_and_makes_another(place: Place) -> None:
    """The stock by the handler of its own action, the ledger entry with what expressions give; the steps tell which documents and versions."""
    engine = place.engine()
    prepare(engine)
    stock(engine)
    sent(engine)
    order = engine.documents.get("sales_order", "O-1")
    assert (order.status, reserved(engine)) == ("active", 2)
    (entry,) = engine.documents.list("gl_entry").items
    assert (entry.data["amount"], entry.data["source_id"], entry.updated_by) == (90_000, "O-1", "system")
    told = {each.name.rpartition(":")[2]: each.output for each in engine.run(order.instance).steps() if each.output}
    assert told["reserve"] == {
        "type": "stock_item",
        "id": "lamp",
        "action": "reserve",
        "status": "open",
        "version_before": 1,
        "version_after": 2,
    }
    assert isinstance(told["post"], dict)
    assert told["post"]["id"] == entry.id
    links = [(each.how, each.type, each.id) for each in engine.documents.links("sales_order", "O-1")]
    assert links == [
        ("refers_to", "customer", "C-1"),
        ("refers_to", "stock_item", "lamp"),
        ("changed", "stock_item", "lamp"),
        ("made", "gl_entry", entry.id),
    ]
    for kind, name, how in (("stock_item", "lamp", "changed_by"), ("gl_entry", entry.id, "made_by")):
        (link,) = engine.documents.links(kind, name)
        assert (link.how, link.type, link.id) == (how, "sales_order", "O-1")
    (_, mutation) = engine.documents.mutations("stock_item", "lamp")
    assert (mutation.actor, mutation.action, mutation.changes) == ("sam", "reserve", {"reserved": [0, 2]})
    assert mutation.reason.startswith("sales_order/O-1 at usr:")


@pytest.mark.row("P-025")
def test_a_step_acts_in_the_partition_of_its_document(place: Place) -> None:
    """What has the same name in another partition, or in none, is left alone, and what is made is made there."""
    engine = place.engine()
    prepare(engine)
    parts = {each: engine.acting(RequestContext(partition=each, actor=SELLER)).documents for each in ("", "north")}
    for each in parts.values():
        each.create("stock_item", {"name": "lamp", "on_hand": 5}, id="lamp", idempotency_key="stock")
    parts["north"].create("sales_order", GIVEN, id="O-1", idempotency_key="create")
    parts["north"].transition("sales_order", "O-1", "submit", idempotency_key="submit")
    engine.drain()
    set_aside = {name: each.get("stock_item", "lamp").data["reserved"] for name, each in parts.items()}
    assert set_aside == {"": 0, "north": 2}
    (entry,) = engine.documents.list("gl_entry").items
    assert engine.runs.partition_of(entry.instance) == "north"


@pytest.mark.row("E-025", "E-403", "E-425", "E-447", "ED-13")
@pytest.mark.parametrize(
    ("changes", "actor", "told"),
    [
        ({"stock_item": "nothing"}, SELLER, "not_found"),
        ({"quantity": 9}, SELLER, "there is not enough of it"),
        ({}, Actor(id="eve", capabilities=frozenset({"sales_order.*"})), "not_allowed"),
        ({"stock_item": "closed"}, SELLER, "WORKFLOW_EDIT_LOCKED"),
        ({"stock_item": None}, SELLER, "cannot be told"),
    ],
)
def test_what_another_document_refuses_fails_the_step(
    place: Place, changes: dict[str, object], actor: Actor, told: str
) -> None:
    """One that is not there, whose handler objects, that the actor may not change, that is over: the order waits for an operator, and nothing is written."""
    engine = place.engine()
    prepare(engine)
    stock(engine)
    stock(engine, "closed")
    asking(engine, SELLER).documents.transition("stock_item", "closed", "close")
    sent(engine, actor=actor, changes=changes)
    engine.advance(minutes=1)
    order = engine.documents.get("sales_order", "O-1")
    (failed,) = [each for each in engine.run(order.instance).steps() if each.error]
    assert (order.status, order.run_status, told in failed.error) == ("submitted", "paused", True)
    assert (reserved(engine), engine.documents.list("gl_entry").items) == (0, [])


def test_another_tenants_document_is_not_there(place: Place) -> None:
    """However it is called."""
    engine = place.engine()
    prepare(engine)
    asking(engine, SELLER, tenant="other").documents.create("stock_item", {"name": "lamp", "on_hand": 5}, id="lamp")
    sent(engine)
    assert engine.documents.get("sales_order", "O-1").run_status == "paused"
    assert engine.as_tenant("other").documents.get("stock_item", "lamp").version == 1


def test_the_document_itself_is_no_target(place: Place) -> None:
    """What a step does to its own document it says without a target."""
    engine = place.engine()
    prepare(
        engine,
        body(SLOT, "{id: own, type: action, action: sales_order.update, target: entity.id, payload: {note: \"'x'\"}}"),
    )
    sent(engine)
    order = engine.documents.get("sales_order", "O-1")
    assert ["leave `target` out" in each.error for each in engine.run(order.instance).steps() if each.error] == [True]


@pytest.mark.row("E-748", "E-555", "EC-06")
def test_what_was_done_elsewhere_is_taken_back_by_another_change(place: Place) -> None:
    """A branch that turned out to be in vain gives back what it had set aside: two mutations, and the stock is as it was."""
    engine = place.engine()
    nodes = (
        "{id: begin, type: script, formula: \"'unknown'\", into: verdict}, {id: fork, type: parallel_split}, "
        f"{RESERVE}, {{id: credit, type: wait_event, event: credit, into: credit}}, "
        "{id: verdict, type: script, formula: context.credit.verdict, into: verdict}, "
        "{id: meet, type: parallel_join, mode: all, abort: context.verdict == 'bad'}, "
        "{id: payment, type: wait_event, event: paid}"
    )
    edges = (
        "{from: begin, to: fork}, {from: fork, to: reserve}, {from: fork, to: credit}, {from: reserve, to: meet}, "
        "{from: credit, to: verdict}, {from: verdict, to: meet}, {from: meet, to: out}, {from: meet, to: payment, on: abort}"
    )
    prepare(engine, body(SLOT, nodes, edges))
    stock(engine)
    sent(engine)
    assert reserved(engine) == 2
    engine.events.publish("credit", payload={"verdict": "bad"})
    engine.drain()
    assert reserved(engine) == 0
    assert [each.action for each in engine.documents.mutations("stock_item", "lamp")] == [
        "create",
        "reserve",
        "release",
    ]
    engine.events.publish("paid", payload={})
    engine.drain()
    assert engine.documents.get("sales_order", "O-1").status == "active"


def play(engine: ManualEngine) -> None:
    """From the shelf to the ledger, each call as often as it takes."""
    stock(engine)
    sent(engine)
    engine.advance(minutes=1)  # A call that never came back is made again after a while.


def outcome(engine: ManualEngine) -> object:
    """How the documents stand."""
    entries = [(each.status, each.data["source_id"]) for each in engine.documents.list("gl_entry").items]
    for each in (*engine.documents.list("stock_item").items, *engine.documents.list("sales_order").items):
        assert engine.run(each.instance).verify().is_sound
    return engine.documents.get("sales_order", "O-1").status, reserved(engine), entries


@pytest.mark.row("E-074", "E-052", "E-426")
def test_a_crash_anywhere_does_it_once() -> None:
    """Wherever the process dies: the stock is set aside once, and one entry is made."""
    report = crash_everywhere(CrashScenario(prepare=prepare, play=play, outcome=outcome))
    assert report.points > 5


@pytest.mark.row("E-348")
@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("{id: a, type: action, action: stock_item.reserve}", "unknown_action"),
        ("{id: a, type: action, action: sales_order.explode, target: entity.id}", "unknown_action"),
        ("{id: a, type: action, action: stock_item.reserve, target: entity.nothing}", "expression"),
        (
            "{id: a, type: action, action: stock_item.reserve, target: entity.stock_item, undo: sales_order.release}",
            "undo",
        ),
        ("{id: a, type: action, action: stock_item.reserve, target: entity.stock_item, run_as: nobody}", "run_as"),
    ],
)
def test_what_is_wrong_with_a_step_elsewhere_is_found_when_it_is_written(node: str, code: str) -> None:
    """Another type without a document, an action that is not there, an expression that reads nothing, an undoing of something else."""
    found = check_body(generate_envelope(ready_contract("sales_order")), read_body(body(SLOT, node)))
    assert [each.code for each in found] == [code]


def test_a_target_is_an_expression() -> None:
    """Anything else is no body."""
    with pytest.raises(DefinitionError):
        read_body(body(SLOT, "{id: a, type: action, action: stock_item.reserve, target: 7}"))


CREDIT = body(
    SLOT,
    "{id: enough, type: condition, expression: entity.customer.credit_available >= entity.grand_total}, "
    "{id: boss, type: approval, title: 'Credit of {entity.customer.name}', approvers: [{user: otto}]}",
    "{from: enough, to: out, on: 'true'}, {from: enough, to: boss, on: 'false'}, {from: boss, to: out}",
)


def keep_to_the_bank(engine: ManualEngine) -> None:
    """From now on the credit of customers is for the eyes of the bank alone."""
    contract = ready_contract("customer")
    credit = msgspec.structs.replace(contract.fields["credit_available"], visible_to=["bank"])
    narrow = msgspec.structs.replace(contract, version=2, fields={**contract.fields, "credit_available": credit})
    engine.register(Definition(graph=graph_of(compile_effective(generate_envelope(narrow)), version="2")))


@pytest.mark.row("E-619")
def test_fields_of_another_document_are_told_to_those_who_may_see_them(place: Place) -> None:
    """The credit of the customer decides, as it is then; the history has it, masked for those to whom the customer's contract does not show it."""
    engine = place.engine()
    register(engine, "customer")
    register(engine, "sales_order", CREDIT)
    seller = Actor(id="sam", capabilities=frozenset({"sales_order.*", "customer.*", "execution:read"}))
    mine = asking(engine, seller).documents
    mine.create("customer", {"name": "Mrs Smith", "credit_available": 50_000}, id="C-1")
    for name in ("O-1", "O-2", "O-3"):
        customer = "C-9" if name == "O-3" else "C-1"
        mine.create("sales_order", {**GIVEN, "customer": customer}, id=name)
    mine.transition("sales_order", "O-1", "submit")
    mine.mutate("customer", "C-1", {"credit_available": 90_000})
    mine.transition("sales_order", "O-2", "submit")
    mine.transition("sales_order", "O-3", "submit")
    seen = {name: mine.get("sales_order", name) for name in ("O-1", "O-2", "O-3")}
    assert {name: (each.status, each.run_status) for name, each in seen.items()} == {
        "O-1": ("submitted", "running"),
        "O-2": ("active", "running"),
        "O-3": ("submitted", "paused"),
    }
    (task,) = engine.tasks.list()
    assert (task.key, task.subject) == ("O-1", "Credit of Mrs Smith")
    (choice,) = [each for each in mine.choices("sales_order", "O-1") if each.node.endswith(":enough")]
    assert 50_000 in choice.asked[0].values.values()
    keep_to_the_bank(engine)
    (choice,) = [each for each in mine.choices("sales_order", "O-1") if each.node.endswith(":enough")]
    assert choice.asked[0].values["related.customer.credit_available"] == "[masked]"
    told = [each.data for each in engine.run(seen["O-1"].instance).history() if each.event_type == "facts_read"]
    assert told[0]["related"] == {"customer": {"credit_available": 50_000, "name": "Mrs Smith"}}
    shown = asking(engine, seller).run(seen["O-1"].instance).history()
    assert {each.data["related"] for each in shown if "related" in each.data} == {"***"}


@pytest.mark.parametrize("path", ["entity.customer.credit_availble", "entity.customer.manager.name"])
def test_what_cannot_be_read_of_another_document_is_found_when_it_is_written(path: str) -> None:
    """A field that it does not have, and one that lies behind two documents."""
    envelope = generate_envelope(ready_contract("sales_order"))
    text = CREDIT.replace("entity.customer.credit_available", path)
    found = check_body(envelope, text, related={"customer": ready_contract("customer")})
    assert [each.code for each in found] == ["expression"]


WAITING = body(
    SLOT,
    "{id: wait, type: wait_event, event: stocked, key: 'order:{entity.number}', into: came}",
    "{from: wait, to: out, on: event}",
)


@pytest.mark.row("EO-19")
def test_one_document_waits_for_another_by_a_key(place: Place) -> None:
    """A step of a purchase tells the order that waits for its number, and no other one."""
    engine = place.engine()
    register(engine, "sales_order", WAITING)
    register(
        engine,
        "purchase_order",
        body(SLOT, "{id: tell, type: task, handler: tell, input: {number: entity.number}}", kind="purchase_order"),
    )

    @engine.handler("tell")
    def tell(number: str) -> None:
        engine.events.publish("stocked", f"order:{number}", {"quantity": 7}, event_id=number)

    seller = Actor(id="sam", capabilities=frozenset({"sales_order.*", "purchase_order.*", "execution:read"}))
    mine = asking(engine, seller).documents
    for name in ("S-1", "S-2"):
        mine.create("sales_order", {**GIVEN, "number": name}, id=name)
        mine.transition("sales_order", name, "submit")
    mine.create("purchase_order", {"number": "S-2", "vendor_id": "V-1", "grand_total": 5, "cost_center": "1"}, id="P-1")
    mine.transition("purchase_order", "P-1", "submit")
    engine.drain()
    assert [mine.get("sales_order", name).status for name in ("S-1", "S-2")] == ["submitted", "active"]


@pytest.mark.row("E-682")
def test_documents_that_make_one_another_come_to_an_end(place: Place) -> None:
    """A document knows how many documents stand between it and a person; beyond the limit none is made, and the step says why."""
    engine = place.engine()
    again = "    - {name: resubmit, from: [amended], to: submitted}\n    - {name: cancel"
    begins = CONTRACT.replace(
        "from: [draft, amended], to: submitted}", "from: [draft], to: submitted, begins: by_itself}"
    )
    begins = begins.replace("    - {name: cancel", again)
    for kind in ("memo", "invoice"):
        engine.contracts.publish((begins % {"before": ""}).replace("invoice", kind))
    for kind, other in (("memo", "invoice"), ("invoice", "memo")):
        node = (
            f"{{id: mk, type: action, action: {other}.create, payload: {{number: entity.number, total: entity.total}}}}"
        )
        own = acting(engine, PUBLISHER)
        text = f"base: {{entity_type: {kind}, envelope_version: 1}}\nslots:\n{patch('before', node)}"
        own.bodies.publish(own.bodies.save(text).id)
    own = acting(engine, PUBLISHER)
    own.documents.create("invoice", {"number": "A-1", "total": 100}, id="I-1")
    engine.drain()
    listed = [(kind, each.id) for kind in ("invoice", "memo") for each in own.documents.list(kind, limit=100).items]
    made = [own.documents.get(*each) for each in listed]
    assert len(made) == MOST_MADE + 1
    (stuck,) = [each for each in made if each.run_status == "paused"]
    (reason,) = own.run(stuck.instance).why().reasons
    assert f"{MOST_MADE} documents have made one another" in reason.words
    assert own.invariants.check().items == []
