"""How documents are read: who may see what of them, what can be done with one, and how two versions differ.

What a document has to do with others: those that it refers to, and those that steps of it or of them have made and changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import NamedTuple, Never, TypeAlias

import msgspec

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext, checked_after, checked_key, checked_limit
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.submission import View
from standfast.errors import NotFoundError, PayloadError, RejectedError, StandfastError
from standfast.features.documents.content.views import (
    AuditLine,
    DocumentLink,
    DocumentMutation,
    DocumentRound,
    DocumentSummary,
    DocumentVersion,
    DocumentView,
    FieldDifference,
    TransitionChoice,
)
from standfast.features.runs.reads import folded_workflow
from standfast.graph.document_index import DocumentIndex
from standfast.graph.document_spec import DocumentSpec
from standfast.graph.field_visibility import MASKED
from standfast.graph.model import ActionOp, CallOp
from standfast.kernel.actor import Actor
from standfast.kernel.codec.message_types import is_whole
from standfast.kernel.decision import Rejection
from standfast.kernel.facts import SETTINGS_FACT
from standfast.kernel.history import StoredEvent
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.documents import (
    AUDIT,
    DOCUMENT_VERSIONS,
    MUTATIONS,
    StoredDocument,
    StoredVersion,
)
from standfast.kernel.row_kinds.tasks import TASK_PEOPLE
from standfast.machine.documents.policies import judged
from standfast.machine.documents.visibility import changes_shown, compared, unseen, visible
from standfast.machine.machine import GraphMachine
from standfast.machine.model import events as e
from standfast.machine.model.commands.document_commands import (
    CreateDocument,
    Mutate,
    RequestTransition,
    TellDrift,
)
from standfast.machine.model.document_state import Document
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.folds.document_fold import AUDITED
from standfast.machine.model.queries.authorization import READ
from standfast.machine.model.queries.edit_windows import is_behind_gate, recall_objection, window_of
from standfast.machine.model.queries.expression_scope import actor_names
from standfast.machine.model.queries.fields import is_same
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import RunState
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader

Data = dict[str, object]
Spoken: TypeAlias = CreateDocument | Mutate | RequestTransition | TellDrift
"""What a caller has carried out."""

_decode = msgspec.json.Decoder(dict[str, object]).decode
_MOST_TOLD, _LONGEST_TOLD = 8, 60
_MOST_VERSIONS = 2**31 - 1
"""Fields, and characters of a value, that a refusal shows."""


class FoundDocument(NamedTuple):
    """A document as it stands."""

    header: InstanceHeader
    state: RunState
    document: Document
    row: StoredDocument
    program: Program

    @property
    def machine(self) -> GraphMachine:
        """What runs it."""
        assert isinstance(self.program.decider, GraphMachine)
        return self.program.decider

    @property
    def workflow_version(self) -> str:
        """The version of the workflow that it follows."""
        followed = self.state.workflow
        return self.header.definition_version if followed is None else followed.version

    @property
    def parts(self) -> DocumentIndex:
        """What its graph says of it."""
        parts = self.machine.routes_of(self.state).documents
        assert parts is not None
        return parts


def found(desk: CallContext, reader: TenantReader, type_: str, id_: str, *, is_own: bool = False) -> FoundDocument:
    """A document of the tenant that the caller may read; NotFoundError if there is none, ForbiddenError if it is others' matter.

    `is_own` if the machine has let them do something to it, or will be asked.
    """
    row = reader.document(checked_key(type_, "type"), checked_key(id_, "document id"))
    if row is None:
        raise NotFoundError("document", f"{type_}/{id_}")
    tracked = folded_workflow(desk, reader, row.instance)
    state = tracked.state
    assert isinstance(state, RunState)
    assert state.document is not None
    if not is_own:
        _check_reader(desk, reader, row)
    return FoundDocument(tracked.header, state, state.document, row, tracked.program)


def known_from(tracked: CachedInstance) -> FoundDocument:
    """A document as a transaction has it that is not committed yet; NotFoundError if the instance is none."""
    state = tracked.state
    if not isinstance(state, RunState) or state.document is None:
        raise NotFoundError("document", f"{tracked.header.definition}/{tracked.header.key}")
    return _in_hand(tracked.header, tracked.program, state)


def seen_in_hand(desk: CallContext, command: Spoken) -> View:
    """How a document is seen right after a command, by what the commit has in hand; None where only its row tells when it was touched last."""

    def see(header: InstanceHeader, program: Program, state: object) -> DocumentView | None:
        assert isinstance(state, RunState)
        known = _in_hand(header, program, state)
        is_seen = _is_touched_by(command, known) and not known.document.superseded_by
        is_seen = is_seen and not known.parts.judges_by_settings  # The commit does not wait until they are read.
        is_seen = is_seen and not state.dead  # What can be asked for again is tried out.
        return view_of(desk, known) if is_seen else None

    return see


def _is_touched_by(command: Spoken, known: FoundDocument) -> bool:
    """Whether the document was certainly written by a command that was carried out just now."""
    match command:
        case CreateDocument():
            return True
        case RequestTransition():
            return known.document.status == known.parts.transitions[command.transition].target
        case TellDrift():
            return False
        case Mutate():
            return window_of(known.machine.routes_of(known.state), known.state).window == "editable"


def _in_hand(header: InstanceHeader, program: Program, state: RunState) -> FoundDocument:
    document = state.document
    assert document is not None
    row = StoredDocument(
        type=document.type,
        id=document.id,
        status=document.status,
        version=document.version,
        data=b"",
        requester=state.requester,
        updated_by=document.updated_by,
        instance=header.id,
        created_at=header.created_at,
        updated_at=header.updated_at,
    )
    return FoundDocument(header, state, document, row, program)


def _check_reader(desk: CallContext, reader: TenantReader, row: StoredDocument) -> None:
    """Whoever wants a document may read it, who is asked about it or stands in for somebody who is, and who may look at all runs."""
    actor = desk.request.actor
    if actor.may(READ) or row.requester in {actor.id, actor.on_behalf_of}:
        return
    asked = [Person(kind=each.kind, name=each.name) for each in reader.rows(TASK_PEOPLE, row.instance)]
    if not desk.authority.is_one_of(asked, definition=row.type):
        check_reader(desk, row.requester, what=f"look at the document {row.id!r}")


def type_spec(desk: CallContext, name: str) -> DocumentSpec | None:
    """What the newest workflow of a type says of its documents, which is remembered; None if there is none."""
    program = desk.registry.library.recent(desk.tenant, name)
    machine = None if program is None else program.decider
    return machine.graph.document if isinstance(machine, GraphMachine) else None


def depends_on_roles(desk: CallContext, name: object) -> bool:
    """Whether what the actor sees of the documents of a type depends on roles that the directory may have for them."""
    spec = type_spec(desk, checked_key(name, "type")) if desk.may_have_roles else None
    return spec is not None and (bool(spec.policies) or bool(unseen(spec, spec.fields, desk.request.actor)))


# -- what a caller sees


def view_of(desk: CallContext, known: FoundDocument, *, is_amendment: bool = False) -> DocumentView:
    """A document, and what the caller can do from here."""
    header, document, row = known.header, known.document, known.row
    actor = desk.request.actor
    view = window_of(known.machine.routes_of(known.state), known.state)
    status = known.machine.status(known.state)
    return DocumentView(
        type=document.type,
        id=document.id,
        status=document.status,
        version=document.version,
        data=visible(known.parts.spec, document.data, actor),
        window="locked" if known.state.is_terminal else view.window,
        places=[] if known.state.is_terminal else list(view.places),
        transitions=_choices(desk, known, _settings(desk, known)),
        amended_from=document.amended_from,
        superseded_by=document.superseded_by,
        requester=row.requester,
        round=document.round,
        is_resting=document.is_resting or known.state.is_terminal,
        run_status=status.word,
        run_reason=status.reason,
        instance=header.id,
        workflow_version=known.workflow_version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
        is_amendment=is_amendment,
    )


def _settings(desk: CallContext, known: FoundDocument) -> Data:
    """The settings of the organisation, if what is possible depends on them."""
    if not known.parts.judges_by_settings:
        return {}
    settings = desk.facts(known.header).get(SETTINGS_FACT).value
    assert isinstance(settings, dict)
    return settings


def _choices(desk: CallContext, known: FoundDocument, org: Data) -> list[TransitionChoice]:
    if known.state.is_terminal:
        return []
    found = []
    document, actor, now = known.document, desk.request.actor, desk.service.shared.clock.now()
    # The clock is that of the decision to come; a condition over it may be another one by then.
    asked: Data = {"entity": document.names(), "actor": actor_names(actor), "org": org, "now": now}
    for each in known.parts.spec.transitions:
        if document.status not in each.sources:
            continue
        is_under_way = document.way == each.name and not document.is_resting and not _waits(known)
        is_under_way = is_under_way and not (known.state.dead and _takes_again(desk, known, each.name))
        is_early = not each.kind and is_behind_gate(known.machine.routes_of(known.state), known.state)
        why = "it is under way" if is_under_way else "steps that come before it are under way" if is_early else ""
        if not actor.may(each.capability):
            why = f"it needs the capability {each.capability!r}"
        if each.kind == "recall":
            why = why or recall_objection(known.state, actor)
        why = why or judged(known.parts, each.name, actor, asked).objection
        found.append(TransitionChoice(name=each.name, target=each.target, is_allowed=not why, why_not=why))
    return found


def _takes_again(desk: CallContext, known: FoundDocument, name: str) -> bool:
    """Whether a transition that is under way can be asked for again, because its gate let nobody through; it is tried out."""
    header = known.header
    moment = Moment(
        now=desk.service.shared.clock.now(),
        instance=header.id,
        key=header.key,
        tenant=header.tenant,
        partition=header.partition,
        actor=desk.request.actor,
        version=header.version,
        facts=desk.facts(header),
    )
    answer = known.machine.decide(copy.deepcopy(known.state), RequestTransition(transition=name), moment)
    return not isinstance(answer, Rejection) or answer.code != Refusal.WORKFLOW_GATE_NOT_READY


def _waits(known: FoundDocument) -> bool:
    """Whether the document waits in its state."""
    place = known.parts.state_of[known.document.status]
    return any(step.node == place for step in known.state.open.values())


def summaries_of(desk: CallContext, reader: TenantReader, rows: Sequence[StoredDocument]) -> list[DocumentSummary]:
    """Documents in a list. Each is masked by the version of the workflow that it follows, as it is when it is read alone."""
    newest = {row.type: type_spec(desk, row.type) for row in rows}
    if desk.request.actor.kind == "system":
        return [_summary(row, newest[row.type], _decode(row.data)) for row in rows]
    headers = {each.id: each for each in reader.headers([row.instance for row in rows])}
    specs: dict[tuple[str, str], DocumentSpec | None] = {}
    found = []
    for row in rows:
        header = headers.get(row.instance)
        version = "" if header is None else header.definition_version
        if (row.type, version) not in specs:
            specs[row.type, version] = _spec_of(desk, row.type, version) if version else None
        data = _listed(desk, reader, row, (specs[row.type, version], newest[row.type]))
        found.append(_summary(row, newest[row.type], data))
    return found


def _listed(
    desk: CallContext, reader: TenantReader, row: StoredDocument, specs: tuple[DocumentSpec | None, DocumentSpec | None]
) -> Data:
    """The content for the reader of a list. The document itself is read where it shows other values if it was moved to the newest version."""
    data, actor, (began, newest) = _decode(row.data), desk.request.actor, specs
    if began is None:
        return dict.fromkeys(data, MASKED)
    shown = visible(began, data, actor)
    if newest is None or newest is began or visible(newest, data, actor) == shown:
        return shown
    known = folded_workflow(desk, reader, row.instance)
    machine, state = known.program.decider, known.state
    assert isinstance(machine, GraphMachine)
    assert isinstance(state, RunState)
    return visible(machine.routes_of(state).graph.document, data, actor)


def _spec_of(desk: CallContext, name: str, version: str) -> DocumentSpec | None:
    """What one version of a workflow says of its documents; None if this code cannot load it."""
    try:
        program = desk.registry.library.program(desk.tenant, name, version)
    except StandfastError:
        return None
    machine = None if program is None else program.decider
    return machine.graph.document if isinstance(machine, GraphMachine) else None


def _summary(row: StoredDocument, spec: DocumentSpec | None, data: Data) -> DocumentSummary:
    has_ended = bool(row.superseded_by) or (spec is not None and row.status in spec.terminal)
    return DocumentSummary(
        type=row.type,
        id=row.id,
        status=row.status,
        version=row.version,
        data=data,
        amended_from=row.amended_from,
        superseded_by=row.superseded_by,
        requester=row.requester,
        is_resting=row.is_resting or has_ended,
        instance=row.instance,
        created_at=row.created_at,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
    )


# -- what it was


def number(given: object, what: str) -> int:
    """A number such as that of a version; PayloadError for what is none."""
    if not is_whole(given, least=1, most=_MOST_VERSIONS) or isinstance(given, bool) or not isinstance(given, int):
        raise PayloadError(f"the {what} must be a whole number from 1 on, not {given!r}")
    return given


def versions_of(
    desk: CallContext, reader: TenantReader, known: FoundDocument, page: tuple[object, object]
) -> list[DocumentVersion]:
    """The versions of a document behind one of them, so many, or all if that is None; the first one first."""
    spec, actor = known.parts.spec, desk.request.actor
    after, limit = page
    most = None if limit is None else checked_limit(limit)
    found = reader.rows(DOCUMENT_VERSIONS, known.header.id, after=checked_after(after), limit=most)
    return [_version(each, spec, actor) for each in found]


def version_of(desk: CallContext, reader: TenantReader, known: FoundDocument, number: int) -> DocumentVersion:
    """One version; NotFoundError if the document never had it."""
    row = kept_version(reader, known, number)
    return _version(row, known.parts.spec, desk.request.actor)


def kept_version(reader: TenantReader, known: FoundDocument, number: int) -> StoredVersion:
    """The row of a version; NotFoundError if the document never had it."""
    for each in reader.rows(DOCUMENT_VERSIONS, known.header.id, after=number - 1, limit=1):
        if each.version == number:
            return each
    raise NotFoundError("version", f"{number} of {known.document.type}/{known.document.id}")


def _version(row: StoredVersion, spec: DocumentSpec, actor: Actor) -> DocumentVersion:
    data = _decode(row.data)
    return DocumentVersion(
        version=row.version,
        status=row.status,
        data=visible(spec, data, actor),
        data_hash="" if unseen(spec, data, actor) else row.data_hash,
        written_by=row.written_by,
        written_at=row.written_at,
    )


def differences(
    desk: CallContext, reader: TenantReader, known: FoundDocument, pair: tuple[int, int]
) -> list[FieldDifference]:
    """What is different in two versions, field by field; of sensitive ones, and those for others' eyes, only that they are."""
    before, after = (_decode(kept_version(reader, known, number).data) for number in pair)
    spec, actor = known.parts.spec, desk.request.actor
    return [
        _difference(spec, name, (before, after), actor)
        for name in sorted({*before, *after})
        if not is_same(before.get(name), after.get(name)) or (name in before) != (name in after)
    ]


