"""Pauses and resumes at the same moment, and at the moment of the end: one of them wins, and the history shows which."""

from __future__ import annotations

from functools import partial

import pytest

from app.sagas.acting import Gate, Stage, history
from holdfast import Engine, RejectedError, Run, Saga, SagaDefinition
from support.engines import Live
from support.waiting import LONG_SECONDS, eventually, together

FEW, MANY = 20, 200


def asking(stage: Stage) -> SagaDefinition:
    """A question, and a step behind it."""
    return Saga("asking").human("ask").step("after", stage.does("after")).build()


def tried(outcomes: list[str], call: partial[None]) -> None:
    """Whether a call was taken, or why not."""
    try:
        call()
    except RejectedError as error:
        outcomes.append(error.reason)
    else:
        outcomes.append("taken")


def engines(live: Live, *sagas: SagaDefinition) -> tuple[Engine, Engine]:
    """Two processes on one database, as far as they can tell."""
    first, second = (live.engine() for _ in range(2))
    for saga in sagas:
        first.register(saga)
        second.register(saga)
    first.start_worker()
    return first, second


def resumes_race(live: Live, times: int) -> None:
    """Two resumes of one run, from two processes, so many times."""
    stage = Stage()
    first, second = engines(live, asking(stage))
    for turn in range(times):
        found = first.start("asking")
        found.pause()
        other, outcomes = second.run(found.id), list[str]()
        together(partial(tried, outcomes, partial(found.resume)), partial(tried, outcomes, partial(other.resume)))
        assert sorted(outcomes) == ["not_paused", "taken"]
        assert len(history(first, found.id, "workflow_resumed")) == 1
        requests = found.resume_requests()
        assert sorted(each.executed_at is None for each in requests) == [False, True]
        found.pause()
        outcomes.clear()
        same = {"triggered_by": "event", "triggered_by_id": f"e-{turn}"}
        together(
            partial(tried, outcomes, partial(found.resume, **same)),  # type: ignore[arg-type]
            partial(tried, outcomes, partial(other.resume, **same)),  # type: ignore[arg-type]
        )
        assert outcomes == ["taken", "taken"]
        assert len(history(first, found.id, "workflow_resumed")) == 2


@pytest.mark.row("R-065", "R-116")
def test_of_two_resumes_one_is_taken(live: Live) -> None:
    """The other one is refused, and written down; the same trigger twice is one resume, and neither is refused."""
    resumes_race(live, FEW)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_of_two_resumes_one_is_taken_every_time(live: Live) -> None:
    """The campaign."""
    resumes_race(live, MANY)


@pytest.mark.row("R-065")
def test_twenty_resumes_call_the_next_handler_once(live: Live) -> None:
    """However many ask at the same moment."""
    stage = Stage()
    first, second = engines(live, asking(stage))
    found = first.start("asking")
    found.pause()
    first.tasks.approve(found.tasks()[0])
    outcomes: list[str] = []
    runs: list[Run[object]] = [found, second.run(found.id)] * 10
    together(*(partial(tried, outcomes, partial(each.resume)) for each in runs))
    found.result(timeout=LONG_SECONDS)
    assert (outcomes.count("taken"), stage.calls) == (1, ["after"])
    assert len(found.resume_requests()) == 20


def endings_race(live: Live, times: int) -> None:
    """A pause against the end of the last handler, so many times."""
    stage = Stage()
    first, second = engines(live, Saga("short").step("one", stage.does("one")).build())
    for _ in range(times):
        gate, outcomes = Gate(), list[str]()
        stage.does("one", gate)
        found = first.start("short")
        gate.entered()
        together(partial(tried, outcomes, partial(second.run(found.id).pause)), gate.open)
        told = [each.event_type for each in history(first, found.id)]
        if outcomes == ["taken"]:
            eventually(partial(history, first, found.id, "step_completed"))
            assert "workflow_completed" not in [each.event_type for each in history(first, found.id)]
            found.resume()
        else:
            assert outcomes == ["already_terminal"]
            assert "workflow_paused" not in told
        found.result(timeout=LONG_SECONDS)
        assert len(history(first, found.id, "workflow_completed")) == 1


@pytest.mark.row("R-142")
def test_a_pause_comes_before_the_end_or_not_at_all(live: Live) -> None:
    """A run that is paused ends after its resume; one that has ended is not paused."""
    endings_race(live, FEW)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_pause_comes_before_the_end_or_not_at_all_every_time(live: Live) -> None:
    """The campaign."""
    endings_race(live, MANY)
