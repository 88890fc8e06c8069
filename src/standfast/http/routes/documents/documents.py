"""Routes of documents: content, versions, edits and transitions."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

import msgspec

from standfast.errors import NotFoundError, RejectedError
from standfast.features.documents.content.views import (
    AuditLine,
    DocumentChoice,
    DocumentLink,
    DocumentMutation,
    DocumentRound,
    DocumentSummary,
    DocumentVersion,
    DocumentView,
    EditCheck,
    FieldDifference,
)
from standfast.features.documents.redaction import Redaction
from standfast.http.requests.etags import changed, tag_of
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
    TextResponse,
)
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing

_DIGITS = 10
_HTML = "text/html; charset=utf-8"
VersionNumber = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class CreateDocumentRequest(RequestModel, frozen=True, kw_only=True):
    """A document that is to begin."""

    data: dict[str, object] = msgspec.field(default_factory=dict)
    id: str = ""
    """The document's id; generated if empty."""
    reason: str = ""


class AdoptDocument(RequestModel, frozen=True, kw_only=True):
    """A document that was there before Standfast."""

    data: dict[str, object] = msgspec.field(default_factory=dict)
    status: str
    """The status at which it waits."""
    version: VersionNumber = 1
    reason: str = ""


class ChangeDocument(RequestModel, frozen=True, kw_only=True):
    """A change of a document."""

    changes: dict[str, object] = msgspec.field(default_factory=dict)
    """A JSON merge patch of the fields; null removes a field."""
    action: str = "update"
    """An action of the contract."""
    reason: str = ""


class CheckEdit(RequestModel, frozen=True, kw_only=True):
    """An edit to check."""

    changes: dict[str, object] = msgspec.field(default_factory=dict)
    action: str = "update"


class AskTransition(RequestModel, frozen=True, kw_only=True):
    """A transition to request."""

    transition: str
    reason: str = ""


class AmendDocument(RequestModel, frozen=True, kw_only=True):
    """The changes in the amended document."""

    changes: dict[str, object] = msgspec.field(default_factory=dict)
    new_id: str = ""
    """The new document's id; generated if empty."""
    reason: str = ""


class RedactDocument(RequestModel, frozen=True, kw_only=True):
    """A redaction: the fields and the reason."""

    fields: list[str] | None = None
    """All that are sensitive if this is left out."""
    reason: str


class DocumentQueryRequest(Paged, frozen=True, kw_only=True):
    """The filters of a list of documents."""

    status: str = ""
    requester: str = ""


class DocumentVersionsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which two versions are compared."""

    old: VersionNumber
    new: VersionNumber


class FieldDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two versions."""

    fields: list[FieldDifference]


async def list_documents(call: RouteCall[DocumentQueryRequest, None]) -> Listing[DocumentSummary]:
    """List the documents of a type, newest first; without the right to read all runs, set `requester` to yourself."""
    asked, size = call.query, call.page(call.query.limit)
    found = await call.calls.documents.list(
        call.path["type"],
        status=asked.status,
        requester=asked.requester,
        cursor=cursors.read(asked.cursor, UUID),
        limit=size + 1,
    )
    return cursors.listing(found.items, size, lambda each: each.instance)


async def create_document(call: RouteCall[NoQuery, CreateDocumentRequest]) -> RouteResponse:
    """Create a document of a type; its workflow begins with it."""
    asked = call.body
    found = await call.calls.documents.create(
        call.path["type"], asked.data, id=asked.id, reason=asked.reason, idempotency_key=call.idempotency_key
    )
    return _shown(found, is_new=True)


async def adopt_document(call: RouteCall[NoQuery, AdoptDocument]) -> RouteResponse:
    """Adopt an existing document: it waits at its current status, with its version."""
    asked = call.body
    found = await call.calls.documents.adopt(
        call.path["type"],
        call.path["document"],
        asked.data,
        status=asked.status,
        version=asked.version,
        reason=asked.reason,
    )
    return _shown(found, is_new=True)


