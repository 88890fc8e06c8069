"""A condition asks a question about the data.

Entered when: a token arrives. May do: nothing. Left when: at once, by `true` or `false`; a question that cannot be answered is a failure of the
step. On compensation: nothing to undo.
"""

from __future__ import annotations

from standfast.errors import ExpressionError
from standfast.graph.model import FALSE, TRUE, Node
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import pass_through
from standfast.machine.model.state import Token


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
