"""A call starts another workflow and waits for its end.

Entered when: a token arrives. May do: start the other run, in the same commit, with what the node names as input, or all of the token's data; the other run asks whether the starter of this one may start it. Left when: it has ended well (`ok`), or not
(`error`, or a failure of the step), or took too long (`timeout`). On compensation: its own undoing work is called, if it has any; else a child that
has completed undoes what it did, and one that has undone itself is left alone. A child that is under way is stopped with its parent. The parent
waits until the child has undone what it did. If that cannot be done, the way back of the parent ends there until it is.
A detached child is no part of its parent: it is neither stopped nor undone.
"""

from __future__ import annotations

from uuid import UUID

from standfast.errors import ExpressionError
from standfast.graph.model import TIMEOUT, CallOp, Node
from standfast.kernel.decision import Message
from standfast.kernel.ids import InstanceId
from standfast.machine.flow.decision_builder import DecisionBuilder, Ending
from standfast.machine.flow.failures import give_up, take_answer
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.rollback import NOT_UNDONE, recall_child, stopped
from standfast.machine.flow.routing import finish, way_out
from standfast.machine.model.commands.run_commands import (
    AbortWorkflow,
    CancelWorkflow,
    EndChild,
    StartWorkflow,
)
from standfast.machine.model.events import ChildEnded, ChildNotUndone, ChildStarted, TimedOut
from standfast.machine.model.queries.eligibility import involved_in
from standfast.machine.model.queries.starter_rights import starter_of
from standfast.machine.model.state import Data, Executed, StepState, Token


class CallKind(Kind):
    """Starts another workflow."""

    wait_kind = "child"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Start it."""
        assert isinstance(node.op, CallOp)
        try:
            given = _given(turn, token, node.id)
        except ExpressionError as error:
            self.fail(turn, token, node, f"what {node.id!r} is to begin with cannot be told: {error}")
            return
        step = turn.open_step(token, node)
        child = InstanceId(turn.moment.derive_id("child", step.number))
        turn.emit(ChildStarted(step=step.number, child=str(child)))
        starter = starter_of(turn.state, turn.moment.actor)
        begin = StartWorkflow(
            input=given,
            parent=str(turn.moment.instance),
            parent_definition=turn.routes.graph.name,
            parent_step=step.number,
            requester=turn.state.requester,
            involved=involved_in(turn.state),
            wait_ms=turn.state.wait_ms,
            escalates=turn.state.escalates,
            looks_up=turn.state.looks_up,
            starter="" if starter is None else starter.id,
            may=[] if starter is None else sorted(starter.capabilities),
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

    def stop(self, turn: DecisionBuilder, step: StepState, ending: Ending) -> bool:
        """Stop it: it undoes what it did, which is waited for if the parent does so too; or it ends at once."""
        if _is_detached(turn, step):
            return False
        _tell(turn, step, AbortWorkflow if ending == "abort" else CancelWorkflow)
        return ending == "undo"

    def abandon(self, turn: DecisionBuilder, executed: Executed) -> None:
        """It was told to undo what it did; now it ends at once."""
        _tell(turn, executed, AbortWorkflow)

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """It took too long, and undoes what it did, even if it completes right now. A rollback of the parent waits for that."""
        turn.emit(TimedOut(step=step.number, node=step.node))
        turn.cancel_step_timer(step)
        is_part = not _is_detached(turn, step)
        if is_part:
            recall_child(turn, step, f"{step.node!r} of the workflow that started it waited too long")
        if way_out(turn, turn.state.tokens[step.token], step.node, TIMEOUT) is not None:
            finish(turn, step, TIMEOUT)
        else:
            give_up(turn, step, f"{step.node!r} waited too long", awaits_stop=is_part)


def _given(turn: DecisionBuilder, token: Token, node: str) -> Data:
    """What the other workflow begins with; ExpressionError if something of it cannot be told."""
    named = turn.routes.given.get(node)
    if named is None:
        return token.data
    asked = turn.data_for(token, node)
    return {name: each.evaluate(asked) for name, each in named.items()}


def _tell(turn: DecisionBuilder, step: StepState | Executed, stop: type[CancelWorkflow | AbortWorkflow]) -> None:
    op = turn.routes.node(step.node).op
    assert isinstance(op, CallOp)
    by = turn.stopped_by
    told = f"the workflow that started it was stopped at {step.node!r}"
    command = stop(reason=f"{told} by {by}" if by else told, by_parent=True, by=by)
    turn.send(Message(decider=op.definition, command=command, instance=InstanceId(UUID(step.child))))


def _is_detached(turn: DecisionBuilder, step: StepState | Executed) -> bool:
    """Whether the other workflow is no part of this one."""
    op = turn.routes.node(step.node).op
    assert isinstance(op, CallOp)
    return op.detached


def child_ended(turn: DecisionBuilder, step: StepState, command: EndChild) -> None:
    """The other workflow has ended."""
    turn.cancel_step_timer(step)
    _note_end(turn, step, command)
    if command.status == "completed":
        take_answer(turn, step, command.result)
    else:
        why = f": {command.error}" if command.error else ""
        give_up(turn, step, f"the workflow that {step.node!r} started ended as {command.status}{why}")


def child_stopped(turn: DecisionBuilder, executed: Executed, command: EndChild) -> bool:
    """A workflow that was told to stop has ended; it may have ended well before it was told. False if it is still to undo that."""
    is_done = command.status == "completed"
    if is_done and executed.is_recalled:
        return False
    output = command.result if is_done else None
    stopped(turn, executed.number, came_back=is_done, is_done=is_done, output=output)
    _note_end(turn, executed, command)
    return True


def is_undone(command: EndChild) -> bool:
    """Whether a workflow that has ended left nothing behind that it had to undo."""
    return command.reason != NOT_UNDONE


def _note_end(turn: DecisionBuilder, step: StepState | Executed, command: EndChild) -> None:
    """Note what a rollback will have to know: a child that has completed is undone with its step, unless the step says itself how, and one that has undone itself is not undone again."""
    if _is_detached(turn, step):
        return
    if not is_undone(command):
        turn.emit(ChildNotUndone(step=step.number, error=command.error or command.reason))
    elif not turn.routes.remembers:
        return
    elif turn.routes.node(step.node).compensation is None:
        if command.is_undoable or command.no_return:
            end = ChildEnded(step=step.number, is_undoable=command.is_undoable, no_return=command.no_return)
            turn.emit(end)
    elif command.has_undone:
        turn.emit(ChildEnded(step=step.number, is_settled=True))
