"""How a question ends by an outcome, whoever brought it about."""

from __future__ import annotations

from holdfast.machine.graphs.graph import REJECTED, Human
from holdfast.machine.runs.answers import merged
from holdfast.machine.runs.ending import abort
from holdfast.machine.runs.events import StepCompleted
from holdfast.machine.runs.failures import give_up
from holdfast.machine.runs.leaving import finish, way_out
from holdfast.machine.runs.state import Data, Step
from holdfast.machine.runs.turn import Turn


def conclude(turn: Turn, step: Step, outcome: str, answer: Data) -> None:
    """Go on by an outcome. A rejection that no edge leads on from ends the run, or is a failure of the step."""
    op = turn.routes.node(step.node).op
    assert isinstance(op, Human)
    token = turn.state.tokens[step.token]
    data = merged(turn.routes, token.data, step.node, answer)
    turn.cancel_step_timer(step)
    if outcome != REJECTED or way_out(turn, token, step.node, REJECTED, data=data) is not None:
        finish(turn, step, outcome, answer)
    elif (op.on_reject or turn.routes.policies.on_reject) == "fail":
        give_up(turn, step, f"{step.node!r} was rejected")
    else:
        turn.emit(StepCompleted(step=step.number, outcome=REJECTED, output=answer))
        abort(turn, turn.moment.actor.id, f"{step.node!r} was rejected")
