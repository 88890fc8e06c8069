"""Save points and points of no return mark the way.

Entered when: a token arrives. May do: nothing. Left when: at once. On compensation: a rollback after a failure stops at a save point; no rollback
goes back beyond a point of no return.
"""

from __future__ import annotations

from holdfast.machine.graphs.graph import Node
from holdfast.machine.runs.leaving import pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn


class MarkerKind(Kind):
    """Marks the way."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Pass."""
        pass_through(turn, token, node)
