"""Redaction and audiences: values that were computed, handed on or buried go with the field that they came from."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from app.documents.bills import (
    APPROVED,
    CLERK,
    IBAN,
    OFFICER,
    OPERATOR,
    approve,
    by,
    created,
    draft_body,
    offered,
    publish,
    submitted,
    with_fields,
)
from app.documents.test_outward import ALLOWED
from app.documents.test_redaction import dump
from people.test_webhook import Receiver, receiver
from standfast import Actor, ConflictError, NotFoundError, RejectedError, Saga
from standfast.engine.common.settings import Settings
from standfast.testing import ManualEngine
from support.engines import Place

__all__ = ["receiver"]


def proven(engine: ManualEngine, name: str = "B-1") -> None:
    """Nothing is wrong with a bill, nor with the seals."""
    assert engine.invariants.check().items == []
    assert engine.seals.verify().broken == []
    assert engine.instances.verify(engine.documents.get("bill", name).instance).differences == []


COMPUTED = with_fields(
    "copy: {type: computed, formula: entity.iban, as: string}",
    "again: {type: computed, formula: 'entity.copy', as: string}",
)


@pytest.mark.row("EO-27")
def test_what_is_computed_from_a_value_goes_with_it(place: Place) -> None:
    """A redaction of a field takes the values out of all computed fields that read it, and no mutation ever told them."""
    engine = publish(place.engine(), APPROVED, COMPUTED)
    created(engine, iban=IBAN)
    by(engine, CLERK).documents.mutate("bill", "B-1", {"iban": f"{IBAN}X"})
    assert engine.documents.get("bill", "B-1").data["again"] == f"{IBAN}X"
    assert IBAN not in repr(engine.documents.mutations("bill", "B-1"))
    done = by(engine, OFFICER).documents.redact("bill", "B-1", ["iban"], reason="erasure 7")
    assert done.fields == ["again", "copy", "iban"]
    assert IBAN not in dump(place)
    by(engine, CLERK).documents.mutate("bill", "B-1", {"note": "goes on"})
    data = engine.documents.get("bill", "B-1").data
    assert data["again"] == data["copy"] == data["iban"]
    proven(engine)


@pytest.mark.row("EO-27")
def test_the_key_of_an_event_goes_with_the_value_that_it_was_made_of(place: Place) -> None:
    """Of a wait whose key is a field, the history of the document keeps that an event came, and not the value; the published event is another's."""
    wait = '{id: paid, type: wait_event, event: paid, key: "{entity.iban}"}'
    engine = publish(place.engine(), draft_body(wait))
    submitted(engine, iban=IBAN)
    engine.publish("paid", IBAN, {"by": IBAN})
    engine.drain()
    bill = engine.documents.get("bill", "B-1")
    assert bill.status == "submitted"
    by(engine, OFFICER).documents.redact("bill", "B-1", ["iban"], reason="erasure 7")
    told = [each for each in engine.run(bill.instance).history() if each.event_type == "event_received"]
    assert len(told) == 1
    assert IBAN not in repr(engine.run(bill.instance).history())
    proven(engine)


@pytest.mark.row("EO-27")
def test_a_run_that_was_called_is_redacted_with_the_document(place: Place) -> None:
    """Runs that calls of a document started, and those that these started, lose the value in the same transaction, are named, and stay proven."""
    engine = place.engine()
    engine.register(Saga("inner").step("look", lambda iban: {"found": iban}).build())
    engine.register(Saga("outer").call("deeper", "inner").step("keep", lambda iban: {"seen": f"it was {iban}"}).build())
    publish(engine, draft_body("{id: c, type: call, workflow: outer, input: {iban: entity.note}}"))
    submitted(engine, note=IBAN)
    engine.seals.seal()
    assert len(engine.runs.list()) == 3
    done = by(engine, OFFICER).documents.redact("bill", "B-1", ["note"], reason="erasure 7")
    children = [each.id for each in engine.runs.list() if each.definition in {"inner", "outer"}]
    assert sorted(done.runs) == sorted(map(str, children))
    assert IBAN not in dump(place)
    for each in children:
        assert engine.instances.verify(each).differences == []
        assert [line.action for line in engine.audit.of(each)][-1] == "redact"
    proven(engine)


@pytest.mark.row("EO-27")
def test_a_run_that_is_under_way_holds_the_redaction_up(place: Place) -> None:
    """While a detached run that a document started is under way, the document is not redacted: the run has a copy."""
    engine = place.engine()
    engine.register(Saga("later").human("ask", role="finance").build())
    publish(engine, draft_body("{id: c, type: call, workflow: later, detached: true, input: {iban: entity.note}}"))
    submitted(engine, note=IBAN)
    by(engine, CLERK).documents.transition("bill", "B-1", "cancel")
    engine.drain()
    before = dump(place)
    with pytest.raises(ConflictError, match="later"):
        by(engine, OFFICER).documents.redact("bill", "B-1", ["note"], reason="erasure 7")
    assert dump(place) == before


