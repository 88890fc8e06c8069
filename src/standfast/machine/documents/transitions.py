"""The life of a document: how it begins, how people ask for its transitions, and how another one takes its place."""

from __future__ import annotations

from standfast.graph.document_index import DocumentIndex
from standfast.graph.document_spec import DocumentTransition
from standfast.graph.model import GateOp, PolicyGateOp
from standfast.graph.model import StateOp as StateNode
from standfast.kernel.actor import late_text
from standfast.kernel.decision import Answer, Rejection
from standfast.machine.documents.mutations import (
    Author,
    MutationDraft,
    action_for,
    amending_action,
    amending_acts,
    change,
    created,
    drafted,
    edit_refusal,
    incapable,
    may_do,
    may_undo,
    version_refusal,
)
from standfast.machine.documents.policies import is_denied, policy_refusal
from standfast.machine.documents.rounds import begin_round, lead
from standfast.machine.documents.rules import follow
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.routing import finish
from standfast.machine.flow.slots import interrupt
from standfast.machine.model.commands.document_commands import (
    CreateDocument,
    Mutate,
    RequestTransition,
    SupersedeDocument,
    TellDrift,
)
from standfast.machine.model.commands.run_commands import Command
from standfast.machine.model.document_state import MOST_MADE
from standfast.machine.model.events import (
    DocumentCreated,
    DocumentSuperseded,
    StepRequeued,
    TransitionRequested,
    WorkflowCancelled,
    WorkflowStarted,
)
from standfast.machine.model.queries.edit_windows import (
    document_of,
    index_of,
    is_behind_gate,
    recall_objection,
    window_of,
)
from standfast.machine.model.queries.fields import differences_of
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import ROOT, Data, StepState
from standfast.machine.recovery.pause import go_on

ADOPT = "adopt"
"""What the audit calls a document that was taken over with a status: no gate has seen it come there."""
AMENDED = "amended"
"""Why the run of a document was cancelled that another one has taken the place of."""


# -- the beginning


def create(turn: DecisionBuilder, command: CreateDocument) -> Answer | None:
    """Begin the life of a document; why not, if it cannot be."""
    refusal = _uncreatable(turn, command)
    if refusal is not None:
        return refusal
    index, actor = index_of(turn.routes), turn.moment.actor
    author = Author(actor, _acts(command), reason=command.reason)
    given = command.data if command.changes is None else command.changes
    draft = (
        drafted(turn, {}, given, author, redacted=list(given))
        if command.status
        else created(turn, given, author, redacted=command.redacted)
    )
    if not isinstance(draft, MutationDraft):
        return draft
    beyond = _beyond(turn, command, draft.data)
    if beyond is not None:
        return beyond
    spec = index.spec
    status = command.status or (spec.amended if command.amended_from else spec.initial)
    wants = actor.on_behalf_of or actor.id
    involved = [name for name in command.involved if name != wants]
    turn.emit(WorkflowStarted(input={}, requester=wants, involved=involved, looks_up=command.looks_up))
    turn.emit(
        DocumentCreated(
            entity_type=spec.entity_type,
            id=turn.moment.key,
            data=draft.data,
            status=status,
            version=command.version,
            amended_from=command.amended_from,
            amended_at=command.amended_at,
            action=ADOPT if command.status else command.action,
            by=actor.id,
            kind=actor.kind,
            roles=sorted(actor.roles),
            capabilities=sorted(actor.capabilities),
            asked=late_text(turn.moment.asked, actor.roles),
            on_behalf_of=actor.on_behalf_of,
            reason=command.reason,
            warnings=draft.warnings,
            is_adopted=bool(command.status),
            origin=command.origin,
            depth=command.depth,
            hands=command.hands,
            wrote=command.wrote,
            is_by_field=True,
        )
    )
    follow(turn, command.action, draft.rules, before=draft.held, actor=actor)
    turn.move(ROOT, index.state_of[status] if command.status else turn.routes.graph.entry)
    return None


