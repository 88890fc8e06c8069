"""Steps of slots that start other workflows, and steps for each item of a list."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest

from app.documents.blueprints import BOTH, CLERK, GIVEN, of, opened
from authoring.document.examples import Plain
from standfast import Actor, DefinitionError, ForbiddenError, RejectedError, Saga
from standfast.app.api.sync import Calls
from standfast.features.documents.contract.library import ready_contract
from standfast.testing import ManualEngine
from support.engines import Place

BODY = """
base: {{entity_type: invoice, envelope_version: 1}}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes: [{nodes}]
    edges: [{edges}]
"""
CHECKED = BODY.format(
    nodes="{id: check, type: call, workflow: check, input: {number: entity.number}, into: verdict, timeout: 2h}, "
    "{id: note, type: notification, to: [ann], subject: late}, "
    "{id: manager, type: approval, approvers: [{role: manager}]}",
    edges="{from: check, to: out, when: context.verdict.sign.data.is_fine == true}, {from: check, to: manager}, "
    "{from: check, to: note, on: timeout}, {from: note, to: manager}, {from: manager, to: out}",
)
LINES = BODY.format(
    nodes="{id: each, type: for_each, items: entity.lines, item: line, most: 3}, {id: meet, type: parallel_join}, "
    "{id: ask, type: approval, title: 'Line {context.line.text}', approvers: [{role: manager}], covers: [grand_total], "
    "shows: {amount: context.line.amount}}",
    edges="{from: each, to: ask}, {from: ask, to: meet}, {from: meet, to: out}",
)
MANAGER = Actor(id="mia", roles=frozenset({"manager"}), capabilities=frozenset({"execution:read"}))
READER = Actor(id="rita", capabilities=frozenset({"execution:read"}))


def sent(engine: ManualEngine, body: str, **more: object) -> Calls:
    """An invoice with a body, which is submitted."""
    acme = of(engine)
    acme.bodies.publish(acme.bodies.save(body).id)
    mine = of(engine, CLERK)
    mine.documents.create("invoice", {**GIVEN, **more}, id="I-1")
    mine.documents.transition("invoice", "I-1", "submit")
    engine.drain()
    return mine


def status(engine: ManualEngine) -> tuple[str, str]:
    """How the invoice stands."""
    seen = of(engine, CLERK).documents.get("invoice", "I-1")
    return seen.status, seen.run_status


@pytest.mark.row("EO-17")
@pytest.mark.parametrize(
    ("how", "wanted"), [("fine", "active"), ("late", "submitted"), ("cancel", "cancelled"), ("fail", "submitted")]
)
def test_a_step_starts_another_workflow_and_waits_for_its_end(place: Place, how: str, wanted: str) -> None:
    """What it came to is read behind it; its timeout leads another way, its failure waits for an operator; and whoever cancels the document cancels it."""
    engine = opened(place)
    engine.register(Saga("check").human("sign", role="checker").build())
    mine = sent(engine, CHECKED)
    run = mine.documents.get("invoice", "I-1").instance
    (child,) = of(engine, READER).runs.list(definition="check").items
    assert (child.parent, status(engine)) == (run, ("submitted", "running"))
    assert of(engine, READER).run(child.id).steps()[0].input == {"number": "R-1"}
    checker = of(engine, Actor(id="cleo", roles=frozenset({"checker"}), capabilities=frozenset({"execution:*"})))
    if how == "fine":
        (task,) = checker.tasks.list()
        checker.tasks.decide(task, "confirmed", data={"is_fine": True})
    elif how == "late":
        engine.advance(timedelta(hours=2))
    elif how == "fail":
        checker.run(child.id).cancel(reason="no")
    else:
        mine.documents.transition("invoice", "I-1", "cancel")
    engine.drain()
    ended = {"fine": "completed", "late": "cancelled", "cancel": "cancelled", "fail": "cancelled"}[how]
    assert (status(engine)[0], of(engine, READER).run(child.id).describe().status) == (wanted, ended)
    assert status(engine)[1] == {"fail": "paused", "cancel": "completed"}.get(how, "running")
    if how == "late":
        assert mine.documents.get("invoice", "I-1").places == ["usr:slot:submitted_to_approved:manager"]


@pytest.mark.row("EO-17")
def test_what_a_body_may_not_call_is_not_published(place: Place) -> None:
    """A workflow that is not there, one of documents, one that whoever publishes may not start."""
    engine = opened(place)
    engine.register(Saga("check", capability="check:start").human("sign", role="checker").build())
    acme = of(engine)
    for workflow in ("ghost", "invoice"):
        with pytest.raises(DefinitionError, match=workflow):
            acme.bodies.publish(acme.bodies.save(CHECKED.replace("workflow: check", f"workflow: {workflow}")).id)
    draft = acme.bodies.save(CHECKED).id
    with pytest.raises(ForbiddenError, match="check:start"):
        acme.bodies.publish(draft)
    both = Actor(id="bo", capabilities=frozenset({*BOTH.capabilities, "check:start"}))
    assert of(engine, both).bodies.publish(draft).version == 1


def lines(*amounts: int) -> list[Plain]:
    """So many lines of an invoice."""
    return [{"text": f"L{place}", "amount": amount} for place, amount in enumerate(amounts, 1)]


@pytest.mark.row("EO-18")
@pytest.mark.parametrize("verdict", ["approved", "rejected"])
def test_each_line_is_approved_and_one_rejection_refuses_the_document(place: Place, verdict: str) -> None:
    """A question for each line, which names and shows it; the document goes on when all are approved, and back as soon as one is rejected."""
    engine = opened(place)
    mine = sent(engine, LINES, lines=lines(10, 20, 30))
    manager = of(engine, MANAGER)
    tasks = sorted(manager.tasks.list(), key=lambda each: each.subject)
    assert [(each.subject, each.data) for each in tasks] == [(f"Line L{n}", {"amount": 10 * n}) for n in (1, 2, 3)]
    manager.tasks.decide(tasks[1], "approved", document_version="1")
    assert status(engine)[0] == "submitted"
    manager.tasks.decide(tasks[0], verdict, document_version="1", comment="because")
    if verdict == "approved":
        manager.tasks.decide(tasks[2], "approved", document_version="1")
    assert status(engine)[0] == ("active" if verdict == "approved" else "draft")
    assert manager.tasks.list() == []
    assert mine.documents.get("invoice", "I-1").run_status == "running"


@pytest.mark.row("EO-18", "EO-35")
def test_more_lines_than_there_may_be_wait_for_an_operator(place: Place) -> None:
    """Nobody is asked about any of them."""
    engine = opened(place)
    sent(engine, LINES, lines=lines(1, 2, 3, 4))
    assert (status(engine), of(engine, MANAGER).tasks.list()) == (("submitted", "paused"), [])
    (failed,) = [
        each
        for each in of(engine, READER).run(of(engine, CLERK).documents.get("invoice", "I-1").instance).steps()
        if each.error
    ]
    assert "takes at most 3 items, and there are 4" in failed.error


@pytest.mark.row("EO-35")
def test_a_document_is_only_so_large(place: Place) -> None:
    """A quarter of a megabyte: what is more is refused, with where the limit stands, and changes nothing."""
    engine = opened(place)
    mine = of(engine, CLERK).documents
    mine.create("invoice", GIVEN, id="I-1")
    with pytest.raises(RejectedError, match=r"larger than 262144 bytes.*`limits.context` of the contract") as refused:
        mine.mutate("invoice", "I-1", {"note": "x" * 262_144})
    assert refused.value.reason == "too_large"
    assert mine.get("invoice", "I-1").version == 1


@pytest.mark.row("EO-21")
def test_thresholds_are_asked_in_one_currency(place: Place) -> None:
    """The total in the currency of the house follows from the total and the rate, exactly; a body asks for that one, whatever the document is in."""
    engine = place.engine()
    plain = msgspec.to_builtins(ready_contract("invoice"))
    plain["fields"] |= {
        "exchange_rate": {"type": "int", "default": 1_000_000},
        "total_base": {
            "type": "computed", "formula": "entity.grand_total", "times": "entity.exchange_rate", "per": 1_000_000, "as": "money"
        },
    }  # fmt: skip
    engine.contracts.publish(json.dumps(plain))
    edges = "{from: in, to: out, when: entity.total_base <= 50000}, {from: in, to: ask}, {from: ask, to: out}"
    body = BODY.format(nodes="{id: ask, type: approval, approvers: [{role: manager}]}", edges=edges)
    acme = of(engine)
    acme.bodies.publish(acme.bodies.save(body.replace("exit: join", "exit: join\n    entry: branch")).id)
    mine = of(engine, CLERK).documents
    found = {}
    for rate in (1_000_000, 1_100_000, 1_362_500, None):
        made = mine.create("invoice", {**GIVEN, "exchange_rate": rate}, id=f"I-{rate}")
        found[rate] = (made.data.get("total_base"), mine.transition("invoice", made.id, "submit").status)
    assert found == {
        1_000_000: (40_000, "active"),
        1_100_000: (44_000, "active"),
        1_362_500: (54_500, "submitted"),
        None: (None, "submitted"),
    }
    assert mine.get("invoice", "I-None").run_status == "paused"
