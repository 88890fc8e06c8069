"""A human step asks a person.

Entered when: a token arrives. May do: ask. Left when: somebody decided (`confirmed` or `rejected`), or nobody did in time (`timeout`). On compensation: a
confirmed decision is rolled past; its own undoing work is called, if it has any.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.decision import Rejection
from holdfast.kernel.records import Record, TaskClosed, TaskOpened
from holdfast.machine.commands import DecideStep
from holdfast.machine.events import Approved, Rejected, StepCompleted
from holdfast.machine.failing import give_up
from holdfast.machine.graph import CONFIRMED, REJECTED, Human, Node
from holdfast.machine.moving import finish, way_out
from holdfast.machine.nodes.kind import Kind
from holdfast.machine.state import Token
from holdfast.machine.stopping import abort
from holdfast.machine.turn import Turn


class HumanKind(Kind):
    """Asks a person."""

    wait_kind = "human"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask."""
        turn.open_step(token, node)

    def opened(self, node: Node, step: int) -> Sequence[Record]:
        """The question."""
        assert isinstance(node.op, Human)
        return [TaskOpened(number=step, subject=node.op.subject or node.id, role=node.op.role)]

    def closed(self, node: Node, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - the outcome tells
        """A question that nobody answered; an answer has closed it already."""
        return () if outcome in {CONFIRMED, REJECTED} else [TaskClosed(number=step, outcome=outcome)]


def decide_step(turn: Turn, command: DecideStep) -> Rejection | None:
    """A person answers."""
    step = turn.state.open.get(command.step)
    if step is None or step.of is not None or not isinstance(turn.routes.node(step.node).op, Human):
        return Rejection(code="not_waiting", message=f"step {command.step} does not wait for a decision")
    actor = turn.moment.actor
    turn.cancel_step_timer(step)
    if command.decision == CONFIRMED:
        turn.emit(Approved(step=step.number, actor=actor, comment=command.comment))
        finish(turn, step, CONFIRMED)
        return None
    turn.emit(Rejected(step=step.number, actor=actor, comment=command.comment))
    if way_out(turn, turn.state.tokens[step.token], step.node, REJECTED) is not None:
        finish(turn, step, REJECTED)
    elif turn.routes.policies.on_reject == "fail":
        give_up(turn, step, f"{step.node!r} was rejected")
    else:
        turn.emit(StepCompleted(step=step.number, outcome=REJECTED))
        abort(turn, actor, f"{step.node!r} was rejected")
    return None