def _acts(command: CreateDocument) -> list[str]:
    """The rules that a new document is judged by: an amendment is judged as the edit that it is, and one that is taken over by none."""
    if command.amended_from:
        return amending_acts(command.judged_as or "update")
    return [] if command.status else [command.action]


def _uncreatable(turn: DecisionBuilder, command: CreateDocument) -> Rejection | None:
    if turn.routes.documents is None:
        told = f"{turn.routes.graph.name!r} manages no documents; start it, or name the workflow of a document"
        return refused(Refusal.NO_DOCUMENT, told)
    index = turn.routes.documents
    action = index.actions.get(command.action)
    if action is None or not action.creates:
        possible = ", ".join(repr(each.name) for each in index.actions.values() if each.creates)
        told = f"{command.action!r} creates no document of the type {index.spec.entity_type!r}; there are {possible}"
        return refused(Refusal.UNKNOWN_ACTION, told)
    if not turn.moment.key:
        return refused(Refusal.NO_DOCUMENT, "a document is found by its id; give one")
    spec = index.spec
    if command.amended_from and (spec.amendment != "new_row" or spec.amended not in spec.states):
        told = f"documents of the type {spec.entity_type!r} are amended in place, or not at all"
        return refused(Refusal.NO_DOCUMENT, f"{told}; go on with the one that is there")
    known = set(spec.states) - set(spec.terminal)
    if command.status and command.status not in known:
        possible = ", ".join(map(repr, sorted(known)))
        told = f"a document cannot be taken over as {command.status!r}; it can be {possible}"
        return refused(Refusal.NO_DOCUMENT, told)
    if command.depth > MOST_MADE:
        told = f"{MOST_MADE} documents have made one another, the last one {command.origin}, and no more are made without a person"
        return refused(Refusal.DOCUMENT_DEPTH, f"{told}; have a person create it, or publish a body that stops")
    return incapable(turn, action, turn.moment.actor) or may_undo(turn, command.undo)


def _beyond(turn: DecisionBuilder, command: CreateDocument, content: Data) -> Rejection | None:
    """Why the policies do not let somebody create a document with a content, or amend one so that it has it."""
    index, actor = index_of(turn.routes), turn.moment.actor
    names = [command.action, amending_action(index).name] if command.amended_from else [command.action]
    refusals = (policy_refusal(turn, each, actor, content=content) for each in names)
    return next((each for each in refusals if each is not None), None)


def ended(turn: DecisionBuilder, command: Command) -> Rejection:
    """What is said to those who ask something of a document whose life is over: whoever may not ask that of one that lives is told nothing else."""
    document = document_of(turn.state)
    barred = _barred(turn, command)
    if barred is not None:
        return barred
    if document.superseded_by:
        told = f"{document.superseded_by!r} has taken the place of {document.id!r}; go on with that one"
        return refused(Refusal.ALREADY_SUPERSEDED, told)
    told = f"{document.id!r} is {document.status}, which is final; create another document"
    return refused(Refusal.WORKFLOW_EDIT_LOCKED, told)


def _barred(turn: DecisionBuilder, command: Command) -> Rejection | None:
    """Why somebody may not ask something, however the document stands."""
    index, actor = index_of(turn.routes), turn.moment.actor
    match command:
        case Mutate():
            action, unknown = action_for(turn, command.action)
            return unknown if action is None else may_do(turn, action, actor)
        case SupersedeDocument():
            return may_do(turn, amending_action(index), actor)
        case TellDrift():
            return None
        case RequestTransition():
            transition = index.transitions.get(command.transition)
            return _unasked(turn, transition) if transition else _unknown(index, command.transition)
        case _:
            return None


# -- transitions


