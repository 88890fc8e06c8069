"""What kinds of nodes have in common."""

from __future__ import annotations

from collections.abc import Sequence

from standfast.graph.model import TIMEOUT, Node
from standfast.kernel.decision import Answer, Rejection
from standfast.kernel.rows import Record
from standfast.machine.flow.decision_builder import DecisionBuilder, Ending
from standfast.machine.flow.failures import fail_at_once, give_up
from standfast.machine.flow.routing import finish, way_out
from standfast.machine.model.commands.run_commands import AnswerStep
from standfast.machine.model.events import StepAnswered, TimedOut
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.rows.step_rows import RowProjection
from standfast.machine.model.state import Data, Executed, StepState, Token


class Kind:
    """A kind of node that asks for nothing that would have to be taken back."""

    wait_kind = ""

    def fail(self, turn: DecisionBuilder, token: Token, node: Node, error: str, *, was_called: bool = True) -> None:
        """Its step has failed."""
        fail_at_once(turn, token, node, error, was_called=was_called)

    def stop(self, turn: DecisionBuilder, step: StepState, ending: Ending) -> bool:  # noqa: ARG002 - see the docstring
        """Nothing was asked for."""
        return False

    def abandon(self, turn: DecisionBuilder, executed: Executed) -> None:
        """Nothing is under way, or it does not matter."""

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """Leave by `timeout` if an edge says so; otherwise the step has failed."""
        turn.emit(TimedOut(step=step.number, node=step.node))
        turn.cancel_step_timer(step)
        self.stop(turn, step, "drop")
        if way_out(turn, turn.state.tokens[step.token], step.node, TIMEOUT) is not None:
            finish(turn, step, TIMEOUT)
        else:
            give_up(turn, step, f"{step.node!r} waited too long")

    def resume(self, turn: DecisionBuilder, step: StepState) -> None:
        """It has no question that could wait for anything."""

    def may_take_over(self, turn: DecisionBuilder, node: Node) -> bool:  # noqa: ARG002 - see the docstring
        """It is denied to no actor."""
        return False

    def opened(self, view: RowProjection, node: Node, step: int, *, data: Data) -> Sequence[Record]:  # noqa: ARG002 - see the docstring
        """Only the step's own row begins."""
        return ()

    def answer(self, turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Answer | None:
        """Nobody can answer it: its graph names no answers."""
        raise AssertionError(f"{step.node!r} takes no answers, and was given {command.outcome!r} at {turn.moment.now}")

    def answered(self, view: RowProjection, event: StepAnswered) -> Sequence[Record]:  # noqa: ARG002 - see the docstring
        """Only the step's own row ends."""
        return ()

    def closed(self, view: RowProjection, step: int, outcome: str) -> Sequence[Record]:  # noqa: ARG002 - see the docstring
        """Only the step's own row ends."""
        return ()


def answer_of(turn: DecisionBuilder, step: StepState, command: AnswerStep, data: object) -> StepAnswered:
    """What is told of an answer with this data, in which a form may have filled in what was left out."""
    is_filled = data != command.data
    actor = turn.moment.actor
    return StepAnswered(
        step=step.number,
        outcome=command.outcome,
        actor=actor.id,
        at=turn.moment.now.isoformat(),
        on_behalf_of=actor.on_behalf_of,
        comment=command.comment,
        data=data,
        is_filled=is_filled,
        given=command.data if is_filled else None,
        document_version=command.document_version,
    )


def no_transition(node: str, outcome: str, actor: str) -> Rejection:
    """An answer whose ways are all closed: it is not taken, and another one, or another actor's, still can be."""
    return refused(
        Refusal.NO_TRANSITION,
        f"{actor!r} cannot take {node!r} on by {outcome!r}: its ways need other capabilities, or other data",
    )
