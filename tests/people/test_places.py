"""A question has one place for each principal, and where all have to agree no place is forgotten, however its people were found."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from standfast import Actor, Escalation, Run, Saga, ask
from standfast.testing import ManualEngine
from support.engines import Place

OPS = Actor(id="ops", capabilities=frozenset({"task:*", "execution:*"}))
PEOPLE = ("ann", "bob", "cat", "dora", "rita")
HOUR = timedelta(hours=1)


def office(place: Place, *, away: bool = True) -> ManualEngine:
    """Ann stands in for Bob, who is Rita's manager, and for Cat. These two hold the role finance."""
    engine = place.engine()
    people = engine.directory
    for name in PEOPLE:
        people.put(name)
    people.set_manager("rita", "bob")
    for giver in ("bob", "cat"):
        people.grant(giver, "finance")
        people.delegate(giver, "ann")
        if away:
            people.absent(giver, ends_at=engine.clock.now() + timedelta(days=9))
    engine.resolver("both")(lambda _request: ["bob", "cat"])
    engine.resolver("blank")(lambda _request: ["ann", None])
    return engine


def asked(engine: ManualEngine, **options: Any) -> Run[object]:
    """A run of Rita's that asks."""
    if "stage" in options:
        engine.chains.publish("c", [{"asks": options.pop("stage"), "agree": "all"}])
        options["chain"] = "c"
    else:
        options = {"agree": "all", **options}
    engine.register(Saga("pay").human("q", **options).step("pay", lambda: "paid").build())
    run = engine.acting("rita").start("pay", {"both": ["bob", "cat"], "blank": ["ann", None], "gone": ["ann", "dora"]})
    engine.drain()
    return engine.run(run.id)


def approved(engine: ManualEngine, run: Run[object], *names: str) -> str:
    """What becomes of the run when these agree, and the engine has looked again."""
    for name in names:
        engine.acting(name).tasks.approve(run.tasks()[0])
        engine.drain()
    engine.advance(minutes=2)
    return run.describe().status


@pytest.mark.row("E-677", "E-682")
@pytest.mark.parametrize("lacking", ["manager", "blank_found"])
def test_a_review_forgets_no_place_that_nobody_was_found_for(place: Place, lacking: str) -> None:
    """The run waits as `no_approver` until somebody is found for the place or is added, whoever has decided by then."""
    engine = office(place)
    engine.directory.set_manager("rita", "")
    found: list[str] = []
    engine.resolver("blank_found")(lambda _request: found)
    run = asked(engine, ask=["user:ann", lacking])
    for _ in range(3):
        engine.advance(minutes=2)
        assert run.describe().reason == "no_approver"
    assert approved(engine, run, "ann") == "dlq"
    assert run.describe().reason == "no_approver"
    engine.directory.set_manager("rita", "dora")
    found.append("dora")
    engine.advance(minutes=2)
    assert run.describe().reason == ""
    assert [each.step_id for each in engine.acting("dora").tasks.list(mine=True)] == [run.tasks()[0].step_id]
    assert approved(engine, run, "dora") == "completed"
    assert run.verify().is_sound


@pytest.mark.row("E-682")
def test_one_who_is_added_fills_one_of_two_places(place: Place) -> None:
    """Two places found nobody: the second addition brings the run on, the first does not, and no review either."""
    engine = office(place)
    engine.directory.set_manager("rita", "")
    run = asked(engine, ask=["user:ann", "manager", ask("role:none", pick="all")])
    engine.acting(OPS).tasks.add_approver(run.tasks()[0], "dora")
    engine.advance(minutes=2)
    assert run.describe().reason == "no_approver"
    assert approved(engine, run, "ann", "dora") == "dlq"
    engine.acting(OPS).tasks.add_approver(run.tasks()[0], "bob")
    engine.advance(minutes=2)
    assert run.describe().reason == ""
    assert approved(engine, run, "bob") == "completed"


def test_an_escalation_decides_for_a_place_that_nobody_was_found_for(place: Place) -> None:
    """Those of a rung decide for all. A review does not stop the run before they have."""
    engine = office(place)
    engine.directory.set_manager("rita", "")
    run = asked(engine, ask=["user:bob", "manager"], escalate=[Escalation(5 * HOUR, to="user:dora")])
    assert run.describe().reason == "no_approver"
    engine.advance(hours=6)
    engine.advance(minutes=2)
    assert run.describe().reason == ""
    assert approved(engine, run, "dora") == "completed"


STOOD_IN: dict[str, dict[str, Any]] = {
    "named": {"ask": ["user:bob", "user:cat"]},
    "a stage": {"stage": ["user:bob", "user:cat"]},
    "a rule": {"ask": ["rule:both"]},
    "a resolver": {"ask": ["both"]},
    "all of a role": {"ask": ask("role:finance", pick="all")},
    "a manager": {"ask": ["manager", "user:cat"]},
    "two ways to each": {"ask": ["manager", ask("role:finance", pick="all"), "both"]},
}


