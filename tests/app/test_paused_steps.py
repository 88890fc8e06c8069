"""A pause of a step holds what the step would do, or is refused: none stands in the list that holds nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.processes.acting import ends, process, registered
from standfast import Actor, PayloadError, Saga
from standfast.testing import ManualEngine
from support.engines import Place

BOSS = Actor(id="bob", roles=frozenset({"boss"}))


def reviewing(engine: ManualEngine) -> list[str]:
    """A process whose approval pays, and what was paid."""
    paid: list[str] = []
    engine.handle("pay", lambda: paid.append("paid"))
    review = {"id": "review", "type": "approval", "assignee": {"role": "boss"}, "operation": "pay"}
    registered(engine, process(review, *ends("done"), ways="review approved done"))
    return paid


def test_a_pause_of_an_approval_holds_its_operation(place: Place) -> None:
    """The call that follows from the answer is of the same step, whatever its node is called, and is counted as held."""
    engine = place.engine()
    paid = reviewing(engine)
    pause = engine.pauses.pause("w", step="review", reason="the bank is down")
    instance = engine.processes.start("w", {}).id
    engine.acting(BOSS).processes.advance(instance, "approved")
    engine.drain()
    assert paid == []
    assert [each.reason for each in engine.run(instance).describe().held_by] == ["the bank is down"]
    assert engine.pauses.get(pause).held_effects == 1
    seen = engine.processes.get(instance)
    assert (seen.step.id, seen.choices) == ("review", [])
    engine.pauses.resume("w", step="review")
    engine.advance(seconds=5)
    assert paid == ["paid"]


def test_a_pause_that_begins_later_finds_the_call_of_an_approval(place: Place) -> None:
    """What waits for a worker already is held too."""
    engine = place.engine()
    paid = reviewing(engine)
    engine.pauses.pause("w", reason="first all of it")
    instance = engine.processes.start("w", {}).id
    engine.acting(BOSS).processes.advance(instance, "approved")
    engine.pauses.pause("w", step="review", reason="the bank is down")
    engine.pauses.resume("w")
    engine.advance(seconds=5)
    assert paid == []


KINDS = {
    "call": Saga("kinds").call("it", "kid", version=1).build(),
    "question": Saga("kinds").human("it", ask="user:bob").build(),
    "wait": Saga("kinds").wait("it", timedelta(hours=1)).build(),
    "signal": Saga("kinds").wait_for("it", signal="go").build(),
    "condition": Saga("kinds").condition("it", "x == 1", otherwise=lambda b: b.step("a", lambda: None)).build(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_that_would_hold_nothing_is_refused(place: Place, kind: str) -> None:
    """The sentence says why, and what to pause instead."""
    engine = place.engine().register(Saga("kid").step("a", lambda: None).build()).register(KINDS[kind])
    with pytest.raises(PayloadError, match="pause 'kid'" if kind == "call" else "would hold nothing"):
        engine.pauses.pause("kinds", step="it", reason="x")
    assert engine.pauses.list() == []
