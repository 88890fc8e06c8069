"""A question that nobody could decide is decided by whoever can now, by every call; and `why` names calls that are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from app.processes.acting import asking, ends, process, published, system
from standfast import Actor, RejectedError
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

REVIEW = {"id": "review", "type": "approval", "assignee": {"role": "boss"}}


def suspended(engine: ManualEngine) -> InstanceId:
    """A process whose question nobody can decide, because nobody has the role."""
    published(engine, process(REVIEW, *ends("done", "no"), ways="review approved done,review rejected no"))
    engine.directory.put("dan")
    engine.directory.grant("dan", "clerk")
    run = engine.processes.start("w", {}).id
    engine.drain()
    assert engine.run(run).describe().reason == "no_approver"
    return run


@pytest.mark.row("P-040", "P-027")
def test_whoever_comes_to_have_the_role_advances_it(place: Place) -> None:
    """Their inbox, the choices and the advance agree; for all others it stays suspended."""
    engine = place.engine()
    run = suspended(engine)
    engine.directory.put("mia")
    engine.directory.grant("mia", "boss")
    mia, dan = engine.acting("mia"), engine.acting("dan")
    assert [each.event for each in mia.processes.get(run).choices if each.is_allowed] == ["approved", "rejected"]
    assert len(mia.tasks.list(mine=True)) == 1
    assert dan.processes.get(run).choices == []
    with pytest.raises(RejectedError) as refused:
        dan.processes.advance(run, "approved")
    assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"
    assert mia.processes.advance(run, "approved").status == "completed"


@pytest.mark.row("P-040")
def test_an_operators_pause_lasts(place: Place) -> None:
    """While somebody has paused it nobody advances it, and `why` does not name that call."""
    engine = place.engine()
    run = suspended(engine)
    engine.directory.put("mia")
    engine.directory.grant("mia", "boss")
    open_ = engine.processes.start("w", {}).id
    engine.drain()
    (person,) = [each for each in engine.run(open_).why().reasons if each.kind == "person"]
    assert person.remedy == "processes.advance or tasks.decide answers it"
    engine.run(open_).pause("look")
    (person,) = [each for each in engine.run(open_).why().reasons if each.kind == "person"]
    assert person.remedy == "tasks.decide answers it"
    with pytest.raises(RejectedError) as refused:
        engine.acting("mia").processes.advance(open_, "approved")
    assert refused.value.reason == "WORKFLOW_NOT_ACTIVE"
    assert engine.acting("mia").processes.get(open_).choices == []
    assert run != open_


def test_what_helps_a_starter_who_lacks_a_capability(place: Place) -> None:
    """Rights are those of the start: other data and later grants do not help, and `why` says what does."""
    engine = place.engine()
    rest = {"id": "rest", "type": "wait", "duration": "1h"}
    pay: dict[str, Any] = {**system("pay"), "operation": {"name": "orders.pay", "capability": "payout:pay"}}
    published(engine, process(rest, pay, *ends("done"), ways="rest completed pay,pay completed done"))
    engine.handle("orders.pay", lambda: None, capability="payout:pay")
    run = asking(engine, Actor(id="ann")).processes.start("w", {}).id
    engine.advance(hours=1)
    (letter,) = [each for each in engine.run(run).why().reasons if each.kind == "dead_letter"]
    assert "fork the run, or start it anew, who may have the step done" in letter.remedy
    assert "change_data" not in letter.remedy
    boss = asking(engine, Actor(id="boss", capabilities=frozenset({"execution:repair", "payout:pay"})))
    forked = boss.run(run).fork(engine.run(run).history()[-1].sequence, reason="I may").id
    engine.drain()
    assert engine.processes.get(forked).instance.status == "completed"


@pytest.mark.row("P-027")
def test_choices_are_over_when_the_time_of_the_step_is(place: Place) -> None:
    """Under a pause of the definition no timer fires: what would be refused as `expired` is no choice, and says why."""
    engine = place.engine()
    step = {"id": "review", "type": "approval", "assignee": {"user": "mia"}, "timeout": "2h"}
    ways = "review approved done,review rejected no,review timeout no"
    published(engine, process(step, *ends("done", "no"), ways=ways))
    run = engine.processes.start("w", {}).id
    engine.drain()
    mia = engine.acting("mia").processes
    assert [each.is_allowed for each in mia.get(run).choices] == [True, True]
    engine.pauses.pause("w")
    engine.advance(hours=3)
    assert [each.is_allowed for each in mia.get(run).choices] == [False, False]
    assert "comes too late" in mia.get(run).choices[0].why_not
    with pytest.raises(RejectedError) as refused:
        mia.advance(run, "approved")
    assert refused.value.reason == "expired"
