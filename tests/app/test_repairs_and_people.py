"""Who may repair decides neither whether people are asked, nor whom, nor on what."""

from __future__ import annotations

from typing import Any

import pytest

from app.documents.blueprints import CLERK, GIVEN, of, opened, published
from standfast import Actor, Fail, RejectedError, Saga
from standfast.testing import ManualEngine
from support.engines import Place

REPAIRER = Actor(id="rita", capabilities=frozenset({"execution:repair", "execution:read"}))
OVERRIDER = Actor(id="otto", capabilities=frozenset({"execution:*"}))
MANAGER = Actor(id="mia", roles=frozenset({"manager"}))


def code(call: Any, *given: Any, **named: Any) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


def broken() -> object:
    """What no handler gets past."""
    raise Fail("down")


ASKED: dict[str, dict[str, Any]] = {
    "whether": {"role": "boss", "when": "input.amount > 100"},
    "whom": {"ask": "rule:input.amount"},
}


@pytest.mark.row("E-684", "G-12")
@pytest.mark.parametrize("case", sorted(ASKED))
def test_data_that_decides_who_is_asked_takes_the_right_to_override(place: Place, case: str) -> None:
    """A patch, another input and an answer by hand alike; the step itself is repaired as before."""
    engine = place.engine()
    saga = Saga("pay", dlq=True).step("prepare", broken, attempts=1).human("boss", **ASKED[case]).build()
    engine.register(saga)
    instance = engine.acting("ann").start(saga, {"amount": 500}).id
    engine.drain()
    run, number = engine.acting(REPAIRER).run(instance), engine.run(instance).steps()[0].number
    assert code(run.change_data, {"amount": 5}, reason="a typo") == "not_allowed"
    assert code(run.retry, number, reason="a typo", input={"amount": 5}) == "not_allowed"
    assert code(run.complete_step, number, {"amount": 5}, reason="a typo") == "not_allowed"
    assert code(run.change_data, {"note": "n"}, reason="a typo") == "not_allowed"
    engine.acting(OVERRIDER).run(instance).change_data({"amount": 6}, reason="a typo")
    run.complete_step(number, reason="done by hand")
    engine.drain()
    assert engine.run(instance).describe().context["amount"] == 6


@pytest.mark.row("E-684", "G-12")
def test_whoever_decides_sees_the_data_that_is_changed_meanwhile(place: Place) -> None:
    """What a question shows takes the right to override; it is put anew if some have decided it, which counts no more."""
    engine = place.engine()
    saga = Saga("pay").human("boss", ask=["user:bea", "user:bob"], agree="all", shows=["amount"]).build()
    engine.register(saga)
    instance = engine.acting("ann").start(saga, {"amount": 5}).id
    engine.drain()
    (before,) = engine.tasks.list()
    engine.acting("bea").tasks.approve(before)
    assert code(engine.acting(REPAIRER).run(instance).change_data, {"amount": 500}, reason="a typo") == "not_allowed"
    engine.acting(OVERRIDER).run(instance).change_data({"amount": 500}, reason="a typo")
    engine.drain()
    (after,) = engine.tasks.list()
    assert (after.step_id != before.step_id, after.data) == (True, {"amount": 500})
    for name in ("bea", "bob"):
        assert engine.run(instance).describe().status != "completed"
        engine.acting(name).tasks.approve(after)
    engine.drain()
    assert engine.run(instance).describe().status == "completed"


BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: first, type: approval, approvers: [{role: manager}]}
      - {id: score, type: task, handler: score, into: score}
      - {id: choice, type: condition, expression: "context.score.points > 5"}
      - {id: second, type: approval, approvers: [{role: board}]}
      - {id: last, type: wait_event, event: ready}
    edges:
      - {from: first, to: score}
      - {from: score, to: choice}
      - {from: choice, to: second, on: "true"}
      - {from: choice, to: last, on: "false"}
      - {from: second, to: last}
"""


AROUND = BODY + "      - {from: score, to: last, on: error}\n"


def scored(place: Place, body: str = BODY) -> tuple[ManualEngine, Any]:
    """An invoice that was approved once, and whose score could not be had."""
    engine = opened(place)
    engine.handle("score", broken)
    published(engine, body)
    mine = of(engine, CLERK).documents
    instance = mine.create("invoice", GIVEN, id="I-1").instance
    mine.transition("invoice", "I-1", "submit")
    (task,) = of(engine, OVERRIDER).tasks.list()
    of(engine, MANAGER).tasks.decide(task, "approved", document_version=task.document_version)
    if body == BODY:
        engine.drain()
    return engine, instance


@pytest.mark.row("E-684")
def test_no_answer_by_hand_decides_whether_a_document_is_approved(place: Place) -> None:
    """Neither does another input, nor a patch."""
    engine, instance = scored(place)
    run = of(engine, REPAIRER).run(instance)
    number = next(each.number for each in run.steps() if each.name.endswith("score"))
    low = {"points": 1}
    assert code(run.complete_step, number, {"score": low}, reason="by hand") == "not_allowed"
    assert code(run.change_data, {"score": low}, reason="by hand") == "not_allowed"
    assert code(run.retry, number, reason="by hand", input={"score": low}) == "not_allowed"


@pytest.mark.row("E-684")
def test_no_outcome_that_an_operator_names_leads_around_an_approval(place: Place) -> None:
    """Also not for whoever may override people: an approval of a document is a wall."""
    engine, instance = scored(place, AROUND)
    for actor in (REPAIRER, OVERRIDER):
        run = of(engine, actor).run(instance)
        number = next(each.number for each in run.steps() if each.name.endswith("score"))
        assert code(run.skip, number, reason="by hand", outcome="error") == "protected"


@pytest.mark.row("E-684")
def test_approvals_of_a_document_are_void_when_an_override_changes_its_data(place: Place) -> None:
    """Those who approved have not seen it: the gate asks them again, and the audit tells who did it."""
    engine, instance = scored(place)
    otto = of(engine, OVERRIDER)
    otto.run(instance).change_data({"note": "x"}, reason="a typo")
    lines = [each for each in of(engine, CLERK).documents.audit("invoice", "I-1") if each.what == "void approvals"]
    assert [(each.who, "repaired" in each.why) for each in lines] == [("otto", True)]
    run = otto.run(instance)
    number = next(each.number for each in run.steps() if each.name.endswith("score"))
    run.complete_step(number, {"points": 1}, reason="by hand")
    engine.drain()
    assert of(engine, CLERK).documents.get("invoice", "I-1").status == "submitted"
