"""Nobody counts twice in one question, whoever they stand in for: people are found, listed and heard by one law."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.processes.acting import ends, process, registered
from standfast import Actor, Escalation, RejectedError, Saga, ask
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

OPS = Actor(id="ops", capabilities=frozenset({"task:*", "execution:*"}))
TWO: list[str] = ["user:ann", "user:bob"]


def office(place: Place) -> ManualEngine:
    """Cat stands in for Ann and for Bob."""
    engine = place.engine()
    for name in ("ann", "bob", "cat", "dora"):
        engine.directory.put(name)
        engine.directory.grant(name, "staff")  # From now on roles are looked up.
    for giver in ("ann", "bob"):
        engine.directory.delegate(giver, "cat")
    return engine


def asked(engine: ManualEngine, **options: Any) -> tuple[InstanceId, str]:
    """A run that asks, and its question."""
    given: dict[str, Any] = {"ask": TWO, "agree": 2, **options}
    saga = Saga("pay").human("sign", **given).build()
    engine.register(saga)
    run = engine.start(saga)
    engine.drain()
    return run.id, run.tasks()[0].step_id


def code(call: Any, *given: Any, **named: Any) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


@pytest.mark.row("E-681", "E-687")
@pytest.mark.parametrize("agree", [2, "all"])
@pytest.mark.parametrize("people", [TWO, ["user:ann", "user:cat"]], ids=["for two", "for oneself and another"])
def test_a_stand_in_gives_one_of_two_votes(place: Place, people: list[str], agree: object) -> None:
    """Whoever has decided decides for nobody else in the same question, nor claims it, hands it on or goes past it."""
    engine = office(place)
    run, task = asked(engine, ask=people, agree=agree)
    cat = engine.acting(Actor(id="cat", capabilities=frozenset({"execution:*"})))
    first, second = [each.removeprefix("user:") for each in people]
    cat.tasks.approve(task, on_behalf_of=second)
    for call in (cat.tasks.approve, cat.tasks.reject, cat.tasks.claim):
        assert code(call, task, on_behalf_of=first) == "not_distinct"
    assert code(cat.tasks.delegate, task, "dora", on_behalf_of=first) == "not_distinct"
    assert code(cat.run(run).resume, "mine", override=True) == "not_distinct"
    assert code(cat.run(run).skip, 1, reason="mine", outcome="confirmed") == "not_distinct"
    assert code(engine.acting(OPS).tasks.reassign, task, "cat", who=first) in {"not_distinct", "already_asked"}
    assert cat.tasks.list(mine=True) == []
    assert cat.tasks.counts().own == 0
    assert engine.run(run).describe().status == "running"
    cat.tasks.withdraw_decision(task, on_behalf_of=second)
    assert len(cat.tasks.list(mine=True)) == 1
    cat.tasks.approve(task, on_behalf_of=second)
    engine.acting(first).tasks.approve(task)
    assert engine.run(run).describe().status == "completed"


@pytest.mark.row("E-681")
def test_a_place_that_was_handed_on_counts_for_those_who_had_it(place: Place) -> None:
    """Ann's place is Cat's, and Ann has Bob's: one of the two votes is Ann's, so that the other one has to be another's."""
    engine = office(place)
    run, task = asked(engine)
    engine.acting("ann").tasks.delegate(task, "dora")
    engine.acting("bob").tasks.delegate(task, "ann")
    engine.acting("ann").tasks.approve(task)
    assert code(engine.acting("dora").tasks.approve, task) == "not_distinct"
    assert code(engine.acting("dora").tasks.claim, task) == "not_distinct"
    assert code(engine.acting("dora").tasks.delegate, task, "cat") == "not_distinct"
    assert engine.acting("dora").tasks.list(mine=True) == []
    assert engine.run(run).describe().reason == "no_approver"
    engine.acting(OPS).tasks.reassign(task, "cat", who="dora")
    engine.acting("cat").tasks.approve(task)
    assert engine.run(run).describe().status == "completed"


@pytest.mark.row("E-681", "E-682")
def test_the_only_stand_in_who_has_decided_is_nobody_s_approver(place: Place) -> None:
    """Bob has left and Cat, who stands in for him, has decided: the run says that nobody can decide, until somebody else can."""
    engine = office(place)
    run, task = asked(engine)
    engine.directory.deactivate("bob")
    engine.advance(minutes=1)
    assert engine.run(run).describe().reason == ""
    engine.acting("cat").tasks.approve(task, on_behalf_of="ann")
    engine.drain()
    assert engine.run(run).describe().reason == "no_approver"
    engine.acting(OPS).tasks.reassign(task, "dora", who="bob")
    engine.acting("dora").tasks.approve(task)
    assert engine.run(run).describe().status == "completed"


@pytest.mark.row("E-681")
def test_what_a_stage_of_a_chain_decides_counts_in_that_stage(place: Place) -> None:
    """One person decides once in a stage; the next stage is another question, unless it is to be decided by others."""
    engine = office(place)
    engine.chains.publish("two", [{"asks": TWO, "agree": "all"}, {"asks": ["user:cat"]}])
    saga = Saga("pay").human("sign", chain="two").build()
    engine.register(saga)
    run = engine.start(saga)
    engine.drain()
    (task,) = run.tasks()
    cat = engine.acting("cat").tasks
    cat.approve(task, on_behalf_of="ann")
    assert code(cat.approve, task, on_behalf_of="bob") == "not_distinct"
    engine.acting("bob").tasks.approve(task)
    engine.drain()
    cat.approve(task)  # For the stage that was listed, which Cat has decided.
    assert run.describe().status == "running"
    cat.approve(run.tasks()[0])
    assert run.describe().status == "completed"


