"""How a step is answered, and how a question ends by an outcome, whoever brought it about.

Answers to questions that have a form: defaults are filled in, and what does not fit is refused.
"""

from __future__ import annotations

from msgspec.structs import replace

from standfast.graph.index import GraphIndex
from standfast.graph.model import ERROR, WITHDRAWN, HumanOp
from standfast.graph.values.forms import faults_told
from standfast.kernel.decision import Answer, Rejection
from standfast.machine.flow.cancellation import abort
from standfast.machine.flow.deadline_checks import late_refusal
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.process_answers import keep_answers
from standfast.machine.flow.routing import May, finish, way_out
from standfast.machine.flow.slots import can_leave_slot, reject_slot
from standfast.machine.model.commands.run_commands import AnswerStep
from standfast.machine.model.events import StepAnswered, StepCompleted
from standfast.machine.model.queries.outputs import answer_found, judged
from standfast.machine.model.queries.voting import answer_in_words, outcome_of
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import Data, StepState
from standfast.machine.recovery.pause import hold_answered
from standfast.machine.recovery.repair import may_be_repeated, repeat
from standfast.machine.tasks.entitlement import decider_refusal


def answer_step(turn: DecisionBuilder, command: AnswerStep) -> Answer | None:
    """Answer a step, as its kind of node does. Refused in this order: nobody is asked, the actor may not answer, it is too late, there is no such answer, it does not fit or leads nowhere."""
    step = turn.state.open.get(command.step)
    node = None if step is None or step.of is not None else turn.routes.node(step.node)
    if step is not None and node is not None and step.effect is not None and may_be_repeated(turn.routes, node):
        return repeat(turn, step, command)
    if step is None or node is None or not node.op.answers:
        return refused(Refusal.NOT_WAITING, f"step {command.step} does not wait for an answer")
    barred = decider_refusal(turn, step) or late_refusal(turn, step, "this answer")
    if barred is not None:
        return barred
    outcome = outcome_of(node, command)
    if outcome not in node.op.answers:
        possible = ", ".join(map(repr, node.op.answers))
        told = f"{node.id!r} cannot be answered by {answer_in_words(command)}; there are {possible}"
        return refused(Refusal.UNKNOWN_OUTCOME, told)
    command = replace(command, outcome=outcome)
    refusal = turn.kind(step).answer(turn, step, command)
    if refusal is None and command.holds:
        hold_answered(turn, step)
    return refusal


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
    outcome = _outcome(turn, step, outcome, answer)
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


def _outcome(turn: DecisionBuilder, step: StepState, outcome: str, answer: Data) -> str:
    """The outcome that a step is left by: a question that was taken back is rejected where no edge leads on from that."""
    op, token = turn.routes.node(step.node).op, turn.state.tokens[step.token]
    assert isinstance(op, HumanOp)
    data = judged(turn.routes, token.data, step.node, answer)
    is_back = outcome == WITHDRAWN and way_out(turn, token, step.node, WITHDRAWN, data=data, answer=answer) is None
    return op.rejects if is_back else outcome


def ends_run(turn: DecisionBuilder, step: StepState, outcome: str, answer: Data) -> bool:
    """Whether the run ends if a question is left by an outcome: it is aborted, or fails and undoes what it did."""
    op, token, policies = turn.routes.node(step.node).op, turn.state.tokens[step.token], turn.routes.policies
    assert isinstance(op, HumanOp)
    data = judged(turn.routes, token.data, step.node, answer)
    outcome = _outcome(turn, step, outcome, answer)
    if outcome != op.rejects or way_out(turn, token, step.node, outcome, data=data, answer=answer) is not None:
        return False
    if can_leave_slot(turn, step.node):
        return False
    if (op.on_reject or policies.on_reject) != "fail":
        return True
    return policies.on_failure == "compensate" and way_out(turn, token, step.node, ERROR) is None


def filled_in(routes: GraphIndex, node: str, outcome: str, given: object) -> tuple[object, Rejection | None]:
    """What comes with an answer, with the defaults of the form; and why it cannot be taken, with all faults at once."""
    op, form = routes.node(node).op, routes.form(node)
    assert isinstance(op, HumanOp)
    if form is None or not op.needs_form(outcome):
        return given, None
    whole = form.filled(given)
    faults = form.faults(whole)
    return whole, refused(Refusal.INVALID_FORM, faults_told(node, faults)) if faults else None