def _difference(spec: DocumentSpec, name: str, pair: tuple[Data, Data], actor: Actor) -> FieldDifference:
    before, after = pair
    field = spec.fields.get(name)
    old, is_masked = compared(field, before.get(name), actor) if name in before else (None, False)
    new, hides_more = compared(field, after.get(name), actor) if name in after else (None, False)
    return FieldDifference(
        field=name,
        how="added" if name not in before else "removed" if name not in after else "changed",
        before=old,
        after=new,
        is_masked=is_masked or hides_more,
    )


def in_conflict(desk: CallContext, reader: TenantReader, reference: tuple[str, str], seen: int) -> Never:
    """Refuse an edit of a version that is not the newest, and say what is another one since; of what the caller may not read only that it is."""
    known = found(desk, reader, *reference, is_own=True)
    now = known.document.version
    told = f"{known.document.id!r} has the version {now} by now, and you have seen {seen}"
    try:
        changes = differences(desk, reader, known, (seen, now))
    except NotFoundError:  # A version that the document never had.
        changes = []
    names = ", ".join(_briefly(each) for each in changes[:_MOST_TOLD])
    more = f" and {len(changes) - _MOST_TOLD} more" if len(changes) > _MOST_TOLD else ""
    since = f"; another one since then: {names}{more}" if names else ""
    raise RejectedError(reason=Refusal.VERSION_CONFLICT, message=f"{told}{since}; compare them, and decide anew")


