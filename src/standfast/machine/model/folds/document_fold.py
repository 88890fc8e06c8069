"""How events change a document, and what those of steps mean for its approvals. The state is changed in place.

The fold of a run that follows another version of its graph: what is at a node is at that one's counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from standfast.graph.index import GraphIndex
from standfast.graph.model import BLOCKED, ERROR, TIMEOUT, WITHDRAWN, GateOp, HumanOp, ProxyOp, RuleOp
from standfast.graph.model import StateOp as StateNode
from standfast.machine.model import events as e
from standfast.machine.model.document_state import ALL_FIELDS, Approval, Document, Intent, Refused, StandingRefusal
from standfast.machine.model.events import WorkflowSwitched
from standfast.machine.model.queries.branches import branch_of, entry_of, lies_below
from standfast.machine.model.queries.edit_windows import index_of
from standfast.machine.model.state import BranchScope, Followed, RunState, Token

V = TypeVar("V")


def switched(_routes: GraphIndex, state: RunState, event: WorkflowSwitched) -> None:
    """The run goes on there."""
    nodes = event.nodes
    for token in (*state.tokens.values(), *state.parked.values()):
        _token(token, nodes)
    for step in (*state.open.values(), *state.dead.values(), *state.frozen.values()):
        step.node = nodes.get(step.node, step.node)
    for executed in state.executed.values():
        executed.node = nodes.get(executed.node, executed.node)
    state.deciders = _renamed(state.deciders, nodes)
    if state.document is not None:
        for approval in state.document.approvals.values():
            approval.node = nodes.get(approval.node, approval.node)
        for refusal in state.document.refusals.values():
            refusal.node = nodes.get(refusal.node, refusal.node)
    state.workflow = Followed(tenant=event.tenant, version=event.version)


def _token(token: Token, nodes: Mapping[str, str]) -> None:
    token.node = nodes.get(token.node, token.node)
    token.visits = _renamed(token.visits, nodes)
    stay = token.stay
    if stay is not None:
        stay.target, stay.node = nodes.get(stay.target, stay.target), nodes.get(stay.node, stay.node)


def _renamed(named: Mapping[str, V], nodes: Mapping[str, str]) -> dict[str, V]:
    """The same by the names of now; where a name was another's before, that one is no more."""
    gone = {new for old, new in nodes.items() if old in named}
    return {nodes.get(name, name): value for name, value in named.items() if name in nodes or name not in gone}


def _document(state: RunState) -> Document:
    assert state.document is not None
    return state.document


def _created(_routes: GraphIndex, state: RunState, event: e.DocumentCreated) -> None:
    state.document = Document(
        type=event.entity_type,
        id=event.id,
        status=event.status,
        version=event.version,
        data=dict(event.data),
        depth=event.depth,
        amended_from=event.amended_from,
        amended_at=event.amended_at,
        org=event.org,
        related=event.related,
        updated_by=event.by,
        hands=_with(event.hands, event),
        wrote=_written(event.wrote, event.hands, event, event.data),
        intent=_first_intent(event),
    )


def _first_intent(event: e.DocumentCreated) -> Intent | None:
    """Until somebody asks for a transition, what happens by itself happens in the name of whoever created the document."""
    if event.kind is None:
        return None
    return Intent(
        transition="",
        by=event.by,
        kind=event.kind,
        on_behalf_of=event.on_behalf_of,
        roles=event.roles,
        capabilities=event.capabilities,
        asked=event.asked,
        is_pending=False,
    )


def _with(hands: list[str], event: e.DocumentCreated | e.DocumentChanged) -> list[str]:
    """Those who wrote a document, with whoever has written it just now."""
    return list(dict.fromkeys([*hands, *(each for each in (event.by, event.on_behalf_of) if each)]))


def _written(
    wrote: dict[str, list[str]],
    hands: Collection[str],
    event: e.DocumentCreated | e.DocumentChanged,
    fields: Iterable[str],
) -> dict[str, list[str]]:
    """The fields that each author wrote, with those of just now. An author of whom that is not known stays the author of all."""
    found = dict(wrote)
    for name in sorted({event.by, event.on_behalf_of} - {""}):
        if not event.is_by_field:
            found.pop(name, None)
        elif name in found or name not in hands:
            found[name] = sorted({*found.get(name, ()), *fields})
    return found


def _changed(_routes: GraphIndex, state: RunState, event: e.DocumentChanged) -> None:
    document = _document(state)
    laid = {**document.data, **event.changes}
    document.data = {name: value for name, value in laid.items() if value is not None}
    document.version, document.updated_by = event.version, event.by
    if not event.run_as:  # A step acts for whoever asked for the transition, and they count anyway.
        document.wrote = _written(document.wrote, document.hands, event, event.changes)
        document.hands = _with(document.hands, event)
    if event.related is not None:
        document.related = event.related


