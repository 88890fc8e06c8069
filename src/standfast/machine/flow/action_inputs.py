"""What is given to those who carry out actions: handlers of the application, and the engine itself for other documents."""

from __future__ import annotations

from typing import Final

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.graph.model import ActionOp, Node
from standfast.graph.nodes.action import TARGET
from standfast.machine.flow.acting import acting, principal
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.plain import plain
from standfast.machine.model.queries.edit_windows import document_of
from standfast.machine.model.queries.expression_scope import ScopeQuery, namespaces_of
from standfast.machine.model.state import Data, Executed

ID: Final = "id"
"""Where a step that was done to another document has told which one."""


def target_of(turn: DecisionBuilder, asked: Data, node: str) -> str:
    """The id of the other document that an action is done to; empty if it makes one. ExpressionError if it cannot be told."""
    expression = turn.routes.formula(node, TARGET)
    if expression is None:
        return ""
    given = expression.evaluate(asked)
    if not isinstance(given, str) or not given:
        raise _not_an_id(expression, given)
    return given


def _not_an_id(expression: Expression, given: object) -> ExpressionError:
    told = f"the target is the id of a document, a text, and not {given!r:.200}"
    return ExpressionError(told, reason=ExpressionErrorCode.MISSING_VALUE, source=expression.source)


def action_input(turn: DecisionBuilder, asked: Data, node: Node) -> Data:
    """What an action is carried out with; what cannot be told any more is null."""
    assert isinstance(node.op, ActionOp)
    payload = {name: plain(_value(each, asked)) for name, each in turn.routes.payload(node.id).items()}
    if not node.op.of:
        document = document_of(turn.state)
        return {"document": {**document.own(), "data": document.data}, "payload": payload}
    try:
        target = target_of(turn, asked, node.id)
    except ExpressionError:  # It could be told when the step began.
        target = ""
    return _elsewhere(turn, node, node.op.action, target=target, payload=payload)


def undo_input(turn: DecisionBuilder, node: Node, executed: Executed) -> Data:
    """What an action is taken back with: the same again, for the action that takes it back."""
    assert isinstance(node.op, ActionOp)
    asked = ScopeQuery(turn.moment, turn.state, node.id, executed.input or {})
    given = action_input(turn, namespaces_of(turn.routes.graph.kind).values(asked), node)
    if not node.op.of:
        return given
    done = executed.output if isinstance(executed.output, dict) else {}
    payload = given["payload"]
    assert isinstance(payload, dict)
    return _elsewhere(turn, node, node.op.undo, target=str(done.get(ID, "")), payload=payload)


def _elsewhere(turn: DecisionBuilder, node: Node, action: str, *, target: str, payload: Data) -> Data:
    assert isinstance(node.op, ActionOp)
    actor, document = acting(turn, node.run_as), document_of(turn.state)
    taken_back: Data = {"undo": node.op.undo} if node.op.undo and action == node.op.action else {}
    return {
        **taken_back,
        "type": node.op.of,
        "id": target,
        "action": action,
        "payload": payload,
        "is_new": node.op.target is None and action == node.op.action,
        "actor": {
            "id": actor.id,
            "kind": actor.kind,
            "roles": sorted(actor.roles),
            "capabilities": sorted(actor.capabilities),
            "on_behalf_of": principal(turn, node.run_as),
        },
        "asked": "" if node.run_as or document.intent is None else document.intent.asked,
        "reason": f"{document.type}/{document.id} at {node.id}",
        "origin": f"{document.type}/{document.id}",
        "depth": document.depth + 1,
    }


def _value(expression: Expression, asked: Data) -> object:
    try:
        return expression.evaluate(asked)
    except ExpressionError:
        return None
