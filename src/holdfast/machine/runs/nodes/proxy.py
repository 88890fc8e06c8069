"""A proxy is the way into a slot, or the way out of it.

Entered when: a token arrives, or a rejection leaves the slot. May do: at the way in, void what earlier ways through the slot have left. Left when: at
once. On compensation: nothing to undo.
"""

from __future__ import annotations

from holdfast.machine.graphs.graph import Node, Proxy
from holdfast.machine.runs.leaving import pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.slots import standing, void
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn


class ProxyKind(Kind):
    """Lets a token in or out."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Pass; whoever comes in begins anew."""
        assert isinstance(node.op, Proxy)
        if node.op.side == "in":
            void(turn, standing(turn), "entered_again")
        pass_through(turn, token, node)
