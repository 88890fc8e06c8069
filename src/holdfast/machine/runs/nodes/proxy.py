"""A proxy is the way into a slot, or the way out of it.

Entered when: a token arrives, or a rejection leaves the slot. May do: at the way in, void what earlier ways through the slot have left; where a gate
sends the document through its slot again because approvals are void, those that are not stay in force. Left when: at once. On compensation: nothing to
undo.
"""

from __future__ import annotations

from holdfast.machine.graphs.graph import Gate, Node, Proxy
from holdfast.machine.runs.events import ApprovalsKept
from holdfast.machine.runs.leaving import pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.slots import in_force, standing, void
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of


class ProxyKind(Kind):
    """Lets a token in or out."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Pass; whoever comes in begins anew, but for what stays in force."""
        assert isinstance(node.op, Proxy)
        if node.op.side == "in":
            kept = in_force(turn, node.op.slot) if _is_sent_back(turn, token, node.op.slot) else []
            void(turn, [step for step in standing(turn) if step not in kept], "entered_again")
            if kept:
                turn.emit(ApprovalsKept(steps=kept, slot=node.op.slot))
        pass_through(turn, token, node)


def _is_sent_back(turn: Turn, token: Token, slot: str) -> bool:
    """Whether a gate has found approvals of the slot void, which are asked for anew."""
    came_from = turn.routes.node(token.node).op if token.node else None
    approvals = document_of(turn.state).approvals.values()
    is_void = any(each.verdict == "void" and turn.routes.node(each.node).region == slot for each in approvals)
    return isinstance(came_from, Gate) and is_void
