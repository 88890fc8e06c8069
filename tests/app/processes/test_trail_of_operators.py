"""The trail of a process, and the view of it, tell every act on it: those of operators, and the events that waits are left by."""

from __future__ import annotations

from typing import Any

import pytest

from app.processes.acting import asking, ends, process, published, system
from standfast import Actor
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place
from support.reporting import asked

OLGA = Actor(id="olga", capabilities=frozenset({"execution:*"}))
REVIEW = {"id": "review", "type": "approval", "assignee": {"role": "boss"}}
GO = {"id": "go", "type": "wait", "event": "go"}
PAID = {"id": "paid", "type": "wait", "event": "paid", "key": "workflow.order"}


def begun(engine: ManualEngine, *steps: dict[str, Any], ways: str) -> InstanceId:
    """A process that ann has started."""
    published(engine, process(*steps, *ends("done"), ways=ways))
    found = asking(engine, Actor(id="ann")).processes.start("w", {"order": "o-1"}).id
    engine.drain()
    return found


def told(engine: ManualEngine, place: Place, run: InstanceId) -> list[tuple[str, str, str, str]]:
    """What somebody else than the engine did, by the trail; the view says the same."""
    rows = asked(
        place.store,
        "select step_id, event, actor_id, comment from {}workflow_events where category = 'step' order by sequence",
    )
    found = [(each.step_id, each.event, each.actor_id, each.comment) for each in engine.processes.events(run)]
    assert [tuple(row.values()) for row in rows] == found
    return [each for each in found if each[2] not in {"system", "ann"}]


@pytest.mark.row("P-007", "P-147")
def test_what_operators_do_is_told(place: Place) -> None:
    """Data that was changed, and a question that was skipped, with who and why."""
    engine = place.engine()
    run = begun(engine, REVIEW, GO, ways="review approved go,go go done")
    olga = asking(engine, OLGA).run(run)
    olga.change_data({"a": 1}, reason="it was wrong")
    olga.skip(2, outcome="approved", reason="nobody is there")  # The data is another, so it was asked anew.
    assert told(engine, place, run) == [
        ("review", "data_changed", "olga", "it was wrong"),
        ("review", "step_skipped", "olga", "nobody is there"),
    ]
    assert [each.data for each in engine.processes.events(run) if each.event == "data_changed"] == [{"a": 1}]


@pytest.mark.row("P-007")
def test_a_step_that_was_completed_by_hand_is_told(place: Place) -> None:
    """One that waits and one that gave up: each is completed once, by whoever did it."""
    engine = place.engine()
    ways = "go go call,call completed done"
    run = begun(engine, GO, system("call", "down"), ways=ways)
    engine.handle("down", _down)
    olga = asking(engine, OLGA).run(run)
    olga.complete_step(1, {}, reason="by telephone")
    engine.drain()
    olga.complete_step(2, {}, reason="by letter")
    engine.drain()
    assert told(engine, place, run) == [
        ("go", "step_completed", "olga", "by telephone"),
        ("call", "step_completed", "olga", "by letter"),
    ]
    entries = [each.event for each in engine.processes.events(run)]
    assert entries == ["step_entered", "step_completed", "step_entered", "step_failed", "step_completed"]


def _down() -> None:
    raise ValueError("down")


@pytest.mark.row("P-007", "P-147")
def test_the_event_that_ended_a_wait_is_told_with_who_it_came_from(place: Place) -> None:
    """A signal names who sent it, and a published event who published it, each by its own name and with its data."""
    engine = place.engine()
    run = begun(engine, GO, PAID, ways="go go paid,paid paid done")
    asking(engine, Actor(id="eve")).run(run).signal("go", {"n": 1})
    engine.drain()
    asking(engine, Actor(id="pia")).publish("paid", "o-1", {"m": 2})
    engine.drain()
    assert engine.processes.get(run).instance.status == "completed"
    assert told(engine, place, run) == [("go", "go", "eve", ""), ("paid", "paid", "pia", "")]
    assert [each.data for each in engine.processes.events(run) if each.actor_id in {"eve", "pia"}] == [
        {"n": 1},
        {"m": 2},
    ]


@pytest.mark.row("E-580", "P-147")
def test_an_override_is_no_answer(place: Place) -> None:
    """Whoever goes past a question is told as that, and not as somebody who approved."""
    engine = place.engine()
    run = begun(engine, REVIEW, ways="review approved done")
    asking(engine, OLGA).run(run).resume("urgent", override=True)
    assert ("review", "overridden", "olga", "urgent") in told(engine, place, run)
    assert "approved" not in [each.event for each in engine.processes.events(run)]
