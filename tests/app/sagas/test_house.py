"""Questions in a house with a directory: who is asked by role, as a manager and by a chain, and who decides for whom, on both stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from app.sagas.acting import history, status
from standfast import (
    Actor,
    Escalation,
    ForbiddenError,
    HumanTask,
    Notice,
    RejectedError,
    Saga,
    TaskDetails,
    ask,
)
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

DAY = timedelta(days=1)
OPS = Actor(id="ops", capabilities=frozenset({"task:*"}))


def house(place: Place) -> ManualEngine:
    """Rita reports to Mia, and Mia to Cleo; Fay and Gus do finance, Cleo is the chief."""
    engine = place.engine()
    for name, manager in (
        ("cleo", ""),
        ("mia", "cleo"),
        ("rita", "mia"),
        ("fay", "mia"),
        ("gus", "mia"),
        ("sam", "mia"),
    ):
        engine.directory.put(name, manager=manager)
    for name, role in (("fay", "finance"), ("gus", "finance"), ("cleo", "chief")):
        engine.directory.grant(name, role)
    return engine


def asked(engine: ManualEngine, *, name: str = "spend", **options: Any) -> InstanceId:
    """A run of Rita's that waits for an answer."""
    engine.register(Saga(name).human("ok", subject="May Rita spend?", **options).build())
    instance = engine.acting("rita").start(name, key=name).id
    engine.drain()
    return instance


def question(engine: ManualEngine, instance: InstanceId) -> TaskDetails:
    """All that is known of it."""
    return engine.tasks.get(f"{instance}:1")


def open_people(engine: ManualEngine, instance: InstanceId) -> list[str]:
    """Those from whom a decision is wanted."""
    return [each.name for each in question(engine, instance).people if each.is_open]


def inbox(engine: ManualEngine, name: str) -> list[str]:
    """The workflows that wait for somebody."""
    return [each.definition for each in engine.acting(name).tasks.list(mine=True)]


def approve(engine: ManualEngine, name: str, instance: InstanceId) -> None:
    """Say yes, and let what follows happen."""
    engine.acting(name).tasks.approve(f"{instance}:1")
    engine.drain()


# -- who is asked


@pytest.mark.row("E-664", "E-677", "E-683")
def test_each_holder_of_a_role_has_to_agree(place: Place) -> None:
    """`pick="all"` asks each of those who have the role in the directory, and `all` waits for each of them."""
    engine = house(place)
    instance = asked(engine, ask=ask("role:finance", pick="all"), agree="all")
    assert open_people(engine, instance) == ["fay", "gus"]
    assert (inbox(engine, "fay"), inbox(engine, "gus"), inbox(engine, "sam")) == (["spend"], ["spend"], [])
    (why,) = question(engine, instance).resolution
    assert isinstance(why, dict)
    assert (why["resolver"], why["of"], why["result"]) == ("role", "finance", ["fay", "gus"])
    approve(engine, "fay", instance)
    assert (status(engine, instance), open_people(engine, instance)) == ("running", ["gus"])
    with pytest.raises(ForbiddenError):
        approve(engine, "sam", instance)
    approve(engine, "gus", instance)
    assert status(engine, instance) == "completed"
    assert engine.run(instance).verify().is_sound


@pytest.mark.row("E-665")
def test_the_manager_of_the_requester_is_asked(place: Place) -> None:
    """Mia is, because Rita wants it; nobody else can decide."""
    engine = house(place)
    instance = asked(engine, ask="manager")
    assert [(each.name, each.why) for each in question(engine, instance).people] == [("mia", "manager of rita")]
    with pytest.raises(ForbiddenError):
        approve(engine, "cleo", instance)
    approve(engine, "mia", instance)
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-661", "E-662")
def test_a_chain_asks_stage_by_stage(place: Place) -> None:
    """The second stage is asked once the first has agreed, both by the version of the chain that the question began with."""
    engine = house(place)
    engine.chains.publish("spending", [{"name": "line", "asks": ["manager"]}, {"name": "top", "asks": ["role:chief"]}])
    instance = asked(engine, chain="spending")
    engine.chains.publish("spending", [{"asks": ["sam"]}])
    assert (question(engine, instance).stage, inbox(engine, "mia"), inbox(engine, "cleo")) == ("line", ["spend"], [])
    approve(engine, "mia", instance)
    assert (question(engine, instance).stage, inbox(engine, "mia"), inbox(engine, "cleo")) == ("top", [], ["spend"])
    approve(engine, "cleo", instance)
    assert status(engine, instance) == "completed"
    given = [(each.decided_by, each.decision, each.is_applied) for each in question(engine, instance).decisions]
    assert given == [("mia", "confirmed", True), ("cleo", "confirmed", True)]
    assert engine.run(instance).verify().is_sound


