"""Ending steps that nobody wants any more. A late answer of their handlers changes nothing."""

from __future__ import annotations

from holdfast.machine.events import AbortStarted, StepFailed, WorkflowAborted
from holdfast.machine.state import Step
from holdfast.machine.turn import Ending, Turn, step_timer

STOPPED = "workflow_stopped"
NOT_NEEDED = "branch_not_needed"
MESSAGE = "Stopped due to workflow cancellation/abort"


def stop_step(turn: Turn, step: Step, ending: Ending, *, error: str = MESSAGE, reason: str = STOPPED) -> None:
    """End an open step."""
    turn.cancel_timer(step_timer(step.number))
    if step.of is not None and step.effect is not None:
        turn.withdraw(step.effect)
        awaits_stop = False
    else:
        awaits_stop = turn.kind(step).stop(turn, step, ending)
    turn.emit(StepFailed(step=step.number, error=error, reason=reason, awaits_stop=awaits_stop))


def stop_everything(turn: Turn, ending: Ending) -> None:
    """End all steps that have not ended: what is open, what was taken back, what waits for an operator."""
    state = turn.state
    for step in list(state.open.values()):
        stop_step(turn, step, ending)
    for step in [*state.frozen.values(), *state.dead.values()]:
        turn.emit(StepFailed(step=step.number, error=MESSAGE, reason=STOPPED))


def abort(turn: Turn, actor: str, reason: str) -> None:
    """End the run at once; nothing is undone."""
    turn.emit(AbortStarted(requested_by=actor, reason=reason))
    stop_everything(turn, "drop")
    turn.emit(WorkflowAborted(requested_by=actor, reason=reason))