def request(turn: DecisionBuilder, command: RequestTransition) -> Answer | None:
    """Ask for a transition: its gate performs it, at once if nothing lies before it."""
    index, document = index_of(turn.routes), document_of(turn.state)
    transition = index.transitions.get(command.transition)
    if transition is None:
        return _unknown(index, command.transition)
    refusal = _illegal(turn, transition) or version_refusal(turn, command.expected_version)
    if refusal is not None:
        return refusal
    author = Author(turn.moment.actor, [transition.name], reason=command.reason)
    may_set = window_of(turn.routes, turn.state).window == "editable"
    draft = drafted(turn, document.data, {}, author, may_set=may_set)
    if not isinstance(draft, MutationDraft):
        return draft
    if draft.changes and may_set:
        change(turn, draft, "update", author)
    denied = _denied(turn, transition)
    _ask(turn, command, draft.warnings, again=bool(denied))
    follow(turn, command.transition, draft.rules, before=draft.held, actor=author.actor)
    if denied:
        _try_again(turn, denied)
    else:
        _go(turn, transition)
    return None


def _unknown(index: DocumentIndex, name: str) -> Rejection:
    possible = ", ".join(map(repr, sorted(index.transitions)))
    told = f"{index.spec.entity_type!r} has no transition {name!r}; there are {possible}"
    return refused(Refusal.UNKNOWN_TRANSITION, told)


def _unasked(turn: DecisionBuilder, transition: DocumentTransition) -> Rejection | None:
    """Why somebody may not ask for a transition, wherever it leads from."""
    actor, name = turn.moment.actor, transition.name
    if actor.may(transition.capability):
        return policy_refusal(turn, name, actor)
    told = f"{actor.id!r} may not ask for {name!r}: that needs the capability {transition.capability!r}"
    return refused(Refusal.NOT_ALLOWED, told)


def _illegal(turn: DecisionBuilder, transition: DocumentTransition) -> Rejection | None:
    index, document = index_of(turn.routes), document_of(turn.state)
    name, legal = transition.name, index.legal(document.status)
    possible = f"from there lead {', '.join(map(repr, legal))}" if legal else "nothing leads on from there"
    barred = _unasked(turn, transition)
    if barred is not None:
        return barred
    if document.status not in transition.sources:
        told = f"{document.id!r} is {document.status}, and {name!r} does not lead on from that; {possible}"
        return refused(Refusal.WORKFLOW_TRANSITION_ILLEGAL, told)
    objection = recall_objection(turn.state, turn.moment.actor) if transition.kind == "recall" else ""
    if objection:
        refusal = Refusal.WORKFLOW_TRANSITION_ILLEGAL if document.sealed else Refusal.NOT_ALLOWED
        told = "amend or cancel it, or have it rejected" if document.sealed else "have them ask for it"
        return refused(refusal, f"{document.id!r} cannot be recalled by {turn.moment.actor.id!r}: {objection}; {told}")
    if not turn.routes.ways(index.state_of[document.status], name):
        told = f"no way leads from {document.status!r} to the gate of {name!r}; {possible}"
        return refused(Refusal.WORKFLOW_GATE_NOT_READY, told)
    is_under_way = document.way == name and not document.is_resting and _waiting(turn) is None
    if is_under_way and not _denied(turn, transition):
        told = f"{name!r} of {document.id!r} is under way, and its gate opens when these are done: {_open(turn)}"
        return refused(Refusal.WORKFLOW_GATE_NOT_READY, told)
    if not transition.kind and is_behind_gate(turn.routes, turn.state):
        told = f"{document.id!r} goes on from {document.status!r} once these are done, which come before: {_open(turn)}"
        return refused(Refusal.WORKFLOW_GATE_NOT_READY, told)
    return None


def _open(turn: DecisionBuilder) -> str:
    steps = [*turn.state.open.values(), *turn.state.dead.values()]
    return ", ".join(repr(step.node) for step in steps if step.of is None) or "those that are under way"


def _denied(turn: DecisionBuilder, transition: DocumentTransition) -> list[StepState]:
    """The steps on the way of a transition that were denied to whoever asked for it: somebody else, or somebody with other rights, may ask again."""
    if document_of(turn.state).way != transition.name:
        return []
    nodes = [(step, turn.routes.node(step.node)) for step in turn.state.dead.values()]
    return [step for step, node in nodes if isinstance(node.op, GateOp | PolicyGateOp) or is_denied(turn, node)]


