"""What steps of documents do and leave behind: rows, choices with their reasons, one commit for a handler and its change, waits that follow the document."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta

import pytest

from app.documents import bills
from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, body, register
from standfast import Actor, StepContext
from standfast.testing import ManualEngine
from support.engines import Place
from support.ruining import Ruin

SLOT = '"slot:submitted_to_approved"'


def sent(engine: ManualEngine, patch: str, **changes: object) -> None:
    """An order with a body, which was submitted, and all that follows from it."""
    register(engine, "sales_order", patch)
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", {**GIVEN, **changes}, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()


def stood(engine: ManualEngine) -> tuple[str, str, str]:
    """How the order and its run stand."""
    seen = engine.documents.get("sales_order", "O-1")
    return seen.status, seen.run_status, seen.run_reason


def names(engine: ManualEngine) -> list[str]:
    """The steps of the order."""
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    return [each.name.rpartition(":")[2] if each.name.startswith("usr:") else each.name for each in run.steps()]


LANES = body(
    SLOT,
    "{id: which, type: condition}, {id: large, type: script, formula: 1}, {id: huge, type: script, formula: 1}, {id: small, type: script, formula: 1}",
    "{from: which, to: large, when: entity.grand_total > 50000, priority: 2}, "
    "{from: which, to: huge, when: entity.grand_total > 80000, priority: 1}, {from: which, to: small}",
)


@pytest.mark.row("E-445", "E-446", "E-417", "E-613", "E-936", "ED-05", "E-349", "E-444")
@pytest.mark.parametrize(("total", "lane"), [(90_000, "huge"), (60_000, "large"), (10, "small")])
def test_one_way_is_taken_and_the_history_says_why(place: Place, total: int, lane: str) -> None:
    """The first that holds, by priority; without a condition, if no other does. The values that were read and what came out can be asked for."""
    engine = place.engine()
    sent(engine, LANES, grand_total=total)
    passed = names(engine)
    assert [each for each in passed if each in {"huge", "large", "small"}] == [lane]
    assert {"sys:state:submitted", "sys:slot:submitted_to_approved:in", "sys:gate:approve"} <= set(passed)
    (choice,) = [each for each in engine.documents.choices("sales_order", "O-1") if each.node.endswith(":which")]
    told = [(each.expression, each.values, each.result) for each in choice.asked if each.edge]
    assert told == [
        ("entity.grand_total > 80000", {"entity.grand_total": total}, total > 80_000),
        ("entity.grand_total > 50000", {"entity.grand_total": total}, total > 50_000),
    ]
    assert choice.to.endswith(f":{lane}")


@pytest.mark.row("E-447")
def test_a_document_that_no_way_is_open_to_waits_for_an_operator(place: Place) -> None:
    """It stays where it is, and the run says why."""
    engine = place.engine()
    sent(
        engine, body(SLOT, "{id: which, type: condition}", "{from: which, to: out, when: entity.grand_total > 500000}")
    )
    status, run, reason = stood(engine)
    assert (status, run, reason) == ("submitted", "paused", "no_edge")


def test_a_condition_that_cannot_be_answered_is_named(place: Place) -> None:
    """Nobody goes on by a way behind it either, although that one has no condition; whoever looks is told what is missing, and no value."""
    engine = place.engine()
    ways = "{from: which, to: small, when: entity.customer in org.friends, priority: 1}, {from: which, to: out}, {from: small, to: out}"
    sent(engine, body(SLOT, "{id: which, type: condition}, {id: small, type: script, formula: 1}", ways))
    assert stood(engine) == ("submitted", "paused", "condition_failed")
    (run,) = engine.runs.list().items
    told = engine.run(run.id).why().words
    assert (
        "the condition of the way to 'usr:slot:submitted_to_approved:small' cannot be answered: there is no 'org.friends'"
        in told
    )


@pytest.mark.row("E-420", "E-426", "E-953", "E-466", "E-472", "ED-14")
def test_a_handler_and_its_change_are_one_commit_and_it_may_be_tried_again(place: Place) -> None:
    """What a call wrote that failed is gone; the one that goes well counts once, as one version, and changes of the workflow start nothing."""
    engine = place.engine()
    calls: list[int] = []

    @engine.handler("sales_order.reserve")
    def reserve(context: StepContext, document: dict[str, object]) -> dict[str, object]:
        connection: object = context.connection
        connection.execute("insert into holds values ('x')")  # type: ignore[attr-defined]
        calls.append(context.attempt)
        if len(calls) < 6:
            raise ConnectionError("not now")
        return {"reservation": "reserved"}

    engine.service.joints.run(lambda joint: _in(joint, "create table holds (id text)"))
    sent(engine, body(SLOT, "{id: reserve, type: action, action: sales_order.reserve}"))
    engine.advance(minutes=1)
    assert (calls, stood(engine)[:2]) == ([1, 2, 3, 4, 5], ("submitted", "paused"))
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    (failed,) = [each for each in run.steps() if each.error]
    run.retry(failed, reason="the shelf is back")
    engine.drain()
    assert stood(engine)[0] == "active"
    assert engine.service.joints.run(lambda joint: _in(joint, "select count(*) from holds")) == 1
    assert engine.documents.get("sales_order", "O-1").version == 2
    assert names(engine).count("sys:state:submitted") == 1


def _in(joint: object, statement: str) -> int:
    with joint.lend("default") as connection:  # type: ignore[attr-defined]
        cursor = connection.execute(statement)
        return int(cursor.fetchone()[0]) if statement.startswith("select") else 0


@pytest.mark.row("E-423", "E-421", "E-060", "E-374", "E-910")
def test_nothing_is_sent_while_a_document_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sockets closed a document with a request and a notice in its way is submitted all the same; both wait to be sent."""
    engine = ManualEngine()
    nodes = "{id: tell, type: notification, to: [ann], subject: hi}, {id: post, type: webhook_out, url: 'http://127.0.0.1:1/'}"
    register(engine, "sales_order", body(SLOT, nodes, "{from: tell, to: post}"))

    def closed(*_: object) -> None:
        raise AssertionError("nobody may talk to the network here")

    monkeypatch.setattr(socket.socket, "connect", closed)
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", GIVEN, id="O-1")
    assert mine.transition("sales_order", "O-1", "submit").status == "submitted"
    engine.stop()