def _briefly(change: FieldDifference) -> str:
    if change.is_masked:
        return f"{change.field} (masked)"
    before, after = (msgspec.json.encode(each).decode() for each in (change.before, change.after))
    return f"{change.field} ({shorten(before, _LONGEST_TOLD)} → {shorten(after, _LONGEST_TOLD)})"


def mutations_of(desk: CallContext, reader: TenantReader, known: FoundDocument) -> list[DocumentMutation]:
    """What was done to a document, in order."""
    spec, actor = known.parts.spec, desk.request.actor
    traces = _traces(reader, known)
    found = []
    for each in reader.rows(MUTATIONS, known.header.id):
        changes = {} if each.changes is None else _decode(each.changes)
        found.append(
            DocumentMutation(
                sequence=each.sequence,
                kind=each.kind,
                action=each.action,
                version_before=each.version_before,
                version_after=each.version_after,
                actor=each.actor,
                on_behalf_of=each.on_behalf_of,
                run_as=each.run_as,
                step=each.step,
                reason=each.reason,
                changes=changes_shown(spec, changes, actor),
                made_at=each.made_at,
                trace=traces.get(each.sequence, ""),
            )
        )
    return found


def _traces(reader: TenantReader, known: FoundDocument) -> dict[int, str]:
    """The trace of the request that each line of the audit follows from: lines are counted as the events are that they tell of."""
    events = (each for each in reader.events(known.header.id) if not each.is_system)
    told = (each for each in events if type(known.program.decode(each)) in AUDITED)
    return {number: each.trace for number, each in enumerate(told, 1)}


