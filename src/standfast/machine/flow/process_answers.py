"""The answers that the approvers of a process have given to an open question: keep them, forget them, or void them."""

from __future__ import annotations

from standfast.graph.model import HumanOp
from standfast.kernel.actor import SYSTEM
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.events import DataAssigned, DecisionWithdrawn
from standfast.machine.model.queries.outputs import ANSWERS
from standfast.machine.model.state import StepState, Token


def keep_answers(turn: DecisionBuilder, step: StepState) -> None:
    """Keep what approvers of a process have given, where their step ends otherwise than by what they say."""
    op, question = turn.routes.node(step.node).op, turn.state.questions.get(step.number)
    if not isinstance(op, HumanOp) or not op.lays_over or question is None or not question.answers:
        return
    kept = turn.state.tokens[step.token].data.get(ANSWERS)
    answers = {**(kept if isinstance(kept, dict) else {}), step.node: question.answers}
    turn.emit(DataAssigned(token=step.token, data={ANSWERS: answers}))


def forget_answers(turn: DecisionBuilder, token: Token, node: str) -> None:
    """A question of a process is asked anew: what approvers gave in a round before is read by no later step."""
    kept = token.data.get(ANSWERS)
    if turn.routes.graph.kind == "process" and isinstance(kept, dict) and node in kept:
        rest = {name: given for name, given in kept.items() if name != node}
        turn.emit(DataAssigned(token=token.id, data={ANSWERS: rest}))


def void_answers(turn: DecisionBuilder, step: StepState, why: str) -> None:
    """The answers to an open question of a process count no more; the trail tells that, and nothing is kept of them."""
    op, question = turn.routes.node(step.node).op, turn.state.questions.get(step.number)
    if not isinstance(op, HumanOp) or not op.lays_over or question is None:
        return
    for place, seat in enumerate(question.seats, 1):
        if seat.given is not None:
            turn.emit(DecisionWithdrawn(step=step.number, seat=place, actor=SYSTEM.id, reason=why))
