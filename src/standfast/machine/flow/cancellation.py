"""Ending steps that nobody wants any more. A late answer of their handlers changes nothing."""

from __future__ import annotations

from standfast.machine.flow.decision_builder import DecisionBuilder, Ending
from standfast.machine.model.events import AbortStarted, StepFailed, WorkflowAborted
from standfast.machine.model.state import StepState

STOPPED = "workflow_stopped"
NOT_NEEDED = "branch_not_needed"
MESSAGE = "Stopped due to workflow cancellation/abort"


def stop_step(
    turn: DecisionBuilder, step: StepState, ending: Ending, *, error: str = MESSAGE, reason: str = STOPPED
) -> None:
    """End a step that has not ended: one that is open, whose work was taken back, or that waits for an operator."""
    turn.cancel_step_timer(step)
    awaits_stop = False
    if step.number in turn.state.open:
        if step.of is None:
            awaits_stop = turn.kind(step).stop(turn, step, ending)
        elif step.effect is not None:
            turn.recall(step, stop=True)
            awaits_stop = True
        elif step.child and ending == "abort":  # It undoes what it did, and may, unless everything ends at once.
            turn.kind(step).stop(turn, step, ending)
    turn.emit(StepFailed(step=step.number, error=error, reason=reason, awaits_stop=awaits_stop))


def stop_everything(turn: DecisionBuilder, ending: Ending) -> None:
    """End all steps that have not ended, in the order in which they began; but what is being undone is undone to its end."""
    for step in unended(turn):
        if step.of is None or ending != "undo":
            stop_step(turn, step, ending)


def unended(turn: DecisionBuilder) -> list[StepState]:
    """The steps that have not ended, in the order in which they began."""
    state = turn.state
    steps = [*state.open.values(), *state.frozen.values(), *state.dead.values()]
    return sorted(steps, key=lambda step: step.number)


def abort(turn: DecisionBuilder, actor: str, reason: str) -> None:
    """End the run at once; nothing is undone."""
    turn.emit(AbortStarted(requested_by=actor, reason=reason))
    for number in turn.state.stopping:
        executed = turn.state.executed[number]
        turn.kind(executed).abandon(turn, executed)
    stop_everything(turn, "abort")
    turn.emit(WorkflowAborted(requested_by=actor, reason=reason))
