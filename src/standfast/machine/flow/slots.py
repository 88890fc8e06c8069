"""How a body leaves its slot before its end: by a rejection, because another transition was asked for, or because the document was edited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from standfast.graph.model import ActionOp, GateOp, Node, ProxyOp
from standfast.kernel.actor import SYSTEM
from standfast.machine.flow.cancellation import NOT_NEEDED, stop_step, unended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.rollback import NOT_UNDONE
from standfast.machine.flow.routing import complete_at_once, end_branches
from standfast.machine.model.document_state import Approval, StandingRefusal
from standfast.machine.model.events import (
    ApprovalsApplied,
    ApprovalsVoided,
    BranchesClosed,
    SlotRejected,
    StepCompleted,
    TokenHeld,
)
from standfast.machine.model.events.document import Voiding
from standfast.machine.model.folds.task_fold import DATA_CHANGED
from standfast.machine.model.queries.edit_windows import document_of, index_of
from standfast.machine.model.state import ROOT, Data, StepState, Token

LEFT = "slot_left"
"""Why a step ended that was under way in a slot which was left."""
READY = "ready"
"""The outcome of a step that waited at the end of a slot, or before a gate, for the other tokens of the document."""


def void(turn: DecisionBuilder, steps: Iterable[int], why: Voiding, *, fields: Iterable[str] = ()) -> None:
    """These approvals count for nothing any more."""
    named = list(steps)
    if named:
        turn.emit(ApprovalsVoided(steps=named, why=why, fields=sorted(fields), by=turn.moment.actor.id))


def standing(turn: DecisionBuilder) -> dict[int, Approval]:
    """The approvals that no gate has used up and nothing has voided."""
    approvals = document_of(turn.state).approvals
    return {number: each for number, each in approvals.items() if each.verdict in {"", "approved"}}


def in_force(turn: DecisionBuilder, slot: str) -> list[int]:
    """The steps of a slot by which the document is approved as it is."""
    approvals = document_of(turn.state).approvals.items()
    return [
        step for step, each in approvals if each.verdict == "approved" and turn.routes.node(each.node).region == slot
    ]


def use_up(turn: DecisionBuilder, steps: Sequence[int], *, transition: str = "", slot: str = "") -> None:
    """A gate, or the way out of a slot, has relied on these approvals: nobody turns them back. Those that it did not come to this time are void."""
    kept = [step for step in steps if document_of(turn.state).approvals[step].is_kept]
    void(turn, kept, "entered_again")
    used = [step for step in steps if step not in kept]
    if used:
        turn.emit(ApprovalsApplied(steps=used, transition=transition, slot=slot))


def has_void(turn: DecisionBuilder, exit_: str) -> bool:
    """Whether an approval is void of a slot that leads to a node. What is left of another one, which was interrupted, is nobody's matter there."""
    regions = index_of(turn.routes).regions
    return any(
        each.verdict == "void" and regions[turn.routes.node(each.node).region].exit == exit_
        for each in document_of(turn.state).approvals.values()
    )


def standing_refusals(turn: DecisionBuilder, exit_: str) -> dict[int, StandingRefusal]:
    """The refusals in slots that lead to a gate which no approval behind them has answered."""
    refusals = document_of(turn.state).refusals
    if not refusals or not isinstance(turn.routes.node(exit_).op, GateOp):
        return {}
    regions = index_of(turn.routes).regions
    found = ((step, each, regions.get(turn.routes.node(each.node).region)) for step, each in refusals.items())
    return {step: each for step, each, region in found if region is not None and region.exit == exit_}


def refuse_at_end(turn: DecisionBuilder, node: Node, *, token: str = "") -> bool:
    """Refuse the document at the end of a slot if a refusal stands there: one on the way of this token, if a token is named. Returns whether it did."""
    region = index_of(turn.routes).regions.get(node.region)
    found = standing_refusals(turn, node.id if region is None else region.exit)
    named = next(((step, each) for step, each in found.items() if not token or each.token == token), None)
    if named is None:
        return False
    step, refusal = named
    void(turn, standing(turn), "rejected")
    _gather(turn, f"{refusal.node!r} was {refusal.outcome}")
    turn.emit(_told_of(turn, step, refusal))
    return True


def refuse_in_branch(turn: DecisionBuilder, token: Token, node: Node) -> bool:
    """Refuse the document at a join to which a refused branch has come, if no approval lies behind that could answer. Returns whether it did."""
    document = turn.state.document
    if document is None or not document.refusals or node.id in index_of(turn.routes).before_approvals:
        return False
    if not can_leave_slot(turn, node.id) or not refuse_at_end(turn, node, token=token.id):
        return False
    _go_out(turn, node.region)
    return True


def _told_of(turn: DecisionBuilder, step: int, refusal: StandingRefusal) -> SlotRejected:
    told = refusal.reason or f"{refusal.node!r} was left by {refusal.outcome!r}, and nobody has approved behind it"
    slot = turn.routes.node(refusal.node).region
    return SlotRejected(slot=slot, step=step, node=refusal.node, by=refusal.by or SYSTEM.id, reason=told)


# -- waiting for the others


def hold(turn: DecisionBuilder, token: Token, node: Node) -> bool:
    """Have a token wait at the end of a slot, or before a gate, while other work of the document is under way; whether it waits."""
    if not _is_unfinished(turn, node):
        return False
    turn.open_step(token, node)
    return True


