"""A call starts another workflow and waits for its end.

Entered when: a token arrives. May do: start the other run, in the same commit, with the token's data as input. Left when: it has ended well (`ok`), or not
(`error`, or a failure of the step). On compensation: its own undoing work is called, if it has any; a child that is under way is cancelled with its parent.
"""

from __future__ import annotations

from uuid import UUID

from holdfast.kernel.decision import Message
from holdfast.kernel.ids import InstanceId
from holdfast.machine.commands import CancelWorkflow, StartWorkflow
from holdfast.machine.events import ChildStarted
from holdfast.machine.graph import Call, Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn, step_timer


class CallKind:
    """Starts another workflow."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Start it."""
        assert isinstance(node.op, Call)
        number = turn.begin(token, node)
        child = InstanceId(turn.moment.derive_id("child", number))
        turn.emit(ChildStarted(step=number, child=str(child)))
        turn.send(
            Message(
                decider=node.op.definition,
                definition_version=node.op.version,
                command=StartWorkflow(
                    input=token.data,
                    parent=str(turn.moment.instance),
                    parent_definition=turn.routes.graph.name,
                    parent_step=number,
                ),
                instance=child,
                parent=turn.moment.instance,
            )
        )

    def stop(self, turn: Turn, step: Step) -> None:
        """Cancel it."""
        turn.cancel_timer(step_timer(step.number))
        node = turn.routes.node(step.node)
        assert isinstance(node.op, Call)
        if step.child:
            command = CancelWorkflow(reason=f"the workflow that started it was stopped at {step.node!r}")
            child = InstanceId(UUID(step.child))
            turn.send(Message(decider=node.op.definition, command=command, instance=child))