def audit_of(desk: CallContext, reader: TenantReader, known: FoundDocument) -> list[AuditLine]:
    """The audit of a document, in order."""
    traces = _traces(reader, known)
    return [
        AuditLine(
            sequence=each.sequence,
            who=each.who,
            whom=each.whom,
            whose=desk.tenant,
            what=each.what,
            which=each.which,
            at=each.at,
            place=each.place,
            why=each.why,
            whence=each.whence,
            how=each.how,
            trace=traces.get(each.sequence, ""),
        )
        for each in reader.rows(AUDIT, known.header.id)
    ]


def rounds_of(reader: TenantReader, known: FoundDocument) -> list[DocumentRound]:
    """The rounds of a document, in order."""
    rounds: list[DocumentRound] = []
    for stored in reader.events(known.header.id):
        event = None if stored.is_system else known.program.decode(stored)
        match event:
            case e.DocumentCreated():
                first = DocumentRound(round=1, started_at=stored.at, completed_at=None, status=event.status)
                rounds.append(first)
            case e.RoundStarted():
                begun = DocumentRound(round=event.round, started_at=stored.at, completed_at=None, status=event.status)
                rounds.append(begun)
            case e.RoundCompleted():
                rounds[-1] = msgspec.structs.replace(rounds[-1], completed_at=stored.at, status=event.status)
            case _:
                pass
    return rounds


