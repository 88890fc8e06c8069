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
from holdfast.machine.runs.conclusions import conclude
from holdfast.machine.runs.events import StepAnswered
from holdfast.machine.runs.evolution import decision_of
from holdfast.machine.runs.forms import filled_in
from holdfast.machine.runs.leaving import is_barred, value_of
from holdfast.machine.runs.nodes.kind import Kind, answer_of, no_transition
from holdfast.machine.runs.state import Data, Step, Token
from holdfast.machine.runs.task_times import asked_at, begin, due_at, put_to_others
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.wording import subject_of

OVERRIDDEN = "overridden"
"""What a question came to that somebody has gone past."""

_encode = msgspec.json.Encoder().encode


class HumanKind(Kind):
    """Asks a person."""

    wait_kind = "human"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask; a question that cannot be put into words is a failure of the step."""
        try:
            subject_of(turn.routes, node, token.data)
        except ExpressionError as error:
            self.fail(turn, token, node, str(error))
        else:
            begin(turn, turn.open_step(token, node, asked_at=asked_at(turn, node), due_at=due_at(turn, node)), node)

    def opened(self, routes: GraphIndex, node: Node, step: int, *, data: Data) -> Sequence[Record]:
        """The question, with the values that it had when it was asked."""
        assert isinstance(node.op, Human)
        try:
            subject = subject_of(routes, node, data)
        except ExpressionError:  # The step has failed by it; the row tells what would have been asked.
            subject = node.op.subject
        shown = {name: value_of(each, {DATA: data}) for name, each in routes.shown(node.id).items()}
        return [
            TaskOpened(number=step, subject=subject, role=node.op.role, data=_encode(shown) if shown else None),
        ]

    def answer(self, turn: Turn, step: Step, command: AnswerStep) -> Rejection | None:
        """Go on by the answer. A rejection that no edge leads on from ends the run, or is a failure of the step."""
        token, outcome = turn.state.tokens[step.token], command.outcome
        data, refusal = filled_in(turn.routes, step.node, outcome, command.data)
        if refusal is not None:
            return refusal
        event = answer_of(turn, step, command, data)
        answer = decision_of(event)
        whole = merged(turn.routes, token.data, step.node, answer)
        is_bare = command.data is None and not command.comment
        # A bare rejection is taken even where there is no room for it: nobody may be left with an answer that cannot be given.
        if not (is_bare and outcome == REJECTED) and not is_within(turn.routes, whole):
            return too_large(turn.routes, f"the answer to {step.node!r}")
        if is_barred(turn, token, step.node, outcome, data=whole):
            return no_transition(step.node, outcome, turn.moment.actor.id)
        turn.emit(event)
        conclude(turn, step, outcome, answer)
        return None

    def time_out(self, turn: Turn, step: Step) -> None:
        """Put the question to others first, if the run does so and that was not done yet."""
        if not put_to_others(turn, step):
            super().time_out(turn, step)

    def answered(self, node: Node, event: StepAnswered) -> Sequence[Record]:  # noqa: ARG002 - all of them alike
        """The question is answered."""
        return [
            TaskClosed(
                number=event.step,
                outcome=OVERRIDDEN if event.overridden else event.outcome,
                actor=event.actor,
                comment=event.comment,
            )
        ]

    def closed(self, node: Node, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - the outcome tells
        """A question that nobody answered; an answer has closed it already."""
        return [TaskClosed(number=step, outcome=outcome)]
