"""Questions that nobody can decide any more: within a minute the run says so, operators are alerted, and it goes on by itself when somebody can."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest

from standfast import (
    Actor,
    Directory,
    Escalation,
    Run,
    Saga,
    SagaDefinition,
    Settings,
    ask,
    load_processes,
    load_rules,
)
from standfast.calls.context import nothing
from standfast.engine.common.telemetry import Happening, InstancePaused
from standfast.kernel.people import DirectoryLook, Grant, Principal
from standfast.machine.model.commands import run_commands as c
from standfast.people.directory import StaticDirectory
from standfast.people.directory_files import Roster
from standfast.people.directory_tables import TableDirectory
from standfast.testing import ManualEngine
from support.engines import Live, Place

HOUR = timedelta(hours=1)


def office(place: Place, settings: Settings | None = None) -> ManualEngine:
    """Dora is the boss, ann and bob are clerks, and rita starts everything; cat is nobody in particular."""
    engine = place.engine(settings)
    for name in ("dora", "ann", "bob", "cat", "rita"):
        engine.directory.put(name)
    for name, role in (("dora", "boss"), ("ann", "clerk"), ("bob", "clerk")):
        engine.directory.grant(name, role)
    return engine


def question(**options: object) -> SagaDefinition:
    """A saga that asks something."""
    return Saga("q").human("ask", **options).build()  # type: ignore[arg-type]


def asked(engine: ManualEngine, saga: SagaDefinition) -> Run[object]:
    """A run of rita's whose question was put to those who can decide it."""
    engine.register(saga)
    run = engine.acting("rita").start(saga)
    engine.drain()
    found = engine.run(run.id)
    assert found.describe().reason == ""
    return found


def stands(run: Run[object]) -> tuple[str, str]:
    """Status and reason."""
    told = run.describe()
    return told.status, told.reason


STUCK = ("dlq", "no_approver")


def revoke(engine: ManualEngine) -> None:
    """The last holder loses the role."""
    engine.directory.revoke("dora", "boss")


def deactivate(engine: ManualEngine) -> None:
    """The last holder leaves."""
    engine.directory.deactivate("dora")


def leave(engine: ManualEngine) -> None:
    """Two people leave."""
    for name in ("dora", "cat"):
        engine.directory.deactivate(name)


def inherit(engine: ManualEngine) -> None:
    """Whoever started the run becomes the boss."""
    engine.directory.grant("rita", "boss")
    engine.directory.revoke("dora", "boss")


WAYS: dict[str, tuple[SagaDefinition, Callable[[ManualEngine], None], Callable[[ManualEngine], None]]] = {
    "the last holder is revoked": (question(role="boss"), revoke, lambda e: e.directory.grant("cat", "boss")),
    "the last holder is deactivated": (question(role="boss"), deactivate, lambda e: e.directory.activate("dora")),
    "all candidates are deactivated": (
        question(ask=["user:dora", "user:cat"], agree="any"),
        leave,
        lambda e: e.directory.activate("cat"),
    ),
    "one of all is deactivated": (
        question(ask=["user:dora", "user:cat"], agree="all"),
        deactivate,
        lambda e: e.directory.activate("dora"),
    ),
    "a quorum became impossible": (
        question(ask=["user:dora", "user:cat", "user:ann"], agree=2),
        leave,
        lambda e: e.directory.activate("dora"),
    ),
    "only the requester is left": (
        question(role="boss", self_approval=False),
        inherit,
        lambda e: e.directory.grant("cat", "boss"),
    ),
    "those who were picked lost the role": (
        question(ask=ask("role:boss", pick="all")),
        revoke,
        lambda e: e.directory.grant("dora", "boss"),
    ),
}