@pytest.mark.row("EO-27")
def test_a_dead_letter_holds_the_redaction_up(place: Place, receiver: Receiver) -> None:
    """A request that gave up has the value in it: the document is redacted once the letter is discarded, and nothing is sent afterwards."""
    engine = place.engine(ALLOWED)
    receiver.status = 400
    hook = f"{{id: hook, type: webhook_out, url: '{receiver.url}', payload: {{iban: entity.iban}}, attempts: 1, await: false}}"
    publish(engine, draft_body(hook))
    submitted(engine, iban=IBAN)
    engine.advance(days=4)
    (letter,) = engine.dead_letters.list()
    assert letter.source == "effect"
    with pytest.raises(ConflictError, match=f"dead letter {letter.id}"):
        by(engine, OFFICER).documents.redact("bill", "B-1", reason="erasure 7")
    by(engine, OPERATOR).dead_letters.discard(letter, reason="erasure 7")
    receiver.requests.clear()
    receiver.status = 200
    by(engine, OFFICER).documents.redact("bill", "B-1", reason="erasure 7")
    engine.advance(days=1)
    assert receiver.requests == []
    assert IBAN not in dump(place)
    proven(engine)


TYPED = with_fields(
    "pay: {type: money, sensitive: true, required: true}",
    "kind: {type: enum, values: [a, b], sensitive: true}",
    "count: {type: int, sensitive: true}",
    "is_big: {type: bool, sensitive: true}",
    "day: {type: date, sensitive: true}",
    "at: {type: datetime, sensitive: true}",
    "lines: {type: list, items: {type: int}, sensitive: true}",
    "who: {type: object, fields: {name: {type: string}}, sensitive: true}",
    "twice: {type: computed, formula: entity.pay, times: 2, as: money}",
)
VALUES: dict[str, object] = {
    "pay": 777,
    "kind": "a",
    "count": 3,
    "is_big": True,
    "day": "2026-01-02",
    "at": "2026-01-02T03:04:05+00:00",
    "lines": [1, 2],
    "who": {"name": "zoe"},
}


@pytest.mark.row("EO-46")
def test_a_redacted_document_goes_on(place: Place) -> None:
    """What a redaction left fits every type of field while nobody changes it: all that a document offers afterwards can be done, also an amendment."""
    engine = publish(place.engine(), APPROVED, TYPED)
    bob = by(engine, CLERK).documents
    for name in ("B-1", "B-2", "B-3"):
        submitted(engine, name, **VALUES)
        approve(engine)
        by(engine, OFFICER).documents.redact("bill", name, reason="erasure 7")
    assert offered(bob.get("bill", "B-1")) == {"cancel": ""}
    assert bob.transition("bill", "B-1", "cancel").status == "cancelled"
    new = bob.amend("bill", "B-2", {"note": "corrected"}, new_id="B-2a")
    assert {str(new.data[name])[:9] for name in VALUES} == {"redacted:"}
    assert bob.mutate("bill", "B-2a", {"note": "again"}).data["pay"] == new.data["pay"]
    assert bob.mutate("bill", "B-2a", {"pay": 5}).data["twice"] == 10
    bob.transition("bill", "B-2a", "submit")
    engine.drain()
    approve(engine)
    assert bob.get("bill", "B-2a").status == "active"
    forged = {"pay": new.data["pay"]}
    with pytest.raises(RejectedError, match="redaction left"):
        bob.amend("bill", "B-3", {"count": "redacted:" + "0" * 64})
    with pytest.raises(RejectedError, match="pay"):
        bob.create("bill", {"vendor": "a", "total": 1, **forged})
    proven(engine, "B-2a")


INSIDE = with_fields(
    "lines: {type: list, items: {type: object, fields: {text: {type: string}, account: {type: string, sensitive: true}}}}",
    "box: {type: object, fields: {key: {type: string, sensitive: true}}}",
)


@pytest.mark.row("EO-27")
def test_what_is_sensitive_inside_of_a_field_is_redacted_with_it(place: Place) -> None:
    """Without names, a redaction takes out every field that holds something sensitive, also in a list or an object."""
    engine = publish(place.engine(), APPROVED, INSIDE)
    created(engine, iban=IBAN, box={"key": "BOX-KEY-12345"}, lines=[{"text": "a", "account": "ACCT-777-XYZ"}])
    done = by(engine, OFFICER).documents.redact("bill", "B-1", reason="erasure 7")
    assert done.fields == ["box", "iban", "lines"]
    kept = dump(place)
    assert not [each for each in (IBAN, "BOX-KEY-12345", "ACCT-777-XYZ") if each in kept]
    proven(engine)


