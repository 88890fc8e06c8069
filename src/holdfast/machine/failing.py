"""What the failure of a step leads to: another way, an operator, the other branches, or a rollback."""

from __future__ import annotations

from holdfast.machine.events import DataAssigned, StepFailed, StepPaused, WorkflowPaused
from holdfast.machine.graph import ERROR, Node
from holdfast.machine.moving import is_outlived, leave
from holdfast.machine.rollback import roll_back
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn, step_timer


def fail_at_once(turn: Turn, token: Token, node: Node, error: str) -> None:
    """A node that takes no time could not do its work."""
    give_up(turn, turn.open_step(token, node), error)


def give_up(turn: Turn, step: Step, error: str) -> None:
    """A step has failed for good."""
    turn.cancel_timer(step_timer(step.number))
    state = turn.state
    if state.rollback is None and turn.routes.ways(step.node, ERROR):
        turn.emit(StepFailed(step=step.number, error=error))
        turn.emit(DataAssigned(token=step.token, data={"error": {"step": step.node, "message": error}}))
        leave(turn, state.tokens[step.token], step.node, ERROR)
    elif state.rollback is not None:
        turn.emit(StepFailed(step=step.number, error=error))
    elif turn.routes.policies.on_failure == "compensate":
        turn.emit(StepFailed(step=step.number, error=error))
        if not is_outlived(turn, step.token):
            roll_back(turn, error, failed_step=step.number)
    else:
        _hand_over(turn, step, error)


def _hand_over(turn: Turn, step: Step, error: str) -> None:
    """Nothing is undone: the step waits for an operator, and nothing new begins until then."""
    turn.emit(StepPaused(step=step.number, error=error))
    if turn.state.status == "running":
        is_dlq = turn.routes.policies.on_failure == "dlq"
        turn.emit(WorkflowPaused(reason="dlq" if is_dlq else "step_failed", error=error))
        for other in turn.state.open.values():
            if other.effect is not None:
                turn.recall(other, stop=False)
