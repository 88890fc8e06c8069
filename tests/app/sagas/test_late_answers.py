"""What comes after its deadline is refused as `expired`, whether or not anybody has acted on the deadline yet; unless clocks stand still."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Literal

import pytest

from app.sagas.acting import person, run, status
from standfast import Escalation, RejectedError, Run, Saga, load_processes
from standfast.testing import ManualEngine
from support.engines import Place

SAM = person("sam", "fin")
HOUR = timedelta(hours=1)
Clock = Literal["run_on", "stand_still"]


def _asking(**options: Any) -> Saga:
    return Saga("w").human("q", role="fin", **({"timeout": HOUR} | options)).step("pay", lambda: {"paid": True})


def _decide(engine: ManualEngine, found: Run[object]) -> None:
    engine.acting(SAM).tasks.approve(found.tasks()[0])


def _signal(_engine: ManualEngine, found: Run[object]) -> None:
    found.signal("go")


WAITS: dict[str, tuple[Saga, Callable[[ManualEngine, Run[object]], None]]] = {
    "a decision": (_asking(), _decide),
    "a decision behind a rung that ends it": (
        _asking(timeout=None, escalate=Escalation(HOUR, outcome="rejected")),
        _decide,
    ),
    "a decision in a run whose time is over": (
        Saga("w", deadline=HOUR).human("q", role="fin").step("pay", lambda: {"paid": True}),
        _decide,
    ),
    "a signal": (Saga("w").wait_for("q", signal="go", timeout=HOUR).step("pay", lambda: {"paid": True}), _signal),
}


def _waiting(place: Place, saga: Saga) -> tuple[ManualEngine, Run[object]]:
    engine = place.engine().register(saga.build())
    return engine, engine.run(run(engine, "w"))


def _reason(call: Callable[[], object]) -> str:
    with pytest.raises(RejectedError) as refused:
        call()
    return refused.value.reason


@pytest.mark.row("R-141", "E-752")
@pytest.mark.parametrize("case", sorted(WAITS))
def test_after_the_deadline_it_is_refused_while_the_run_is_paused(place: Place, case: str) -> None:
    """The clock runs on: it is too late before the run is resumed, and nothing of it counts afterwards."""
    saga, act = WAITS[case]
    engine, found = _waiting(place, saga)
    found.pause("hold", clock="run_on")
    engine.advance(hours=2)
    assert _reason(lambda: act(engine, found)) == "expired"
    found.resume()
    engine.drain()
    assert status(engine, found.id) in {"failed", "aborted", "cancelled"}
    assert "pay" not in [each.name for each in found.steps()]
    assert found.verify().is_sound


@pytest.mark.row("R-141")
@pytest.mark.parametrize("case", sorted(WAITS))
def test_where_the_clock_stands_still_the_deadline_moves(place: Place, case: str) -> None:
    """The decision counts, before the run is resumed and after it, for as much time as was left."""
    saga, act = WAITS[case]
    engine, found = _waiting(place, saga)
    engine.advance(minutes=50)
    found.pause("hold", clock="stand_still")
    engine.advance(hours=2)
    found.resume()
    engine.advance(minutes=5)
    found.pause("hold", clock="stand_still")
    engine.advance(hours=2)
    act(engine, found)
    found.resume()
    engine.drain()
    assert status(engine, found.id) == "completed"


@pytest.mark.parametrize("clock", ["run_on", "stand_still"])
def test_a_pause_of_all_runs_is_a_pause_of_this_one(place: Place, clock: Clock) -> None:
    """Under a pause of the definition the same clock counts, while it stands and after it."""
    for is_over in (False, True):
        engine, found = _waiting(place, _asking())
        held = engine.pauses.pause(definition="w", reason="hold", clock=clock)
        engine.advance(hours=2)
        if is_over:
            engine.pauses.resume(held)
        if clock == "run_on":
            assert _reason(lambda: _decide(engine, found)) == "expired"  # noqa: B023 - called at once
        else:
            _decide(engine, found)
        if not is_over:
            engine.pauses.resume(held)
        engine.drain()
        assert status(engine, found.id) == ("failed" if clock == "run_on" else "completed")


@pytest.mark.row("R-141")
def test_a_decision_on_a_question_whose_time_was_over_says_so(place: Place) -> None:
    """Whether the run has ended by it or goes on elsewhere: the code is that of the deadline, and of no other end."""
    elsewhere = Saga("else").human("q", role="fin", timeout=HOUR, on_timeout=lambda way: way.wait_for("x", signal="x"))
    engine, over = _waiting(place, _asking())
    going_on = engine.register(elsewhere.build()).run(run(engine, "else"))
    found = [over.tasks()[0], going_on.tasks()[0]]
    engine.advance(hours=2)
    assert [status(engine, each.id) for each in (over, going_on)] == ["failed", "running"]
    tasks = engine.acting(SAM).tasks
    for task in found:
        assert _reason(lambda: tasks.approve(task)) == "expired"  # noqa: B023 - called at once
        assert _reason(lambda: tasks.claim(task)) == "expired"  # noqa: B023 - called at once
    task = engine.run(run(engine, "w")).tasks()[0]
    engine.tasks.withdraw(task, "not wanted any more")
    engine.drain()
    assert _reason(lambda: engine.acting(SAM).tasks.approve(task)) != "expired"


def test_a_deadline_that_only_has_others_asked_ends_nothing(place: Place) -> None:
    """A rung that asks somebody besides is due under a pause: those who are asked decide all the same."""
    engine, found = _waiting(place, _asking(timeout=None, escalate=Escalation(HOUR, to="role:boss")))
    found.pause("hold", clock="run_on")
    engine.advance(hours=2)
    _decide(engine, found)
    found.resume()
    engine.drain()
    assert status(engine, found.id) == "completed"


@pytest.mark.row("E-752")
@pytest.mark.parametrize("is_resumed", [False, True])
def test_an_escalation_that_was_missed_gives_more_time(place: Place, is_resumed: bool) -> None:  # noqa: FBT001 - a case of a table
    """The rung comes before the end of the time, so the time is not over during the pause, nor once the run goes on."""
    rung = Escalation(7 * HOUR, to="user:dee", timeout=48 * HOUR)
    engine, found = _waiting(place, _asking(timeout=8 * HOUR, escalate=rung))
    found.pause("hold", clock="run_on")
    engine.advance(hours=9)
    assert [each.name for each in engine.acting(SAM).tasks.list(mine=True)] == ["q"]
    if is_resumed:
        found.resume()
        engine.advance(hours=47)
    _decide(engine, found)
    if not is_resumed:
        found.resume()
    engine.drain()
    assert status(engine, found.id) == "completed"


@pytest.mark.row("E-752")
def test_an_event_after_the_deadline_is_for_others(place: Place) -> None:
    """Published too late under a pause whose clock runs on it is not taken; published in time it is, however late it arrives."""
    saga = Saga("w").wait_for_event("q", "paid", timeout=HOUR).step("pay", lambda: {"paid": True})
    engine, late = _waiting(place, saga)
    late.pause("hold", clock="run_on")
    engine.advance(hours=2)
    engine.publish("paid", ttl=0)
    engine.drain()
    late.resume()
    engine.drain()
    assert status(engine, late.id) == "failed"
    engine, early = _waiting(place, saga)
    early.pause("hold", clock="run_on")
    engine.publish("paid", ttl=0)
    engine.drain()
    engine.advance(hours=2)
    early.resume()
    engine.drain()
    assert status(engine, early.id) == "completed"


@pytest.mark.row("E-752")
def test_an_event_that_was_published_in_time_is_taken_when_it_arrives_late(place: Place) -> None:
    """Nobody works meanwhile, so that the event reaches the run when its time is over: what counts is when it was published."""
    saga = Saga("w").wait_for_event("q", "paid", timeout=HOUR).step("pay", lambda: {"paid": True})
    engine, found = _waiting(place, saga)
    found.pause("hold", clock="run_on")
    engine.publish("paid", ttl=0)
    place.clock.move(timedelta(hours=2))
    engine.drain()
    found.resume()
    engine.drain()
    assert status(engine, found.id) == "completed"


PROCESS = """
domain: d
workflows:
  - id: p
    steps: [{id: r, type: approval, assignee: {role: fin}, timeout: 1h}, {id: y, type: terminal}, {id: late, type: terminal}]
    transitions: [{from: r, event: approved, to: y}, {from: r, event: timeout, to: late}]