def _moved(routes: GraphIndex, state: RunState, event: e.DocumentMoved) -> None:
    document = _document(state)
    if event.how == "amended":
        document.amended_at = document.amended_at or document.status
    elif has_led_back(routes, document, event):
        document.amended_at = ""
    document.status, document.refused, document.approvals, document.refusals = event.status, None, {}, {}
    document.updated_by = event.by
    document.is_back = event.how == "rejected" or _is_no_way_on(routes, event.transition)
    if document.sealed and routes.documents is not None and routes.documents.spec.states[event.status] == "editable":
        document.sealed = []


def has_led_back(routes: GraphIndex, document: Document, event: e.DocumentMoved) -> bool:
    """Whether a gate leads an amendment on to the status in which the document was amended, so that it is in force."""
    is_on = event.how == "passed" and bool(event.transition) and not _is_no_way_on(routes, event.transition)
    return is_on and event.status == document.amended_at


def _is_no_way_on(routes: GraphIndex, transition: str) -> bool:
    known = index_of(routes).transitions.get(transition)
    return known is not None and bool(known.kind)


def _requested(_routes: GraphIndex, state: RunState, event: e.TransitionRequested) -> None:
    document = _document(state)
    known = document.intent if event.again else None
    document.intent = Intent(
        transition=event.transition,
        by=event.by,
        kind=event.kind,
        on_behalf_of=event.on_behalf_of,
        roles=event.roles,
        capabilities=event.capabilities,
        asked=event.asked,
        reason=event.reason,
        is_pending=not event.again,
        before=[] if known is None else _asked_before(known),
    )
    document.timed_out, document.refused = "", None  # What was on its way to a gate does not come there any more.
    if event.org is not None:
        document.org = event.org
    if event.related is not None:
        document.related = event.related
    state.chain = 0


def _facts_read(_routes: GraphIndex, state: RunState, event: e.FactsRead) -> None:
    document = _document(state)
    if event.org is not None:
        document.org, document.org_version = event.org, event.org_version
    if event.sources:
        document.related = {**document.related, **event.related}
        document.sources = {**document.sources, **event.sources}


def _asked_before(intent: Intent) -> list[str]:
    return list(dict.fromkeys(each for each in (*intent.before, intent.by, intent.on_behalf_of) if each))


_ASKED_AGAIN = frozenset({"edited", "repaired", "withdrawn"})
"""Why an approval is void that the gate has asked for again."""


def _voided(_routes: GraphIndex, state: RunState, event: e.ApprovalsVoided) -> None:
    approvals = _document(state).approvals
    for step in event.steps:
        known = approvals[step]
        # One that the way has not come to yet is asked for anew when it does: no gate has to send the document back for it.
        if event.why in _ASKED_AGAIN and known.verdict == "approved" and not known.is_kept:
            known.verdict = "void"
        else:
            del approvals[step]


def _applied(routes: GraphIndex, state: RunState, event: e.ApprovalsApplied) -> None:
    document = _document(state)
    by = f"the end of {event.slot!r}" if event.slot else f"the gate of {event.transition!r}"
    document.used |= dict.fromkeys(event.steps, by)
    can_be_edited = event.slot and index_of(routes).spec.states[document.status] == "editable"
    for step in event.steps:
        op = routes.node(document.approvals.pop(step).node).op
        assert isinstance(op, HumanOp)
        if not can_be_edited:
            document.sealed = sorted({*document.sealed, *(op.covers or (ALL_FIELDS,))})


def _kept(_routes: GraphIndex, state: RunState, event: e.ApprovalsKept) -> None:
    for step in event.steps:
        _document(state).approvals[step].is_kept = True


def _ruled(_routes: GraphIndex, _state: RunState, _event: e.RulesApplied) -> None:
    """What they have changed is told by an event of its own."""


def _rejected(_routes: GraphIndex, state: RunState, event: e.SlotRejected) -> None:
    _document(state).refused = Refused(
        slot=event.slot, step=event.step, node=event.node, by=event.by, reason=event.reason
    )


def _round_started(_routes: GraphIndex, state: RunState, event: e.RoundStarted) -> None:
    document = _document(state)
    document.round, document.is_resting, document.used = event.round, False, {}


def _round_completed(routes: GraphIndex, state: RunState, event: e.RoundCompleted) -> None:
    document = _document(state)
    document.is_resting = True
    if is_through(routes, document, event):
        document.amended_at = ""


def is_through(routes: GraphIndex, document: Document, event: e.RoundCompleted) -> bool:
    """Whether a round has led an amendment on, so that it is in force: it was not sent back, taken back or closed."""
    return not document.is_back and event.status not in index_of(routes).spec.terminal