@pytest.mark.row("E-682")
@pytest.mark.parametrize("name", WAYS)
def test_nobody_can_decide_any_more(place: Place, name: str) -> None:
    """The run is paused within a minute, `why`, health and the list of incidents say so; it goes on by itself once somebody can decide."""
    saga, lost, mended = WAYS[name]
    engine = office(place)
    heard: list[Happening] = []
    engine.listen(heard.append)
    run = asked(engine, saga)
    lost(engine)
    engine.advance(minutes=1)
    assert stands(run) == STUCK
    assert "nobody can decide 'ask'" in run.why().words
    assert [each.reason for each in heard if isinstance(each, InstancePaused)] == ["no_approver"]
    (incident,) = engine.admin.incidents()
    assert (incident.kind, incident.instance) == ("no_approver", run.id)
    engine.advance(minutes=1)
    (told,) = engine.health().incidents
    assert (str(run.id) in told, engine.incident_counts()["no_approver"]) == (True, 1)
    mended(engine)
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")
    engine.advance(minutes=1)
    assert (engine.health().incidents, engine.admin.incidents()) == ([], [])


def test_who_can_do_without_the_lost_is_left_alone(place: Place) -> None:
    """As long as those who are left can agree, nothing is held up, and nothing is written."""
    engine = office(place)
    run = asked(engine, question(ask=["user:dora", "user:cat", "user:ann"], agree=2))
    before = run.history()
    engine.directory.deactivate("dora")
    engine.advance(minutes=5)
    assert (stands(run), run.history()) == (("running", ""), before)


@pytest.mark.row("E-682")
def test_a_grant_that_ends_by_time_is_noticed(place: Place) -> None:
    """No call tells of it; whoever looks now and then finds it."""
    engine = office(place)
    engine.directory.revoke("dora", "boss")
    engine.directory.grant("cat", "boss", ends_at=place.clock.now() + HOUR)
    run = asked(engine, question(role="boss"))
    engine.advance(minutes=59)
    assert stands(run) == ("running", "")
    engine.advance(minutes=2)
    assert stands(run) == STUCK


def test_a_delegation_that_ends_by_time_is_noticed(place: Place) -> None:
    """Whoever stood in for somebody who has left decides no more when their time is over."""
    engine = office(place)
    engine.directory.delegate("dora", "cat", ends_at=place.clock.now() + HOUR)
    run = asked(engine, question(ask=["user:dora"]))
    engine.directory.deactivate("dora")
    engine.advance(minutes=30)
    assert stands(run) == ("running", "")
    engine.advance(hours=1)
    assert stands(run) == STUCK


@pytest.mark.row("E-682")
def test_an_escalation_to_an_emptied_role_is_noticed(place: Place) -> None:
    """Those who were asked first are gone, and those to whom it goes up are none: nobody is waited for in silence."""
    engine = office(place)
    saga = question(ask=["user:dora"], escalate=[Escalation(HOUR, to="role:auditor")])
    run = asked(engine, saga)
    engine.directory.grant("cat", "auditor")
    engine.directory.deactivate("dora")
    engine.advance(minutes=1)
    assert stands(run) == STUCK
    engine.directory.activate("dora")
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")
    engine.directory.revoke("cat", "auditor")
    engine.advance(hours=2)
    assert stands(run) == ("running", "")
    engine.directory.deactivate("dora")
    engine.advance(minutes=1)
    assert stands(run) == STUCK
    engine.directory.grant("cat", "auditor")
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")
    engine.acting("cat").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().status == "completed"


def test_an_escalation_looks_at_whom_it_asks(place: Place) -> None:
    """A question that nobody answers goes up to a role that only its requester has, and those who were asked first have left meanwhile."""
    engine = office(place)
    engine.directory.grant("rita", "auditor")
    saga = question(ask=["user:dora"], self_approval=False, escalate=[Escalation(HOUR, to="role:auditor")])
    run = asked(engine, saga)
    engine.runtime.housekeeping.review = lambda: None  # Only the escalation itself looks.
    engine.directory.deactivate("dora")
    engine.advance(minutes=90)
    assert stands(run) == STUCK