async def read_document(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Get a document, whether it can be edited, and the transitions open to the caller."""
    return _shown(await call.calls.documents.get(call.path["type"], call.path["document"]))


async def change_document(call: RouteCall[NoQuery, ChangeDocument]) -> RouteResponse:
    """Change a document; where an edit is an amendment, the answer is the document that takes its place, with `is_amendment`. `If-Match` makes sure of the version that was seen."""
    asked = call.body
    try:
        found = await call.calls.documents.mutate(
            call.path["type"],
            call.path["document"],
            asked.changes,
            action=asked.action,
            expected_version=call.expected_version,
            reason=asked.reason,
            idempotency_key=call.idempotency_key,
        )
    except RejectedError as error:
        raise changed(call, error) from None
    return _shown(found)


async def check_edit(call: RouteCall[NoQuery, CheckEdit]) -> EditCheck:
    """Check whether the system that holds a document's data may make a change now, before it writes."""
    asked = call.body
    return await call.calls.documents.check_edit(
        call.path["type"], call.path["document"], asked.changes, action=asked.action
    )


async def notify_mutation(call: RouteCall[NoQuery, ChangeDocument]) -> RouteResponse:
    """Report a change by the system that holds a document's data; one that would have been refused pauses the run."""
    asked = call.body
    found = await call.calls.documents.notify_mutation(
        call.path["type"],
        call.path["document"],
        asked.changes,
        action=asked.action,
        reason=asked.reason,
        idempotency_key=call.idempotency_key,
    )
    return _shown(found)


async def ask_transition(call: RouteCall[NoQuery, AskTransition]) -> RouteResponse:
    """Request a lifecycle transition, such as submit or cancel.

    Its gate performs it immediately, or after the body of its slot.
    """
    asked = call.body
    try:
        found = await call.calls.documents.transition(
            call.path["type"],
            call.path["document"],
            asked.transition,
            expected_version=call.expected_version,
            reason=asked.reason,
            idempotency_key=call.idempotency_key,
        )
    except RejectedError as error:
        raise changed(call, error) from None
    return _shown(found)


async def amend_document(call: RouteCall[NoQuery, AmendDocument]) -> RouteResponse:
    """Amend a document that cannot be edited. A new document with the changes replaces it, and needs a new approval."""
    asked = call.body
    try:
        found = await call.calls.documents.amend(
            call.path["type"],
            call.path["document"],
            asked.changes,
            new_id=asked.new_id,
            expected_version=call.expected_version,
            reason=asked.reason,
            idempotency_key=call.idempotency_key,
        )
    except RejectedError as error:
        raise changed(call, error) from None
    return _shown(found)


async def redact_document(call: RouteCall[NoQuery, RedactDocument]) -> Redaction:
    """Remove the values of fields from a document and its history, permanently: hashes replace them."""
    asked = call.body
    return await call.calls.documents.redact(
        call.path["type"], call.path["document"], asked.fields, reason=asked.reason
    )


async def list_document_versions(call: RouteCall[Paged, None]) -> Listing[DocumentVersion]:
    """List every version that a document had, the first one first."""
    size, behind = call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.documents.versions(call.path["type"], call.path["document"], after=behind, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.version)


async def get_document_version(call: RouteCall[NoQuery, None]) -> DocumentVersion:
    """Get a version of a document, unchanged."""
    number = _number(call.path["version"])
    return await call.calls.documents.version(call.path["type"], call.path["document"], number)


async def get_document_page(call: RouteCall[NoQuery, None]) -> TextResponse:
    """Render a version of a document as a read-only HTML page; sensitive fields are masked."""
    number = _number(call.path["version"])
    page = await call.calls.documents.page(call.path["type"], call.path["document"], number)
    return TextResponse(text=page, media_type=_HTML)


async def diff_document(call: RouteCall[DocumentVersionsRequest, None]) -> FieldDifferences:
    """Compare two versions by field; for sensitive fields without the values."""
    asked = call.query
    found = await call.calls.documents.diff(call.path["type"], call.path["document"], asked.old, asked.new)
    return FieldDifferences(fields=found)


async def list_document_mutations(call: RouteCall[Paged, None]) -> Listing[DocumentMutation]:
    """List the changes of a document in order, by users and by its workflow."""
    found = await call.calls.documents.mutations(call.path["type"], call.path["document"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


async def list_document_audit(call: RouteCall[Paged, None]) -> Listing[AuditLine]:
    """List the audit trail of a document, with actor, time, origin, reason and channel; steps of its workflow included."""
    found = await call.calls.documents.audit(call.path["type"], call.path["document"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


async def list_document_rounds(call: RouteCall[Paged, None]) -> Listing[DocumentRound]:
    """List the rounds of a document: its ways from a state to its rest."""
    found = await call.calls.documents.rounds(call.path["type"], call.path["document"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


async def list_document_links(call: RouteCall[Paged, None]) -> Listing[DocumentLink]:
    """List the documents and runs that a document has to do with."""
    found = await call.calls.documents.links(call.path["type"], call.path["document"])
    return cursors.named(
        found,
        call.query.cursor,
        call.page(call.query.limit),
        lambda each: [each.how, each.type, each.id, each.step, each.field],
    )


async def list_document_choices(call: RouteCall[Paged, None]) -> Listing[DocumentChoice]:
    """List the decisions on a document's path: each step that read data, with input and outcome."""
    found = await call.calls.documents.choices(call.path["type"], call.path["document"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


def _shown(found: DocumentView, *, is_new: bool = False) -> RouteResponse:
    place = f"/api/v1/documents/{quote(found.type, safe='')}/{quote(found.id, safe='')}"
    moved = {"location": place} if is_new or found.is_amendment else {}
    return RouteResponse(
        value=found, status=201 if is_new else 200, headers={"etag": tag_of(found, found.version), **moved}
    )


def _number(text: str) -> int:
    """Return the version in the path."""
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS and int(text)):
        raise NotFoundError("version", text, hint="versions are counted from 1")
    return int(text)


_TYPE = Subject("documents", "/api/v1/documents/{type}", "documents:read", "own")
_ONE = Subject("documents", "/api/v1/documents/{type}/{document}", "documents:read", "run")
_WRITE = "documents:write"

ROUTES: tuple[Route, ...] = (
    _TYPE.get("", list_documents, query=DocumentQueryRequest, answer=Listing[DocumentSummary]),
    _TYPE.post(
        "",
        create_document,
        permission=_WRITE,
        body=CreateDocumentRequest,
        answer=DocumentView,
        status=201,
        takes_key=True,
        example={"data": {"number": "R-1", "vendor_id": "V-1", "grand_total": 40000}, "id": "INV-1"},
    ),
    _ONE.get("", read_document, answer=DocumentView, also=(304,)),
    _ONE.patch(
        "",
        change_document,
        permission=_WRITE,
        body=ChangeDocument,
        answer=DocumentView,
        takes_condition=True,
        takes_key=True,
        example={"changes": {"grand_total": 41000}, "reason": "postage was missing"},
    ),
    _ONE.post(
        "/check-edit",
        check_edit,
        is_look=True,
        body=CheckEdit,
        answer=EditCheck,
        example={"changes": {"grand_total": 41000}},
    ),
    _ONE.post(
        "/notify-mutation",
        notify_mutation,
        permission=_WRITE,
        body=ChangeDocument,
        answer=DocumentView,
        takes_key=True,
        example={"changes": {"grand_total": 41000}, "reason": "edited in the ERP"},
    ),
    _ONE.post(
        "/transitions",
        ask_transition,
        permission=_WRITE,
        body=AskTransition,
        answer=DocumentView,
        takes_condition=True,
        takes_key=True,
        example={"transition": "submit"},
    ),
    _ONE.post(
        "/amend",
        amend_document,
        permission=_WRITE,
        body=AmendDocument,
        answer=DocumentView,
        takes_condition=True,
        takes_key=True,
        example={"changes": {"grand_total": 42000}, "reason": "the price was wrong"},
    ),
    _ONE.post(
        "/adopt",
        adopt_document,
        permission="execution:repair",
        reach="own",
        body=AdoptDocument,
        answer=DocumentView,
        status=201,
        example={"data": {"number": "R-0"}, "status": "draft", "version": 3, "reason": "taken over"},
    ),
    _ONE.post(
        "/redact",
        redact_document,
        permission="documents:redact",
        body=RedactDocument,
        answer=Redaction,
        example={"fields": ["bank_account"], "reason": "erasure request 7"},
    ),
    _ONE.get("/versions", list_document_versions, query=Paged, answer=Listing[DocumentVersion]),
    _ONE.get("/versions/{version}", get_document_version, answer=DocumentVersion),
    _ONE.get("/versions/{version}/page", get_document_page, answer=str, media_type=_HTML),
    _ONE.get("/diff", diff_document, query=DocumentVersionsRequest, answer=FieldDifferences),
    _ONE.get("/mutations", list_document_mutations, query=Paged, answer=Listing[DocumentMutation]),
    _ONE.get("/audit", list_document_audit, query=Paged, answer=Listing[AuditLine]),
    _ONE.get("/rounds", list_document_rounds, query=Paged, answer=Listing[DocumentRound]),
    _ONE.get("/links", list_document_links, query=Paged, answer=Listing[DocumentLink]),
    _ONE.get("/choices", list_document_choices, query=Paged, answer=Listing[DocumentChoice]),
)
