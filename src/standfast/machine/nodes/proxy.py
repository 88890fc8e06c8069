"""A proxy is the way into a slot, or the way out of it.

Entered when: a token arrives, or a rejection leaves the slot. May do: at the way in, void what earlier ways through the slot have left; where the document
is sent through its slot again because approvals are void, those that are not stay in force. At the way out of a slot that no gate follows, use up
its approvals. Left when: at once; at the way out when no other branch of the document is under way, and in a slot that no gate follows, by `again`,
back to the way in, if an approval is void. On compensation: nothing to undo.
"""

from __future__ import annotations

from standfast.graph.model import AGAIN, GateOp, Node, ProxyOp
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import complete_at_once, pass_through
from standfast.machine.flow.slots import has_void, hold, in_force, standing, use_up, void
from standfast.machine.model.events import ApprovalsKept
from standfast.machine.model.queries.edit_windows import document_of, index_of
from standfast.machine.model.state import Token


class ProxyKind(Kind):
    """Lets a token in or out."""

    wait_kind = "branches"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Pass; whoever comes in begins anew, but for what stays in force."""
        assert isinstance(node.op, ProxyOp)
        if node.op.side == "in":
            kept = in_force(turn, node.op.slot) if _is_sent_back(turn, token, node.op.slot) else []
            void(turn, [step for step in standing(turn) if step not in kept], "entered_again")
            if kept:
                turn.emit(ApprovalsKept(steps=kept, slot=node.op.slot))
        elif document_of(turn.state).refused is None and hold(turn, token, node):
            return
        elif not _is_before_gate(turn, node.op.slot):
            if has_void(turn, index_of(turn.routes).regions[node.op.slot].exit):
                complete_at_once(turn, token, node, AGAIN)
                turn.move(token.id, index_of(turn.routes).way_in(node.op.slot))
                return
            use_up(turn, in_force(turn, node.op.slot), slot=node.op.slot)
        pass_through(turn, token, node)


def _is_sent_back(turn: DecisionBuilder, token: Token, slot: str) -> bool:
    """Whether the end of the slot was reached with void approvals, which are asked for anew: a gate has found them, or the way out where none follows."""
    approvals = document_of(turn.state).approvals.values()
    is_void = any(each.verdict == "void" and turn.routes.node(each.node).region == slot for each in approvals)
    return is_void and isinstance(turn.routes.node(token.node).op, GateOp | ProxyOp)


def _is_before_gate(turn: DecisionBuilder, slot: str) -> bool:
    """Whether a gate follows a slot: it sees to void approvals itself, and uses up the others."""
    return isinstance(turn.routes.node(index_of(turn.routes).regions[slot].exit).op, GateOp)
