"""Start, state and rest: where a document begins, stays, and lies between its rounds.

Entered when: a token arrives; at a state also when a transition was asked for while something else was under way. May do: tell that the document
has the status, or that a round is over. Left when: a start at once; a state by the transition that somebody asks for or that begins by
itself, at once if it leads on by `ok`, by `timeout` if nobody asks in time; a rest when the next round begins. On compensation: nothing to undo.

A proxy is the way into a slot, or the way out of it.
"""

from __future__ import annotations

from standfast.graph.model import AGAIN, AMENDED, OK, GateOp, Node, ProxyOp, RestOp, StartOp
from standfast.graph.model import StateOp as StateNode
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import complete_at_once, end, pass_through
from standfast.machine.flow.slots import has_void, hold, in_force, refuse_at_end, standing, use_up, void
from standfast.machine.flow.unneeded_branches import give_back
from standfast.machine.model.events import ApprovalsKept, DocumentMoved, RoundCompleted
from standfast.machine.model.queries.edit_windows import document_of, index_of
from standfast.machine.model.state import Token


class StartKind(Kind):
    """Begins the life of a document."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Pass, in another way for a document that amends one."""
        assert isinstance(node.op, StartOp)
        pass_through(turn, token, node, AMENDED if document_of(turn.state).amended_from else OK)


class StateKind(Kind):
    """Stays while the document has a status."""

    wait_kind = "state"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Go on by what was asked for or begins by itself; else stay. One that comes back from a gate that refused it stays."""
        assert isinstance(node.op, StateNode)
        was_refused = document_of(turn.state).refused is not None
        _move(turn, node, node.op)
        outcome = _way_on(turn, node, node.op, was_refused=was_refused)
        if outcome:
            pass_through(turn, token, node, outcome)
        else:
            turn.open_step(token, node)


def _move(turn: DecisionBuilder, node: Node, op: StateNode) -> None:
    document = document_of(turn.state)
    refused = document.refused
    if refused is not None:
        turn.emit(DocumentMoved(status=op.status, how="rejected", by=refused.by, reason=refused.reason))
        give_back(turn, node.id, f"{refused.node!r} was rejected")
    elif document.status != op.status:
        turn.emit(DocumentMoved(status=op.status, how="passed", by=turn.moment.actor.id))


def _way_on(turn: DecisionBuilder, node: Node, op: StateNode, *, was_refused: bool) -> str:
    """By what the state is left at once; empty if it is not."""
    intent = document_of(turn.state).intent
    if intent is not None and intent.is_pending and intent.transition in op.intents:
        return intent.transition
    following = index_of(turn.routes).by_itself(op.status)
    if following is not None and following.name in op.intents and not was_refused:
        return following.name
    return OK if turn.routes.ways(node.id, OK) else ""


class RestKind(Kind):
    """Lies between rounds."""

    wait_kind = "rest"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """The round is over; with a final status the life of the document is, too."""
        assert isinstance(node.op, RestOp)
        document = document_of(turn.state)
        turn.emit(RoundCompleted(round=document.round, status=document.status))
        if document.status in index_of(turn.routes).spec.terminal:
            complete_at_once(turn, token, node)
            end(turn, token, document.status)
        else:
            turn.open_step(token, node)


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
        elif document_of(turn.state).refused is None and (
            not refuse_at_end(turn, node, token=token.id) and hold(turn, token, node)
        ):
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
