"""What happens when the time of a whole run is over: it is cancelled, or goes where its definition says."""

from __future__ import annotations

from standfast.graph.model import TIMEOUT
from standfast.kernel.actor import SYSTEM
from standfast.machine.flow.cancellation import stop_step, unended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.rollback import cancel
from standfast.machine.flow.routing import way_out
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.events import TimedOut, TimerHeld
from standfast.machine.model.state import StepState

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
