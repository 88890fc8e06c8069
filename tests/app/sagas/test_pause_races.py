"""Pauses and resumes at the same moment, and at the moment of the end: one of them wins, and the history shows which."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from app.sagas.acting import Gate, Stage, history
from standfast import Run, Saga, SagaDefinition
from support.engines import Live
from support.racing import PROCESSES, TAKEN, TIMES, Group, begun, endings, raced, rivals
from support.waiting import LONG_SECONDS, eventually


def asking(stage: Stage) -> SagaDefinition:
    """A question, and a step behind it."""
    return Saga("asking").human("ask").step("after", stage.does("after")).build()


@pytest.mark.row("R-065", "R-116")
@PROCESSES
def test_of_two_resumes_one_is_taken(live: Live, processes: int) -> None:
    """The other one is refused, and written down; the run goes on once."""
    stage = Stage()
    saga = asking(stage)
    one, two = rivals(live, saga, processes=processes)
    runs = begun(one, saga)
    for run in runs:
        run.pause()
    outcomes = raced((run.resume, two.run(run.id).resume) for run in runs)
    one.start_worker()
    for run, outcome in zip(runs, outcomes, strict=True):
        assert sorted(outcome) == ["not_paused", TAKEN]
        assert len(history(one, run.id, "workflow_resumed")) == 1
        assert sorted(each.executed_at is None for each in run.resume_requests()) == [False, True]
        one.tasks.approve(run.tasks()[0])
    assert endings(one, runs) == ["completed"] * TIMES
    assert stage.count("after") == TIMES


@pytest.mark.row("R-065", "R-116")
def test_the_same_trigger_twice_is_one_resume(live: Live) -> None:
    """Neither is refused, and the run goes on once."""
    saga = asking(Stage())
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    for run in runs:
        run.pause()
    outcomes = raced(
        [partial(each.resume, triggered_by="event", triggered_by_id=f"e-{number}") for each in (run, two.run(run.id))]
        for number, run in enumerate(runs)
    )
    assert outcomes == [[TAKEN, TAKEN]] * TIMES
    for run in runs:
        assert len(history(one, run.id, "workflow_resumed")) == 1
        assert run.describe().status == "running"


@pytest.mark.row("R-065")
def test_twenty_resumes_call_the_next_handler_once(live: Live) -> None:
    """However many ask at the same moment."""
    stage = Stage()
    saga = asking(stage)
    one, two = rivals(live, saga)
    (found,) = begun(one, saga, times=1)
    found.pause()
    one.tasks.approve(found.tasks()[0])
    runs: list[Run[object]] = [found, two.run(found.id)] * 10
    (outcome,) = raced([[each.resume for each in runs]], lanes=20)
    one.start_worker()
    found.result(timeout=LONG_SECONDS)
    assert (outcome.count(TAKEN), stage.calls) == (1, ["after"])
    assert len(found.resume_requests()) == 20


@pytest.mark.row("R-142")
def test_a_pause_comes_before_the_end_or_not_at_all(live: Live) -> None:
    """The last handler comes back while somebody pauses: a run that is paused ends after its resume; one that has ended is not paused."""
    stage = Stage()
    saga = Saga("short").step("one", stage.does("one")).build()
    one, two = rivals(live, saga)
    one.start_worker()
    runs: list[Run[object]] = []

    def groups() -> Iterator[Group]:
        for _ in range(TIMES):
            gate = Gate()
            stage.does("one", gate)
            runs.append(one.start("short"))
            gate.entered()
            yield two.run(runs[-1].id).pause, gate.open

    outcomes = raced(groups())
    for run, (paused, _) in zip(runs, outcomes, strict=True):
        if paused == TAKEN:
            eventually(partial(history, one, run.id, "step_completed"))
            assert not history(one, run.id, "workflow_completed")
            run.resume()
        else:
            assert paused == "already_terminal"
            assert not history(one, run.id, "workflow_paused")
    assert endings(one, runs) == ["completed"] * TIMES
    for run in runs:
        assert len(history(one, run.id, "workflow_completed")) == 1


def test_a_pause_comes_before_the_last_decision_or_not_at_all(live: Live) -> None:
    """A decision is taken while the run is paused, which ends after its resume; a run that the decision has ended is not paused."""
    saga = Saga("last").human("ask").build()
    one, two = rivals(live, saga)
    runs = begun(one, saga)
    outcomes = raced((run.pause, partial(two.tasks.approve, run.tasks()[0])) for run in runs)
    for run, (paused, decided) in zip(runs, outcomes, strict=True):
        assert (paused in {TAKEN, "already_terminal"}, decided) == (True, TAKEN)
        assert run.describe().status == ("paused" if paused == TAKEN else "completed")
        assert len(history(one, run.id, "workflow_paused")) == (paused == TAKEN)
        if paused == TAKEN:
            run.resume()
    assert endings(one, runs) == ["completed"] * TIMES