@pytest.mark.row("E-683")
def test_why_somebody_is_asked_is_kept_through_rules_and_stages(place: Place) -> None:
    """What a rule came to is told beside what the engine found, and each stage of a chain beside the chain and its version."""
    engine = house(place)
    engine.register(Saga("mixed").human("ok", ask=["rule:owner", "rule:none", "manager"]).build())
    instance = engine.acting("rita").start("mixed", {"owner": "gus", "none": None}).id
    engine.drain()
    told = question(engine, instance)
    assert [(each.name, each.why) for each in told.people] == [("gus", "rule owner"), ("mia", "manager of rita")]
    assert [(each["resolver"], each["of"], each["result"]) for each in _resolved(told)] == [
        ("rule", "owner", ["gus"]),
        ("rule", "none", []),
        ("user", "gus", ["gus"]),
        ("manager", "", ["mia"]),
    ]
    engine.chains.publish("spending", [{"asks": ["manager"]}, {"asks": [{"role": "finance", "pick": "all"}]}])
    chained = asked(engine, chain="spending")
    approve(engine, "mia", chained)
    assert [(each["resolver"], each["result"]) for each in _resolved(question(engine, chained))] == [
        ("chain", ["version 1"]),
        ("manager", ["mia"]),
        ("role", ["fay", "gus"]),
    ]
    assert engine.run(chained).verify().is_sound


def _resolved(task: TaskDetails) -> list[dict[str, object]]:
    return msgspec.convert(task.resolution, list[dict[str, object]])


@pytest.mark.row("E-682")
def test_a_chain_that_does_not_exist_stops_the_run_until_it_does(place: Place) -> None:
    """Nobody is asked, the run waits for an operator, and looks again when it is resumed."""
    engine = house(place)
    instance = asked(engine, chain="spending")
    assert engine.run(instance).describe().reason == "no_approver"
    engine.chains.publish("spending", [{"asks": ["manager"]}])
    engine.run(instance).resume("published")
    engine.drain()
    approve(engine, "mia", instance)
    assert status(engine, instance) == "completed"


@pytest.mark.parametrize("remedy", ["skip", "override", "escalation"])
def test_a_question_that_nobody_can_decide_is_left_by_other_ways(place: Place, remedy: str) -> None:
    """An operator goes past it, or it escalates to somebody who can: nothing else has held the run up, and it goes on."""
    engine = house(place)
    escalate = Escalation(timedelta(hours=1), to="sam")
    instance = asked(engine, ask="user:rita", self_approval=False, escalate=escalate)
    assert engine.run(instance).describe().reason == "no_approver"
    match remedy:
        case "skip":
            engine.run(instance).skip(f"{instance}:1", reason="urgent")
        case "override":
            engine.run(instance).resume("urgent", override=True)
        case _:
            engine.advance(hours=1)
            assert status(engine, instance) == "running"
            approve(engine, "sam", instance)
    engine.drain()
    assert status(engine, instance) == "completed"


def test_those_whom_the_engine_finds_are_told(place: Place) -> None:
    """At each stage those of the stage, by the channels of the question; whoever it is handed to is told as well."""
    engine = house(place)
    told: list[str] = []

    def send(notice: Notice) -> None:
        told.append(f"{notice.to}: {notice.subject}")

    engine.channel("sms", send)
    engine.chains.publish("spending", [{"asks": ["manager"]}, {"asks": ["role:chief"]}])
    instance = asked(engine, chain="spending", notify="sms")
    assert told == ["mia: May Rita spend?"]
    engine.acting("mia").tasks.delegate(f"{instance}:1", "sam")
    engine.drain()
    assert told[1:] == ["sam: May Rita spend?"]
    approve(engine, "sam", instance)
    assert told[2:] == ["chief: May Rita spend?"]


# -- who decides for whom