@pytest.mark.row("E-681", "P-044")
def test_a_process_hears_each_person_once(place: Place) -> None:
    """An answer for a second person is refused, and the choices of the caller say so."""
    engine = office(place)
    approval = {"id": "review", "type": "approval", "assignees": [{"user": "ann"}, {"user": "bob"}], "agree": "all"}
    registered(engine, process(approval, *ends("done", "no"), ways="review approved done,review rejected no"))
    instance = engine.processes.start("w", {}).id
    engine.drain()
    cat = engine.acting("cat").processes
    cat.advance(instance, "approved", on_behalf_of="ann")
    assert code(cat.advance, instance, "approved", on_behalf_of="bob") == "FORBIDDEN"
    assert not any(each.is_allowed for each in cat.get(instance).choices)
    engine.acting("bob").processes.advance(instance, "approved")
    assert engine.processes.get(instance).instance.status == "completed"


@pytest.mark.row("E-681")
def test_finding_and_deciding_agree_on_who_counts_once(place: Place) -> None:
    """Both holders are away and Cat stands in for both: one can be asked, and one can decide."""
    engine = office(place)
    for name in ("ann", "bob"):
        engine.directory.grant(name, "boss")
        engine.directory.absent(name)
    saga = Saga("pay").human("sign", ask=ask("role:boss", pick="all"), agree=2).build()
    engine.register(saga)
    run = engine.start(saga)
    engine.drain()
    assert "it takes at least 2 of them, and 1 can be asked" in run.describe().error


@pytest.mark.row("E-675", "E-681")
@pytest.mark.parametrize("knows", ["directory", "request"])
@pytest.mark.parametrize("second", ["list", "escalation"])
def test_what_one_has_decided_leaves_the_inbox_by_every_role(place: Place, second: str, knows: str) -> None:
    """Ann has two roles that are asked: after her decision no list and no count has the question, by either of them."""
    engine = place.engine()
    ann = engine.acting(Actor(id="ann", roles=frozenset({"f", "g"})))
    if knows == "directory":
        for name in ("ann", "bob", "zed"):
            engine.directory.put(name)
        for name, role in (("ann", "f"), ("ann", "g"), ("bob", "g"), ("zed", "f")):
            engine.directory.grant(name, role)
        ann = engine.acting("ann")
    ladder = Escalation(timedelta(hours=1), to="role:g")
    asked = {"ask": ["role:f", "role:g"]} if second == "list" else {"ask": ["role:f", "user:dan"], "escalate": ladder}
    engine.register(Saga("x").human("q", **asked).build())
    run = engine.run(engine.start("x").id)
    engine.drain()
    ann.tasks.approve(run.tasks()[0])
    engine.advance(hours=2)
    assert run.describe().status == "running"
    assert ann.tasks.list(mine=True) == []
    counts = ann.tasks.counts()
    assert (counts.own, counts.by_role, counts.overdue) == (0, {}, 0)
    bob = engine.acting(Actor(id="bob", roles=frozenset({"g"})))
    assert len(bob.tasks.list(mine=True)) == 1


COUNTED_TWICE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all of two": ({"ask": TWO}, ["ann", "bob"]),
    "two of three": ({"ask": [*TWO, "user:dora"], "agree": 2}, ["ann", "bob", "dora"]),
    "a person and a role": ({"ask": ["user:ann", "role:deputy"]}, ["ann"]),
}
"""Questions, and who leaves: Cat is all that is left for two places."""


@pytest.mark.row("E-681", "E-682")
@pytest.mark.parametrize("case", COUNTED_TWICE)
def test_one_stand_in_for_two_places_is_noticed_before_the_vote(place: Place, case: str) -> None:
    """The run waits as `no_approver` within a minute, and goes on once another person can take a place."""
    engine = office(place)
    engine.directory.grant("cat", "deputy")
    options, leavers = COUNTED_TWICE[case]
    engine.register(Saga("pay").human("sign", **options).build())
    run = engine.run(engine.start("pay").id)
    engine.drain()
    engine.advance(minutes=1)
    assert run.describe().status == "running"
    for name in leavers:
        engine.directory.deactivate(name)
    engine.advance(minutes=1)
    assert run.describe().reason == "no_approver"
    assert "each person decides once" in run.why().words
    engine.acting("cat").tasks.approve(run.tasks()[0], on_behalf_of="ann")
    engine.advance(minutes=1)
    assert run.describe().reason == "no_approver"
    if case != "a person and a role":
        engine.directory.activate("bob")
        engine.advance(minutes=1)
        engine.acting("bob").tasks.approve(run.tasks()[0])
    else:
        engine.directory.grant("dora", "deputy")
        engine.advance(minutes=1)
        engine.acting("dora").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().status == "completed"
    assert run.verify().is_sound
