"""How a question ends by an outcome, whoever brought it about.

Answers to questions that have a form: defaults are filled in, and what does not fit is refused.
"""

from __future__ import annotations

from standfast.graph.index import GraphIndex
from standfast.graph.model import WITHDRAWN, HumanOp
from standfast.graph.values.forms import faults_told
from standfast.kernel.decision import Rejection
from standfast.machine.flow.cancellation import abort
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.process_answers import keep_answers
from standfast.machine.flow.routing import May, finish, way_out
from standfast.machine.flow.slots import can_leave_slot, reject_slot
from standfast.machine.model.events import StepAnswered, StepCompleted
from standfast.machine.model.queries.outputs import answer_found, judged
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import Data, StepState


def conclude(turn: DecisionBuilder, step: StepState, outcome: str, answer: Data, *, may: May | None = None) -> None:
    """Go on by an outcome. A rejection that no edge leads on from leaves the slot that it lies in, ends the run, or is a failure of the step.

    A question that was taken back is rejected where no edge leads on from that. `may` says which guards may be passed, where that is not for the
    actor of the moment to say.
    """
    op = turn.routes.node(step.node).op
    assert isinstance(op, HumanOp)
    token = turn.state.tokens[step.token]
    data = judged(turn.routes, token.data, step.node, answer)
    turn.cancel_step_timer(step)
    told = f"{step.node!r} was {outcome}"
    if outcome == WITHDRAWN and way_out(turn, token, step.node, WITHDRAWN, data=data, answer=answer) is None:
        outcome = op.rejects
    if outcome != op.rejects or way_out(turn, token, step.node, outcome, data=data, answer=answer, may=may) is not None:
        finish(turn, step, outcome, answer, may=may)
    elif can_leave_slot(turn, step.node):
        reject_slot(turn, step, outcome, answer)
    elif (op.on_reject or turn.routes.policies.on_reject) == "fail":
        give_up(turn, step, told)
    else:
        turn.emit(StepCompleted(step=step.number, outcome=outcome, output=answer))
        abort(turn, turn.moment.actor.id, told)


def close(turn: DecisionBuilder, step: StepState, event: StepAnswered, *, may: May | None = None) -> None:
    """Go on by an answer."""
    if not event.decisions:  # It was given past those who have answered before.
        keep_answers(turn, step)
    turn.emit(event)
    conclude(turn, step, event.outcome, answer_found(turn.routes, step.node, event), may=may)


def filled_in(routes: GraphIndex, node: str, outcome: str, given: object) -> tuple[object, Rejection | None]:
    """What comes with an answer, with the defaults of the form; and why it cannot be taken, with all faults at once."""
    op, form = routes.node(node).op, routes.form(node)
    assert isinstance(op, HumanOp)
    if form is None or not op.needs_form(outcome):
        return given, None
    whole = form.filled(given)
    faults = form.faults(whole)
    return whole, refused(Refusal.INVALID_FORM, faults_told(node, faults)) if faults else None