def _superseded(_routes: GraphIndex, state: RunState, event: e.DocumentSuperseded) -> None:
    document = _document(state)
    document.status, document.superseded_by, document.updated_by = event.status, event.superseded_by, event.by


def _redacted(_routes: GraphIndex, _state: RunState, _event: e.DocumentRedacted) -> None:
    """The events before it say already what is left."""


TABLE: dict[type[e.Event], Callable[..., None]] = {
    e.DocumentCreated: _created,
    e.DocumentChanged: _changed,
    e.DocumentMoved: _moved,
    e.TransitionRequested: _requested,
    e.FactsRead: _facts_read,
    e.ApprovalsVoided: _voided,
    e.ApprovalsApplied: _applied,
    e.ApprovalsKept: _kept,
    e.RulesApplied: _ruled,
    e.SlotRejected: _rejected,
    e.RoundStarted: _round_started,
    e.RoundCompleted: _round_completed,
    e.DocumentSuperseded: _superseded,
    e.WorkflowSwitched: switched,
    e.DocumentRedacted: _redacted,
}


# -- what steps mean for a document


def notice(routes: GraphIndex, state: RunState, event: e.Event) -> None:
    """A document takes note of an event about one of its steps, after that has changed the rest of the state."""
    look = _NOTICED.get(type(event))
    if look is not None:
        look(routes, _document(state), state, event)
    if type(event) in AUDITED:
        _document(state).sequence += 1


def _step_started(routes: GraphIndex, document: Document, state: RunState, event: e.StepStarted) -> None:
    op = routes.node(event.node).op
    if isinstance(op, HumanOp) and op.pins:
        entry = entry_of(routes, state.tokens[event.token])
        document.approvals[event.step] = Approval(
            node=event.node, version=document.version, token=event.token, entry=entry
        )


def _decided(_routes: GraphIndex, document: Document, state: RunState, event: e.TaskDecided) -> None:
    approval = document.approvals.get(event.step)
    if approval is not None:
        approval.given = [*approval.given, state.questions[event.step].decisions]


def _withdrawn(_routes: GraphIndex, document: Document, state: RunState, event: e.DecisionWithdrawn) -> None:
    approval = document.approvals.get(event.step)
    if approval is not None:
        approval.given = [given.sequence for given in state.questions[event.step].given]


def _answered(routes: GraphIndex, document: Document, state: RunState, event: e.StepAnswered) -> None:
    approval = document.approvals.get(event.step)
    if approval is None:
        return
    op = routes.node(approval.node).op
    assert isinstance(op, HumanOp)
    approval.verdict = "approved" if event.outcome == op.approval else "declined"
    if approval.verdict == "approved":
        _answer_refusals(document, approval.token)
    else:
        _refuse(document, event.step, event.outcome, by=event.actor, reason=event.comment)
    if not event.decisions and event.outcome != WITHDRAWN:
        question = state.questions.get(event.step)
        approval.given = [1 if question is None else question.decisions + 1]


def _step_completed(routes: GraphIndex, document: Document, state: RunState, event: e.StepCompleted) -> None:
    node = event.node or _node_of(state, event)
    op = routes.node(node).op if node else None
    if isinstance(op, ProxyOp) and op.side == "in":
        document.approvals = {n: each for n, each in document.approvals.items() if each.verdict == "approved"}
        document.refused, document.refusals = None, {}
    elif isinstance(op, StateNode):
        document.way = _transition_behind(routes, node) if event.outcome == TIMEOUT else event.outcome
        document.timed_out = op.status if event.outcome == TIMEOUT else ""
        if document.intent is not None:
            document.intent.is_pending = False
    elif (kept := document.kept(node, event.token, entry_of(routes, state.tokens.get(event.token)))) is not None:
        kept.is_kept = False
    elif isinstance(op, RuleOp) and event.outcome == BLOCKED:
        document.refusals[event.step] = StandingRefusal(node=node, token=event.token, outcome=BLOCKED)
    else:
        _pass_by(document, event.step, event.outcome)


def _transition_behind(routes: GraphIndex, node: str) -> str:
    """The transition that is asked for when a document has waited in its state for too long."""
    (way,) = routes.ways(node, TIMEOUT)
    op = routes.node(way.target).op
    if isinstance(op, ProxyOp) and routes.documents is not None:
        op = routes.node(routes.documents.regions[op.slot].exit).op
    assert isinstance(op, GateOp)
    return op.transition


def _node_of(state: RunState, event: e.StepCompleted) -> str:
    """Where a step was that has just ended: it is the last one that was executed."""
    executed = state.executed.get(event.step)
    return "" if executed is None else executed.node


