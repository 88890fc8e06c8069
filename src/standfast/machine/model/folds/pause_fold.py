"""How a pause changes the state: what is held while it lasts, and what is left of it once the run goes on."""

from __future__ import annotations

from datetime import datetime, timedelta

from standfast.graph.index import GraphIndex
from standfast.kernel.durations import later
from standfast.machine.model import events as e
from standfast.machine.model.state import PauseState, Resumed, RunState, StepState

MOST_TRIGGERS = 100
"""Requests to go on that a run remembers in order to tell a repeated one; those of a run that goes on for years must not grow with it."""


def paused(_routes: GraphIndex, state: RunState, event: e.WorkflowPaused) -> None:
    """The run waits for an operator."""
    state.status, state.reason, state.error = "paused", event.reason, event.error
    if event.at is not None:
        held = dict(event.held)
        state.pause = PauseState(
            at=event.at,
            by=event.by,
            clock=event.clock,
            until=event.until,
            held=held,
            since=event.since or event.at,
            place=event.place,
        )
        if state.document is not None:
            state.document.drift, state.document.drift_at = "", None  # The pause tells of it.


def timer_held(_routes: GraphIndex, state: RunState, event: e.TimerHeld) -> None:
    """A timer waits for the end of the pause, or no longer does; or, where an operator is waited for, until the run goes on."""
    if state.pause is None:
        assert event.due_at is not None
        state.held = {**state.held, event.key: event.due_at}
    elif event.due_at is None:
        del state.pause.held[event.key]
    else:
        state.pause.held[event.key] = event.due_at


def failure_held(_routes: GraphIndex, state: RunState, event: e.FailureHeld) -> None:
    """A step has failed, and nothing follows from it yet."""
    step = state.frozen[event.step] = state.open.pop(event.step)
    step.error, step.has_failed = event.error, True
    if event.was_called and step.effect is not None:
        step.made = step.attempt


def resumed(routes: GraphIndex, state: RunState, event: e.WorkflowResumed) -> None:
    """The run goes on."""
    state.status, state.reason, state.error, state.chain, state.pause = "running", "", "", 0, None
    state.held = {}
    for token in state.tokens.values():
        token.stay = None
    if event.shift_ms:
        _shift(state, timedelta(milliseconds=event.shift_ms))
    is_told = routes.graph.kind == "rules"
    if event.data is None and not event.trigger_id and not is_told:
        return
    known = state.resumed = state.resumed or Resumed()
    if is_told:
        known.step = state.next_step
    if event.data is not None:
        known.data = event.data
    if event.trigger_id:
        known.triggers = [*known.triggers[1 - MOST_TRIGGERS :], event.trigger_id]


def _shift(state: RunState, by: timedelta) -> None:
    """The times of open questions count from as much later as their clocks stood still, and calls are put off for as long."""
    for step in (*state.open.values(), *state.frozen.values()):
        if step.asked_at:
            step.asked_at = _later(step.asked_at, by)
        if step.call_at:
            step.call_at = _later(step.call_at, by)


def put_off(step: StepState, shift_ms: int) -> None:
    """The times of one question count from as much later."""
    if shift_ms:
        step.asked_at = _later(step.asked_at, timedelta(milliseconds=shift_ms))


def _later(at: str, by: timedelta) -> str:
    return later(datetime.fromisoformat(at), by).isoformat()
