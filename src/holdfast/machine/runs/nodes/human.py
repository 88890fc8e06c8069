"""A human step asks a person.

Entered when: a token arrives. May do: ask. Left when: somebody decided (`confirmed` or `rejected`), or nobody did in time (`timeout`). On compensation: a
confirmed decision is rolled past; its own undoing work is called, if it has any.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.errors import ExpressionError
from holdfast.kernel.decision import Answer, Ignored, Rejection
from holdfast.kernel.moment import Moment
from holdfast.kernel.records import TaskClosed, TaskOpened
from holdfast.kernel.rows import Record
from holdfast.machine.graphs.graph import CONFIRMED, REJECTED, Human, Node
from holdfast.machine.graphs.index import DATA, GraphIndex
from holdfast.machine.runs.answers import fits, merged, too_large
from holdfast.machine.runs.commands import DecideStep
from holdfast.machine.runs.ending import abort
from holdfast.machine.runs.events import Approved, Rejected, StepCompleted
from holdfast.machine.runs.evolution import decision_of
from holdfast.machine.runs.failures import give_up
from holdfast.machine.runs.leaving import finish, value_of, way_out
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.state import Data, State, Token
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

    def closed(self, node: Node, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - the outcome tells
        """A question that nobody answered; an answer has closed it already."""
        return [TaskClosed(number=step, outcome=outcome)]


def _subject(routes: GraphIndex, node: Node, data: Data) -> str:
    assert isinstance(node.op, Human)
    template = routes.template(node.id)
    return node.op.subject or node.id if template is None else str(template.evaluate({DATA: data}))


def decide_step(turn: Turn, command: DecideStep) -> Rejection | None:
    """A person answers."""
    step = turn.state.open.get(command.step)
    op = None if step is None or step.of is not None else turn.routes.node(step.node).op
    if step is None or not isinstance(op, Human):
        return Rejection(code="not_waiting", message=f"step {command.step} does not wait for a decision")
    token = turn.state.tokens[step.token]
    actor, at = turn.moment.actor.id, turn.moment.now.isoformat()
    said = Approved if command.decision == CONFIRMED else Rejected
    event = said(step=step.number, actor=actor, at=at, comment=command.comment, data=command.data)
    answer = decision_of(event)
    is_bare = command.data is None and not command.comment
    # A bare rejection is taken even where there is no room for it: nobody may be left with an answer that cannot be given.
    if not (is_bare and command.decision == REJECTED) and not fits(turn.routes, token.data, step.node, answer):
        return too_large(turn.routes, f"the answer to {step.node!r}")
    turn.cancel_step_timer(step)
    turn.emit(event)
    if command.decision == CONFIRMED:
        finish(turn, step, CONFIRMED, answer)
        return None
    data = merged(turn.routes, token.data, step.node, answer)
    if way_out(turn, token, step.node, REJECTED, data=data) is not None:
        finish(turn, step, REJECTED, answer)
    elif (op.on_reject or turn.routes.policies.on_reject) == "fail":
        give_up(turn, step, f"{step.node!r} was rejected")
    else:
        turn.emit(StepCompleted(step=step.number, outcome=REJECTED, output=answer))
        abort(turn, actor, f"{step.node!r} was rejected")
    return None


def decided_before(state: State, command: DecideStep, moment: Moment) -> Answer | None:
    """What a second answer to the same question comes to: the same one by the same person is no news, and the first one stands."""
    known = state.decided.get(command.step)
    if known is None:
        return None
    if (known["status"], known["decided_by"], known["data"]) == (command.decision, moment.actor.id, command.data):
        return Ignored(reason="this was decided before, in the same way and by the same person")
    told = f"{known['status']} by {known['decided_by']!r} at {known['decided_at']}"
    return Rejection(code="already_decided", message=f"step {command.step} was {told}, and a decision stands")
