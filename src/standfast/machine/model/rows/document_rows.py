"""The rows of a document, made from events alone: itself, its versions, what was done to it, and the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, cast

import msgspec

from standfast.graph.index import GraphIndex
from standfast.kernel.actor import SYSTEM
from standfast.kernel.codec.message_types import stored_name
from standfast.kernel.row_kinds.documents import (
    AuditMade,
    DocumentOpened,
    DocumentTouched,
    MutationKind,
    MutationMade,
    VersionKept,
)
from standfast.kernel.row_kinds.tasks import DecisionMoved
from standfast.kernel.rows import Record
from standfast.machine.model import events as e
from standfast.machine.model.document_state import Data, Document
from standfast.machine.model.folds.document_fold import AUDITED, has_led_back, is_through
from standfast.machine.model.json_values import fingerprint
from standfast.machine.model.queries.fields import differences_of
from standfast.machine.model.state import RunState

_encode = msgspec.json.Encoder().encode


class DocumentRowSource(Protocol):
    """A run as it was before an event."""

    routes: GraphIndex
    state: RunState


class _Told(NamedTuple):
    """What the audit says of an event."""

    what: str
    who: str = ""
    whom: str = ""
    why: str = ""
    step: int = 0
    kind: MutationKind | None = None
    """What sort of mutation it is; None for a step, which is none."""
    version: int | None = None
    """The version after it; None means the one before."""
    changes: Data | None = None
    run_as: str = ""


def records_of(view: DocumentRowSource, event: e.Event) -> list[Record]:
    """All that an event about a document, or about one of its steps, leaves in the rows of the document."""
    if type(event) not in AUDITED:
        return []
    make = _ROWS.get(type(event))
    return [*(make(view, event) if make is not None else ()), *_audited(view, event)]


# -- the document and its versions


def _document(view: DocumentRowSource) -> Document:
    assert view.state.document is not None
    return view.state.document


def _sequence(view: DocumentRowSource) -> int:
    return 1 + (0 if view.state.document is None else view.state.document.sequence)


def _created(view: DocumentRowSource, event: e.DocumentCreated) -> list[Record]:
    data = _encode(event.data)
    return [
        DocumentOpened(
            type=event.entity_type,
            id=event.id,
            status=event.status,
            version=event.version,
            data=data,
            amended_from=event.amended_from,
            is_amending=bool(event.amended_from),
            requester=view.state.requester,
            updated_by=event.by,
        ),
        VersionKept(
            version=event.version,
            status=event.status,
            data=data,
            data_hash=event.content_hash or fingerprint(event.data),
            mutation=_sequence(view),
            written_by=event.by,
        ),
    ]


def _changed(view: DocumentRowSource, event: e.DocumentChanged) -> list[Record]:
    document = _document(view)
    laid = {**document.data, **event.changes}
    content = {name: value for name, value in laid.items() if value is not None}
    data = _encode(content)
    return [
        _touched(document, version=event.version, data=data, updated_by=event.by),
        VersionKept(
            version=event.version,
            status=document.status,
            data=data,
            data_hash=event.content_hash or fingerprint(content),
            mutation=_sequence(view),
            written_by=event.by,
        ),
    ]


def _touched(document: Document, **fields: object) -> DocumentTouched:
    return DocumentTouched(type=document.type, id=document.id, **fields)  # type: ignore[arg-type]


def _moved(view: DocumentRowSource, event: e.DocumentMoved) -> list[Record]:
    document, amended = _document(view), None
    if event.how == "amended" or has_led_back(view.routes, document, event):
        amended = event.how == "amended"
    return [_touched(document, status=event.status, updated_by=event.by, is_amending=amended)]


def _superseded(view: DocumentRowSource, event: e.DocumentSuperseded) -> list[Record]:
    return [_touched(_document(view), status=event.status, superseded_by=event.superseded_by, updated_by=event.by)]


def _round_started(view: DocumentRowSource, event: e.RoundStarted) -> list[Record]:
    return [_touched(_document(view), round=event.round, is_resting=False)]


def _round_completed(view: DocumentRowSource, event: e.RoundCompleted) -> list[Record]:
    """An amendment is in force at the latest once a round has led it on, and not if that was sent back, taken back or closed."""
    document = _document(view)
    return [
        _touched(document, is_resting=True, is_amending=False if is_through(view.routes, document, event) else None)
    ]


def _voided(view: DocumentRowSource, event: e.ApprovalsVoided) -> Iterable[Record]:
    yield from _decisions(view, event.steps, applied=False)
    if event.why == "withdrawn":
        names = {event.by, event.on_behalf_of} - {""}
        for step in event.steps:
            yield from _taken_back(view, step, names)


def _taken_back(view: DocumentRowSource, step: int, names: set[str]) -> Iterable[Record]:
    """The decisions of whoever withdraws an approval."""
    known, given = view.state.decided.get(step, {}), _document(view).approvals[step].given
    decisions = cast("list[dict[str, object]]", known.get("decisions", [])) or [known]
    for sequence, decision in zip(given, decisions, strict=False):
        if names & {decision.get("decided_by"), decision.get("on_behalf_of")}:
            yield DecisionMoved(number=step, sequence=sequence, is_withdrawn=True)


def _applied(view: DocumentRowSource, event: e.ApprovalsApplied) -> Iterable[Record]:
    return _decisions(view, event.steps, applied=True)


def _decisions(view: DocumentRowSource, steps: Sequence[int], *, applied: bool) -> Iterable[Record]:
    """Every decision of these approvals is used up, or never will be."""
    approvals = _document(view).approvals
    for step in steps:
        for sequence in approvals[step].given:
            yield DecisionMoved(number=step, sequence=sequence, applied=applied)


_ROWS: dict[type[e.Event], Callable[..., Iterable[Record]]] = {
    e.DocumentCreated: _created,
    e.DocumentChanged: _changed,
    e.DocumentMoved: _moved,
    e.DocumentSuperseded: _superseded,
    e.RoundStarted: _round_started,
    e.RoundCompleted: _round_completed,
    e.ApprovalsVoided: _voided,
    e.ApprovalsApplied: _applied,
}


# -- the audit


def _audited(view: DocumentRowSource, event: e.Event) -> list[Record]:
    told = _told(view, event)
    document = view.state.document
    name, before = (document, document.version) if document is not None else (event, 0)
    after = before if told.version is None else told.version
    entity = name.entity_type if isinstance(name, e.DocumentCreated) else getattr(name, "type", "")
    sequence = _sequence(view)
    who = told.who or _asker(document)
    line = AuditMade(
        sequence=sequence,
        who=who,
        whom=told.whom or told.run_as,
        what=told.what,
        which=f"{entity}/{getattr(name, 'id', '')}@{after}",
        place="engine" if told.kind is None or told.run_as or who == SYSTEM.id else "call",
        why=told.why,
        whence=f"step {told.step}" if told.step else f"mutation {sequence}",
        how=told.kind or "step",
    )
    if told.kind is None:
        return [line]
    made = MutationMade(
        sequence=sequence,
        kind=told.kind,
        action=told.what,
        version_before=before,
        version_after=after,
        actor=who,
        on_behalf_of=told.whom,
        run_as=told.run_as,
        step=told.step or None,
        reason=told.why,
        changes=None if told.changes is None else _encode(told.changes),
    )
    return [line, made]


def _asker(document: Document | None) -> str:
    """In whose name steps are done that nobody else did."""
    intent = None if document is None or document.timed_out else document.intent
    return SYSTEM.id if intent is None or not intent.transition else intent.by


def _told(view: DocumentRowSource, event: e.Event) -> _Told:
    if type(event) in _STEP_WORDS:  # Most of them.
        return _of_step(view, event)
    match event:
        case e.DocumentCreated():
            changes = _differences(view, {}, event.data)
            return _Told(
                event.action, event.by, event.on_behalf_of, event.reason, 0, "business", event.version, changes
            )
        case e.DocumentChanged():
            changes = _differences(view, _document(view).data, event.changes)
            return _Told(
                event.action,
                event.by,
                event.on_behalf_of,
                event.reason,
                event.step,
                "business",
                event.version,
                changes,
                event.run_as,
            )
        case e.DocumentMoved():
            what = f"{event.how} {event.transition or event.status}"
            return _Told(what, event.by, event.on_behalf_of, event.reason, kind="workflow")
        case e.TransitionRequested():
            what = f"request {event.transition}"
            return _Told(what, event.by, event.on_behalf_of, event.reason, kind="workflow")
        case e.DocumentSuperseded():
            why = event.reason or f"{event.superseded_by} took its place"
            changes = {"superseded_by": event.superseded_by, "fields": event.fields, **event.changes}
            return _Told("supersede", event.by, event.on_behalf_of, why, 0, "workflow", None, changes)
        case e.DocumentRedacted():
            changes = {"fields": event.fields}
            return _Told("redact", event.by, event.on_behalf_of, event.reason, 0, "workflow", None, changes)
        case _:
            return _of_people(view, event)


def _of_people(view: DocumentRowSource, event: e.Event) -> _Told:
    """What people did besides: decisions, and acts that are noted."""
    match event:
        case e.StepAnswered() if event.decisions:  # Each of those has a line of its own.
            return _Told(f"conclude {event.outcome}", event.actor, event.on_behalf_of, event.reason, event.step)
        case e.StepAnswered() | e.TaskDecided():
            return _Told(
                f"decide {event.outcome}", event.actor, event.on_behalf_of, event.comment, event.step, "workflow"
            )
        case e.DecisionWithdrawn():
            return _Told(
                f"withdraw {_node(view, event.step)}",
                event.actor,
                event.on_behalf_of,
                event.reason,
                event.step,
                "workflow",
            )
        case e.ActNoted():
            names = sorted({*event.before, *event.after})
            return _Told(
                f"{event.action} {event.at_node}".strip(),
                event.actor,
                event.on_behalf_of,
                event.reason,
                event.step,
                "workflow",
                changes={name: [event.before.get(name), event.after.get(name)] for name in names},
            )
        case _:
            return _of_way(view, event)


def _of_way(view: DocumentRowSource, event: e.Event) -> _Told:  # noqa: PLR0911 - a line for each event
    """What the workflow has done on its way."""
    match event:
        case e.BranchCancelled():
            told, whom = f"cancel branch {event.token}", event.on_behalf_of
            return _Told(told, event.actor, whom, event.reason, kind="workflow")
        case e.ApprovalsVoided(steps=[number], why="withdrawn"):
            told = f"withdraw {_document(view).approvals[number].node}"
            return _Told(told, event.by, event.on_behalf_of, event.reason, number, "workflow")
        case e.ApprovalsVoided():
            about = event.reason or ", ".join(event.fields) or "all"
            return _Told("void approvals", event.by, event.on_behalf_of, why=f"{event.why}: {about}")
        case e.RulesApplied():
            return _Told(f"rules at {event.action}", event.by, why="; ".join([*event.rules, *event.errors]))
        case e.ApprovalsApplied():
            return _Told("apply approvals", why=event.transition or event.slot)
        case e.WorkflowSwitched():
            what = f"switch workflow {event.before} to {event.version}"
            why = f"{event.reason} (asked otherwise: {', '.join(event.eased)})" if event.eased else event.reason
            return _Told(what, event.by, event.on_behalf_of, why, kind="workflow")
        case e.ApprovalsKept():
            return _Told("keep approvals", why=f"steps {', '.join(map(str, event.steps))} of {event.slot}")
        case e.SlotRejected():
            return _Told("reject slot", event.by, why=event.reason, step=event.step)
        case e.RoundStarted() | e.RoundCompleted():
            return _Told(f"round {event.round} {'begins' if isinstance(event, e.RoundStarted) else 'ends'}")
        case _:
            raise TypeError(f"the audit has no words for {stored_name(event)}")


_STEP_WORDS: dict[type[e.Event], str] = {
    e.StepCompleted: "pass",
    e.StepFailed: "end",
    e.StepPaused: "fail",
    e.StepSkipped: "skip",
}
"""What has become of a step, in a word."""


def _of_step(view: DocumentRowSource, event: e.Event) -> _Told:
    number: int = getattr(event, "step", 0)
    node = getattr(event, "node", "") or _node(view, number)
    outcome = getattr(event, "outcome", "") or getattr(event, "error", "")
    by, for_ = getattr(event, "by", ""), getattr(event, "on_behalf_of", "")
    return _Told(f"{_STEP_WORDS[type(event)]} {node}", by, for_, why=outcome, step=number)


def _node(view: DocumentRowSource, number: int) -> str:
    state = view.state
    step = state.open.get(number) or state.dead.get(number) or state.frozen.get(number)
    return "" if step is None else step.node


def _differences(view: DocumentRowSource, before: Data, changes: Data) -> Data:
    return differences_of({} if view.routes.documents is None else view.routes.documents.spec.fields, before, changes)
