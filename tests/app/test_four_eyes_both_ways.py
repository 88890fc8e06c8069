"""Two questions that are to be decided by different people are so in whichever order they are decided."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.documents.blueprints import CLERK, GIVEN, of, opened, published
from app.processes.acting import ends, registered
from standfast import Actor, RejectedError, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

FAY, GUS = (Actor(id=name, roles=frozenset({"finance"})) for name in ("fay", "gus"))
FOR_FAY = Actor(id="sue", roles=frozenset({"finance"}), on_behalf_of="fay")
OPS = Actor(id="ops", capabilities=frozenset({"task:*", "execution:*"}))


def forked(engine: ManualEngine, *, who: str = "role:finance", **second: Any) -> InstanceId:
    """A run that asks two questions at the same time, the second with some options."""
    saga = (
        Saga("pay")
        .fork("both", lambda b: b.human("first", ask=who), lambda b: b.human("second", ask=who, **second))
        .join("met")
        .build()
    )
    engine.register(saga)
    instance = engine.acting("rita").start(saga).id
    engine.drain()
    return instance


def task(engine: ManualEngine, instance: InstanceId, name: str) -> str:
    """The open question of a name."""
    return next(each.step_id for each in engine.tasks.list() if each.instance == instance and each.name == name)


def code(call: Any, *given: Any, **named: Any) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


APART: list[dict[str, Any]] = [{"distinct_from": "first"}, {"distinct_approvers": True}]


@pytest.mark.row("E-687", "EO-07")
@pytest.mark.parametrize("option", APART, ids=str)
def test_the_second_question_keeps_its_decider_from_the_first(place: Place, option: dict[str, Any]) -> None:
    """Whoever decided the one may not decide the other, in nobody's name, and it is in none of their lists."""
    engine = place.engine()
    instance = forked(engine, **option)
    first = task(engine, instance, "first")
    engine.acting(FAY).tasks.approve(task(engine, instance, "second"))
    engine.drain()
    for actor in (FAY, FOR_FAY):
        calls = engine.acting(actor).tasks
        assert [code(calls.approve, first), code(calls.claim, first)] == ["not_distinct"] * 2
    assert code(engine.acting(OPS).tasks.reassign, first, "fay") == "not_distinct"
    assert code(engine.acting(OPS).tasks.add_approver, first, "fay") == "not_distinct"
    for who, count in ((FAY, 0), (GUS, 1)):
        calls = engine.acting(who).tasks
        assert len(calls.list(mine=True)) == sum(calls.counts().by_role.values()) == count
    engine.acting(GUS).tasks.approve(first)
    engine.drain()
    assert engine.run(instance).describe().status == "completed"


@pytest.mark.row("E-687", "EO-07")
@pytest.mark.parametrize("option", APART, ids=str)
@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")], ids=str)
def test_a_decision_among_several_counts_at_once(place: Place, option: dict[str, Any], order: tuple[str, str]) -> None:
    """Nobody decides both while the others of one of them are still waited for; a decision that is withdrawn keeps nobody out."""
    engine = place.engine()
    saga = (
        Saga("more")
        .fork(
            "both",
            lambda b: b.human("first", ask=["user:fay", "user:gus", "user:hal"], agree=2),
            lambda b: b.human("second", ask=["user:fay", "user:gus", "user:hal"], agree=1, **option),
        )
        .join("met")
        .build()
    )
    engine.register(saga)
    instance = engine.acting("rita").start(saga).id
    engine.drain()
    one, other = (task(engine, instance, each) for each in order)
    fay = engine.acting("fay").tasks
    if order[0] == "first":
        fay.approve(one)
        assert code(fay.approve, other) == "not_distinct"
        assert [each.name for each in fay.list(mine=True) if each.step_id == other] == []
        fay.withdraw_decision(one)
        fay.approve(other)
    else:
        fay.approve(one)
        engine.drain()
        assert code(fay.approve, other) == "not_distinct"


@pytest.mark.row("E-687", "E-682")
def test_a_question_that_nobody_else_can_decide_is_an_incident(place: Place) -> None:
    """Once the only one who is asked has decided its counterpart, the run waits for an operator, and says why."""
    engine = place.engine()
    instance = forked(engine, who="user:fay", distinct_from="first")
    first = task(engine, instance, "first")
    engine.acting("fay").tasks.approve(task(engine, instance, "second"))
    engine.drain()
    shown = engine.run(instance).describe()
    assert (shown.status, shown.reason) == ("dlq", "no_approver")
    assert "nobody can decide 'first'" in shown.error
    assert [each.instance for each in engine.admin.incidents() if each.kind == "no_approver"] == [instance]
    assert "nobody can decide 'first'" in engine.run(instance).why().words
    engine.acting(OPS).tasks.reassign(first, "gus")
    engine.acting("gus").tasks.approve(first)
    engine.drain()
    assert engine.run(instance).describe().status == "completed"


@pytest.mark.row("E-687", "EO-07")
def test_a_role_that_nobody_else_has_is_an_incident(place: Place) -> None:
    """The directory is asked for somebody else who has it."""
    engine = place.engine()
    engine.directory.put("fay")
    engine.directory.grant("fay", "finance")
    instance = forked(engine, distinct_from="first")
    engine.acting("fay").tasks.approve(task(engine, instance, "second"))
    engine.drain()
    assert engine.run(instance).describe().reason == "no_approver"


