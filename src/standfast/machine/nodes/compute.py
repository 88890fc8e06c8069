"""A script computes a value.

Entered when: a token arrives. May do: nothing. Left when: at once, by `ok` with the value; what cannot be computed is a failure of the step.
On compensation: nothing to undo.

A condition asks a question about the data.
"""

from __future__ import annotations

from standfast.errors import ExpressionError
from standfast.graph.model import FALSE, TRUE, Node, ScriptOp
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import pass_through
from standfast.machine.model.json_values import plain
from standfast.machine.model.queries.outputs import fits, overflow
from standfast.machine.model.state import Token


class ScriptKind(Kind):
    """Computes a value."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Compute it, and keep it."""
        assert isinstance(node.op, ScriptOp)
        try:
            value = plain(turn.routes.condition(node.id).evaluate(turn.data_for(token, node.id)))
        except ExpressionError as error:
            self.fail(turn, token, node, str(error))
            return
        if fits(turn.routes, token.data, node.id, value):
            pass_through(turn, token, node, output=value)
        else:
            self.fail(turn, token, node, overflow(turn.routes, f"what {node.id!r} computes"))


class ConditionKind(Kind):
    """Asks a question."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Answer it."""
        try:
            holds = turn.routes.condition(node.id).holds(turn.data_for(token, node.id))
        except ExpressionError as error:
            self.fail(turn, token, node, str(error))
            return
        pass_through(turn, token, node, TRUE if holds else FALSE)