def test_another_process_notices_too(place: Place) -> None:
    """What one process changes is found by the others, which look for themselves."""
    first, second = office(place), place.engine().register(question(role="boss"))
    run = asked(first, question(role="boss"))
    second.drain()
    first.directory.revoke("dora", "boss")
    place.clock.move(timedelta(minutes=1))
    second.drain()
    assert stands(run) == STUCK


def test_a_new_process_notices_what_was_lost_while_none_ran(place: Place) -> None:
    """The first look of a process judges what it cannot be sure of."""
    engine = office(place)
    run = asked(engine, question(role="boss"))
    engine.directory.revoke("dora", "boss")
    place.clock.move(timedelta(days=1))
    place.engine().register(question(role="boss")).drain()
    assert stands(run) == STUCK


class Hosted(Directory):
    """A directory of the host's own, which tells nobody when it changes."""

    def __init__(self) -> None:
        self.holders = ["dora"]

    def looking(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        people = [Principal(id=name) for name in ("dora", "cat", "rita")]
        grants = [Grant(principal=name, role="boss") for name in self.holders]
        grants.append(Grant(principal="rita", role="other"))
        return StaticDirectory(Roster(principals=people, grants=grants), tenant=tenant).looking(tenant)


def test_a_directory_of_the_hosts_own_is_asked_now_and_then(place: Place) -> None:
    """It cannot say that it has changed, so it is looked at."""
    hosted = Hosted()
    engine = place.engine(directory=hosted)
    run = asked(engine, question(role="boss"))
    hosted.holders = []
    engine.advance(minutes=1)
    assert stands(run) == STUCK
    hosted.holders = ["cat"]
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")


def test_somebody_is_found_where_nobody_was(place: Place) -> None:
    """A question that nobody could be found for is asked by itself once somebody is there: a manager, a chain, a role."""
    engine = office(place)
    engine.register(Saga("m").human("ask", ask=["manager"]).build())
    engine.register(Saga("c").human("ask", chain="big").build())
    runs = [engine.run(engine.acting("rita").start(name).id) for name in ("m", "c")]
    engine.drain()
    assert [stands(each) for each in runs] == [STUCK, STUCK]
    before = [len(each.history()) for each in runs]
    engine.advance(minutes=10)
    assert [len(each.history()) for each in runs] == before, "looking in vain writes nothing"
    engine.directory.set_manager("rita", "dora")
    engine.chains.publish("big", [{"asks": ["user:cat"]}])
    engine.advance(minutes=1)
    assert [stands(each) for each in runs] == [("running", "")] * 2
    assert [[each.name for each in engine.acting(name).tasks.list(mine=True)] for name in ("dora", "cat")] == [
        ["ask"],
        ["ask"],
    ]


def test_who_was_added_by_hand_stays_asked(place: Place) -> None:
    """When those can decide again who were asked last, they are: nobody who was reassigned away comes back."""
    engine = office(place)
    run = asked(engine, question(role="boss"))
    engine.tasks.reassign(run.tasks()[0], "cat", reason="she knows it")
    engine.directory.deactivate("cat")
    engine.advance(minutes=1)
    assert stands(run) == STUCK
    engine.directory.activate("cat")
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")
    assert [len(engine.acting(name).tasks.list(mine=True)) for name in ("cat", "dora")] == [1, 0]


PROCESS = """
domain: d
workflows:
  - id: p
    steps: [{id: ask, type: approval, assignee: {role: boss}}, {id: y, type: terminal}]
    transitions: [{from: ask, event: approved, to: y}]
"""
RULES: dict[str, Any] = {
    "workflow_id": "r",
    "steps": [
        {"id": "ask", "type": "action", "action": "block", "requires": {"type": "approval", "role": "boss"}},
        {"id": "ok", "type": "action", "action": "allow"},
    ],
}


@pytest.mark.parametrize("kind", ["process", "rules"])
def test_processes_and_rules_are_no_exception(place: Place, kind: str) -> None:
    """Whatever front end asks, a question that nobody can decide is no silence."""
    engine = office(place)
    definitions = load_processes(PROCESS) if kind == "process" else [load_rules(RULES)]
    for each in definitions:
        engine.register(each)
    run = engine.run(engine.acting("rita").start("p" if kind == "process" else "r").id)
    engine.drain()
    engine.directory.revoke("dora", "boss")
    engine.advance(minutes=1)
    assert run.describe().reason == "no_approver"
    engine.directory.grant("cat", "boss")
    engine.advance(minutes=1)
    assert run.describe().reason != "no_approver"


@pytest.mark.row("E-682")
def test_operators_are_alerted(place: Place) -> None:
    """Each run once a day, by the channels of the settings."""
    engine = office(place, Settings(alerts=("in_app:olga",)))
    run = asked(engine, question(role="boss"))
    engine.directory.revoke("dora", "boss")
    for _ in range(3):
        engine.advance(minutes=3)
    (told,) = engine.acting(Actor(id="olga")).notifications.mine()
    assert (told.instance, "one of its tasks has no eligible approver" in told.body) == (run.id, True)


def test_a_tenant_without_a_directory_is_asked_nothing(place: Place) -> None:
    """Who has roles of the host's own is not looked up, and their questions stay as they are."""
    engine = place.engine().register(question(role="boss"))
    run = engine.run(engine.start("q").id)
    engine.advance(days=1)
    assert stands(run) == ("running", "")


def test_the_look_ends_with_its_engine(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """A round that a stopped engine does not begin is put off, and not tried again at once for ever."""
    engine = live.engine(Settings()).start_worker()
    engine.stop()
    directory = engine.office.directory
    assert isinstance(directory, TableDirectory)
    directory.note_change("default")
    engine.runtime.housekeeping.review()
    assert "review_of_tasks_failed" not in caplog.text


def _stale_place(engine: ManualEngine, run: Run[object]) -> None:
    """Ann decides and takes it back, so that the look at Bob alone, which followed from her decision, is out of date."""
    ann = engine.acting("ann").tasks
    ann.approve(run.tasks()[0])
    ann.withdraw_decision(run.tasks()[0], "a mistake")


def _stale_heir(engine: ManualEngine, run: Run[object]) -> None:
    """Bob decides, and Ann hands her place on before the look at her, which followed from his decision, has come back."""
    engine.acting("bob").tasks.approve(run.tasks()[0])
    engine.acting("ann").tasks.delegate(run.tasks()[0], "dora", reason="holidays")


@pytest.mark.row("E-682")
@pytest.mark.parametrize(("stale", "leaver"), [(_stale_place, "ann"), (_stale_heir, "dora")])
def test_a_look_at_others_does_not_say_that_all_is_well(
    place: Place, stale: Callable[[ManualEngine, Run[object]], None], leaver: str
) -> None:
    """The engine has gone to look at those who were asked, and others are asked by the time it is back: what it found says nothing of them."""
    engine = office(place)
    run = asked(engine, question(ask=["user:ann", "user:bob"]))
    stale(engine, run)
    engine.directory.deactivate(leaver)
    for _ in range(3):
        engine.advance(minutes=1)
        assert stands(run)[1] == "no_approver"
    assert run.verify().is_sound


@pytest.mark.row("E-682")
def test_an_answer_that_was_overtaken_is_noticed(place: Place) -> None:
    """An answer that was looked up before somebody left, and comes after the run has heard of it, is put right within a minute."""
    engine = office(place)
    run = asked(engine, question(ask=["user:ann", "user:bob"]))
    engine.directory.deactivate("ann")
    engine.drain()
    assert stands(run)[1] == "no_approver"
    desk = engine._desk
    old = c.PeopleReviewed(step=1, looked_at=["ann", "bob"])
    desk.command(desk.address(instance=run.id), old, nothing, may_create=False).result()
    assert stands(run)[1] == ""
    engine.advance(minutes=1)
    assert stands(run)[1] == "no_approver"
