"""What another system tells of a document, what an operator holds, and what a document says can be asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.documents.bills import (
    APPROVED,
    CLERK,
    CONTRACT,
    FAY,
    OPERATOR,
    approve,
    by,
    created,
    draft_body,
    offered,
    publish,
    submitted,
)
from standfast import Actor, ForbiddenError, RejectedError
from standfast.kernel.row_kinds.steps import PauseClock
from support.engines import Place

ERP = Actor(id="erp", on_behalf_of="ursula", capabilities=frozenset({"bill.update", "execution:read"}))


@pytest.mark.row("EH-02", "E-578")
def test_drift_is_the_act_of_whoever_tells_it(place: Place) -> None:
    """The audit of a drift names who told it, for whom and why, in one entry, and no value; the run is paused by it."""
    engine = publish(place.engine())
    bill = submitted(engine)
    told = by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 9}, reason="ticket 7")
    assert (told.run_status, told.data["total"]) == ("paused", 5)
    (entry,) = [each for each in engine.audit.of(bill.instance) if each.actor == "erp"]
    assert (entry.action, entry.on_behalf_of, entry.reason) == ("drift", "ursula", "ticket 7")
    assert entry.after["changed elsewhere"] == ["total"]
    (line,) = [each for each in engine.documents.audit("bill", "B-1") if each.who == "erp"]
    assert (line.what, line.whom, line.why) == ("drift", "ursula", "ticket 7")
    assert "drift: 'erp' tells that total changed elsewhere" in engine.run(bill.instance).why().words
    assert engine.invariants.check().items == []


@pytest.mark.row("EH-02")
@pytest.mark.parametrize("how", ["resumed", "by the clock"])
def test_drift_told_to_a_paused_document_holds_it_once_that_pause_ends(place: Place, how: str) -> None:
    """Drift that is told while a document is paused is in the audit, and is a pause of its own that the end of the other one does not end."""
    engine = publish(place.engine())
    bill = submitted(engine)
    run = by(engine, OPERATOR).run(bill.instance)
    until = None if how == "resumed" else engine.clock.now() + timedelta(days=2)
    run.pause(reason="month end", until=until)
    for _ in range(2):
        told = by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 9}, idempotency_key="k")
        assert told.run_status == "paused"
    assert len([each for each in engine.audit.of(bill.instance) if each.action == "drift"]) == 1
    by(engine, ERP).documents.notify_mutation("bill", "B-1", {"vendor": "evil"})
    assert "month end" in run.why().words
    if how == "resumed":
        run.resume("the month is open")
    engine.advance(days=3)
    assert engine.documents.get("bill", "B-1").run_status == "paused"
    assert "vendor changed elsewhere" in run.why().words
    approve(engine)
    assert engine.documents.get("bill", "B-1").status == "submitted"
    run.resume("looked at it")
    engine.drain()
    assert engine.documents.get("bill", "B-1").status == "active"
    assert engine.invariants.check().items == []
    assert engine.instances.verify(bill.instance).differences == []


@pytest.mark.row("EH-02")
def test_drift_told_to_a_run_that_waits_for_an_operator_holds_it(place: Place) -> None:
    """Drift that is told while a step has given up holds the document once that is seen to; a second one holds it again."""
    engine = publish(place.engine())
    bill = submitted(engine)
    engine.charters.publish_rules(
        "bill", [{"name": "cap", "effect": "block", "when": "entity.total > 1", "on": ["approve"], "reason": "no"}]
    )
    approve(engine)
    assert engine.documents.get("bill", "B-1").run_status == "paused"
    by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 9})
    engine.charters.publish_rules("bill", [])
    by(engine, CLERK).documents.transition("bill", "B-1", "approve")
    engine.drain()
    view = engine.documents.get("bill", "B-1")
    assert (view.status, view.run_status) == ("submitted", "paused")
    by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 10})
    run = by(engine, OPERATOR).run(bill.instance)
    run.resume("looked at the first")
    assert engine.documents.get("bill", "B-1").run_status == "paused"
    run.resume("looked at the second")
    engine.drain()
    assert engine.documents.get("bill", "B-1").status == "active"
    assert engine.invariants.check().items == []


@pytest.mark.row("EH-02")
def test_drift_of_a_document_that_has_ended_is_refused(place: Place) -> None:
    """Nobody is told that a change was noted which nothing has noted: a document whose life is over refuses it."""
    engine = publish(place.engine())
    created(engine)
    by(engine, CLERK).documents.transition("bill", "B-1", "cancel")
    engine.drain()
    with pytest.raises(RejectedError, match="final"):
        by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 9})


@pytest.mark.row("E-526")
@pytest.mark.parametrize("how", ["mutate", "amend"])
def test_a_pause_of_a_document_holds_its_amendments_too(place: Place, how: str) -> None:
    """While an operator has paused a document nothing takes its place: neither an edit that would, nor an amendment by name."""
    engine = publish(place.engine())
    bill = submitted(engine)
    run = by(engine, OPERATOR).run(bill.instance)
    run.pause(reason="fraud?")
    bob = by(engine, CLERK).documents
    with pytest.raises(RejectedError, match="fraud") as caught:
        getattr(bob, how)("bill", "B-1", {"total": 2})
    assert caught.value.reason == "already_paused"
    held = bob.get("bill", "B-1")
    assert (held.status, held.run_status, held.version) == ("submitted", "paused", 1)
    assert len(bob.list("bill").items) == 1
    run.resume("it is all right")
    assert getattr(bob, how)("bill", "B-1", {"total": 2}).is_amendment


def test_a_document_that_amends_in_place_is_edited_while_it_is_paused(place: Place) -> None:
    """An amendment in place keeps the pause, and can be edited again before that ends."""
    engine = publish(place.engine(), APPROVED, CONTRACT.replace("fields:", "amendment: in_place\nfields:", 1))
    bill = submitted(engine)
    run = by(engine, OPERATOR).run(bill.instance)
    run.pause(reason="hold")
    bob = by(engine, CLERK).documents
    for number, total in enumerate((7, 8), 2):
        view = bob.mutate("bill", "B-1", {"total": total})
        assert (view.status, view.window, view.version, view.run_status) == ("amended", "editable", number, "paused")
    run.resume("go on")
    engine.drain()
    bob.transition("bill", "B-1", "submit")
    engine.drain()
    approve(engine)
    assert (bob.get("bill", "B-1").status, bob.get("bill", "B-1").data["total"]) == ("active", 8)
    assert engine.invariants.check().items == []


@pytest.mark.row("EO-46")
def test_a_document_offers_what_its_dead_gate_is_to_be_asked_for(place: Place) -> None:
    """Where a gate let nobody through, `get` offers the transition again, as `why` advises, and a draft is edited where it is."""
    engine = publish(place.engine(), draft_body("{id: w, type: wait_event, event: go, key: '{entity.id}'}"))
    bob = by(engine, CLERK).documents
    bill = submitted(engine, total=500)
    assert offered(bob.get("bill", "B-1"))["submit"] == "it is under way"
    engine.charters.publish_rules(
        "bill", [{"name": "cap", "effect": "block", "when": "entity.total > 100", "on": ["submit"], "reason": "much"}]
    )
    engine.publish("go", "B-1")
    engine.drain()
    view = bob.get("bill", "B-1")
    assert (view.status, view.window, view.run_status) == ("draft", "editable", "paused")
    assert offered(view)["submit"] == ""
    edited = bob.mutate("bill", "B-1", {"total": 5})
    assert (edited.id, edited.is_amendment) == ("B-1", False)
    remedies = [each for reason in by(engine, CLERK).run(bill.instance).why().reasons for each in reason.remedies]
    assert "documents.transition" in {each.call for each in remedies}
    bob.transition("bill", "B-1", "submit")
    engine.drain()
    assert bob.get("bill", "B-1").status == "submitted"
    assert engine.invariants.check().items == []


@pytest.mark.row("EH-02")
def test_a_host_is_told_why_a_change_is_not_taken(place: Place) -> None:
    """Whoever may edit a document gets a code and a sentence for every change that would be refused, also for one that a policy or a mask stands against."""
    policy = "policies: [{name: small, actions: [bill.update], roles: [clerk], when: entity.total < 100}]\n"
    engine = publish(place.engine(), APPROVED, CONTRACT + policy)
    created(engine, salary=4711)
    clerk = Actor(id="cleo", roles=frozenset({"clerk"}), capabilities=frozenset({"bill.*"}))
    docs = by(engine, clerk).documents
    assert docs.check_edit("bill", "B-1", {"total": 50}).is_allowed
    beyond = docs.check_edit("bill", "B-1", {"total": 500})
    assert (beyond.is_allowed, beyond.code) == (False, "not_allowed")
    masked = docs.check_edit("bill", "B-1", {"salary": "***"})
    assert (masked.is_allowed, masked.code) == (False, "invalid_document")
    assert "leave the field out" in masked.why
    other = by(engine, Actor(id="eve", capabilities=frozenset({"bill.*"}))).documents
    with pytest.raises(ForbiddenError):
        other.check_edit("bill", "B-1", {"total": 50})


@pytest.mark.row("E-578")
def test_the_audit_has_a_word_for_adoptions_and_rollbacks(place: Place) -> None:
    """A document that no gate has seen is adopted, a body that is put back is rolled back, and a rule that stays as it is was not changed."""
    engine = publish(place.engine())
    by(engine, Actor(id="otto", capabilities=frozenset({"*"}))).documents.adopt(
        "bill", "B-1", {"vendor": "a", "total": 1}, status="active"
    )
    bill = engine.documents.get("bill", "B-1")
    assert [each.action for each in engine.audit.of(bill.instance)] == ["adopt"]
    assert engine.documents.audit("bill", "B-1")[0].what == "adopt"
    engine.bodies.publish(engine.bodies.save(APPROVED.replace("Pay", "Please pay")).id)
    engine.bodies.rollback("bill", 1)
    for _ in range(2):
        engine.bodies.govern(two_person=True)
    actions = [each.action for each in engine.audit.changes(subject="body")]
    assert (actions.count("rollback"), actions.count("publish"), actions.count("govern")) == (1, 2, 1)
    assert engine.invariants.check().items == []


def test_a_pause_that_the_engine_made_is_nobody_elses(place: Place) -> None:
    """`why` names the engine where it paused a run by itself, and the operator where an operator did."""
    engine = publish(place.engine(), APPROVED.replace("{role: finance}", "{expression: entity.note}"))
    engine.directory.put("bob")
    bill = submitted(engine, note="bob")
    assert engine.documents.get("bill", "B-1").run_status == "paused"
    assert "paused by 'system'" in engine.run(bill.instance).why().words


@pytest.mark.row("E-578")
@pytest.mark.parametrize("clock", ["run_on", "stand_still"])
def test_a_hold_for_drift_is_of_the_drift_and_not_of_who_ended_a_pause(place: Place, clock: PauseClock) -> None:
    """Why it waits names who told the drift, and since when; who resumed has resumed it, in the audit too, and a second drift is another hold."""
    engine = publish(place.engine())
    bill = submitted(engine)
    run, begun = by(engine, OPERATOR).run(bill.instance), engine.clock.now()
    run.pause(reason="month end", clock=clock)
    engine.advance(timedelta(minutes=5))
    by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 9})
    engine.advance(timedelta(minutes=5))
    run.resume("the month is open")
    (reason,) = [each for each in run.why().reasons if each.kind == "paused"]
    shown = run.describe()
    assert (reason.since, shown.paused_by, shown.reason) == (begun + timedelta(minutes=5), "system", "drift")
    assert f"paused by 'system' since {reason.since} (drift): drift: 'erp' tells that total changed" in reason.words
    assert "has paused it" not in f"{reason.words} {run.why().words}"
    entries = [(each.actor, each.action, each.reason) for each in engine.audit.of(bill.instance)]
    assert entries[-3:] == [
        (OPERATOR.id, "pause", "month end"),
        ("erp", "drift", ""),
        (OPERATOR.id, "resume", "the month is open"),
    ]
    run.resume("looked at it")
    engine.drain()
    by(engine, ERP).documents.notify_mutation("bill", "B-1", {"total": 9})
    assert (run.describe().paused_by, run.describe().reason) == ("system", "drift")
    assert "has paused it" not in run.why().words
    run.resume("again")
    approve(engine)
    assert (engine.documents.get("bill", "B-1").status, engine.invariants.check().items) == ("active", [])
    assert engine.instances.verify(bill.instance).differences == []


def test_a_second_pause_is_refused_with_the_first_one(place: Place) -> None:
    """Who may not hold it besides is told by whom it is held, since when and why, and nothing that would end that."""
    engine = publish(place.engine())
    bill = submitted(engine)
    by(engine, OPERATOR).run(bill.instance).pause(reason="a bad version")
    with pytest.raises(
        RejectedError, match=rf"by '{OPERATOR.id}' since .*: a bad version; pause it again once"
    ) as caught:
        by(engine, OPERATOR).run(bill.instance).pause(reason="fraud?")
    assert (caught.value.reason, "resume" in str(caught.value)) == ("already_paused", False)


@pytest.mark.row("E-526")
@pytest.mark.parametrize("scope", ["definition", "version", "tenant", "all tenants"])
@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_a_pause_of_more_than_one_run_holds_the_gates_of_documents(place: Place, scope: str, decision: str) -> None:
    """Decisions and requests are taken, and no document changes its status until the pause has ended."""
    engine = publish(place.engine())
    bill = submitted(engine)
    version = engine.documents.get("bill", "B-1").workflow_version
    given: dict[str, Any] = {
        "definition": {"definition": "bill"},
        "version": {"definition": "bill", "version": version},
        "tenant": {},
        "all tenants": {"tenant": "*"},
    }[scope]
    engine.pauses.pause(reason="the month is closed", **given)
    created(engine, "B-2")
    by(engine, CLERK).documents.transition("bill", "B-2", "submit")
    (task,) = engine.tasks.list()
    fay = by(engine, FAY).tasks
    fay.decide(task, decision, document_version=task.document_version, comment="because")
    engine.advance(timedelta(days=1))
    assert [engine.documents.get("bill", each).status for each in ("B-1", "B-2")] == ["submitted", "draft"]
    assert "the month is closed" in engine.run(bill.instance).why().words
    with pytest.raises(RejectedError):
        by(engine, CLERK).documents.transition("bill", "B-2", "submit")
    engine.pauses.resume(**given)
    engine.drain()
    came = "active" if decision == "approved" else "draft"
    assert [engine.documents.get("bill", each).status for each in ("B-1", "B-2")] == [came, "submitted"]
    assert [each.action for each in engine.documents.mutations("bill", "B-2")] == [
        "create",
        "request submit",
        "passed submit",
    ]
    assert engine.invariants.check().items == []


@pytest.mark.row("E-526")
def test_a_document_is_led_elsewhere_while_its_gate_is_held(place: Place) -> None:
    """Another transition takes the place of the one that waits; what was held is not done afterwards."""
    engine = publish(place.engine())
    submitted(engine)
    engine.pauses.pause("bill", reason="the month is closed")
    approve(engine)
    by(engine, CLERK).documents.transition("bill", "B-1", "cancel")
    engine.drain()
    assert engine.documents.get("bill", "B-1").status == "submitted"
    engine.pauses.resume("bill")
    engine.drain()
    assert engine.documents.get("bill", "B-1").status == "cancelled"
    assert engine.invariants.check().items == []


def test_a_signal_to_a_document_is_refused_because_no_step_takes_it(place: Place) -> None:
    """Steps of documents wait for published events; a signal would be kept for ever."""
    engine = publish(place.engine())
    bill = submitted(engine)
    with pytest.raises(RejectedError, match="publish an event") as refused:
        engine.run(bill.instance).signal("paid")
    assert refused.value.reason == "not_waiting"


@pytest.mark.row("E-578")
def test_the_audit_names_what_was_done_to_a_question_of_a_document(place: Place) -> None:
    """A decision that was withdrawn once the question was over, and a question to the requester, are called as the calls are; `why` says who has claimed."""
    wait = "{id: w, type: wait_timer, duration: 1h}"
    body = APPROVED.rstrip() + f"\n      - {wait}\n    edges: [{{from: finance, to: w}}]\n"
    engine = publish(place.engine(), body)
    bill = submitted(engine)
    fay = by(engine, FAY).tasks
    (task,) = engine.tasks.list()
    fay.claim(task)
    assert "'fay', who has claimed it" in engine.run(bill.instance).why().words
    fay.ask(task, "why so much?")
    by(engine, CLERK).tasks.comment(task, "because")
    fay.decide(task, "approved", document_version=task.document_version)
    fay.withdraw_decision(task, "I saw the wrong one")
    entries = [each for each in engine.audit.of(bill.instance) if each.actor == "fay"]
    assert [each.action for each in entries] == ["claim", "ask back", "decide approved", "withdraw decision"]
