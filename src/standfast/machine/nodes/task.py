"""A task calls a handler.

Entered when: a token arrives. May do: one effect for each call, by its retry rule. Left when: the handler came back (`ok`), or gave up
(`error`, if there is such an edge); at once if it is detached. On compensation: its own undoing work is called, if it has any.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.graph.model import ActionOp, Node, TaskOp
from standfast.graph.nodes.task import WEBHOOK
from standfast.machine.flow.action_inputs import action_input
from standfast.machine.flow.decision_builder import DecisionBuilder, Ending
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.outgoing_requests import post
from standfast.machine.flow.routing import pass_through, value_of
from standfast.machine.model.commands.run_commands import FailStep, RunStep
from standfast.machine.model.events import StepResumed, StepRetried, StepWithdrawn
from standfast.machine.model.queries.outputs import LAST_ERROR
from standfast.machine.model.state import Data, StepState, Token

_NOW = timedelta(0)
RESPONSE = "response"
"""What the expressions of a task call its handler's answer."""


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
        _call(turn, step, delay)

    def stop(self, turn: DecisionBuilder, step: StepState, ending: Ending) -> bool:  # noqa: ARG002 - a call counts, however the run ends
        """Tell the handler to stop. What will be undone is undone only after the handler came back."""
        turn.recall(step, stop=True)
        return True


def _send(turn: DecisionBuilder, token: Token, node: Node) -> None:
    """Go on, and have the call made that nobody waits for. Whoever moves the run here need not have the guards behind it."""
    number, given = turn.next_step, _given_now(turn, token, node)
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
        _call(turn, step, delay)


def _put_off(turn: DecisionBuilder, delay: timedelta) -> str:
    return (turn.moment.now + delay).isoformat()


def returned(turn: DecisionBuilder, step: StepState, *, is_asked: bool = False) -> None:
    """The work was taken back before anybody began it. If the run goes on by now, it is called after all."""
    if turn.state.may_begin:
        (call_anew if is_asked else resume)(turn, step)
    else:
        turn.emit(StepWithdrawn(step=step.number))


def resume(turn: DecisionBuilder, step: StepState) -> None:
    """Have the handler called whose work was taken back: when it would have been, unless that is over."""
    call_at, now = step.call_at, turn.moment.now
    turn.emit(StepResumed(step=step.number, effect=turn.next_effect))
    _call(turn, step, max(datetime.fromisoformat(call_at) - now, _NOW) if call_at else _NOW)


def call_anew(turn: DecisionBuilder, step: StepState) -> None:
    """Have the handler called now, as an operator wants it."""
    turn.emit(StepResumed(step=step.number, effect=turn.next_effect))
    _call(turn, step, _NOW)


def _call(turn: DecisionBuilder, step: StepState, delay: timedelta) -> None:
    token, node = turn.state.tokens[step.token], turn.routes.node(step.node)
    is_mapped = node.id in turn.routes.given or isinstance(node.op, ActionOp)
    place = None if is_mapped or token.last_output is None else _held_at(token)
    body = RunStep(
        step=step.number,
        node=step.node,
        input=_given_now(turn, token, node) if is_mapped else token.data,
        attempt=step.attempt,
        first=step.first or step.number,
        previous=token.last_output if place is None else None,
        previous_at=place,
        metadata=node.metadata,
        capability=turn.routes.works[node.id].capability,
    )
    turn.call(turn.routes.works[node.id], body, priority=node.priority, delay=delay)


def kept(turn: DecisionBuilder, step: StepState, answer: object) -> object:
    """What the data takes of a handler's answer: all of it, or what the task names.

    Raises ExpressionError if something of it cannot be told. In a rollback it is null: the step has to be undone.
    """
    named = turn.routes.kept(step.node)
    if named is None:
        return answer
    token = turn.state.tokens[step.token]
    asked = {**turn.data_for(token, step.node), RESPONSE: answer}
    last = token.data.get(LAST_ERROR)
    is_mended = isinstance(last, dict) and last.get("step") == step.node
    mended: Data = {LAST_ERROR: None} if is_mended else {}
    if turn.state.rollback is not None:
        return mended | {name: value_of(each, asked) for name, each in named.items()}
    return mended | {name: _kept_as(name, each, asked) for name, each in named.items()}


def _kept_as(name: str, expression: Expression, data: Data) -> object:
    try:
        return expression.evaluate(data)
    except ExpressionError as error:
        raise ExpressionError(f"{name!r}: {error}", reason=error.reason, position=error.position) from error


def _given(turn: DecisionBuilder, token: Token, node: str) -> Data:
    """What a handler is given by name; ExpressionError if something of it cannot be told."""
    asked = turn.data_for(token, node)
    return {name: each.evaluate(asked) for name, each in turn.routes.given[node].items()}


def _given_now(turn: DecisionBuilder, token: Token, node: Node) -> Data:
    """The same for another call, which cannot fail before it is made: what cannot be told any more is null."""
    asked = turn.data_for(token, node.id)
    if isinstance(node.op, ActionOp):
        return action_input(turn, asked, node)
    return {name: value_of(each, asked) for name, each in turn.routes.given[node.id].items()}


def _held_at(token: Token) -> str | list[str] | None:
    """Where a token's data still holds its last answer, so that it need not be sent twice; None if it does not."""
    answer, data = token.last_output, token.data
    if token.answer:
        return token.answer if token.answer in data and data[token.answer] == answer else None
    assert isinstance(answer, dict)
    return list(answer) if all(name in data and data[name] == value for name, value in answer.items()) else None
