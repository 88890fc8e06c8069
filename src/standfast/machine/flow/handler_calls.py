"""Calls of the handlers of steps: what they are given, how they are called again, and what the data takes of their answers."""

from __future__ import annotations

from datetime import datetime, timedelta

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.graph.model import ActionOp, Node
from standfast.machine.flow.action_inputs import action_input
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.routing import value_of
from standfast.machine.model.commands.run_commands import RunStep
from standfast.machine.model.events import StepResumed
from standfast.machine.model.queries.outputs import LAST_ERROR
from standfast.machine.model.state import Data, StepState, Token

RESPONSE = "response"
"""What the expressions of a task call its handler's answer."""

_NOW = timedelta(0)


def call_again(turn: DecisionBuilder, step: StepState) -> None:
    """Have the handler called whose work was taken back: when it would have been, unless that is over."""
    call_at, now = step.call_at, turn.moment.now
    turn.emit(StepResumed(step=step.number, effect=turn.next_effect))
    call_step(turn, step, max(datetime.fromisoformat(call_at) - now, _NOW) if call_at else _NOW)


def call_anew(turn: DecisionBuilder, step: StepState) -> None:
    """Have the handler called now, as an operator wants it."""
    turn.emit(StepResumed(step=step.number, effect=turn.next_effect))
    call_step(turn, step, _NOW)


def call_step(turn: DecisionBuilder, step: StepState, delay: timedelta) -> None:
    """Have the handler of a step called."""
    token, node = turn.state.tokens[step.token], turn.routes.node(step.node)
    is_mapped = node.id in turn.routes.given or isinstance(node.op, ActionOp)
    place = None if is_mapped or token.last_output is None else _held_at(token)
    body = RunStep(
        step=step.number,
        node=step.node,
        input=call_input(turn, token, node) if is_mapped else token.data,
        attempt=step.attempt,
        first=step.first or step.number,
        previous=token.last_output if place is None else None,
        previous_at=place,
        metadata=node.metadata,
        capability=turn.routes.works[node.id].capability,
    )
    turn.call(turn.routes.works[node.id], body, priority=node.priority, delay=delay)


def mapped_output(turn: DecisionBuilder, step: StepState, answer: object) -> object:
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
    return mended | {name: _mapped(name, each, asked) for name, each in named.items()}


def _mapped(name: str, expression: Expression, data: Data) -> object:
    try:
        return expression.evaluate(data)
    except ExpressionError as error:
        raise ExpressionError(f"{name!r}: {error}", reason=error.reason, position=error.position) from error


def call_input(turn: DecisionBuilder, token: Token, node: Node) -> Data:
    """Returns what a handler is given by name. A value that cannot be computed is null, because this call cannot fail before it is made."""
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