def _step_failed(_routes: GraphIndex, document: Document, _state: RunState, event: e.StepFailed) -> None:
    if event.reason:  # It was stopped, so nothing goes on from it.
        _forget(document, event.step)
    else:
        _pass_by(document, event.step, ERROR)


def _step_skipped(_routes: GraphIndex, document: Document, _state: RunState, event: e.StepSkipped) -> None:
    _pass_by(document, event.step, event.outcome)


def _step_paused(_routes: GraphIndex, document: Document, _state: RunState, event: e.StepPaused) -> None:
    _forget(document, event.step)


def _forget(document: Document, step: int) -> None:
    """A question that ended without a decision approves nothing."""
    approval = document.approvals.get(step)
    if approval is not None and not approval.verdict:
        del document.approvals[step]


# -- refusals that edges route on


def _refuse(document: Document, step: int, outcome: str, *, by: str = "", reason: str = "") -> None:
    """A question was left otherwise than by an approval."""
    known = document.approvals[step]
    document.refusals[step] = StandingRefusal(node=known.node, token=known.token, outcome=outcome, by=by, reason=reason)


def _pass_by(document: Document, step: int, outcome: str) -> None:
    """A question that ended without a decision approves nothing, and its token goes on past it."""
    approval = document.approvals.get(step)
    if approval is not None and not approval.verdict:
        _refuse(document, step, outcome)
    _forget(document, step)


def _answer_refusals(document: Document, token: str) -> None:
    """An approval was given on the way of a token: it answers what was refused before on this way."""
    for step, refusal in list(document.refusals.items()):
        if refusal.token == token:
            del document.refusals[step]
        elif lies_below(token, refusal.token):
            refusal.answered = [*refusal.answered, token]


def _token_ended(_routes: GraphIndex, document: Document, state: RunState, event: e.TokenEnded) -> None:
    """What was said in a branch that was cancelled, or has failed, does not count. What was refused in one that ends after the others have met does."""
    if event.reason != "finished":
        document.refusals = {
            step: each for step, each in document.refusals.items() if not lies_below(each.token, event.token)
        }
        for refusal in document.refusals.values():
            refusal.answered = [each for each in refusal.answered if not lies_below(each, event.token)]
        return
    above, split = event.token.rpartition("/")[0], event.token.rpartition("/")[2].partition(".")[0]
    if not above or int(split) in state.scopes:
        return
    while above not in state.tokens and above not in state.parked:
        above = above.rpartition("/")[0]
    for refusal in document.refusals.values():
        refusal.token = above if refusal.token == event.token else refusal.token


def branches_met(state: RunState, scope: BranchScope) -> None:
    """What was said in branches that have met counts for the token that goes on. Branches that a join has not accepted count only if it accepted none."""
    document, arrived = state.document, frozenset(scope.arrived)
    if document is None or not document.refusals:
        return
    below = f"{scope.parent}/{scope.step}."
    for step, refusal in list(document.refusals.items()):
        refusal.answered = _met(refusal, scope, arrived)
        if not refusal.token.startswith(below):
            if scope.parent == refusal.token and scope.parent in refusal.answered:
                del document.refusals[step]
        elif refusal.token in {*state.tokens, *state.parked} - arrived:
            continue
        elif branch_of(refusal.token, arrived) or not arrived:
            refusal.token = scope.parent
        else:
            del document.refusals[step]


def _met(refusal: StandingRefusal, scope: BranchScope, arrived: frozenset[str]) -> list[str]:
    """The branches in which a refusal was answered, once these have met."""
    below = f"{scope.parent}/{scope.step}."
    if refusal.token.startswith(below):
        return refusal.answered
    found = (
        each if not each.startswith(below) else scope.parent if branch_of(each, arrived) else ""
        for each in refusal.answered
    )
    return list(dict.fromkeys(each for each in found if each))


_NOTICED: dict[type[e.Event], Callable[..., None]] = {
    e.StepStarted: _step_started,
    e.TaskDecided: _decided,
    e.DecisionWithdrawn: _withdrawn,
    e.StepAnswered: _answered,
    e.StepCompleted: _step_completed,
    e.StepFailed: _step_failed,
    e.StepPaused: _step_paused,
    e.StepSkipped: _step_skipped,
    e.TokenEnded: _token_ended,
}

AUDITED: frozenset[type[e.Event]] = frozenset(
    {
        *(TABLE.keys() - {e.FactsRead}),
        e.StepAnswered,
        e.TaskDecided,
        e.DecisionWithdrawn,
        e.StepCompleted,
        e.StepFailed,
        e.StepPaused,
        e.StepSkipped,
        e.BranchCancelled,
        e.ActNoted,
    }
)
"""What the audit of a document tells of."""