def release(turn: DecisionBuilder) -> bool:
    """Let the token go on that waits for the others, once they are over; whether it does."""
    state = turn.state
    token = state.tokens.get(ROOT)
    if token is None or not token.node or not state.may_begin:
        return False
    node = turn.routes.node(token.node)
    if not isinstance(node.op, GateOp | ProxyOp):
        return False
    step = next((each for each in state.open.values() if each.token == ROOT and each.of is None), None)
    if step is None or step.asked_at:  # It waits for a directory that is asked, and not for others.
        return False
    if _is_unfinished(turn, node):
        _tell_of_halt(turn)
        return False
    turn.emit(StepCompleted(step=step.number, outcome=READY))
    turn.move(ROOT, step.node, is_asked=True)
    return True


def _is_unfinished(turn: DecisionBuilder, node: Node) -> bool:
    """Whether a branch of the document is under way, or is being undone and may still change the document.

    The gate to a final status does not wait for that: nobody relies on the content any more.
    """
    state, index = turn.state, index_of(turn.routes)
    if len(state.tokens) > 1 or state.parked:
        return True
    is_final = isinstance(node.op, GateOp) and index.transitions[node.op.transition].target in index.spec.terminal
    return not is_final and _is_written_back(turn)


def _is_written_back(turn: DecisionBuilder) -> bool:
    """Whether an action on the document itself is still to be undone. What is undone elsewhere does not hold it up."""
    state = turn.state
    if state.dropped is None:
        return False
    nodes = [state.executed[number].node for number in state.dropped.chain if number in state.executed]
    nodes += [step.node for step in state.open.values() if step.of is not None]
    return any(isinstance(op := turn.routes.node(name).op, ActionOp) and not op.of for name in nodes)


def _tell_of_halt(turn: DecisionBuilder) -> None:
    """Pause the run if it waits for an action to be undone that could not be: only an operator can bring it on."""
    state = turn.state
    if len(state.tokens) == 1 and not state.parked and state.dropped is not None and state.dropped.stuck is not None:
        node, why = state.executed[state.dropped.stuck].node, state.dropped.whence
        turn.pause(NOT_UNDONE, f"{node!r}, {why}, could not be undone")


# -- leaving early


def interrupt(turn: DecisionBuilder, why: Voiding, told: str) -> None:
    """End all that is under way for the document, so that its token can be sent elsewhere. Nothing of it is undone."""
    void(turn, standing(turn), why)
    turn.forget_moves()  # An edit may have had questions put anew.
    _gather(turn, told, DATA_CHANGED if why == "edited" else "")


def _gather(turn: DecisionBuilder, told: str, why: str = "") -> None:
    """End every branch and every step, also those of branches whose join did not wait for them; the token that the run began with is left."""
    state = turn.state
    outer = [each for each in state.scopes.values() if each.parent == ROOT]
    branches = dict.fromkeys(name for scope in outer for name in scope.live)
    branches |= dict.fromkeys(_outermost(name) for name in (*state.tokens, *state.parked) if name != ROOT)
    end_branches(turn, list(branches), error=told, reason=why or NOT_NEEDED)
    for scope in outer:
        turn.emit(BranchesClosed(step=scope.step))
    for step in unended(turn):
        if step.of is None:
            stop_step(turn, step, "drop", error=told, reason=why or LEFT)


def _outermost(token: str) -> str:
    """The branch of the first token that a token is, or lies below."""
    return "/".join(token.split("/", 2)[:2])


def reject_slot(turn: DecisionBuilder, step: StepState, outcome: str, answer: Data) -> None:
    """A rejection that no edge routes leaves the slot: the others are ended, and the gate hears of it."""
    turn.emit(StepCompleted(step=step.number, outcome=outcome, output=answer))
    by, reason = str(answer.get("decided_by", "")), str(answer.get("comment", ""))
    _leave(turn, step.number, step.node, outcome, by=by, reason=reason)


def block_slot(turn: DecisionBuilder, token: Token, node: Node, outcome: str, *, by: str, reason: str) -> None:
    """A rule that blocks the document where no edge leads on from that refuses it, like somebody who rejects it."""
    number = complete_at_once(turn, token, node, outcome, output={"reason": reason})
    _leave(turn, number, node.id, outcome, by=by, reason=reason)


def _leave(turn: DecisionBuilder, step: int, node: str, outcome: str, *, by: str, reason: str) -> None:
    slot = turn.routes.node(node).region
    void(turn, standing(turn), "rejected")
    _gather(turn, f"{node!r} was {outcome}")
    turn.emit(SlotRejected(slot=slot, step=step, node=node, by=by, reason=reason))
    _go_out(turn, slot)


def _go_out(turn: DecisionBuilder, slot: str) -> None:
    """Send the token of a document out of a slot that a rejection has left."""
    target = index_of(turn.routes).way_out(slot)
    if turn.state.tokens[ROOT].stay is not None:  # It must not go on to where it was held.
        turn.emit(TokenHeld(token=ROOT, target=target))
    else:
        turn.move(ROOT, target)


def can_leave_slot(turn: DecisionBuilder, node: str) -> bool:
    """Whether a node lies in a slot that a rejection can leave."""
    documents = turn.routes.documents
    return documents is not None and bool(documents.way_out(turn.routes.node(node).region))