@pytest.mark.row("EO-04")
def test_who_stands_in_does_so_for_a_period(place: Place) -> None:
    """Neither before it begins nor after it has ended is the question a stand-in's; what was decided meanwhile stands."""
    engine = house(place)
    instance = asked(engine, ask=["user:fay", "user:gus"])
    begin = place.clock.now() + DAY
    for giver, stand_in in (("fay", "sam"), ("gus", "mia")):
        engine.directory.delegate(giver, stand_in, begins_at=begin, ends_at=begin + DAY)
    with pytest.raises(ForbiddenError):
        approve(engine, "sam", instance)
    engine.advance(DAY)
    engine.acting("sam").tasks.decide(f"{instance}:1", "confirmed", on_behalf_of="fay")
    assert (inbox(engine, "sam"), inbox(engine, "mia")) == ([], ["spend"])
    engine.advance(DAY)
    assert (inbox(engine, "mia"), inbox(engine, "gus")) == ([], ["spend"])
    with pytest.raises(ForbiddenError):
        engine.acting("mia").tasks.decide(f"{instance}:1", "confirmed", on_behalf_of="gus")
    approve(engine, "gus", instance)
    given = [(each.decided_by, each.on_behalf_of) for each in question(engine, instance).decisions]
    assert (given, status(engine, instance)) == ([("sam", "fay"), ("gus", "")], "completed")


@pytest.mark.row("E-685", "E-675", "EO-04")
def test_who_stands_in_has_the_question_and_decides_with_both_names(place: Place) -> None:
    """Sam stands in for Fay: the question is in Sam's inbox too, and the decision says for whom it was."""
    engine = house(place)
    instance = asked(engine, ask=["user:fay", "user:gus"])
    assert inbox(engine, "sam") == []
    engine.directory.delegate("fay", "sam", ends_at=place.clock.now() + DAY)
    assert (inbox(engine, "sam"), engine.acting("sam").tasks.counts().own) == (["spend"], 1)
    approve(engine, "sam", instance)
    approve(engine, "sam", instance)  # A second click.
    assert inbox(engine, "fay") == inbox(engine, "sam") == []
    (given,) = question(engine, instance).decisions
    assert (given.decided_by, given.on_behalf_of) == ("sam", "fay")
    (event,) = history(engine, instance, "task_decided")
    assert (event.data["actor"], event.data["on_behalf_of"]) == ("sam", "fay")
    engine.acting("sam").tasks.withdraw_decision(f"{instance}:1")
    assert inbox(engine, "fay") == ["spend"]
    approve(engine, "fay", instance)
    approve(engine, "gus", instance)
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-685")
@pytest.mark.parametrize("away", ["nobody", "cleo"])
def test_a_question_that_is_not_delegable_is_decided_in_person(place: Place, away: str) -> None:
    """Neither whom somebody names nor whom the directory does decides in Cleo's place, and Cleo is asked although away."""
    engine = house(place)
    engine.directory.delegate("cleo", "sam")
    if away != "nobody":
        engine.directory.absent(away)
    instance = asked(engine, ask=ask("role:chief", pick="all"), delegable=False)
    assert open_people(engine, instance) == ["cleo"]
    before = history(engine, instance)
    calls: list[Callable[[], None]] = [
        lambda: approve(engine, "sam", instance),
        lambda: engine.acting("sam").tasks.claim(f"{instance}:1"),
        lambda: engine.acting("cleo").tasks.delegate(f"{instance}:1", "gus"),
    ]
    for call in calls:
        with pytest.raises(
            RejectedError, match="is decided by those themselves who are asked; have it reassigned"
        ) as caught:
            call()
        assert caught.value.reason == "not_delegable"
    assert history(engine, instance) == before
    engine.acting(OPS).tasks.reassign(f"{instance}:1", "gus")
    approve(engine, "gus", instance)
    assert status(engine, instance) == "completed"


def test_who_stands_in_for_one_definition_sees_its_questions_alone(place: Place) -> None:
    """Page by page as well; a delegation for a role leaves what asks the person by name."""
    engine = house(place)
    for name in ("buy", "sell", "lend"):
        asked(engine, name=name, ask="user:fay")
        engine.advance(seconds=1)
    asked(engine, name="pay", role="finance")
    engine.directory.delegate("fay", "sam", definition="sell")
    engine.directory.delegate("gus", "sam", role="finance")
    assert inbox(engine, "sam") == ["sell", "pay"]
    tasks = engine.acting("sam").tasks
    (first,) = tasks.list(mine=True, limit=1)
    assert [each.definition for each in tasks.list(mine=True, after=first)] == ["pay"]
    assert [each.definition for each in tasks.list(mine=True, definition="sell")] == ["sell"]
    asked(engine, name="own", ask="user:sam")
    assert inbox(engine, "sam") == ["sell", "pay", "own"]
    assert [each.definition for each in tasks.list(mine="delegated")] == ["sell", "pay"]
    assert tasks.list(mine="roles") == []


