"""The use cases of the specification, from end to end, on both stores, with a clock that the test moves and receivers that are real servers.

A and C are in test_contracts.py. B: reserve, check the credit and tell the warehouse at the same time. D: wait for a delivery up to three
days. E: a royalty statement each month.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, keep_stock, register
from people.test_webhook import LOCAL, Receiver, receiver
from standfast import Actor, Settings
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from support.engines import Place

__all__ = ["receiver"]

ALLOWED = Settings(outbound_allow=tuple(LOCAL))
BOSS = Actor(id="olga", roles=frozenset({"operations"}))

# -- B: a sales order

ORDER = """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes:
      - {id: begin, type: script, formula: "'open'", into: standing}
      - {id: all, type: parallel_split}
      - {id: reserve, type: action, action: stock_item.reserve, target: entity.stock_item, payload: {quantity: entity.quantity}, undo: stock_item.release}
      - {id: reserved, type: script, formula: "'reserved'", into: standing}
      - {id: back_order, type: script, formula: "'back_ordered'", into: standing}
      - {id: credit, type: wait_event, event: credit, key: "{entity.customer}", into: credit}
      - {id: verdict, type: script, formula: context.credit.verdict, into: standing}
      - {id: warehouse, type: notification, to: ["role:warehouse"], subject: "Order {entity.number}"}
      - {id: meet, type: parallel_join, mode: any, losers: stop, accept: "context.standing in ['reserved', 'back_ordered']", abort: "context.standing == 'bad'"}
      - {id: payment, type: wait_event, event: paid, key: "{entity.id}"}
    edges:
      - {from: begin, to: all}
      - {from: all, to: reserve}
      - {from: all, to: credit}
      - {from: all, to: warehouse}
      - {from: reserve, to: reserved}
      - {from: reserve, to: back_order, on: error}
      - {from: reserved, to: meet}
      - {from: back_order, to: meet}
      - {from: credit, to: verdict}
      - {from: verdict, to: meet}
      - {from: warehouse, to: meet}
      - {from: meet, to: out}
      - {from: meet, to: payment, on: abort}
      - {from: meet, to: payment, on: none}
      - {from: payment, to: out}
"""


def selling(engine: ManualEngine) -> None:
    """An engine that knows orders and stock, with five lamps on the shelf."""
    keep_stock(engine)
    register(engine, "stock_item")
    register(engine, "sales_order", ORDER)


def shelved(engine: ManualEngine) -> None:
    """Five lamps."""
    asking(engine, SELLER).documents.create(
        "stock_item", {"name": "lamp", "on_hand": 5}, id="lamp", idempotency_key="stock"
    )


def ordered(engine: ManualEngine, **changes: object) -> None:
    """An order that was submitted; what follows from it has not begun."""
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", {**GIVEN, **changes}, id="O-1", idempotency_key="create")
    mine.transition("sales_order", "O-1", "submit", idempotency_key="submit")


def credit(engine: ManualEngine, verdict: str) -> None:
    """The credit check comes back."""
    engine.events.publish("credit", "C-1", {"verdict": verdict}, event_id="credit-1")


def standing(engine: ManualEngine) -> tuple[str, object]:
    """The status of the order, and what is set aside."""
    status = engine.documents.get("sales_order", "O-1").status
    return status, engine.documents.get("stock_item", "lamp").data["reserved"]


@pytest.mark.row("E-747", "E-554", "E-556", "E-410", "E-409", "E-016", "E-937")
def test_b_an_order_goes_on_as_soon_as_something_is_reserved(place: Place) -> None:
    """The notice to the warehouse wins nothing; the reservation does, or that there is not enough."""
    engine = place.engine()
    selling(engine)
    shelved(engine)
    ordered(engine)
    engine.drain()
    assert standing(engine) == ("active", 2)
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", {**GIVEN, "quantity": 9}, id="O-2")
    mine.transition("sales_order", "O-2", "submit")
    engine.advance(minutes=1)
    assert (mine.get("sales_order", "O-2").status, standing(engine)[1]) == ("active", 2)


@pytest.mark.row("E-747", "E-748", "E-749", "E-555")
def test_b_bad_credit_ends_the_rest_and_waits_for_payment(place: Place) -> None:
    """It comes before the stock was looked at: nothing is set aside, and the payment lets the order go on."""
    engine = place.engine()
    selling(engine)
    shelved(engine)
    ordered(engine)
    credit(engine, "bad")
    engine.drain()
    assert standing(engine) == ("submitted", 0)
    engine.events.publish("paid", "O-1", {"amount": 90_000})
    engine.drain()
    assert standing(engine) == ("active", 0)


@pytest.mark.row("E-747", "E-748")
def test_b_bad_credit_gives_back_what_was_reserved(place: Place) -> None:
    """Where all are waited for, it comes last: the stock is as it was, by a mutation of its own."""
    engine = place.engine()
    keep_stock(engine)
    register(engine, "stock_item")
    patient = ORDER.replace(
        "mode: any, losers: stop, accept: \"context.standing in ['reserved', 'back_ordered']\"", "mode: all"
    )
    register(engine, "sales_order", patient.replace("      - {from: meet, to: payment, on: none}\n", ""))
    shelved(engine)
    ordered(engine)
    engine.drain()
    assert standing(engine) == ("submitted", 2)
    credit(engine, "bad")
    engine.drain()
    assert standing(engine) == ("submitted", 0)
    actions = [each.action for each in engine.documents.mutations("stock_item", "lamp")]
    assert actions == ["create", "reserve", "release"]
    engine.events.publish("paid", "O-1")
    engine.drain()
    assert standing(engine) == ("active", 0)


def sold(engine: ManualEngine) -> None:
    """Bad credit while the stock is set aside, each call as often as it takes."""
    shelved(engine)
    ordered(engine)
    credit(engine, "bad")
    engine.drain()
    engine.events.publish("paid", "O-1", event_id="paid-1")
    engine.drain()


@pytest.mark.long
@pytest.mark.row("E-074", "E-747")
def test_b_a_crash_anywhere_changes_nothing() -> None:
    """Wherever the process dies: the order is active once it was paid, and the shelf is full."""
    report = crash_everywhere(CrashScenario(prepare=selling, play=sold, outcome=standing))
    assert report.points > 5


# -- D: a delivery

DELIVERY = """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:active_to_delivered":
    exit: join
    nodes:
      - {id: proof, type: wait_event, event: delivery, key: "pod:{entity.shipment_id}", timeout: 72h, into: proof}
      - {id: confirm, type: webhook_out, url: "URL", payload: {shipment: entity.shipment_id, signed: context.proof.signed}}
      - {id: late, type: notification, to: ["role:operations"], subject: "{entity.number} is late"}
      - {id: escalate, type: approval, approvers: [{role: operations}]}
    edges:
      - {from: proof, to: confirm, on: event}
      - {from: confirm, to: out}
      - {from: proof, to: late, on: timeout}
      - {from: late, to: escalate}
      - {from: escalate, to: out, on: approved}
