"""A schedule that cancels what runs does so by the right of whoever wants that, and in their name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.processes.acting import ends, person, process, registered
from standfast import Actor, ForbiddenError, PayloadError, RejectedError
from standfast.testing import ManualEngine
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


ASKS = process(
    {"id": "ask", "type": "approval", "assignee": {"role": "boss"}, "self_approval": False},
    *ends("done"),
    ways="ask approved done,ask rejected done",
    capabilities={"start": "w.start", "cancel": "w.cancel"},
)
STOPPER = Actor(
    id="sue",
    capabilities=KEEPER | {"w.cancel", "execution:read", "execution:cancel", "execution:repair", "batch:*"},
)


@pytest.mark.row("G-18")
@pytest.mark.parametrize("stop", ["cancel", "abort", "fail", "processes.cancel", "batch"])
def test_a_run_of_a_schedule_is_nobodys_child(place: Place, stop: str) -> None:
    """To stop a run that a schedule has started takes what it takes without the schedule, also while a question is open in it."""
    engine = place.engine()
    registered(engine, ASKS)
    engine.acting(ADA).schedules.put("s", "w", every=HOUR, overlap="allow_all")
    engine.advance(HOUR)
    [run] = engine.processes.list().items
    calls = engine.acting(STOPPER)
    match stop:
        case "batch":
            batch = calls.batches.begin("cancel", definition="w", reason="over")
            engine.drain()
            assert [each.status for each in calls.batches.items(batch.id)] == ["done"]
        case "processes.cancel":
            calls.processes.cancel(run.id)
        case _:
            getattr(calls.run(run.id), stop)("over")
    engine.drain()
    assert engine.processes.get(run.id).instance.status == ("failed" if stop == "fail" else "cancelled")


@pytest.mark.row("G-18")
def test_a_schedule_cancels_runs_that_ask_somebody(place: Place) -> None:
    """Each time of `cancel_running` takes the place of the run before, whose question is open, by the right to cancel alone."""
    engine = place.engine()
    registered(engine, ASKS)
    engine.acting(ADA).schedules.put("s", "w", every=HOUR, overlap="cancel_running")
    engine.advance(3 * HOUR)
    assert [each.status for each in engine.schedules.fires("s")] == ["started", "cancelled", "cancelled"]


@pytest.mark.row("G-18", "P-052")
def test_a_schedule_is_put_for_what_can_be_started(place: Place) -> None:
    """A version that is out of use, and names that are the engine's own in the state of a process, are refused when the schedule is put, and not at its first time."""
    engine = opened(place)
    calls = engine.acting(ADA).schedules
    calls.put("s", "w", every=HOUR)
    engine.definitions.archive("w", 1)
    for version in ("", 1):
        with pytest.raises(RejectedError, match="archived") as refused:
            calls.put("t", "w", version=version, every=HOUR)
        assert refused.value.reason == "archived"
    engine.definitions.restore("w", 1)
    given: list[tuple[dict[str, object], dict[str, str]]] = [({"_answers": {}}, {}), ({}, {"_answers": "number"})]
    for data, computed in given:
        with pytest.raises(PayloadError, match="_answers"):
            calls.put("t", "w", data, computed=computed, every=HOUR)
    assert [each.id for each in calls.list()] == ["s"]