@pytest.mark.row("E-687", "EO-07")
def test_an_operator_is_not_two_people_either(place: Place) -> None:
    """Who decided one question cannot skip or override the other, and who skipped one cannot decide the other."""
    boss = Actor(id="fay", roles=frozenset({"finance"}), capabilities=frozenset({"execution:*"}))
    engine = place.engine()
    instance = forked(engine, distinct_from="first")
    first, second = (task(engine, instance, each) for each in ("first", "second"))
    engine.acting(boss).tasks.approve(second)
    engine.drain()
    assert code(engine.acting(boss).run(instance).skip, first, reason="hurry", outcome="confirmed") == "not_distinct"
    assert code(engine.acting(boss).run(instance).resume, override=True, task=first, reason="hurry") == "not_distinct"
    other = forked(engine, distinct_from="first")
    first, second = (task(engine, other, each) for each in ("first", "second"))
    engine.acting(boss).run(other).skip(second, reason="by phone", outcome="confirmed")
    engine.drain()
    assert code(engine.acting(boss).tasks.approve, first) == "not_distinct"
    assert [each for each in engine.acting(boss).tasks.list(mine=True) if each.instance == other] == []


@pytest.mark.row("E-687", "EO-07")
def test_a_process_that_goes_back_asks_somebody_else(place: Place) -> None:
    """A loop that leads back to the first question does not let its counterpart's decider answer it."""
    steps = [
        {"id": "first", "type": "approval", "assignees": [{"role": "finance"}]},
        {"id": "second", "type": "approval", "assignees": [{"role": "finance"}], "distinct_from": ["first"]},
        *ends("granted"),
    ]
    ways = [
        {"from": "first", "event": "approved", "to": "second"},
        {"from": "second", "event": "approved", "to": "granted"},
        {"from": "second", "event": "rejected", "to": "first"},
    ]
    engine = place.engine()
    registered(engine, json.dumps({"domain": "d", "workflows": [{"id": "p", "steps": steps, "transitions": ways}]}))
    instance = engine.acting("rita").processes.start("p").id
    engine.drain()
    engine.acting(FAY).tasks.approve(task(engine, instance, "first"))
    engine.acting(GUS).tasks.reject(task(engine, instance, "second"), comment="no")
    engine.drain()
    again = task(engine, instance, "first")
    assert code(engine.acting(GUS).tasks.approve, again) == "not_distinct"
    assert engine.acting(GUS).tasks.list(mine=True) == []
    assert code(engine.acting(FAY).tasks.approve, again) == ""


BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: split, type: parallel_split}
      - {id: first, type: approval, approvers: [{role: finance}]}
      - {id: second, type: approval, approvers: [{role: finance}], distinct_from: [first]}
      - {id: met, type: parallel_join}
    edges:
      - {from: split, to: first}
      - {from: split, to: second}
      - {from: first, to: met}
      - {from: second, to: met}
"""


@pytest.mark.row("E-687", "EO-07")
def test_a_document_is_approved_by_two(place: Place) -> None:
    """In branches too, whichever is decided first."""
    engine = opened(place)
    published(engine, BODY)
    mine = of(engine, CLERK).documents
    instance = mine.create("invoice", GIVEN, id="I-1").instance
    mine.transition("invoice", "I-1", "submit")
    everything = of(engine, OPS).tasks

    def open_(name: str) -> Any:
        return next(each for each in everything.list() if each.instance == instance and each.name.endswith(name))

    fay, gus = of(engine, FAY).tasks, of(engine, GUS).tasks
    second = open_("second")
    fay.decide(second, "approved", document_version=second.document_version)
    first = open_("first")
    assert code(fay.decide, first, "approved", document_version=first.document_version) == "not_distinct"
    assert [each.name for each in fay.list(mine=True)] == []
    gus.decide(first, "approved", document_version=first.document_version)
    assert mine.get("invoice", "I-1").status == "active"


@pytest.mark.row("E-682", "E-687")
def test_who_is_kept_out_by_another_question_is_left_out_of_those_who_are_asked(place: Place) -> None:
    """Everybody whom the step names is listed once, whoever has decided the other question is asked no more, and the others hear of it once."""
    engine = place.engine()
    saga = (
        Saga("pay")
        .fork(
            "both",
            lambda b: b.human("first", ask=["user:fay", "user:gus"], agree=1, distinct_from="second"),
            lambda b: b.wait("later", 60).human(
                "second", ask=["user:fay", "user:gus", "role:finance"], agree=2, notify="in_app"
            ),
        )
        .join("met")
        .build()
    )
    engine.register(saga)
    run = engine.acting("rita").start(saga)
    engine.drain()
    engine.acting("fay").tasks.approve(run.tasks()[0])
    engine.advance(minutes=2)
    [second] = [each for each in run.tasks() if each.name == "second"]
    people = [(each.name, each.is_open) for each in engine.tasks.get(second).people]
    assert people == [("fay", False), ("gus", True), ("finance", True)]
    told = {name: len(engine.acting(name).notifications.mine()) for name in ("fay", "gus")}
    assert told == {"fay": 0, "gus": 1}
    for actor in (Actor(id="gus"), Actor(id="hal", roles=frozenset({"finance"}))):
        engine.acting(actor).tasks.approve(second)
        engine.drain()
    assert run.describe().status == "completed"
