"""How a body leaves its slot before its end: by a rejection, because another transition was asked for, or because the document was edited."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.machine.graphs.graph import Node
from holdfast.machine.runs.document import Approval
from holdfast.machine.runs.ending import stop_step, unended
from holdfast.machine.runs.events import ApprovalsVoided, BranchesClosed, SlotRejected, StepCompleted
from holdfast.machine.runs.events.document import Voiding
from holdfast.machine.runs.leaving import complete_at_once, end_branches
from holdfast.machine.runs.state import ROOT, Data, Step, Token
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of, index_of

LEFT = "slot_left"
"""Why a step ended that was under way in a slot which was left."""


def void(turn: Turn, steps: Iterable[int], why: Voiding, *, fields: Iterable[str] = ()) -> None:
    """These approvals count for nothing any more."""
    named = list(steps)
    if named:
        turn.emit(ApprovalsVoided(steps=named, why=why, fields=sorted(fields), by=turn.moment.actor.id))


def standing(turn: Turn) -> dict[int, Approval]:
    """The approvals that no gate has used up and nothing has voided."""
    approvals = document_of(turn.state).approvals
    return {number: each for number, each in approvals.items() if each.verdict in {"", "approved"}}


def in_force(turn: Turn, slot: str) -> list[int]:
    """The steps of a slot by which the document is approved as it is."""
    approvals = document_of(turn.state).approvals.items()
    return [
        step for step, each in approvals if each.verdict == "approved" and turn.routes.node(each.node).region == slot
    ]


def has_void(turn: Turn, exit_: str) -> bool:
    """Whether an approval is void of a slot that leads to a node. What is left of another one, which was interrupted, is nobody's matter there."""
    regions = index_of(turn.routes).regions
    return any(
        each.verdict == "void" and regions[turn.routes.node(each.node).region].exit == exit_
        for each in document_of(turn.state).approvals.values()
    )


def interrupt(turn: Turn, why: Voiding, told: str) -> None:
    """End all that is under way for the document, so that its token can be sent elsewhere. Nothing of it is undone."""
    void(turn, standing(turn), why)
    turn.forget_moves()  # An edit may have had questions put anew.
    _gather(turn, told)


def _gather(turn: Turn, told: str) -> None:
    """End every branch and every step; the token that the run began with is left."""
    for scope in [each for each in turn.state.scopes.values() if each.parent == ROOT]:
        end_branches(turn, list(scope.live), error=told)
        turn.emit(BranchesClosed(step=scope.step))
    for step in unended(turn):
        if step.of is None:
            stop_step(turn, step, "drop", error=told, reason=LEFT)


def reject_slot(turn: Turn, step: Step, outcome: str, answer: Data) -> None:
    """A rejection that no edge routes leaves the slot: the others are ended, and the gate hears of it."""
    turn.emit(StepCompleted(step=step.number, outcome=outcome, output=answer))
    by, reason = str(answer.get("decided_by", "")), str(answer.get("comment", ""))
    _leave(turn, step.number, step.node, outcome, by=by, reason=reason)


def block_slot(turn: Turn, token: Token, node: Node, outcome: str, *, by: str, reason: str) -> None:
    """A rule that blocks the document where no edge leads on from that refuses it, like somebody who rejects it."""
    number = complete_at_once(turn, token, node, outcome, output={"reason": reason})
    _leave(turn, number, node.id, outcome, by=by, reason=reason)


def _leave(turn: Turn, step: int, node: str, outcome: str, *, by: str, reason: str) -> None:
    slot = turn.routes.node(node).region
    void(turn, standing(turn), "rejected")
    _gather(turn, f"{node!r} was {outcome}")
    turn.emit(SlotRejected(slot=slot, step=step, node=node, by=by, reason=reason))
    turn.move(ROOT, index_of(turn.routes).way_out(slot))


def can_leave_slot(turn: Turn, node: str) -> bool:
    """Whether a node lies in a slot that a rejection can leave."""
    documents = turn.routes.documents
    return documents is not None and bool(documents.way_out(turn.routes.node(node).region))
