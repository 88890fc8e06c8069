"""What the failure of a step leads to: another way, an operator, the other branches, or a rollback. An answer without room is one.

What happens when the time of a whole run is over: it is cancelled, or goes where its definition says.
"""

from __future__ import annotations

from standfast.graph.model import ERROR, TIMEOUT, Node
from standfast.kernel.actor import SYSTEM
from standfast.machine.flow.cancellation import stop_step, unended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.rollback import cancel, roll_back
from standfast.machine.flow.routing import finish, is_outlived, leave_by, way_out
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.events import DataAssigned, FailureHeld, StepFailed, StepPaused, TimedOut, TimerHeld
from standfast.machine.model.queries.outputs import LAST_ERROR, Data, fits, is_within, overflow
from standfast.machine.model.state import StepState, Token


def fail_at_once(turn: DecisionBuilder, token: Token, node: Node, error: str, *, was_called: bool = True) -> None:
    """A node that takes no time could not do its work."""
    give_up(turn, turn.open_step(token, node), error, was_called=was_called)


def take_answer(turn: DecisionBuilder, step: StepState, output: object) -> None:
    """An open step was answered: it ends well, unless its token has no room for the answer. A rollback takes any."""
    data = turn.state.tokens[step.token].data
    if turn.state.rollback is None and not fits(turn.routes, data, step.node, output):
        give_up(turn, step, overflow(turn.routes, f"the answer of {step.node!r}"))
    else:
        finish(turn, step, output=output)


def give_up(
    turn: DecisionBuilder, step: StepState, error: str, *, was_called: bool = True, awaits_stop: bool = False
) -> None:
    """A step has failed for good. While the run is paused nothing follows from that.

    `awaits_stop` says that a run which it started was told to undo what it did; a rollback waits for that.
    """
    if turn.state.pause is not None:
        turn.emit(FailureHeld(step=step.number, error=error, was_called=was_called))
        return
    turn.cancel_step_timer(step)
    failure = StepFailed(step=step.number, error=error, was_called=was_called, awaits_stop=awaits_stop)
    if turn.state.rollback is not None:
        turn.emit(failure)
        return
    token = turn.state.tokens[step.token]
    told = _told(turn, token, step, error)
    edge = way_out(turn, token, step.node, ERROR, data={**token.data, **told})
    if edge is not None:
        turn.emit(failure)
        turn.emit(DataAssigned(token=step.token, data=told))
        leave_by(turn, token, edge)
    elif turn.routes.policies.on_failure == "compensate":
        turn.emit(failure)
        if not is_outlived(turn, step.token):
            roll_back(turn, error, failed_step=step.number)
    else:  # Nothing is undone: the step waits for an operator, and nothing new begins until then.
        turn.emit(StepPaused(step=step.number, error=error, was_called=was_called))
        turn.pause("dlq" if turn.routes.policies.on_failure == "dlq" else "step_failed", error)


def _told(turn: DecisionBuilder, token: Token, step: StepState, error: str) -> Data:
    """What the steps of another way find about a failure: as much of its message as there is room for, and always the step."""
    name = LAST_ERROR if turn.routes.graph.kind == "process" else "error"
    while True:
        told: Data = {name: {"step": step.node, "message": error}}
        if not error or is_within(turn.routes, {**token.data, **told}):
            return told
        error = error[: len(error) // 2]


PASSED = "the deadline has passed"


def pass_deadline(turn: DecisionBuilder) -> None:
    """The time is over. A run that waits for an operator is left alone for as long as it does: that wait has a limit of its own."""
    target = turn.routes.policies.on_deadline
    if not target:
        cancel(turn, SYSTEM.id, PASSED)
    elif turn.state.status == "paused":
        turn.emit(TimerHeld(key=DEADLINE, due_at=turn.moment.now))
    else:
        for step in unended(turn):
            _expire(turn, step, target)


def _expire(turn: DecisionBuilder, step: StepState, target: str) -> None:
    """The only token leaves its step: by `timeout` if an edge leads on from it, to the node of the deadline otherwise."""
    token = turn.state.tokens[step.token]
    if way_out(turn, token, step.node, TIMEOUT) is not None:
        turn.cancel_step_timer(step)
        turn.kind(step).time_out(turn, step)
        return
    turn.emit(TimedOut(step=step.number, node=step.node))
    stop_step(turn, step, "drop", error=PASSED, reason=PASSED)
    turn.move(token.id, target)