@pytest.mark.row("EO-04")
def test_whoever_is_away_is_replaced_when_people_are_found(place: Place) -> None:
    """Mia is away and Sam stands in: the question asks Sam, for Mia."""
    engine = house(place)
    engine.directory.absent("mia", ends_at=place.clock.now() + DAY)
    engine.directory.delegate("mia", "sam", ends_at=place.clock.now() + DAY)
    instance = asked(engine, ask="manager")
    (task,) = engine.acting("sam").tasks.list(mine=True)
    assert task.stands_for == "mia"
    approve(engine, "sam", instance)
    (given,) = question(engine, instance).decisions
    assert (given.decided_by, given.on_behalf_of) == ("sam", "mia")


@pytest.mark.row("EH-07")
def test_roles_of_the_directory_count_for_all_that_is_done_to_a_question(place: Place) -> None:
    """Claiming and handing on as deciding; and whoever is deactivated does nothing to it."""
    engine = house(place)
    instance = asked(engine, role="finance")
    task = f"{instance}:1"
    with pytest.raises(ForbiddenError):
        engine.acting("sam").tasks.claim(task)
    engine.acting("fay").tasks.claim(task)
    with pytest.raises(RejectedError, match="'fay' has claimed"):
        engine.acting("gus").tasks.approve(task)
    engine.acting("fay").tasks.release(task)
    engine.directory.deactivate("gus")
    with pytest.raises(ForbiddenError, match="deactivated"):
        engine.acting("gus").tasks.claim(task)
    engine.acting("fay").tasks.delegate(task, "sam")
    approve(engine, "sam", instance)
    assert question(engine, instance).decisions[0].on_behalf_of == "fay"


@pytest.mark.row("EO-26")
def test_questions_that_only_deactivated_people_could_decide_are_found(place: Place) -> None:
    """By name as by role, and where they are one of several who have to agree; one that somebody else can decide is none of them."""
    engine = house(place)
    for name, options in (
        ("named", {"ask": "user:fay"}),
        ("shared", {"ask": ["user:fay", "user:sam"], "agree": "any"}),
        ("chief", {"role": "chief"}),
        ("both", {"ask": ["user:fay", "user:sam"]}),
        ("others", {"ask": ["user:gus", "user:sam"]}),
    ):
        asked(engine, name=name, **options)
        engine.advance(seconds=1)
    assert engine.directory.open_tasks_of_inactive() == []
    for name in ("fay", "cleo"):
        engine.directory.deactivate(name)
    lost: list[HumanTask] = engine.directory.open_tasks_of_inactive()
    assert [each.definition for each in lost] == ["named", "chief", "both"]
    first = engine.directory.open_tasks_of_inactive(limit=2)
    rest = engine.directory.open_tasks_of_inactive(after=first[-1], limit=2)
    assert [*first, *rest] == lost


@pytest.mark.parametrize("by", ["ops", "engine"])
def test_nothing_is_handed_to_whoever_is_deactivated(place: Place, by: str) -> None:
    """Delegated, reassigned or added, nobody could decide then: refused, and nothing changes."""
    engine = house(place)
    instance = asked(engine, ask=["user:fay", "user:gus"])
    task = f"{instance}:1"
    engine.directory.deactivate("sam")
    boss = engine.acting(OPS).tasks if by == "ops" else engine.tasks
    before = history(engine, instance)
    calls: list[Callable[[], None]] = [
        lambda: engine.acting("fay").tasks.delegate(task, "sam"),
        lambda: boss.reassign(task, "user:sam", who="fay"),
        lambda: boss.add_approver(task, "sam"),
    ]
    for call in calls:
        with pytest.raises(
            RejectedError, match="'sam' is deactivated and could not decide; name somebody else"
        ) as caught:
            call()
        assert caught.value.reason == "deactivated"
    assert history(engine, instance) == before
    engine.directory.activate("sam")
    boss.add_approver(task, "sam")
    assert open_people(engine, instance) == ["fay", "gus", "sam"]