@pytest.mark.row("E-418", "E-419")
def test_a_step_of_ones_own_knows_where_it_is(place: Place) -> None:
    """A handler is registered by name and finds run, node, tenant, actor, attempt and key in its context, and the document in what it is given."""
    engine = place.engine()
    seen: list[tuple[object, ...]] = []

    @engine.handler("look")
    def look(context: StepContext, number: str) -> None:
        seen.append((context.workflow, context.step, context.tenant, context.actor.id, context.attempt, number))

    sent(engine, body(SLOT, "{id: look, type: task, handler: look, input: {number: entity.number}}"))
    assert seen == [("sales_order", "usr:slot:submitted_to_approved:look", "default", "sam", 1, "S-1")]


@pytest.mark.row("E-473", "E-464", "E-467")
def test_what_comes_for_a_document_that_is_over_changes_nothing(place: Place) -> None:
    """A timer and an event after it was cancelled; the history names who did what until then."""
    engine = place.engine()
    sent(
        engine,
        body(
            SLOT,
            "{id: wait, type: wait_event, event: paid, timeout: 2h}",
            "{from: wait, to: out}, {from: wait, to: out, on: timeout}",
        ),
    )
    asking(engine, SELLER).documents.transition("sales_order", "O-1", "cancel")
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    before = run.history()
    engine.events.publish("paid", payload={})
    engine.advance(timedelta(hours=3))
    assert (run.history(), stood(engine)[0]) == (before, "cancelled")
    told = {
        each.event_type: each.actor
        for each in before
        if each.event_type in {"document_created", "transition_requested"}
    }
    assert set(told.values()) == {"sam"}


@pytest.mark.row("E-236", "E-946")
def test_an_amendment_drops_all_that_the_old_document_waits_for(place: Place) -> None:
    """Timers, awaited events, open questions and requests that were not sent go with it; what comes late changes nothing."""
    engine, ruin = place.engine(), Ruin(place.store)
    nodes = "{id: sp, type: parallel_split}, {id: ask, type: approval, approvers: [{user: ann}]}, {id: wait, type: wait_event, event: paid, timeout: 2h}, {id: tell, type: webhook_out, url: 'https://example.com/'}, {id: j, type: parallel_join}"
    edges = "{from: sp, to: ask}, {from: sp, to: wait}, {from: sp, to: tell}, {from: ask, to: j}, {from: wait, to: j}, {from: wait, to: j, on: timeout}, {from: tell, to: j}"
    register(engine, "sales_order", body(SLOT, nodes, edges))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", GIVEN, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    tables = ("timers", "subscriptions", "effects where handler <> '$engine'", "human_tasks where closed_at is null")
    assert [ruin.rows(f"select count(*) from {{}}{each}")[0][0] for each in tables] == [1, 1, 1, 1]
    mine.amend("sales_order", "O-1", {"quantity": 3}, new_id="O-2")
    assert [ruin.rows(f"select count(*) from {{}}{each}")[0][0] for each in tables] == [0, 0, 0, 0]
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    engine.drain()
    before = run.history()
    engine.events.publish("paid", payload={})
    engine.advance(timedelta(hours=3))
    assert (run.history(), run.describe().status, run.describe().error) == (before, "cancelled", "amended")


