"""How the engine finds what waits and is due: it looks for timers alone, the oldest first, and fires each once, on both stores."""

from __future__ import annotations

import sys
from datetime import timedelta
from inspect import CO_GENERATOR
from types import FrameType

import pytest

from app.sagas.acting import Stage, history, status, statuses
from standfast import Saga, SagaDefinition
from standfast.features.runs.calls import stored_as
from standfast.graph.model import KINDS
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import store_of
from support.waiting import eventually

HOUR = timedelta(hours=1)
STORE = "/standfast/store/"


def resting(stage: Stage, duration: timedelta = HOUR, *, name: str = "resting") -> SagaDefinition:
    """A wait, and a step behind it."""
    return Saga(name).wait("rest", duration).step("after", stage.does("after")).build()


def scan(engine: ManualEngine) -> None:
    """Look for what is due, as a process does that has no worker."""
    engine.runtime.due_work.look()
    engine.runtime.due_work.step()


def asked_of_store(engine: ManualEngine) -> int:
    """How often the code of the driver is called while the engine looks for something to do.

    Generators are not counted: how often they go on depends on the pieces in which a server's answer arrives.
    """
    calls = 0

    def count(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        code = frame.f_code
        calls += event == "call" and STORE in code.co_filename and not code.co_flags & CO_GENERATOR

    sys.setprofile(count)
    try:
        engine.runtime.due_work.look()
        engine.drain()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.row("E-761")
def test_open_approvals_cost_an_idle_engine_nothing(place: Place) -> None:
    """However many there are, the database is asked a few questions; a run is looked at only once something of it is due."""
    stage = Stage()
    engine = place.engine().register(Saga("ask").human("ok", role="finance").build()).register(resting(stage))
    for number in (2, 40):
        for _ in range(number):
            engine.start("ask")
        engine.drain()
        asked_of_store(engine)
        if number == 2:
            few = asked_of_store(engine)
    assert asked_of_store(engine) < few + 40  # Not one call more for each of them.
    assert store_of(engine).reader("default").work(engine.runs.list(limit=1).items[0].id)[1] == []
    for _ in range(40):
        engine.start("resting")
    engine.drain()
    assert asked_of_store(engine) < few + 40  # None of them is due; what is read of the next one is little.
    place.clock.move(HOUR)
    assert asked_of_store(engine) > few + 40


@pytest.mark.row("E-762")
def test_what_is_due_is_found_oldest_first_and_page_by_page(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of their instants, however they were set; those that are not due stay, also in the midst of others."""
    monkeypatch.setattr("standfast.engine.loops.due_work.MOST", 3)
    engine = place.engine()
    runs: dict[int, InstanceId] = {}
    for hours in (5, 1, 9, 4, 2, 8, 3):
        engine.register(Saga(f"rest-{hours}").wait("rest", hours * HOUR).build())
        runs[hours] = engine.start(f"rest-{hours}").id
    engine.drain()
    place.clock.move(5.5 * HOUR)

    def ended() -> list[int]:
        return sorted(hours for hours, instance in runs.items() if status(engine, instance) == "completed")

    engine.runtime.due_work.fire()
    assert ended() == [1, 2, 3]
    engine.runtime.due_work.fire()
    assert ended() == [1, 2, 3, 4, 5]
    for _ in range(3):
        scan(engine)
    assert ended() == [1, 2, 3, 4, 5]


@pytest.mark.row("E-763", "E-764")
def test_a_timer_that_is_due_becomes_work_once(place: Place) -> None:
    """Ten looks of two processes before any worker runs: one event, one effect; the worker then goes on from there."""
    stage = Stage()
    one, two = (place.engine().register(resting(stage)) for _ in range(2))
    instance = one.start("resting").id
    one.drain()
    scan(one)
    assert (statuses(one, instance)["rest"], stage.calls) == ("running", [])
    place.clock.move(HOUR)
    for _ in range(5):
        scan(one)
        scan(two)
    assert [each.step_name for each in history(one, instance, "step_completed")] == ["rest"]
    effects, timers, *_ = store_of(one).reader("default").work(instance)
    assert (len(effects), timers, stage.calls) == (1, [], [])
    two.drain()
    one.drain()
    assert (status(one, instance), stage.calls) == ("completed", ["after"])


@pytest.mark.row("E-764")
def test_a_timer_in_the_hands_of_one_process_is_not_fired_by_another(place: Place) -> None:
    """A process that took it and came to nothing holds it for its lease; then another one fires it, once."""
    stage = Stage()
    one, two = (place.engine().register(resting(stage)) for _ in range(2))
    instance = one.start("resting").id
    one.drain()
    place.clock.move(HOUR)
    due_work = one.runtime.due_work
    words = due_work._shared.languages.commands()
    taken = due_work._timers.claim(place.clock.now(), words=words, hold=due_work._hold, limit=9)
    assert len(taken.timers) == 1
    for _ in range(10):
        scan(two)
    assert history(two, instance, "step_completed") == []
    place.clock.move(due_work._hold)
    for _ in range(10):
        scan(two)
    assert len(history(two, instance, "step_completed")) == 1


@pytest.mark.row("E-765")
def test_several_processes_fire_each_timer_once(live: Live) -> None:
    """Two engines look for timers at the same time: every wait ends, and nothing behind it happens twice."""
    stage = Stage()
    saga = resting(stage, timedelta(milliseconds=50))
    one, two = (live.engine().register(saga).start_worker() for _ in range(2))
    runs = [engine.start(saga) for _ in range(20) for engine in (one, two)]
    eventually(lambda: all(each.describe().status == "completed" for each in runs))
    assert stage.count("after") == len(runs)
    assert {ctx.instance for ctx in stage.contexts("after")} == {each.id for each in runs}
    for each in runs:
        assert [entry.step_name for entry in each.history() if entry.event_type == "step_completed"] == [
            "rest",
            "after",
        ]


def test_a_word_that_all_kinds_store_alike_is_looked_for_once() -> None:
    """A list by definition and status would look through all runs of the definition for each other kind, and find none."""
    ((kinds, statuses, has_begun, ended_for),) = stored_as(("completed",))
    assert (set(kinds), statuses, has_begun, ended_for) == (set(KINDS), ("completed",), None, ())


def test_runs_that_a_word_tells_by_the_reason_are_looked_for_by_it() -> None:
    """Among a million rules that have ended, the few that a block has ended are not found by going through all; who asks for both goes through them once."""
    (blocked,) = stored_as(("blocked",))
    assert blocked == (("rules",), ("completed",), None, ("blocked", "approval_rejected"))
    both = list(stored_as(("blocked", "completed")))
    assert [(each.statuses, each.ended_for) for each in both] == [(("completed",), ())]