@pytest.mark.row("EO-11")
def test_a_redacted_document_is_moved(place: Place) -> None:
    """What a redaction left fits the contract of another version too."""
    engine = publish(place.engine())
    created(engine, iban=IBAN)
    by(engine, OFFICER).documents.redact("bill", "B-1", reason="erasure 7")
    by(engine, CLERK).documents.transition("bill", "B-1", "submit")
    engine.drain()
    engine.bodies.publish(engine.bodies.save(APPROVED.replace("slots:", "name: better\nslots:", 1)).id)
    (moved,) = by(engine, OPERATOR).workflows.move("bill", "1-org", "2-org", reason="a better one").items
    assert (moved.is_moved, moved.problem) == (True, "")


SEEN = with_fields(
    "pay2: {type: computed, formula: entity.salary, times: 2, as: int}",
    "pay4: {type: computed, formula: entity.pay2, times: 2, as: int}",
    "bonus: {type: int, visible_to: [boss]}",
    "all: {type: computed, formula: entity.salary, times: entity.bonus, as: int}",
)


@pytest.mark.row("E-571")
@pytest.mark.parametrize("roles", [(), ("boss",), ("hr",), ("hr", "boss")])
def test_a_computed_field_is_for_those_who_may_see_what_it_reads(place: Place, roles: tuple[str, ...]) -> None:
    """A computed field is shown to those alone who may see all fields that it reads, directly or by another one, in every reading and every text."""
    body = draft_body(
        "{id: s, type: script, formula: entity.pay4, into: kept}",
        "{id: t, type: approval, title: 'Look at {entity.all}', approvers: [{user: spy}]}",
    )
    engine = publish(place.engine(), body, SEEN)
    submitted(engine, salary=4711, bonus=1_000_000)
    spy = Actor(id="spy", roles=frozenset(roles), capabilities=frozenset({"execution:read", "bill.*"}))
    docs, (task,) = by(engine, spy).documents, by(engine, spy).tasks.list(mine=True)
    view = docs.get("bill", "B-1")
    seen: list[object] = [
        view.data,
        *(each.data for each in docs.list("bill").items),
        *(each.data for each in docs.versions("bill", "B-1")),
    ]
    seen += [docs.mutations("bill", "B-1"), by(engine, spy).run(view.instance).describe().context, task]
    sees_pay, sees_all = "hr" in roles, {"hr", "boss"} <= set(roles)
    told = msgspec.json.encode(seen).decode()
    assert ("9422" in told, "18844" in told) == (sees_pay, sees_pay)
    assert ("4711000000" in told) == sees_all
    for each in ("pay2", "pay4"):
        assert view.data[each] == ({"pay2": 9422, "pay4": 18844}[each] if sees_pay else "***")
    assert view.data["all"] == (4_711_000_000 if sees_all else "***")


@pytest.mark.row("EO-27")
def test_an_id_that_is_used_again_is_another_document(place: Place) -> None:
    """Once retention has deleted a document that was amended, another one under its id has nothing to do with the amendment: no alarm, and no redaction of it."""
    engine = publish(place.engine(Settings(keep_finished=timedelta(days=30))))
    submitted(engine, iban=IBAN)
    new = by(engine, CLERK).documents.mutate("bill", "B-1", {"total": 2})
    engine.advance(days=40)
    with pytest.raises(NotFoundError):
        engine.documents.get("bill", "B-1")
    created(engine, iban="FR7630006000011234567890189")
    assert engine.invariants.check().items == []
    done = by(engine, OFFICER).documents.redact("bill", new.id, reason="erasure 7")
    assert (done.related, done.events > 0) == ([], True)
    assert engine.documents.get("bill", "B-1").data["iban"] == "FR7630006000011234567890189"
    assert engine.invariants.check().items == []


@pytest.mark.row("EO-27", "E-831")
def test_a_choice_by_a_redacted_value_is_told_as_that(place: Place) -> None:
    """`choices` says that a value was redacted, with the way that was taken, and invents neither a result nor an error."""
    body = draft_body(
        "{id: big, type: condition, expression: 'entity.count > 2'}",
        "{id: same, type: condition, expression: \"entity.iban == 'X'\"}",
    )
    body = body.replace(
        "edges: [{from: big, to: same}]",
        "exit: join\n    edges: [{from: big, to: same, on: 'true'}, {from: big, to: out, on: 'false'}, {from: same, to: out, on: '*'}]",
    )
    engine = publish(place.engine(), body, TYPED)
    submitted(engine, "B-1", iban=IBAN, **VALUES)
    before = [(each.node, each.outcome, each.to) for each in engine.documents.choices("bill", "B-1")]
    by(engine, OFFICER).documents.redact("bill", "B-1", reason="erasure 7")
    found = engine.documents.choices("bill", "B-1")
    assert [(each.node, each.outcome, each.to) for each in found] == before
    asked = [
        each
        for one in found
        for each in one.asked
        if "entity.iban" in each.expression or "entity.count" in each.expression
    ]
    assert len(asked) == 2
    assert [(each.result, "redacted" in each.error) for each in asked] == [(None, True)] * 2
