"""A task calls a handler.

Entered when: a token arrives. May do: one effect for each call, by its retry rule. Left when: the handler came back (`ok`), or gave up
(`error`, if there is such an edge). On compensation: its own undoing work is called, if it has any.
"""

from __future__ import annotations

from datetime import timedelta

from holdfast.machine.commands import RunStep
from holdfast.machine.events import StepRetried
from holdfast.machine.graph import Node, Task
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn, policy_of


class TaskKind:
    """Calls a handler."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Have the handler called."""
        effect = turn.upcoming_effect()
        number = turn.begin(token, node, effect=effect)
        call(turn, turn.state.open[number], node)

    def stop(self, turn: Turn, step: Step) -> None:
        """Nobody wants the answer any more."""
        turn.withdraw(step.effect)


def call(turn: Turn, step: Step, node: Node, *, delay: timedelta = timedelta(0)) -> None:
    """Have the handler of an open step called."""
    assert isinstance(node.op, Task)
    token = turn.state.tokens[step.token]
    body = RunStep(
        step=step.number,
        node=node.id,
        input=step.input if step.input is not None else token.data,
        attempt=step.attempt,
        metadata=dict(node.metadata),
    )
    turn.call(node.op.work, body, priority=node.priority, delay=delay)


def retry(turn: Turn, step: Step, *, error: str, after: timedelta | None = None) -> None:
    """A call failed: have another one made."""
    node = turn.routes.node(step.node)
    assert isinstance(node.op, Task)
    wait = after if after is not None else policy_of(node.op.work.retry).wait_after(step.attempt)
    turn.emit(StepRetried(step=step.number, attempt=step.attempt, error=error, effect=turn.upcoming_effect()))
    call(turn, step, node, delay=wait)
