"""What the failure of a step leads to: another way, another branch, a rollback, or an operator."""

from __future__ import annotations

from holdfast.machine.branches import outlives
from holdfast.machine.events import StepFailed, StepPaused, StepStarted, TokenMoved, WorkflowDeadLettered
from holdfast.machine.graph import ERROR, Node
from holdfast.machine.rollback import recall_running, start_rollback
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn, step_timer


def fail_at_once(turn: Turn, token: Token, node: Node, error: str) -> None:
    """A node that takes no time could not do its work."""
    number = turn.next_number()
    visit = token.visits.get(node.id, 0) + 1
    turn.emit(StepStarted(step=number, node=node.id, token=token.id, visit=visit))
    give_up(turn, turn.state.open[number], error)


def give_up(turn: Turn, step: Step, error: str) -> None:
    """A step has failed for good."""
    turn.cancel_timer(step_timer(step.number))
    ways = turn.routes.ways(step.node, ERROR)
    if ways and turn.may_begin:
        turn.emit(StepFailed(step=step.number, error=error))
        assigned: dict[str, object] = {"error": {"step": step.node, "message": error}}
        turn.emit(TokenMoved(token=step.token, target=ways[0].target, assigned=assigned))
        turn.leave(step.token, step.node, ERROR)
        return
    if turn.routes.graph.policies.on_failure == "compensate" or turn.state.rollback is not None:
        _fail(turn, step, error)
    else:
        _hand_over(turn, step, error)


def _fail(turn: Turn, step: Step, error: str) -> None:
    turn.emit(StepFailed(step=step.number, error=error))
    if turn.state.rollback is not None or outlives(turn, step.token):
        return
    start_rollback(turn, cause="failure", failed_step=step.number, error=error)


def _hand_over(turn: Turn, step: Step, error: str) -> None:
    """Nothing is undone: the step waits for an operator, and nothing new begins until then."""
    turn.emit(StepPaused(step=step.number, error=error))
    if turn.state.status == "running":
        turn.emit(WorkflowDeadLettered(step=step.number))
        recall_running(turn)
