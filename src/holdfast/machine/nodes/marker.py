"""Save points and points of no return mark the way.

Entered when: a token arrives. May do: nothing. Left when: at once. On compensation: a rollback after a failure stops at a save point; no rollback
goes back beyond a point of no return.
"""

from __future__ import annotations

from holdfast.machine.graph import Node
from holdfast.machine.moving import pass_through
from holdfast.machine.nodes.kind import Kind
from holdfast.machine.state import Token
from holdfast.machine.turn import Turn


class MarkerKind(Kind):
    """Marks the way."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Pass."""
        pass_through(turn, token, node)