@pytest.mark.row("E-766", "E-753", "EO-37")
def test_a_wait_follows_the_document(place: Place) -> None:
    """An edit that changes the key of an awaited event moves the wait; what came early is judged with the document in view."""
    engine = place.engine()
    slot = '"slot:draft_to_submit"'
    node = "{id: wait, type: wait_event, event: delivery, key: '{entity.shipment_id}', match: event.total == entity.grand_total}"
    register(engine, "sales_order", body(slot, node))
    mine = asking(engine, SELLER).documents
    engine.events.publish("delivery", "B", {"total": 1})
    engine.events.publish("delivery", "B", {"total": 90_000})
    mine.create("sales_order", {**GIVEN, "shipment_id": "A"}, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    assert stood(engine)[0] == "draft"
    mine.mutate("sales_order", "O-1", {"shipment_id": "B"})
    engine.drain()
    assert stood(engine)[0] == "submitted"


LATER = body(
    SLOT,
    "{id: rest, type: wait_timer, duration: 1h}, {id: ask, type: approval, approvers: [{user: fay}]}, {id: pick, type: action, action: sales_order.reserve}",
    "{from: rest, to: ask}, {from: ask, to: pick}, {from: pick, to: out}",
)


@pytest.mark.row("EO-26")
@pytest.mark.parametrize("gone", ["sam", "fay"])
def test_nothing_is_done_in_the_name_of_somebody_who_is_deactivated(place: Place, gone: str) -> None:
    """Who asked was deactivated while a timer ran: the policy gate fails closed. An approver who was is found, and somebody else is given the question."""
    engine, called = place.engine(), list[str]()
    for name in ("sam", "fay", "hal"):
        engine.directory.put(name)
    engine.directory.grant("hal", "approver")

    @engine.handler("sales_order.reserve")
    def reserve() -> None:
        called.append("reserve")

    sent(engine, LATER)
    engine.advance(timedelta(hours=1))
    engine.directory.deactivate(gone)
    lost = engine.directory.open_tasks_of_inactive()
    (task,) = engine.tasks.list()
    assert [each.step_id for each in lost] == ([task.step_id] if gone == "fay" else [])
    if lost:
        engine.tasks.reassign(task, "hal", reason="fay has left")
    who = Actor(id="hal" if lost else "fay")
    asking(engine, who).tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    if lost:
        assert (stood(engine)[0], called) == ("active", ["reserve"])
        return
    assert (stood(engine)[:2], called) == (("submitted", "paused"), [])
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    (failed,) = [each for each in run.steps() if each.error]
    assert "'sam' is deactivated and cannot act" in failed.error


@pytest.mark.parametrize(
    ("edit", "comes"),
    [
        pytest.param({"due": "2030-03-02T00:00:00+00:00"}, "2030-03-02", id="later"),
        pytest.param({"due": "2030-01-02T00:00:00+00:00"}, "2030-01-02", id="sooner"),
        pytest.param({"due": "2029-01-02T00:00:00+00:00"}, "2030-01-01", id="over"),
        pytest.param({"note": "x"}, "2030-02-01", id="something else"),
    ],
)
def test_a_timer_that_waits_for_a_date_of_the_document_follows_its_edits(
    place: Place, edit: dict[str, object], comes: str
) -> None:
    """As events follow their keys and questions their content: no document goes on by a date that it does not have any more."""
    body = bills.draft_body("{id: w, type: wait_timer, until: entity.due}")
    engine = bills.publish(place.engine(), body, bills.with_fields("due: {type: datetime}"))
    bill = bills.submitted(engine, due="2030-02-01T00:00:00+00:00")
    bills.by(engine, bills.CLERK).documents.mutate("bill", "B-1", edit)
    engine.drain()
    day = datetime.fromisoformat(f"{comes}T00:00:00+00:00")
    if day > engine.clock.now():
        assert comes in engine.run(bill.instance).why().words
        engine.advance(day - engine.clock.now() - timedelta(minutes=1))
        assert engine.documents.get("bill", "B-1").status == "draft"
        engine.advance(timedelta(minutes=2))
    assert engine.documents.get("bill", "B-1").status == "submitted"
    assert engine.invariants.check().items == []


def test_a_timer_whose_date_is_taken_away_waits_for_an_operator(place: Place) -> None:
    """There is no instant any more; with another one the step is retried."""
    body = bills.draft_body("{id: w, type: wait_timer, until: entity.due}")
    engine = bills.publish(place.engine(), body, bills.with_fields("due: {type: datetime}"))
    bill = bills.submitted(engine, due="2030-02-01T00:00:00+00:00")
    clerk = bills.by(engine, bills.CLERK).documents
    assert clerk.mutate("bill", "B-1", {"due": None}).run_status == "paused"
    clerk.mutate("bill", "B-1", {"due": "2030-01-03T00:00:00+00:00"})
    (letter,) = [each for each in engine.run(bill.instance).steps() if each.name.endswith(":w")][-1:]
    bills.by(engine, bills.OPERATOR).run(bill.instance).retry(letter.number, reason="it has a date again")
    engine.advance(timedelta(days=3))
    assert engine.documents.get("bill", "B-1").status == "submitted"
