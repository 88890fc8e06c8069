"""A human step asks a person.

Entered when: a token arrives. May do: ask. Left when: a person answered (by one of the outcomes that the node names), or
nobody did in time (`timeout`). On compensation: a
confirmed decision is rolled past; its own undoing work is called, if it has any.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.errors import ExpressionError
from holdfast.kernel.decision import Rejection
from holdfast.kernel.records import TaskClosed, TaskOpened
from holdfast.kernel.rows import Record
from holdfast.machine.graphs.graph import REJECTED, Human, Node
from holdfast.machine.graphs.index import DATA, GraphIndex
from holdfast.machine.runs.answers import is_within, merged, too_large
from holdfast.machine.runs.commands import AnswerStep
from holdfast.machine.runs.ending import abort
from holdfast.machine.runs.events import StepAnswered, StepCompleted
from holdfast.machine.runs.evolution import decision_of
from holdfast.machine.runs.failures import give_up
from holdfast.machine.runs.leaving import finish, is_barred, value_of, way_out
from holdfast.machine.runs.nodes.kind import Kind, answer_of, no_transition
from holdfast.machine.runs.state import Data, Step, Token
from holdfast.machine.runs.turn import Turn

_encode = msgspec.json.Encoder().encode


class HumanKind(Kind):
    """Asks a person."""

    wait_kind = "human"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask; a question that cannot be put into words is a failure of the step."""
        try:
            _subject(turn.routes, node, token.data)
        except ExpressionError as error:
            self.fail(turn, token, node, str(error))
        else:
            turn.open_step(token, node)

    def opened(self, routes: GraphIndex, node: Node, step: int, *, data: Data) -> Sequence[Record]:
        """The question, with the values that it had when it was asked."""
        assert isinstance(node.op, Human)
        try:
            subject = _subject(routes, node, data)
        except ExpressionError:  # The step has failed by it; the row tells what would have been asked.
            subject = node.op.subject
        shown = {name: value_of(each, {DATA: data}) for name, each in routes.shown(node.id).items()}
        return [
            TaskOpened(number=step, subject=subject, role=node.op.role, data=_encode(shown) if shown else None),
        ]

    def answer(self, turn: Turn, step: Step, command: AnswerStep) -> Rejection | None:
        """Go on by the answer. A rejection that no edge leads on from ends the run, or is a failure of the step."""
        op = turn.routes.node(step.node).op
        assert isinstance(op, Human)
        token, outcome = turn.state.tokens[step.token], command.outcome
        event = answer_of(turn, step, command)
        answer = _laid(op, event) if op.lays_over else decision_of(event)
        data = merged(turn.routes, token.data, step.node, answer)
        is_bare = command.data is None and not command.comment
        # A bare rejection is taken even where there is no room for it: nobody may be left with an answer that cannot be given.
        if not (is_bare and outcome == REJECTED) and not is_within(turn.routes, data):
            return too_large(turn.routes, f"the answer to {step.node!r}")
        if is_barred(turn, token, step.node, outcome, data=data, answer=answer):
            return no_transition(step.node, outcome, turn.moment.actor.id)
        turn.cancel_step_timer(step)
        turn.emit(event)
        if outcome != REJECTED or way_out(turn, token, step.node, REJECTED, data=data, answer=answer) is not None:
            finish(turn, step, outcome, answer)
        elif (op.on_reject or turn.routes.policies.on_reject) == "fail":
            give_up(turn, step, f"{step.node!r} was rejected")
        else:
            turn.emit(StepCompleted(step=step.number, outcome=REJECTED, output=answer))
            abort(turn, turn.moment.actor.id, f"{step.node!r} was rejected")
        return None

    def answered(self, event: StepAnswered) -> Sequence[Record]:
        """The question is answered."""
        return [TaskClosed(number=event.step, outcome=event.outcome, actor=event.actor, comment=event.comment)]

    def closed(self, node: Node, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - the outcome tells
        """A question that nobody answered; an answer has closed it already."""
        return [TaskClosed(number=step, outcome=outcome)]


def _laid(op: Human, event: StepAnswered) -> Data:
    """What an answer lays over the data: what was given with it, and who gave it."""
    name = op.signs.get(event.outcome)
    return {**({name: event.actor} if name else {}), **(event.data if isinstance(event.data, dict) else {})}


def _subject(routes: GraphIndex, node: Node, data: Data) -> str:
    assert isinstance(node.op, Human)
    template = routes.template(node.id)
    if template is None:
        return node.op.subject or node.id
    return str(template.evaluate({DATA: data})).replace(
        "\x00", ""
    )  # Which not every database can keep, and nobody sees.
