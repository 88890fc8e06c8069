"""A schedule that cancels what runs does so by the right of whoever wants that, and in their name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.processes.acting import ends, person, process, registered
from holdfast import Actor, ForbiddenError
from holdfast.testing import ManualEngine
from support.engines import Place

HOUR = timedelta(hours=1)
KEEPER = frozenset({"schedule:manage", "schedule:read", "w.start"})
ZED = Actor(id="zed", capabilities=KEEPER)
ADA = Actor(id="ada", capabilities=KEEPER | {"w.cancel"})


def opened(place: Place) -> ManualEngine:
    """An engine with a process that only some may cancel."""
    engine = place.engine()
    rights = {"start": "w.start", "cancel": "w.cancel"}
    registered(engine, process(person("ask"), *ends("done"), ways="ask sent done", capabilities=rights))
    return engine


def test_a_trigger_that_cancels_takes_the_right_to_cancel(place: Place) -> None:
    """Whoever may not cancel the run may not have the schedule do it, and their name is with what they cancel."""
    engine = opened(place)
    engine.acting(ADA).schedules.put("s", "w", every=HOUR)
    engine.advance(HOUR)
    [run] = engine.processes.list().items
    with pytest.raises(ForbiddenError, match=r"w\.cancel"):
        engine.acting(ZED).schedules.trigger("s", overlap="cancel_running")
    engine.drain()
    assert engine.processes.get(run.id).instance.status == "active"
    bea = Actor(id="bea", capabilities=ADA.capabilities)
    engine.acting(bea).schedules.trigger("s", overlap="cancel_running")
    engine.drain()
    assert engine.processes.get(run.id).instance.status == "cancelled"
    assert [each.actor for each in engine.audit.of(run.id) if each.action == "cancel"] == ["bea"]
    assert engine.processes.events(run.id, with_lifecycle=True)[-1].actor_id == "bea"
    assert [each.status for each in engine.schedules.fires("s")] == ["started", "cancelled"]


def test_a_schedule_that_cancels_takes_the_right_to_cancel(place: Place) -> None:
    """To put it, and to trigger one that says so."""
    engine = opened(place)
    with pytest.raises(ForbiddenError, match=r"w\.cancel"):
        engine.acting(ZED).schedules.put("s", "w", every=HOUR, overlap="cancel_running")
    engine.acting(ADA).schedules.put("s", "w", every=HOUR, overlap="cancel_running")
    with pytest.raises(ForbiddenError, match=r"w\.cancel"):
        engine.acting(ZED).schedules.trigger("s")
    engine.acting(ZED).schedules.trigger("s", overlap="skip")
    engine.advance(2 * HOUR)
    first, second, third = sorted(engine.processes.list().items, key=lambda each: each.created_at)
    assert [each.status for each in (first, second, third)] == ["cancelled", "cancelled", "active"]
    assert {each.actor for run in (first, second) for each in engine.audit.of(run.id) if each.action == "cancel"} == {
        "ada"
    }


def test_the_right_is_asked_for_when_it_fires(place: Place) -> None:
    """An owner who may not cancel any more has nothing cancelled: the time is refused, and the next one is tried anew."""
    engine = opened(place)
    key = engine.keys.create("k", actor="ada", kind="user", capabilities=sorted(ADA.capabilities)).key
    engine.acting(key.bearer).schedules.put("s", "w", every=HOUR, overlap="cancel_running")
    engine.advance(HOUR)
    [run] = engine.processes.list().items
    engine.keys.revoke(key)
    engine.advance(2 * HOUR)
    assert engine.processes.get(run.id).instance.status == "active"
    assert [each.status for each in engine.schedules.fires("s")] == ["refused", "refused", "started"]
    schedule = engine.schedules.get("s")
    assert engine.instances.verify(schedule.instance).differences == []
