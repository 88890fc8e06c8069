"""A resume that was left for later ends what it was made for, and nothing else; neither does a batch go past questions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from standfast import Actor, ForbiddenError, Run, Saga, load_rules
from standfast.testing import ManualEngine
from support.engines import Place

CARL = Actor(id="carl", capabilities=frozenset({"execution:pause", "execution:resume"}))
BOSS = Actor(id="berta", capabilities=frozenset({"execution:*", "batch:manage"}))
BLOCK = {
    "id": "ask",
    "type": "action",
    "action": "block",
    "reason": "Pay?",
    "requires": {"type": "approval", "role": "fin"},
}
PARCEL = {"id": "parcel", "type": "wait", "event": "parcel.came", "timeout": "9d"}
REST = {"id": "rest", "type": "wait", "duration": "9d"}
ALLOW = {"id": "ok", "type": "action", "action": "allow"}


def _rules(engine: ManualEngine, *steps: dict[str, Any]) -> Run[object]:
    engine.register(load_rules({"workflow_id": "w", "steps": [*steps, ALLOW]}))
    run = engine.start("w", {})
    engine.drain()
    return engine.run(run.id)


def _errors(run: Run[object]) -> list[str]:
    return [each.error_message for each in run.resume_requests() if each.reason == "tonight"]


@pytest.mark.row("R-060", "R-065", "R-090")
@pytest.mark.parametrize("actor", [BOSS, CARL])
@pytest.mark.parametrize("minutes", [0, 1])
def test_a_request_does_not_end_another_pause(place: Place, minutes: int, actor: Actor) -> None:
    """The pause that it was made for is over, and somebody else has paused the run since, be it at the same instant."""
    engine = place.engine().register(Saga("s").wait_for("wait", signal="go").build())
    run = engine.start("s")
    engine.drain()
    carl, boss = engine.acting(CARL).run(run.id), engine.acting(BOSS).run(run.id)
    carl.pause("look")
    carl.request_resume("tonight")
    boss.resume("now")
    engine.advance(minutes=minutes)
    engine.acting(actor).run(run.id).pause("stop, fraud suspected", until=timedelta(days=2))
    engine.advance(minutes=11)
    assert (run.describe().status, run.describe().reason) == ("paused", "requested")
    (error,) = _errors(run)
    assert "what this was asked for is over" in error


def test_a_request_ends_the_pause_that_it_was_made_for(place: Place) -> None:
    """As long as the run waits for the same, it is carried out."""
    engine = place.engine().register(Saga("s").wait_for("wait", signal="go").build())
    run = engine.start("s")
    engine.drain()
    engine.acting(CARL).run(run.id).pause("look")
    engine.acting(CARL).run(run.id).request_resume("tonight")
    engine.advance(minutes=11)
    assert (run.describe().status, _errors(run)) == ("running", [""])


def test_a_request_made_without_a_pause_ends_none_that_comes_later(place: Place) -> None:
    """It is about nothing, and says so."""
    engine = place.engine().register(Saga("s").wait_for("wait", signal="go").build())
    run = engine.start("s")
    engine.drain()
    engine.acting(CARL).run(run.id).request_resume("tonight")
    engine.acting(BOSS).run(run.id).pause("stop")
    engine.advance(minutes=11)
    assert run.describe().status == "paused"
    assert all(_errors(run))


@pytest.mark.row("R-063", "R-065")
@pytest.mark.parametrize("who", ["the engine", "carl"])
@pytest.mark.parametrize("behind", [BLOCK, REST])
def test_a_request_for_one_wait_does_not_end_the_next(place: Place, behind: dict[str, Any], who: str) -> None:
    """The event comes by itself, and what follows is waited for: a question is not overridden, and time is not cut short, whoever asked."""
    engine = place.engine()
    run = _rules(engine, PARCEL, behind)
    (engine if who == "the engine" else engine.acting(CARL)).run(run.id).request_resume("tonight")
    engine.publish("parcel.came")
    engine.drain()
    engine.advance(minutes=11)
    assert run.describe().status == "paused"
    assert [each.decision for each in run.tasks()] in ([], [""])
    (error,) = _errors(run)
    assert "what this was asked for is over" in error


@pytest.mark.parametrize("who", ["the engine", "berta"])
def test_no_request_goes_past_a_question(place: Place, who: str) -> None:
    """Whoever asks, and whatever they may: to override is done at once, and not later."""
    engine = place.engine()
    run = _rules(engine, BLOCK)
    with pytest.raises(ForbiddenError, match="never goes past an open question"):
        (engine if who == "the engine" else engine.acting(BOSS)).run(run.id).request_resume("tonight")
    engine.advance(minutes=11)
    assert [each.status for each in run.tasks()] == ["open"]


@pytest.mark.row("EO-32")
def test_a_batch_goes_past_no_question(place: Place) -> None:
    """Its resume ends pauses: rules that wait for an approval are refused, also to those who may override."""
    engine = place.engine()
    run = _rules(engine, BLOCK)
    batch = engine.acting(BOSS).batches.begin("resume", definition="w", reason="maintenance is over")
    engine.advance(seconds=5)
    assert [each.status for each in engine.batches.items(batch.id)] == ["refused"]
    assert [each.status for each in run.tasks()] == ["open"]