def _try_again(turn: DecisionBuilder, denied: list[StepState]) -> None:
    """Have gates look again that have let nobody through."""
    for step in denied:
        turn.emit(StepRequeued(step=step.number, actor=turn.moment.actor.id))
        turn.move(step.token, step.node, is_asked=True)
    if turn.state.status == "paused" and turn.state.pause is None:
        go_on(turn)


def _waiting(turn: DecisionBuilder) -> StepState | None:
    """The step by which the document waits in its state."""
    steps = turn.state.open.values()
    return next((step for step in steps if isinstance(turn.routes.node(step.node).op, StateNode)), None)


def _ask(turn: DecisionBuilder, command: RequestTransition, warnings: list[str], *, again: bool) -> None:
    actor = turn.moment.actor
    turn.emit(
        TransitionRequested(
            transition=command.transition,
            by=actor.id,
            kind=actor.kind,
            on_behalf_of=actor.on_behalf_of,
            roles=sorted(actor.roles),
            capabilities=sorted(actor.capabilities),
            asked=late_text(turn.moment.asked, actor.roles),
            reason=command.reason,
            warnings=warnings,
            again=again,
        )
    )


def _go(turn: DecisionBuilder, transition: DocumentTransition) -> None:
    """Leave the state by the transition; what is under way for another one is ended."""
    waiting = _waiting(turn)
    if waiting is not None:
        turn.cancel_step_timer(waiting)
        finish(turn, waiting, transition.name)
        return
    begin_round(turn)
    interrupt(turn, "interrupted", f"{transition.name!r} was asked for")
    lead(turn, index_of(turn.routes).state_of[document_of(turn.state).status])


# -- the place of another


def supersede(turn: DecisionBuilder, command: SupersedeDocument) -> Answer | None:
    """Have another document take the place of this one, whose run ends. Nothing that it did is undone, unless that was under way."""
    index, document, actor = index_of(turn.routes), document_of(turn.state), turn.moment.actor
    if index.spec.amendment != "new_row":
        told = f"documents of the type {index.spec.entity_type!r} are amended in place; edit this one as an amendment"
        return refused(Refusal.AMENDMENT_REQUIRED, told)
    if index.spec.amended not in index.spec.states:
        told = f"the lifecycle of {index.spec.entity_type!r} has no status for amendments; create another document"
        return refused(Refusal.NOT_AMENDABLE, told)
    refusal = may_do(turn, amending_action(index), actor) or version_refusal(turn, command.expected_version)
    if refusal is not None:
        return refusal
    if window_of(turn.routes, turn.state).window == "editable":
        told = f"{document.id!r} is {document.status}, and can be edited as it is; nothing has to take its place"
        return refused(Refusal.NOT_AMENDABLE, told)
    pause = turn.state.pause
    if pause is not None:  # It would end with this run, and nothing would hold the new one.
        told = f"{pause.by!r} has paused {document.id!r} ({turn.state.error}), and nothing takes its place meanwhile"
        return refused(Refusal.ALREADY_PAUSED, f"{told}; have it resumed first")
    closed = (
        edit_refusal(turn) if command.is_forced else None
    )  # The edit was looked at in a transaction before this one.
    if closed is not None:
        return closed
    if turn.state.dropped is not None:  # The run ends with this, and what it was giving back would be kept.
        told = f"{document.id!r} is giving back what one of its branches had done; amend it when that is done"
        return refused(Refusal.ROLLBACK_IN_PROGRESS, told)
    interrupt(turn, "superseded", f"{command.superseded_by!r} takes its place")
    turn.emit(
        DocumentSuperseded(
            superseded_by=command.superseded_by,
            status=index.spec.superseded,
            by=actor.id,
            on_behalf_of=actor.on_behalf_of,
            reason=command.reason,
            fields=command.fields,
            changes=differences_of(index.spec.fields, document.data, command.changes),
        )
    )
    turn.emit(WorkflowCancelled(requested_by=actor.id, reason=AMENDED))
    return None
