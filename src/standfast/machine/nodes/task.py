"""A task calls a handler.

Entered when: a token arrives. May do: one effect for each call, by its retry rule. Left when: the handler came back (`ok`), or gave up
(`error`, if there is such an edge); at once if it is detached. On compensation: its own undoing work is called, if it has any.
"""

from __future__ import annotations

from datetime import timedelta

from standfast.errors import ExpressionError
from standfast.graph.model import Node, TaskOp
from standfast.graph.nodes.task import WEBHOOK
from standfast.machine.flow.decision_builder import DecisionBuilder, Ending
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.handler_calls import call_again, call_anew, call_input, call_step
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.outgoing_requests import post
from standfast.machine.flow.routing import pass_through
from standfast.machine.model.commands.run_commands import FailStep, RunStep
from standfast.machine.model.events import StepRetried, StepWithdrawn
from standfast.machine.model.state import Data, StepState, Token

_NOW = timedelta(0)


class TaskKind(Kind):
    """Calls a handler."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Have the handler called, after its start delay; what an operator asks for does not wait. What it is given must be there."""
        if node.id in turn.routes.given:
            try:
                _given(turn, token, node.id)
            except ExpressionError as error:
                self.fail(turn, token, node, f"what {node.id!r} is given cannot be told: {error}")
                return
        if isinstance(node.op, TaskOp) and node.op.detached:
            _send(turn, token, node)
            return
        delay_ms = turn.routes.works[node.id].start_after_ms if token.retry_of is None else 0
        delay = timedelta(milliseconds=delay_ms) if delay_ms else _NOW
        step = turn.open_step(
            token, node, effect=turn.next_effect, delay_ms=delay_ms, call_at=_put_off(turn, delay) if delay_ms else ""
        )
        call_step(turn, step, delay)

    def stop(self, turn: DecisionBuilder, step: StepState, ending: Ending) -> bool:  # noqa: ARG002 - a call counts, however the run ends
        """Tell the handler to stop. What will be undone is undone only after the handler came back."""
        turn.recall(step, stop=True)
        return True


def _send(turn: DecisionBuilder, token: Token, node: Node) -> None:
    """Go on, and have the call made that nobody waits for. Whoever moves the run here need not have the guards behind it."""
    number, given = turn.next_step, call_input(turn, token, node)
    work, effect = turn.routes.works[node.id], turn.next_effect
    if work.handler == WEBHOOK:
        pass_through(turn, token, node)
        post(turn, (number, node.id), given)
        return
    body = RunStep(
        step=number,
        node=node.id,
        input=given,
        first=number,
        metadata=node.metadata,
        is_detached=True,
        capability=work.capability,
    )
    turn.call(work, body, priority=node.priority, retry=turn.policy_of(work.retry))
    pass_through(turn, token, node, may=lambda _guard: True, effect=effect)


def failed(turn: DecisionBuilder, step: StepState, command: FailStep) -> None:
    """A call failed: make another one, or give up."""
    work = turn.routes.works[step.node]
    may_retry = not command.is_final and turn.policy_of(work.retry).allows_another(step.attempt)
    if not may_retry or turn.state.rollback is not None:
        give_up(turn, step, command.error, was_called=command.was_called)
        return
    is_paused = turn.state.status == "paused"  # Then it is called again once the run goes on.
    delay = command.after if command.after is not None else turn.wait_after(work.retry, step.attempt)
    turn.emit(
        StepRetried(
            step=step.number,
            attempt=step.attempt,
            error=command.error,
            effect=None if is_paused else turn.next_effect,
            was_called=command.was_called,
            call_at=_put_off(turn, delay) if delay else "",
        )
    )
    if is_paused:
        turn.emit(StepWithdrawn(step=step.number))
    else:
        call_step(turn, step, delay)


def _put_off(turn: DecisionBuilder, delay: timedelta) -> str:
    return (turn.moment.now + delay).isoformat()


def returned(turn: DecisionBuilder, step: StepState, *, is_asked: bool = False) -> None:
    """The work was taken back before anybody began it. If the run goes on by now, it is called after all."""
    if turn.state.may_begin:
        (call_anew if is_asked else call_again)(turn, step)
    else:
        turn.emit(StepWithdrawn(step=step.number))


def _given(turn: DecisionBuilder, token: Token, node: str) -> Data:
    """What a handler is given by name; ExpressionError if something of it cannot be told."""
    asked = turn.data_for(token, node)
    return {name: each.evaluate(asked) for name, each in turn.routes.given[node].items()}