"""
SIGNED: dict[str, object] = {"signed": "Mrs Smith"}


def shipping(place: Place, url: str) -> ManualEngine:
    """An engine with an order that is on its way."""
    engine = place.engine(ALLOWED)
    register(engine, "sales_order", DELIVERY.replace("URL", url))
    return engine


def shipped(engine: ManualEngine) -> None:
    """An order that is active, and waits for its delivery."""
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", {**GIVEN, "shipment_id": "SH-1"}, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    mine.transition("sales_order", "O-1", "approve")
    engine.drain()


def delivered(engine: ManualEngine) -> None:
    """The parcel service says so."""
    engine.events.publish("delivery", "pod:SH-1", SIGNED, event_id="pod-1")
    engine.drain()


def status(engine: ManualEngine) -> str:
    """The status of the order."""
    return engine.documents.get("sales_order", "O-1").status


@pytest.mark.row("E-752", "E-412", "E-017", "E-465", "E-612", "E-768")
def test_d_a_delivery_is_confirmed(place: Place, receiver: Receiver) -> None:
    """The right key resumes it, another one does not; what the event brought goes to the receiver."""
    engine = shipping(place, receiver.url)
    shipped(engine)
    engine.events.publish("delivery", "pod:SH-9", SIGNED)
    engine.drain()
    assert status(engine) == "active"
    delivered(engine)
    delivered(engine)
    assert status(engine) == "delivered"
    assert [json.loads(each.body) for each in receiver.requests] == [{"shipment": "SH-1", "signed": "Mrs Smith"}]


@pytest.mark.row("E-752", "E-685", "E-464", "E-473", "E-352")
def test_d_a_delivery_that_does_not_come_is_escalated(place: Place, receiver: Receiver) -> None:
    """After 72 hours, not before: people are told and asked; the event that comes then is ignored, and their word ends it."""
    engine = shipping(place, receiver.url)
    shipped(engine)
    engine.advance(timedelta(hours=71, minutes=59))
    assert engine.tasks.list() == []
    engine.advance(timedelta(minutes=1))
    delivered(engine)
    assert (status(engine), receiver.requests) == ("active", [])
    (task,) = engine.tasks.list()
    asking(engine, BOSS).tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    assert status(engine) == "delivered"


@pytest.mark.row("E-752")
def test_d_of_a_delivery_and_its_timeout_in_one_instant_one_counts(place: Place, receiver: Receiver) -> None:
    """Both are due when the engine looks: the order is confirmed or escalated, and never both."""
    engine = shipping(place, receiver.url)
    shipped(engine)
    place.clock.move(timedelta(hours=72))
    engine.events.publish("delivery", "pod:SH-1", SIGNED)
    engine.drain()
    is_confirmed, is_escalated = bool(receiver.requests), bool(engine.tasks.list())
    assert is_confirmed is not is_escalated
    assert status(engine) == ("delivered" if is_confirmed else "active")


@pytest.mark.row("E-753")
def test_d_an_event_that_came_first_is_not_lost(place: Place, receiver: Receiver) -> None:
    """It is kept until somebody waits for it."""
    engine = shipping(place, receiver.url)
    engine.events.publish("delivery", "pod:SH-1", SIGNED)
    shipped(engine)
    assert (status(engine), len(receiver.requests)) == ("delivered", 1)


# -- E: royalties

CYCLE = """
base: {entity_type: royalty_statement, envelope_version: 1}
slots:
  "slot:draft_to_submit":
    nodes:
      - {id: month_end, type: wait_timer, cron: "0 0 1 * *", time_zone: Europe/Berlin}
      - {id: generate, type: action, action: royalty_statement.generate}
    edges: [{from: month_end, to: generate}]
  "slot:submitted_to_approved":
    exit: join
    entry: branch
    nodes:
      - {id: audit, type: approval, approvers: [{role: operations}]}
    edges:
      - {from: in, to: audit, when: entity.anomalies > 0}
      - {from: in, to: out}
  "slot:approved_to_active":
    nodes:
      - {id: tell, type: webhook_out, url: "URL", payload: {period: entity.period, link: entity.statement_link}}
