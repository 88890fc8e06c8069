"""Save points and points of no return mark the way.

Entered when: a token arrives. May do: nothing. Left when: at once. On compensation: a rollback after a failure stops at a save point; no rollback
goes back beyond a point of no return.
"""

from __future__ import annotations

from standfast.graph.model import Node
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import pass_through
from standfast.machine.model.state import Token


class MarkerKind(Kind):
    """Marks the way."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Pass."""
        pass_through(turn, token, node)