def links_of(reader: TenantReader, known: FoundDocument, actor: Actor) -> list[DocumentLink]:
    """All of them: references first, then what happened, in order."""
    return [*_references(known, actor), *_happened(reader, known)]


def _references(known: FoundDocument, actor: Actor) -> Iterator[DocumentLink]:
    data = visible(known.parts.spec, known.document.data, actor)
    for name, field in known.parts.spec.fields.items():
        given = data.get(name)
        if field.type == "ref" and isinstance(given, str) and given == known.document.data.get(name):
            yield DocumentLink(how="refers_to", type=field.of, id=given, field=name)


def _happened(reader: TenantReader, known: FoundDocument) -> Iterator[DocumentLink]:
    machine, state = known.machine, known.machine.initial()
    for stored in reader.events(known.header.id):
        if stored.is_system:
            continue
        event = known.program.decode(stored)
        yield from _told(known, state, stored, event)
        state = machine.evolve(state, event)  # type: ignore[arg-type]


def _told(known: FoundDocument, state: RunState, stored: StoredEvent, event: object) -> Iterator[DocumentLink]:
    match event:
        case e.DocumentCreated(origin=origin) | e.DocumentChanged(origin=origin) if origin:
            type_, _, id_ = origin.partition("/")
            is_made = isinstance(event, e.DocumentCreated)
            yield DocumentLink(how="made_by" if is_made else "changed_by", type=type_, id=id_, at=stored.at)
        case e.ChildStarted(step=number, child=child):
            op = known.machine.routes_of(state).node(state.open[number].node).op
            assert isinstance(op, CallOp)
            yield DocumentLink(how="started", type=op.definition, id=child, at=stored.at, step=number)
        case e.StepCompleted(step=number, output=dict() as output) if number in state.open:
            op = known.machine.routes_of(state).node(state.open[number].node).op
            if isinstance(op, ActionOp) and op.of:
                is_new, name = not output.get("version_before"), str(output.get("id", ""))
                yield DocumentLink(how="made" if is_new else "changed", type=op.of, id=name, at=stored.at, step=number)
        case _:
            pass
