"""Calls of documents: create, edit, ask for transitions, amend; and what they are, were, and can become."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from standfast.calls.authorization import check_reader, check_repairer
from standfast.calls.context import (
    CallContext,
    answered,
    checked_id,
    checked_key,
    checked_limit,
    checked_text,
    failed,
)
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.nonblocking import aside
from standfast.calls.references import InstanceLike, checked_instance
from standfast.calls.reply_chaining import and_then
from standfast.engine.commit.submission import CommandOutcome, receipt_key
from standfast.engine.concurrency.replies import Reply
from standfast.errors import NotFoundError, PayloadError, RejectedError, StandfastError
from standfast.features.documents.content import reads as d
from standfast.features.documents.content.html import page_of
from standfast.features.documents.content.path_decisions import choices_of
from standfast.features.documents.content.reads import links_of
from standfast.features.documents.content.views import (
    AuditLine,
    DocumentChoice,
    DocumentLink,
    DocumentMutation,
    DocumentPage,
    DocumentRound,
    DocumentVersion,
    DocumentView,
    EditCheck,
    FieldDifference,
)
from standfast.features.documents.external import DRIFT, checked_edit, drift_of, made_elsewhere
from standfast.features.documents.publishing.active_version import active_workflow, workflow_of
from standfast.features.documents.redaction import Redaction, check_redactor, checked_fields, redacted
from standfast.features.documents.writes import (
    FOLLOWED,
    Amendment,
    act,
    address_of,
    amend,
    carry_out,
    handler_of,
    looks_up,
    made_id,
    said_of,
    seen_after,
    spec_of,
    verb_of,
)
from standfast.features.runs.reads import LARGEST_PAGE
from standfast.machine.documents.visibility import refuse_masks
from standfast.machine.model.commands.document_commands import CreateDocument, Mutate, RequestTransition
from standfast.machine.model.queries.authorization import READ, REPAIR
from standfast.machine.model.rejections import Refusal
from standfast.store.ports.documents import DocumentQuery
from standfast.store.ports.reading import TenantReader

T = TypeVar("T")
Data = dict[str, object]


class FutureDocuments:
    """What can be asked of documents. Who acts, and for which tenant, is the request of these calls (`acting`).

    A document is known by its type and id, and is one run of the workflow of its type for its whole life. Whatever is refused raises
    RejectedError, whose `reason` is a stable code and whose message says what would be possible; it has changed nothing.
    """

    def __init__(self, desk: CallContext, *, origin: str = "", involved: Sequence[str] = ()) -> None:
        self._desk = desk
        self._involved = list(involved)
        """Who has brought about what creates documents, besides whoever asks."""
        self._origin = origin
        """What documents are created by, if that is not whoever asks: another document, or a schedule."""

    # -- writing

    @aside
    def create(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        data: dict[str, object] | None = None,
        *,
        id: str = "",  # noqa: A002 - the word that everybody uses for it
        reason: str = "",
        idempotency_key: str = "",
    ) -> Reply[DocumentView]:
        """Create a document of a type; its workflow begins with it. Without an id it gets one of its own.

        `idempotency_key` makes the call safe to repeat: the same key gives the same document.
        """
        try:
            name, version = active_workflow(self._desk, type)
            command = CreateDocument(
                data=self._given(name, {} if data is None else data, "data"),
                reason=checked_text(reason, "reason"),
                origin=self._origin,
                involved=self._involved,
                looks_up=looks_up(self._desk),
            )
            repeated = checked_key(idempotency_key, "idempotency key", may_be_empty=True)
            key = checked_id(id, "document id", may_be_empty=True) or made_id(self._desk, (name, ""), repeated)
            return self._done(name, key, command, repeated, version=version)
        except StandfastError as error:
            return failed(error)

    @aside
    def adopt(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        data: dict[str, object],
        *,
        status: str,
        version: int = 1,
        reason: str = "",
    ) -> Reply[DocumentView]:
        """Have a document managed that was there before: it waits at the status that it has, with its version.

        It takes the capability `execution:repair`, because no gate has seen it come there.
        """
        try:
            check_repairer(self._desk)
            name, pinned = active_workflow(self._desk, type)
            command = CreateDocument(
                data=plain_data(data, "data", limit=self._desk.payload_limit),
                status=checked_key(status, "status"),
                version=d.number(version, "version"),
                reason=checked_text(reason, "reason"),
                looks_up=looks_up(self._desk),
            )
            adopting = FutureDocuments(self._desk.needing(REPAIR))
            return adopting._done(name, checked_id(id, "document id"), command, "", version=pinned)
        except StandfastError as error:
            return failed(error)

    @aside
    def mutate(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        changes: dict[str, object] | None = None,
        *,
        action: str = "update",
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> Reply[DocumentView]:
        """Change a document: `changes` are laid over its fields, null takes one away; an action of the contract may ask for something else.

        Where an edit is an amendment, that is made, in the same transaction: the answer is the document that takes the place of this
        one, with `is_amendment`. `expected_version` is the one that the caller has seen: if there is another by now, `version_conflict`.
        """
        try:
            name, _ = workflow_of(self._desk, type)
            key = checked_key(id, "document id")
            command = self._mutation((name, key), changes, action, reason=reason, expected=expected_version)
            repeated = checked_key(idempotency_key, "idempotency key", may_be_empty=True)
            if handler_of(self._desk, name, command.action):
                return self._made(lambda: act(self._desk, (name, key), command, repeated))
            sent = self._done(name, key, command, repeated)
        except StandfastError as error:
            return failed(error)

        def amended(error: BaseException) -> Reply[DocumentView]:
            follow = FOLLOWED.get(error.reason) if isinstance(error, RejectedError) else None
            return self._made(lambda: follow(self._desk, (name, key), command, repeated)) if follow else failed(error)

        return and_then(sent, _as_it_is, self._desk.reply(), rescue=amended)

    @aside
    def check_edit(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        changes: dict[str, object] | None = None,
        *,
        action: str = "update",
    ) -> Reply[EditCheck]:
        """Whether another system, which keeps the data of a document, may change it so now; it asks before it writes, and nothing is written here."""
        try:
            name, _ = workflow_of(self._desk, type)
            key = checked_key(id, "document id")
            command = made_elsewhere(self._mutation((name, key), changes, action, may_hold_masks=True))
        except StandfastError as error:
            return failed(error)

        def check(desk: CallContext, reader: TenantReader) -> EditCheck:
            return checked_edit(desk, d.found(desk, reader, type, id, is_own=True), command)

        return self._desk.look_for(check, needs_roles=lambda _: True)

    @aside
    def notify_mutation(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        changes: dict[str, object] | None = None,
        *,
        action: str = "update",
        reason: str = "",
        idempotency_key: str = "",
    ) -> Reply[DocumentView]:
        """Tell of a change that the system has made which keeps the data of a document: it becomes a version here.

        One that would have been refused is drift: the content here stays, the audit names it, and the run is paused until an operator has looked.
        One that is paused already is paused for it once that pause ends.
        """
        try:
            name, _ = workflow_of(self._desk, type)
            key = checked_key(id, "document id")
            command = made_elsewhere(self._mutation((name, key), changes, action, reason=reason))
            sent = self._done(name, key, command, idempotency_key)
        except StandfastError as error:
            return failed(error)

        def behind_its_back(error: BaseException) -> Reply[DocumentView]:
            if isinstance(error, RejectedError) and error.reason in DRIFT:
                repeated = f"{idempotency_key}/drift" if idempotency_key else ""
                return self._done(name, key, drift_of(command, error), repeated)
            return failed(error)

        return and_then(sent, _as_it_is, self._desk.reply(), rescue=behind_its_back)

    def _mutation(
        self,
        reference: tuple[str, str],
        changes: dict[str, object] | None,
        action: str,
        *,
        reason: str = "",
        expected: int | None = None,
        may_hold_masks: bool = False,
    ) -> Mutate:
        name, verb = reference[0], verb_of(reference[0], checked_key(action, "action"))
        return Mutate(
            action=verb,
            payload=self._given(name, {} if changes is None else changes, "changes", may_hold_masks=may_hold_masks),
            expected_version=None if expected is None else d.number(expected, "expected version"),
            reason=checked_text(reason, "reason"),
        )

    @aside
    def transition(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        transition: str,
        *,
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> Reply[DocumentView]:
        """Ask for a transition of the lifecycle: submit, cancel, recall, whatever the contract has.

        Its gate performs it: at once if nothing lies before it, else when the body of its slot is done. What is under way for another
        transition is ended.
        """
        try:
            name, _ = workflow_of(self._desk, type)
            key = checked_key(id, "document id")
            command = RequestTransition(
                transition=checked_key(transition, "transition"),
                expected_version=None if expected_version is None else d.number(expected_version, "expected version"),
                reason=checked_text(reason, "reason"),
            )
            return self._done(name, key, command, idempotency_key)
        except StandfastError as error:
            return failed(error)

    @aside
    def amend(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        changes: dict[str, object],
        *,
        new_id: str = "",
        expected_version: int | None = None,
        reason: str = "",
        idempotency_key: str = "",
    ) -> Reply[DocumentView]:
        """Amend a document that cannot be edited any more: another one takes its place, with the changes in it, and has to be approved anew.

        Both become true in one transaction. The answer is the new one. Where the contract amends in place, it is the same document.
        `idempotency_key` makes the call safe to repeat: the same key gives the same new document.
        """
        try:
            name, _ = workflow_of(self._desk, type)
            key = checked_key(id, "document id")
            command = Mutate(
                payload=self._given(name, changes, "changes"),
                expected_version=None if expected_version is None else d.number(expected_version, "expected version"),
                reason=checked_text(reason, "reason"),
            )
            asked = Amendment(
                changes=command.payload,
                new_id=checked_id(new_id, "new document id", may_be_empty=True),
                expected_version=command.expected_version,
                reason=command.reason,
            )
            repeated = checked_key(idempotency_key, "idempotency key", may_be_empty=True)
            if spec_of(self._desk, name).amendment == "in_place":
                return self._done(name, key, msgspec.structs.replace(command, amends=True), repeated)
        except StandfastError as error:
            return failed(error)
        return self._made(lambda: amend(self._desk, (name, key), command, repeated, asked=asked))

    def redact(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        id: str,  # noqa: A002 - the word that everybody uses for it
        fields: Sequence[str] | None = None,
        *,
        reason: str,
    ) -> Reply[Redaction]:
        """Take the values of fields out of a document for good, of all that are sensitive without `fields`: hashes stand in their place.

        It takes the capability `documents:redact`, and a reason that stands in the audit. The values go from the events, and so from all
        that is made from them: versions, mutations, steps, questions, comments, snapshots; and from what people were told. Everything else
        stays as it was and goes on being proven. Computed fields that read them, documents that it amends or that took its place, and runs that
        its calls started, are redacted with it. ConflictError while something is under way in one of them, a dead letter is left, or if one breaks a rule.
        """

        def act() -> Redaction:
            check_redactor(self._desk)
            if not checked_text(reason, "reason").strip():
                raise PayloadError("say why: a redaction stands in the audit of the document")
            named = checked_fields(fields)
            row = self._desk.reader.document(checked_key(type, "type"), checked_key(id, "document id"))
            if row is None:
                raise NotFoundError("document", f"{type}/{id}")
            return redacted(self._desk, row, named, reason)

        return self._desk.read(act)

    # -- reading

    def get(self, type: str, id: str) -> Reply[DocumentView]:  # noqa: A002 - the words that everybody uses for it
        """A document as it is, its window, and what the caller can ask for from here. Who wants it may look, who is asked, and who may look at all runs."""
        return self._look(type, id, lambda desk, _, known: d.view_of(desk, known))

    def versions(
        self,
        type: str,  # noqa: A002 - see get
        id: str,  # noqa: A002 - see get
        *,
        after: int = 0,
        limit: int | None = None,
    ) -> Reply[builtins.list[DocumentVersion]]:
        """Every version that a document had, the first one first; with a limit so many of them, behind the number of the last page's last one."""
        return self._look(type, id, lambda desk, reader, known: d.versions_of(desk, reader, known, (after, limit)))

    def version(self, type: str, id: str, version: int) -> Reply[DocumentVersion]:  # noqa: A002 - see get
        """One version of a document, exactly as it was: what an approver of that version decides on."""
        return self._look(
            type,
            id,
            lambda desk, reader, known: d.version_of(desk, reader, known, d.number(version, "version")),
        )

    def page(self, type: str, id: str, version: int | None = None) -> Reply[str]:  # noqa: A002 - see get
        """A version of a document, or the newest one, as a page of HTML to be read; what is sensitive or for others' eyes is masked."""

        def read(desk: CallContext, reader: TenantReader, known: d.FoundDocument) -> str:
            return page_of(desk, reader, known, None if version is None else d.number(version, "version"))

        return self._look(type, id, read)

    def diff(self, type: str, id: str, old: int, new: int) -> Reply[builtins.list[FieldDifference]]:  # noqa: A002 - see get
        """What is different in two versions, field by field; of sensitive fields only that they are."""
        return self._look(
            type,
            id,
            lambda desk, reader, known: d.differences(
                desk, reader, known, (d.number(old, "version"), d.number(new, "version"))
            ),
        )

    def mutations(self, type: str, id: str) -> Reply[builtins.list[DocumentMutation]]:  # noqa: A002 - see get
        """What was done to a document, in order: business mutations, and those of its workflow."""
        return self._look(type, id, d.mutations_of)

    def audit(self, type: str, id: str) -> Reply[builtins.list[AuditLine]]:  # noqa: A002 - see get
        """Who did what to a document, when, from where, why and how, steps of its workflow included."""
        return self._look(type, id, d.audit_of)

    def rounds(self, type: str, id: str) -> Reply[builtins.list[DocumentRound]]:  # noqa: A002 - see get
        """The rounds of a document: its ways from a state to its rest."""
        return self._look(type, id, lambda _, reader, known: d.rounds_of(reader, known))

    def links(self, type: str, id: str) -> Reply[builtins.list[DocumentLink]]:  # noqa: A002 - see get
        """What a document has to do with others: those that it refers to, and those that steps of it or of them have made, changed and started."""
        return self._look(type, id, lambda desk, reader, known: links_of(reader, known, desk.request.actor))

    def choices(self, type: str, id: str) -> Reply[builtins.list[DocumentChoice]]:  # noqa: A002 - see get
        """Why a document went the way it did: every step that asked something, with the expression, the values that it read, and what came out."""
        return self._look(type, id, choices_of)

    def list(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        *,
        status: str = "",
        requester: str = "",
        cursor: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[DocumentPage]:
        """Documents of a type, newest first. Whoever may not look at all runs sees their own, with `requester`."""

        def read(desk: CallContext, reader: TenantReader) -> DocumentPage:
            query = DocumentQuery(
                type=checked_key(type, "type"),
                status=checked_key(status, "status", may_be_empty=True),
                requester=checked_key(requester, "requester", may_be_empty=True),
                before=None if cursor is None else checked_instance(cursor),
                limit=min(checked_limit(limit), LARGEST_PAGE),
            )
            check_reader(desk, query.requester, what="list the documents of others; name yourself as `requester`")
            rows = reader.documents(query)
            last = rows[-1].instance if len(rows) == query.limit else None
            return DocumentPage(items=d.summaries_of(desk, reader, rows), next=last)

        return self._desk.look_for(read, needs_roles=lambda _: d.depends_on_roles(self._desk, type))

    # -- how

    def _look(
        self, type_: str, id_: str, question: Callable[[CallContext, TenantReader, d.FoundDocument], T]
    ) -> Reply[T]:
        def look(desk: CallContext, reader: TenantReader) -> T:
            return question(desk, reader, d.found(desk, reader, type_, id_))

        may_read = self._desk.request.actor.may(READ)
        return self._desk.look_for(look, needs_roles=lambda _: not may_read or d.depends_on_roles(self._desk, type_))

    def _made(self, make: Callable[[], DocumentView]) -> Reply[DocumentView]:
        """What takes several commands: on the caller's own thread if it is their connection that it is done on."""
        return answered(Reply(), make) if self._desk.is_within else self._desk.read(make)

    def _given(self, name: str, given: object, what: str, *, may_hold_masks: bool = False) -> Data:
        """What a caller gives, made plain; what they were shown in the place of a value is none."""
        made = plain_data(given, what, limit=self._desk.payload_limit)
        if not may_hold_masks:
            refuse_masks(spec_of(self._desk, name), made, self._desk.request.actor)
        return made

    def _done(self, name: str, key: str, command: d.Spoken, repeated: str, *, version: str = "") -> Reply[DocumentView]:
        """Have a command carried out; the document as it is then: whoever was let do that may look at it."""
        checked_key(repeated, "idempotency key", may_be_empty=True)
        if self._desk.is_within:
            return answered(Reply(), lambda: carry_out(self._desk, (name, key), command, repeated, version=version))
        if self._desk.may_have_roles:  # Policies, rules and masks go by them.
            known = self._desk.consult(self._desk.with_roles)
            return and_then(
                known,
                lambda desk: FutureDocuments(desk)._done(name, key, command, repeated, version=version),  # noqa: SLF001 - the same calls
                self._desk.reply(),
            )
        address = address_of(self._desk, name, key)
        sent = self._desk.command(
            address,
            command,
            _as_it_became,
            comment=command.reason,
            receipt=receipt_key(address, repeated),
            said=said_of(self._desk, command),
            may_create=bool(version),
            definition_version=version,
            view=d.seen_in_hand(self._desk, command),
        )

        def look(outcome: CommandOutcome) -> Reply[DocumentView]:
            if isinstance(outcome.seen, DocumentView):
                return Reply.of(outcome.seen)
            return self._desk.look(lambda reader: seen_after(self._desk, reader, (name, key), outcome.version))

        def explain(error: BaseException) -> Reply[DocumentView]:
            if isinstance(error, NotFoundError) and not version:
                return failed(NotFoundError("document", f"{name}/{key}"))
            expected = None if isinstance(command, CreateDocument) else command.expected_version
            if expected is None or not isinstance(error, RejectedError) or error.reason != Refusal.VERSION_CONFLICT:
                return failed(error)
            return self._desk.look(lambda reader: d.in_conflict(self._desk, reader, (name, key), expected))

        return and_then(sent, look, self._desk.reply(), rescue=explain)


def _as_it_became(outcome: CommandOutcome) -> CommandOutcome:
    return outcome


def _as_it_is(view: DocumentView) -> Reply[DocumentView]:
    return answered(Reply(), lambda: view)
