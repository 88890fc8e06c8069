"""The one way in which a document changes: what is given, who may, where it is allowed, what rules say; then all at once.

The order is that of the refusals: nothing that comes later has been looked at when something before it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from standfast.errors import ExpressionError
from standfast.graph.document_index import DocumentIndex
from standfast.graph.document_spec import DocumentAction
from standfast.graph.model import AMEND, DocumentRule, HumanOp, WaitEventsOp, WaitTimerOp
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Answer, Ignored, Rejection
from standfast.machine.documents.policies import policy_refusal, undo_objection
from standfast.machine.documents.rounds import begin_round, lead
from standfast.machine.documents.rules import Judged, follow, judge, rules_for
from standfast.machine.documents.visibility import HiddenPartError, with_hidden_parts
from standfast.machine.flow.cancellation import stop_step
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.list_branches import enter_changed, lists_of_document
from standfast.machine.flow.routing import value_of
from standfast.machine.flow.slots import LEFT, interrupt, standing, void
from standfast.machine.model.commands.document_commands import Mutate, TellDrift
from standfast.machine.model.commands.run_commands import PauseWorkflow
from standfast.machine.model.document_state import CHANGED_ELSEWHERE, DRIFT, Approval
from standfast.machine.model.events import ActNoted, DocumentChanged, DocumentMoved
from standfast.machine.model.folds.task_fold import DATA_CHANGED
from standfast.machine.model.queries.correlation import key_or_none
from standfast.machine.model.queries.edit_windows import document_of, index_of, window_of
from standfast.machine.model.queries.expression_scope import text_names
from standfast.machine.model.queries.fields import (
    Data,
    defaults_of,
    faults_of,
    is_same,
    marks_of,
    not_given,
    with_computed,
)
from standfast.machine.model.queries.outputs import is_within, too_large
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.recovery.pause import DRIFTED, go_on, hold_run, not_pausable

UNCHANGED = Ignored(reason="the document has these values already")
EDITED = "the document was edited"


class Author(NamedTuple):
    """Who changes a document."""

    actor: Actor
    acts: Sequence[str]
    """What they do: the actions and transitions whose rules the organisation wants judged first."""
    run_as: str = ""
    """As whom a step of the workflow does; empty if a person does."""
    step: int = 0
    reason: str = ""
    origin: str = ""
    """The other document whose step does, or a schedule; empty if none does."""
    token: str = ""
    """The token of that step."""


class MutationDraft(NamedTuple):
    """A change that nothing is wrong with."""

    data: Data
    """The whole content after it."""
    changes: Data
    """The fields that are different, with null for those that are gone."""
    warnings: list[str]
    held: list[str]
    """The rules that had an effect on it."""
    rules: list[DocumentRule]
    """All that it was judged by, and those that are to be followed after it."""


# -- what people ask for


def mutate(turn: DecisionBuilder, command: Mutate) -> Answer | None:
    """Change the document of a run, as somebody asks; why not, if it cannot be changed so."""
    action, wrong = action_for(turn, command.action)
    if action is None:
        return wrong
    changes = command.payload if command.changes is None else command.changes
    is_amendment = command.amends or window_of(turn.routes, turn.state).window != "editable"
    amending = amending_action(index_of(turn.routes))
    acts = amending_acts(action.name) if is_amendment else [action.name]
    author = Author(turn.moment.actor, acts, reason=command.reason, origin=command.origin)
    refusal = (
        _payload_refusal(turn, action, command)
        or _content_refusal(turn, changes)
        or may_do(turn, action, turn.moment.actor)
        or may_undo(turn, command.undo)
        or _window_refusal(turn, command)
        or (may_do(turn, amending, turn.moment.actor) if is_amendment else None)
        or version_refusal(turn, command.expected_version)
        or _uncomputed(action, command)
    )
    if refusal is not None:
        return refusal
    draft = _drafted_by(turn, command, changes, author)
    if not isinstance(draft, MutationDraft):
        return draft
    if not draft.changes:
        return UNCHANGED
    # Who may edit up to a limit has nothing to do beyond it, neither before nor after.
    beyond = policy_refusal(turn, action.name, author.actor, content=draft.data)
    if beyond is None and is_amendment:
        beyond = policy_refusal(turn, amending.name, author.actor, content=draft.data)
    if beyond is not None:
        return beyond
    if is_amendment:
        return _amend_in_place(turn, draft, action.name, author)
    has_failed = bool(turn.state.dead)
    change(turn, draft, action.name, author)
    follow(turn, action.name, draft.rules, before=draft.held, actor=author.actor)
    if has_failed and not turn.state.dead and turn.state.pause is None:  # The branches that had it wait are ended.
        go_on(turn)
    _restart_slots(turn)
    return None


def _drafted_by(turn: DecisionBuilder, command: Mutate, changes: Data, author: Author) -> MutationDraft | Rejection:
    """The content after an edit. What its author does not see stays as it was; handlers and other systems see all of it."""
    before = document_of(turn.state).data
    if command.changes is None:
        try:
            changes = with_hidden_parts(index_of(turn.routes).spec, before, changes, author.actor)
        except HiddenPartError as error:
            return refused(Refusal.NOT_ALLOWED, str(error))
    return drafted(turn, before, changes, author)


def amending_acts(edit: str) -> list[str]:
    """What somebody does who amends a document by an edit, or by name: it is one act, judged as both."""
    return [edit, "amend"]


def amending_action(index: DocumentIndex) -> DocumentAction:
    """What somebody must be allowed to do who amends a document, in place or by another one."""
    return index.actions.get("amend") or index.actions["update"]


def action_for(turn: DecisionBuilder, name: str) -> tuple[DocumentAction | None, Rejection]:
    """What can be done to a document under a name, and what to say if nothing can."""
    index = index_of(turn.routes)
    known = index.actions.get(name)
    found = None if known is None or known.creates else known
    possible = ", ".join(repr(each.name) for each in index.actions.values() if not each.creates)
    told = f"{name!r} cannot be done to a document of the type {index.spec.entity_type!r}; there are {possible}"
    return found, refused(Refusal.UNKNOWN_ACTION, told)


def _payload_refusal(turn: DecisionBuilder, action: DocumentAction, command: Mutate) -> Rejection | None:
    form = index_of(turn.routes).payload(action.name)
    faults = [] if form is None else form.faults(command.payload)
    return invalid(f"what {action.name!r} is given", faults)


def _uncomputed(action: DocumentAction, command: Mutate) -> Rejection | None:
    """Why what is given is not laid over the data: a process that knows another workflow of the type may not know of the handler."""
    if not action.handler or command.changes is not None:
        return None
    told = f"what {action.name!r} changes is computed by {action.handler!r}; have that called"
    return refused(Refusal.HANDLER_REQUIRED, told)


def _content_refusal(turn: DecisionBuilder, changes: Data) -> Rejection | None:
    return invalid("the edit", not_given(index_of(turn.routes), changes, is_workflow=False))


def invalid(what: str, faults: list[str]) -> Rejection | None:
    """A refusal that lists every fault; None if there are none."""
    if not faults:
        return None
    return refused(Refusal.INVALID_DOCUMENT, f"{what} does not fit the contract: {'; '.join(faults)}")


def may_do(turn: DecisionBuilder, action: DocumentAction, actor: Actor) -> Rejection | None:
    """Why somebody may not do something to a document as it is."""
    return incapable(turn, action, actor) or policy_refusal(turn, action.name, actor)


def may_undo(turn: DecisionBuilder, undo: str) -> Rejection | None:
    """Why somebody may not take back what they do; undoing itself asks nobody for a right."""
    if not undo:
        return None
    action, wrong = action_for(turn, undo)
    if action is None:
        return wrong
    told = undo_objection(turn, undo, turn.moment.actor)
    return refused(Refusal.NOT_ALLOWED, told) if told else None


def incapable(turn: DecisionBuilder, action: DocumentAction, actor: Actor) -> Rejection | None:
    """Why somebody may not do something to any document of a type."""
    if actor.may(action.capability):
        return None
    told = f"{actor.id!r} may not do {action.name!r}: that needs the capability {action.capability!r}"
    return refused(Refusal.NOT_ALLOWED, f"{told} on {index_of(turn.routes).spec.entity_type!r}")


def _window_refusal(turn: DecisionBuilder, command: Mutate) -> Rejection | None:
    spec = index_of(turn.routes).spec
    if command.amends and spec.amendment == "new_row":
        told = f"an amendment of {spec.entity_type!r} is a document of its own; amend it by name"
        return refused(Refusal.AMENDMENT_REQUIRED, told)
    if window_of(turn.routes, turn.state).window == "editable" or command.amends:
        return None
    refusal = edit_refusal(turn)
    if refusal is not None or spec.amendment == "in_place":
        return refusal
    told = f"{_where(turn)}, where an edit is an amendment: a document of its own takes its place; amend it by name"
    return refused(Refusal.AMENDMENT_REQUIRED, told)


def edit_refusal(turn: DecisionBuilder) -> Rejection | None:
    """Why a document cannot be edited where it is, not even so that the edit becomes an amendment."""
    spec, document, view = index_of(turn.routes).spec, document_of(turn.state), window_of(turn.routes, turn.state)
    if view.window == "locked":
        told = f"{_where(turn)}, and cannot be edited there; {_instead(turn)}"
        return refused(Refusal.WORKFLOW_EDIT_LOCKED, told)
    if view.window != "editable" and view.is_stable and spec.on_drift == "fail":
        told = f"{_where(turn)}, where its content must not change, because others decide on version {document.version}; {_instead(turn)}"
        return refused(Refusal.WORKFLOW_VERSION_DRIFT, told)
    return None


def _where(turn: DecisionBuilder) -> str:
    document, places = document_of(turn.state), window_of(turn.routes, turn.state).places
    return f"{document.id!r} is {document.status}" + (f", at {', '.join(places)}" if places else "")


def _instead(turn: DecisionBuilder) -> str:
    """What would be possible."""
    index, document = index_of(turn.routes), document_of(turn.state)
    legal = index.legal(document.status)
    asked = f", or ask for {' or '.join(map(repr, legal))}" if legal else ""
    return f"amend it{asked}"


def version_refusal(turn: DecisionBuilder, expected: int | None) -> Rejection | None:
    """Why somebody cannot go on from a version that they have seen."""
    document = document_of(turn.state)
    if expected in {None, document.version}:
        return None
    told = f"{document.id!r} has the version {document.version} by now, and you have seen {expected}; compare them, and decide anew"
    return refused(Refusal.VERSION_CONFLICT, told)


# -- what another system has changed


def tell_drift(turn: DecisionBuilder, command: TellDrift) -> Rejection | None:
    """Note what another system has changed behind the back of the document, and hold the run until an operator has looked.

    A run that is paused already is held for it once that pause ends.
    """
    action, wrong = action_for(turn, command.action)
    if action is None:
        return wrong
    actor = turn.moment.actor
    barred = may_do(turn, action, actor)
    if barred is not None:
        return barred
    turn.emit(
        ActNoted(
            action=DRIFT,
            actor=actor.id,
            on_behalf_of=actor.on_behalf_of,
            reason=command.reason,
            after={CHANGED_ELSEWHERE: command.fields, "refused": command.refused},
            at=turn.moment.now,
        )
    )
    if not_pausable(turn) is None:
        hold_run(turn, DRIFTED, PauseWorkflow(reason=document_of(turn.state).drift))
    return None


# -- any change


def drafted(
    turn: DecisionBuilder,
    before: Data,
    changes: Data,
    author: Author,
    *,
    may_set: bool = True,
    redacted: Sequence[str] = (),
) -> MutationDraft | Rejection:
    """The content with changes laid over it, judged by rules and fields; why not, if it would not be sound.

    `redacted` are fields of the changes that are as a redaction has left them in the document that this one goes on with.
    """
    index, rules = index_of(turn.routes), rules_for(turn, *author.acts)
    judged = ruled(turn, with_computed(index, _laid(before, changes)), rules, author, may_set=may_set)
    if isinstance(judged, Rejection):
        return judged
    data = with_computed(index, _laid(judged.data, {}))
    known = {**before, **{name: changes[name] for name in redacted}}
    refusal = invalid("the document", faults_of(index, data, kept=marks_of(data, known)))
    if refusal is None and not is_within(turn.routes, data):
        refusal = too_large(turn.routes, "the document")
    if refusal is not None:
        return refusal
    return MutationDraft(data, _differences(before, data), judged.warnings, judged.held, rules)


def ruled(
    turn: DecisionBuilder, content: Data, rules: Sequence[DocumentRule], author: Author, *, may_set: bool
) -> Judged | Rejection:
    """What the rules of the organisation have to say of a content; why it may not be, if one stands against it."""
    try:
        judged = judge(turn, content, rules, actor=author.actor, may_set=may_set)
    except ExpressionError as error:
        return refused(
            Refusal.RULE_BLOCKED, f"a rule cannot be judged: {error}; give what it reads, or correct the rule"
        )
    if judged.blocked:
        return refused(Refusal.RULE_BLOCKED, f"a rule of the organisation stands against it: {judged.blocked}")
    return judged


def created(
    turn: DecisionBuilder, given: Data, author: Author, *, redacted: Sequence[str] = ()
) -> MutationDraft | Rejection:
    """The content of a document that is created with what is given."""
    refusal = _content_refusal(turn, given)
    return refusal or drafted(turn, defaults_of(index_of(turn.routes)), given, author, redacted=redacted)


def _laid(data: Data, changes: Data) -> Data:
    """Field by field; null takes a field away."""
    return {name: value for name, value in {**data, **changes}.items() if value is not None}


def _differences(before: Data, after: Data) -> Data:
    gone: Data = {name: None for name in before if name not in after}
    return gone | {
        name: value for name, value in after.items() if name not in before or not is_same(before[name], value)
    }


def change(turn: DecisionBuilder, draft: MutationDraft, action: str, author: Author) -> None:
    """Write a change: version, approvals that were about what has changed, and questions about it, which are put anew."""
    document = document_of(turn.state)
    content = draft.changes.keys() - index_of(turn.routes).system
    keys, lists = _awaited(turn), lists_of_document(turn) if content else {}
    turn.emit(
        DocumentChanged(
            version=document.version + 1,
            changes=draft.changes,
            action=action,
            by=author.actor.id,
            on_behalf_of=author.actor.on_behalf_of,
            run_as=author.run_as,
            step=author.step,
            reason=author.reason,
            warnings=draft.warnings,
            origin=author.origin,
            is_by_field=True,
        )
    )
    enter_changed(turn, lists, content, told=EDITED, by=author.token)
    _void_covered(turn, content)
    _wait_anew(turn, keys)


def _awaited(turn: DecisionBuilder) -> dict[int, object]:
    """What open steps wait for: the keys of events, or the instant of a timer that is read from the document."""
    found: dict[int, object] = {}
    for number, step in turn.state.open.items():
        node = turn.routes.node(step.node)
        if isinstance(node.op, WaitEventsOp):
            names = text_names(turn.state, turn.state.tokens[step.token].data)
            found[number] = [key_or_none(turn.routes, node, each, names) for each in node.op.events]
        elif isinstance(node.op, WaitTimerOp) and (until := turn.routes.until(step.node)) is not None:
            found[number] = value_of(until, turn.data_for(turn.state.tokens[step.token], step.node))
    return found


def _wait_anew(turn: DecisionBuilder, before: dict[int, object]) -> None:
    """Steps whose events have another key now wait for those, and timers for another instant; the time of a wait begins anew."""
    for number, awaited in _awaited(turn).items():
        step = turn.state.open[number]
        if before.get(number) != awaited:
            stop_step(turn, step, "drop", error=EDITED, reason=LEFT)
            turn.move(step.token, step.node)


def _void_covered(turn: DecisionBuilder, content: set[str]) -> None:
    hit = {number: each for number, each in standing(turn).items() if _concerns(turn, each, content)}
    void(turn, hit, "edited", fields=content)
    for number in hit:
        step = turn.state.open.get(number)
        if step is not None:
            stop_step(turn, step, "drop", error=EDITED, reason=DATA_CHANGED)
            turn.move(step.token, step.node)


def _concerns(turn: DecisionBuilder, approval: Approval, fields: set[str]) -> bool:
    op = turn.routes.node(approval.node).op
    assert isinstance(op, HumanOp)
    return not fields.isdisjoint(index_of(turn.routes).covered(op.covers))


def _restart_slots(turn: DecisionBuilder) -> None:
    """Slots whose body is to begin anew with every edit."""
    index = index_of(turn.routes)
    for token in (*turn.state.tokens.values(), *turn.state.parked.values()):
        region = index.regions.get(turn.routes.node(token.node).region) if token.node else None
        if region is not None and region.on_edit == "restart":
            interrupt(turn, "edited", EDITED)
            lead(turn, index.way_in(region.id))
            return


def _amend_in_place(turn: DecisionBuilder, draft: MutationDraft, action: str, author: Author) -> Rejection | None:
    """The same row, with another version: all approvals are void, and it goes back to where amended ones are."""
    index, document = index_of(turn.routes), document_of(turn.state)
    ways = turn.routes.ways(index.state_of[document.status], AMEND)
    if not ways:
        told = f"{document.id!r} is {document.status}, and no amendment leads on from there; {_instead(turn)}"
        return refused(Refusal.WORKFLOW_EDIT_LOCKED, told)
    begin_round(turn)
    interrupt(turn, "edited", EDITED)
    change(turn, draft, action, author)
    follow(turn, action, draft.rules, before=draft.held, actor=author.actor)
    actor = author.actor
    status = index.spec.amended
    turn.emit(
        DocumentMoved(status=status, how="amended", by=actor.id, on_behalf_of=actor.on_behalf_of, reason=author.reason)
    )
    lead(turn, ways[0].target)
    return None
