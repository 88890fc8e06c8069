"""A call starts another workflow and waits for its end.

Entered when: a token arrives. May do: start the other run, in the same commit, with what the node names as input, or all of the token's data. Left when: it has ended well (`ok`), or not
(`error`, or a failure of the step), or took too long (`timeout`). On compensation: its own undoing work is called, if it has any; a child that is
under way is stopped with its parent, which waits until the child has undone what it did. If that cannot be done, the way back of the
parent ends there until it is.
"""

from __future__ import annotations

from uuid import UUID

from holdfast.errors import ExpressionError
from holdfast.kernel.decision import Message
from holdfast.kernel.ids import InstanceId
from holdfast.machine.graphs.graph import Call, Node
from holdfast.machine.runs.commands import AbortWorkflow, CancelWorkflow, EndChild, StartWorkflow
from holdfast.machine.runs.events import ChildNotUndone, ChildStarted
from holdfast.machine.runs.failures import give_up, take_answer
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.rollback import NOT_UNDONE, stopped
from holdfast.machine.runs.state import Data, Executed, Step, Token
from holdfast.machine.runs.turn import Ending, Turn


class CallKind(Kind):
    """Starts another workflow."""

    wait_kind = "child"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Start it."""
        assert isinstance(node.op, Call)
        try:
            given = _given(turn, token, node.id)
        except ExpressionError as error:
            self.fail(turn, token, node, f"what {node.id!r} is to begin with cannot be told: {error}")
            return
        step = turn.open_step(token, node)
        child = InstanceId(turn.moment.derive_id("child", step.number))
        turn.emit(ChildStarted(step=step.number, child=str(child)))
        begin = StartWorkflow(
            input=given,
            parent=str(turn.moment.instance),
            parent_definition=turn.routes.graph.name,
            parent_step=step.number,
            requester=turn.state.requester,
            wait_ms=turn.state.wait_ms,
            escalates=turn.state.escalates,
            looks_up=turn.state.looks_up,
        )
        turn.send(
            Message(
                decider=node.op.definition,
                definition_version=node.op.version,
                command=begin,
                instance=child,
                parent=turn.moment.instance,
            )
        )

    def stop(self, turn: Turn, step: Step, ending: Ending) -> bool:
        """Stop it: it undoes what it did, which is waited for if the parent does so too; or it ends at once."""
        _tell(turn, step, AbortWorkflow if ending == "abort" else CancelWorkflow)
        return ending == "undo"

    def abandon(self, turn: Turn, executed: Executed) -> None:
        """It was told to undo what it did; now it ends at once."""
        _tell(turn, executed, AbortWorkflow)


def _given(turn: Turn, token: Token, node: str) -> Data:
    """What the other workflow begins with; ExpressionError if something of it cannot be told."""
    named = turn.routes.given.get(node)
    if named is None:
        return token.data
    asked = turn.data_for(token, node)
    return {name: each.evaluate(asked) for name, each in named.items()}


def _tell(turn: Turn, step: Step | Executed, stop: type[CancelWorkflow | AbortWorkflow]) -> None:
    op = turn.routes.node(step.node).op
    assert isinstance(op, Call)
    command = stop(reason=f"the workflow that started it was stopped at {step.node!r}", by_parent=True)
    turn.send(Message(decider=op.definition, command=command, instance=InstanceId(UUID(step.child))))


def child_ended(turn: Turn, step: Step, command: EndChild) -> None:
    """The other workflow has ended."""
    turn.cancel_step_timer(step)
    if command.status == "completed":
        take_answer(turn, step, command.result)
    else:
        _note_not_undone(turn, step.number, command)
        why = f": {command.error}" if command.error else ""
        give_up(turn, step, f"the workflow that {step.node!r} started ended as {command.status}{why}")


def child_stopped(turn: Turn, executed: Executed, command: EndChild) -> None:
    """A workflow that was told to stop has ended; it may have ended well before it was told."""
    is_done = command.status == "completed"
    output = command.result if is_done else None
    stopped(turn, executed.number, came_back=is_done, is_done=is_done, output=output)
    _note_not_undone(turn, executed.number, command)


def is_undone(command: EndChild) -> bool:
    """Whether a workflow that has ended left nothing behind that it had to undo."""
    return command.reason != NOT_UNDONE


def _note_not_undone(turn: Turn, step: int, command: EndChild) -> None:
    if not is_undone(command):
        turn.emit(ChildNotUndone(step=step, error=command.error or command.reason))