@pytest.mark.row("E-677", "E-681")
@pytest.mark.parametrize("case", sorted(STOOD_IN))
def test_one_stand_in_for_two_is_one_of_them(place: Place, case: str) -> None:
    """Ann decides for Bob or for Cat. The other place is lost until its owner can have it, or another person takes it."""
    engine = office(place)
    run = asked(engine, **STOOD_IN[case])
    is_named = case == "named"  # Who is named keeps the place while away.
    assert run.describe().reason == ("" if is_named else "no_approver")
    engine.acting("ann").tasks.approve(run.tasks()[0], **({"on_behalf_of": "bob"} if is_named else {}))
    engine.advance(minutes=2)
    assert run.describe().status != "completed"
    engine.advance(hours=240)
    assert run.describe().reason == ""
    assert approved(engine, run, "cat") == "completed"
    given = engine.tasks.get(run.tasks()[0]).decisions
    assert [(each.decided_by, each.on_behalf_of) for each in given] == [("ann", "bob"), ("cat", "")]
    assert run.verify().is_sound


@pytest.mark.row("E-681")
def test_people_have_their_own_place_rather_than_that_of_another(place: Place) -> None:
    """Ann is asked herself and stands in for Bob: under `all` somebody else has to decide for Bob, under `any` she is enough."""
    engine = office(place)
    run = asked(engine, stage=["user:bob", {"user": "ann", "weight": 3}])
    assert [(each.name, each.stands_for) for each in engine.tasks.get(run.tasks()[0]).people] == [("ann", "")]
    assert "nobody can for bob" in run.describe().error
    engine.acting(OPS).tasks.add_approver(run.tasks()[0], "dora")
    assert approved(engine, run, "ann", "dora") == "completed"


def test_one_of_those_who_stand_in_is_enough_where_any_is(place: Place) -> None:
    """A place that is lost is waited for under `all` alone."""
    engine = office(place)
    assert approved(engine, asked(engine, ask=["both", "user:ann"], agree="any"), "ann") == "completed"


def test_two_ways_to_one_person_are_one_place(place: Place) -> None:
    """Bob is the manager, is named, and holds the role: his decision is one of one."""
    engine = office(place, away=False)
    run = asked(engine, stage=["manager", "user:bob"])
    assert run.describe().reason == ""
    assert approved(engine, run, "bob") == "completed"


GONE: dict[str, dict[str, Any]] = {
    "named": {"ask": ["user:ann", "user:dora"]},
    "a stage": {"stage": ["user:ann", "user:dora"]},
    "a rule": {"ask": ["rule:gone"]},
    "a resolver": {"ask": ["gone"]},
    "a blank of a rule": {"ask": ["rule:blank"]},
    "a blank of a resolver": {"ask": ["blank"]},
}


@pytest.mark.row("E-682")
@pytest.mark.parametrize("case", sorted(GONE))
def test_one_who_was_named_and_cannot_act_is_still_one_of_all(place: Place, case: str) -> None:
    """Dora is deactivated, or nobody's name stands there: what Ann says is kept, and somebody has to be added."""
    engine = office(place)
    engine.resolver("gone")(lambda _request: ["ann", "dora"])
    engine.directory.deactivate("dora")
    run = asked(engine, **GONE[case])
    assert run.describe().reason == "no_approver"
    assert approved(engine, run, "ann") == "dlq"
    engine.acting(OPS).tasks.add_approver(run.tasks()[0], "bob")
    engine.advance(minutes=2)
    assert approved(engine, run, "bob") == "completed"
    assert run.verify().is_sound


@pytest.mark.parametrize("given", ["rule:gone", "rule:blank", "blank"])
def test_elsewhere_one_who_cannot_act_is_not_waited_for(place: Place, given: str) -> None:
    """A number counts those who can decide."""
    engine = office(place)
    engine.directory.deactivate("dora")
    run = asked(engine, ask=[given], agree=1)
    assert approved(engine, run, "ann") == "completed"


def test_a_deactivated_holder_is_no_holder_of_a_role(place: Place) -> None:
    """All of a role are those who hold it and can act when the question is put."""
    engine = office(place, away=False)
    engine.directory.grant("dora", "clerk")
    engine.directory.grant("ann", "clerk")
    engine.directory.deactivate("dora")
    run = asked(engine, ask=ask("role:clerk", pick="all"))
    assert approved(engine, run, "ann") == "completed"


@pytest.mark.row("E-677", "E-682")
def test_an_approver_who_is_added_takes_no_place_that_was_decided_from(place: Place) -> None:
    """Somebody who could not decide is back and has decided, before the engine has looked again: their vote stands, and the other one is asked besides."""
    engine = office(place)
    run = asked(engine, ask=["user:bob", "user:dora"])
    engine.directory.end_delegation(engine.directory.delegations("bob")[0])
    engine.directory.deactivate("bob")
    engine.advance(minutes=2)
    assert run.describe().reason == "no_approver"
    engine.directory.activate("bob")
    (task,) = run.tasks()
    engine.acting("bob").tasks.approve(task)
    engine.acting(OPS).tasks.add_approver(task, "cat", reason="to be sure")
    people = [(each.name, each.decided, each.is_open) for each in engine.tasks.get(task).people]
    assert people == [("bob", "confirmed", False), ("dora", "", True), ("cat", "", True)]
    engine.acting("bob").tasks.withdraw_decision(task, "one more look")  # It counts, so that it can be withdrawn.
    assert approved(engine, run, "dora", "cat") == "running"
    assert approved(engine, run, "bob") == "completed"