"""
CLERK = Actor(id="rita", capabilities=frozenset({"royalty_statement.*", "execution:read"}))


def collecting(place: Place, url: str) -> ManualEngine:
    """An engine that makes royalty statements."""
    engine = place.engine(ALLOWED)
    register(engine, "royalty_statement", CYCLE.replace("URL", url))

    @engine.handler("royalty_statement.generate")
    def generate(document: dict[str, object]) -> dict[str, object]:
        data = document["data"]
        assert isinstance(data, dict)
        return {"royalty": data["gross_sales"] // 20, "statement_link": f"https://files.example/{document['id']}.pdf"}

    return engine


def begun(engine: ManualEngine, period: str, **more: object) -> None:
    """The statement of a month, which is made when that is over."""
    mine = asking(engine, CLERK).documents
    mine.create(
        "royalty_statement", {"franchisee_id": "F-1", "period": period, "gross_sales": 100_000, **more}, id=period
    )
    mine.transition("royalty_statement", period, "submit")
    engine.drain()


def until(place: Place, engine: ManualEngine, moment: datetime) -> None:
    """Let time pass until then."""
    engine.advance(moment - place.clock.now())


@pytest.mark.row("E-754", "E-755", "E-411", "E-017", "EH-14")
def test_e_a_statement_is_made_at_the_end_of_each_month(place: Place, receiver: Receiver) -> None:
    """At midnight of Berlin, in winter and in summer time: two months, two statements, each sent with its link; an anomaly is looked at first."""
    engine = collecting(place, receiver.url)
    until(place, engine, datetime(2030, 3, 5, tzinfo=UTC))
    begun(engine, "2030-03")
    until(place, engine, datetime(2030, 3, 31, 21, 59, tzinfo=UTC))
    assert (receiver.requests, engine.documents.get("royalty_statement", "2030-03").status) == ([], "draft")
    until(place, engine, datetime(2030, 3, 31, 22, 0, tzinfo=UTC))
    assert engine.documents.get("royalty_statement", "2030-03").status == "active"
    until(place, engine, datetime(2030, 10, 5, tzinfo=UTC))
    begun(engine, "2030-10", anomalies=2)
    until(place, engine, datetime(2030, 10, 31, 22, 59, tzinfo=UTC))
    assert engine.documents.get("royalty_statement", "2030-10").status == "draft"
    until(place, engine, datetime(2030, 10, 31, 23, 0, tzinfo=UTC))
    seen = engine.documents.get("royalty_statement", "2030-10")
    assert (seen.status, seen.data["royalty"]) == ("submitted", 5_000)
    (task,) = engine.tasks.list()
    asking(engine, BOSS).tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    sent = [json.loads(each.body) for each in receiver.requests]
    assert sent == [
        {"period": "2030-03", "link": "https://files.example/2030-03.pdf"},
        {"period": "2030-10", "link": "https://files.example/2030-10.pdf"},
    ]
