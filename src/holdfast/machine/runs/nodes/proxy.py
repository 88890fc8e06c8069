"""A proxy is the way into a slot, or the way out of it.

Entered when: a token arrives, or a rejection leaves the slot. May do: at the way in, void what earlier ways through the slot have left; where the document
is sent through its slot again because approvals are void, those that are not stay in force. Left when: at once; at the way out when no other branch of
the document is under way, and in a slot that no gate follows, by `again`, back to the way in, if an approval is void. On compensation: nothing to undo.
"""

from __future__ import annotations

from holdfast.machine.graphs.graph import AGAIN, Gate, Node, Proxy
from holdfast.machine.runs.events import ApprovalsKept
from holdfast.machine.runs.leaving import complete_at_once, pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.slots import has_void, hold, in_force, standing, void
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of, index_of


class ProxyKind(Kind):
    """Lets a token in or out."""

    wait_kind = "branches"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Pass; whoever comes in begins anew, but for what stays in force."""
        assert isinstance(node.op, Proxy)
        if node.op.side == "in":
            kept = in_force(turn, node.op.slot) if _is_sent_back(turn, token, node.op.slot) else []
            void(turn, [step for step in standing(turn) if step not in kept], "entered_again")
            if kept:
                turn.emit(ApprovalsKept(steps=kept, slot=node.op.slot))
        elif document_of(turn.state).refused is None and hold(turn, token, node):
            return
        elif _is_void(turn, node.op.slot):
            complete_at_once(turn, token, node, AGAIN)
            turn.move(token.id, index_of(turn.routes).way_in(node.op.slot))
            return
        pass_through(turn, token, node)


def _is_sent_back(turn: Turn, token: Token, slot: str) -> bool:
    """Whether the end of the slot was reached with void approvals, which are asked for anew: a gate has found them, or the way out where none follows."""
    approvals = document_of(turn.state).approvals.values()
    is_void = any(each.verdict == "void" and turn.routes.node(each.node).region == slot for each in approvals)
    return is_void and isinstance(turn.routes.node(token.node).op, Gate | Proxy)


def _is_void(turn: Turn, slot: str) -> bool:
    """Whether an approval of a slot is void that no gate follows: a gate would see to it that it is asked for again."""
    exit_ = index_of(turn.routes).regions[slot].exit
    return not isinstance(turn.routes.node(exit_).op, Gate) and has_void(turn, exit_)