"""


def test_a_process_is_not_advanced_after_its_deadline(place: Place) -> None:
    """Nobody works, so that the deadline was not acted on: whoever advances it then is too late."""
    engine = place.engine().register(*load_processes(PROCESS))
    instance = engine.acting(person("ann")).processes.start("p")
    engine.drain()
    place.clock.move(2 * HOUR)
    assert _reason(lambda: engine.acting(SAM).processes.advance(instance.id, "approved")) == "expired"
    engine.drain()
    assert [each.name for each in engine.run(instance.id).steps()] == ["r", "late"]


def _pause_run(_engine: ManualEngine, found: Run[object], clock: Clock) -> Callable[[], object]:
    found.pause("hold", clock=clock)
    return found.resume


PAUSES: dict[str, Callable[[ManualEngine, Run[object], Clock], Callable[[], object]]] = {
    "of the run": _pause_run,
    "of the definition": lambda engine, _found, clock: partial(
        engine.pauses.resume, engine.pauses.pause(definition="w", reason="hold", clock=clock)
    ),
    "of everything": lambda engine, _found, clock: partial(
        engine.pauses.resume, engine.pauses.pause(reason="hold", clock=clock)
    ),
}
"""Pauses that hold the timers of a run. Each gives what ends it."""


@pytest.mark.row("R-141")
@pytest.mark.parametrize("pause", sorted(PAUSES))
def test_a_question_whose_time_is_over_is_in_no_inbox(place: Place, pause: str) -> None:
    """Nobody can take it or decide it any more. The pause ends, and it takes its way."""
    engine, found = _waiting(place, Saga("w").human("q", ask=["user:ann", "user:bob"], agree=2, timeout=HOUR))
    ann, task = engine.acting("ann").tasks, found.tasks()[0]
    ann.approve(task)
    end = PAUSES[pause](engine, found, "run_on")
    engine.advance(hours=2)
    assert _reason(lambda: engine.acting("bob").tasks.claim(task)) == "expired"
    bob = engine.acting("bob").tasks
    assert (bob.list(mine=True), bob.counts().own) == ([], 0)
    end()
    engine.drain()
    assert found.tasks()[0].status == "expired"


@pytest.mark.parametrize("pause", sorted(PAUSES))
def test_a_question_stays_where_clocks_stand_still(place: Place, pause: str) -> None:
    """Its time is not over."""
    engine, found = _waiting(place, Saga("w").human("q", ask="user:bob", timeout=HOUR))
    PAUSES[pause](engine, found, "stand_still")
    engine.advance(hours=2)
    bob = engine.acting("bob").tasks
    assert len(bob.list(mine=True)) == 1
    bob.comment(found.tasks()[0], "I am here")
