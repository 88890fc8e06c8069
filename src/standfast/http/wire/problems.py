"""Error responses: problem details (RFC 9457), with the engine's stable codes, a remedy and a trace id."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import msgspec

from standfast import errors as e

MEDIA_TYPE: Final = "application/problem+json"


class EdgeCode(StrEnum):
    """Codes of requests that the HTTP layer refuses, before the engine is called."""

    UNAUTHENTICATED = "unauthenticated"
    """The request has no credential, or an invalid one: expired, revoked, forged, or for another audience."""
    FORBIDDEN = "not_permitted"
    """The credential lacks the permission that the route asks for."""
    OTHER_PARTITION = "partition_bound"
    """The credential is bound to a part of its tenant, and the route is about all of it."""
    PLATFORM_ONLY = "platform_only"
    """The route is about all tenants, and the credential is of one of them."""
    CROSS_SITE = "cross_site"
    """The request came with the cookie of a session, but not from a page of this server: its origin or its CSRF token is another."""
    NO_ROUTE = "no_route"
    """There is nothing at this address."""
    METHOD_NOT_ALLOWED = "method_not_allowed"
    """The address is there, but not for this method; the header `Allow` names those that are."""
    MALFORMED = "malformed"
    """The body is no JSON, or lacks a field, or has one of another type or name than the route takes."""
    REPEATED_NAME = "repeated_name"
    """A name occurs twice in one object of the body, so the value is ambiguous."""
    BAD_QUERY = "bad_query"
    """A parameter in the address has a value or a name that the route does not take."""
    BAD_CURSOR = "bad_cursor"
    """The cursor is not one that this list has given; begin at the first page."""
    BAD_HEADER = "bad_header"
    """A header has a value that cannot be taken."""
    BAD_REQUEST = "bad_request"
    """The request is no valid HTTP."""
    HEAD_TOO_LONG = "head_too_long"
    """The address and the headers together are longer than the server takes."""
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    """The body is to be `application/json`, as it is and not packed (`Content-Encoding`)."""
    TOO_LARGE = "body_too_large"
    """The body is larger than the server takes."""
    TOO_DEEP = "body_too_deep"
    """The body is nested deeper than the server takes."""
    TOO_SLOW = "body_too_slow"
    """The body did not arrive in time."""
    TOO_MANY_REQUESTS = "too_many_requests"
    """The credential, or the address, has made too many requests; the header `Retry-After` says when the next one is taken."""
    TOO_MANY_CONNECTIONS = "too_many_connections"
    """The server has as many connections as it takes; the header `Retry-After` says when to try again."""
    TOO_MANY_STREAMS = "too_many_streams"
    """Too many streams are open, or too many requests wait; close one, or use one for several purposes."""
    CHANGED_MEANWHILE = "changed_meanwhile"
    """The version in `If-Match` is no longer current; read the resource again."""
    CONDITION_UNSUPPORTED = "condition_unsupported"
    """The route does not support `If-Match` or `If-None-Match`: leave it out."""
    KEY_UNDER_WAY = "key_under_way"
    """The first request with this `Idempotency-Key` has not been answered yet."""
    KEY_UNTOLD = "key_untold"
    """The response to the first request with this `Idempotency-Key` is not stored: its server died, or the response
    had a secret in it."""
    BAD_SIGNATURE = "bad_signature"
    """The delivery is not signed with a secret of this address, or its time is too far from now."""
    PROVIDER_AWAY = "provider_unreachable"
    """The identity provider of browser logins is unreachable."""
    INTERNAL = "internal_error"
    """The server failed; the log has more under the trace id."""


_EDGE: Mapping[EdgeCode, tuple[int, str]] = {
    EdgeCode.UNAUTHENTICATED: (401, "send `Authorization: Bearer` with an API key or a token that holds"),
    EdgeCode.FORBIDDEN: (403, "ask with a credential that has the permission, or have it given to this one"),
    EdgeCode.OTHER_PARTITION: (403, "ask with a credential of the whole tenant, or about one thing at a time"),
    EdgeCode.PLATFORM_ONLY: (403, "ask with a credential of the tenant that runs the platform"),
    EdgeCode.CROSS_SITE: (
        403,
        "send the header `X-CSRF-Token` with `csrf` of GET /api/v1/session, from a page of this server",
    ),
    EdgeCode.NO_ROUTE: (404, "look at /openapi.json for the addresses that there are"),
    EdgeCode.METHOD_NOT_ALLOWED: (405, "use one of the methods in the header `Allow`"),
    EdgeCode.MALFORMED: (400, "send what /openapi.json says of this route"),
    EdgeCode.REPEATED_NAME: (400, "say each name once in each object"),
    EdgeCode.BAD_QUERY: (400, "send what /openapi.json says of this route"),
    EdgeCode.BAD_CURSOR: (400, "give `next` of the page before as it is, or leave the cursor out"),
    EdgeCode.BAD_HEADER: (400, "correct or leave out the header that the message names"),
    EdgeCode.BAD_REQUEST: (400, "send HTTP/1.1, as every client does"),
    EdgeCode.HEAD_TOO_LONG: (431, "send shorter headers, and what is long in a body"),
    EdgeCode.UNSUPPORTED_MEDIA_TYPE: (
        415,
        "send the body as it is, and say by `Content-Type` that it is of a kind that the message names",
    ),
    EdgeCode.TOO_LARGE: (413, "send less; keep large data elsewhere and pass a reference"),
    EdgeCode.TOO_DEEP: (400, "send flatter data"),
    EdgeCode.TOO_SLOW: (408, "send the body at once"),
    EdgeCode.TOO_MANY_REQUESTS: (429, "wait as long as the header `Retry-After` says"),
    EdgeCode.TOO_MANY_CONNECTIONS: (503, "try again after a while, or ask another server"),
    EdgeCode.TOO_MANY_STREAMS: (429, "close a stream first, or let a request that waits be answered"),
    EdgeCode.CHANGED_MEANWHILE: (412, "look at it again, and send its new ETag"),
    EdgeCode.CONDITION_UNSUPPORTED: (400, "leave out the condition that the message names"),
    EdgeCode.KEY_UNDER_WAY: (409, "send it again in a moment"),
    EdgeCode.KEY_UNTOLD: (409, "check whether it was done, and use a new key for a new request"),
    EdgeCode.BAD_SIGNATURE: (401, "sign the delivery anew, with the secret of this address and the present time"),
    EdgeCode.PROVIDER_AWAY: (503, "try again after a while, or come in with a key"),
    EdgeCode.INTERNAL: (500, "try again; if it stays, report the trace id to the operator of the server"),
}

STATUSES: Mapping[type[e.StandfastError], int] = {
    e.StandfastError: 500,
    e.DefinitionError: 422,
    e.ExpressionError: 422,
    e.RejectedError: 409,
    e.ForbiddenError: 403,
    e.CommandError: 500,
    e.WorkflowFailedError: 409,
    e.NotFoundError: 404,
    e.ConflictError: 409,
    e.HeldError: 409,
    e.ReusedIdError: 409,
    e.PayloadError: 422,
    e.ReplayError: 500,
    e.UnknownEventError: 500,
    e.StoreError: 500,
    e.StoreUnavailableError: 503,
    e.SchemaMismatchError: 500,
    e.CorruptHistoryError: 500,
    e.StoppedError: 503,
    e.DeadlockError: 500,
    e.ConfigurationError: 500,
}
"""The status of each error of the engine. A test walks the tree, so that a new one cannot be forgotten."""

_UNPROCESSABLE = frozenset({
    "INVALID_TRANSITION", "VALIDATION_ERROR", "invalid_form", "unknown_outcome", "no_transition", "too_large", "reason_required",
    "no_reason", "not_repairable", "unknown_token", "no_save_point", "no_fork", "delegation_to_self", "delegation_circle",
    "nobody_named", "unknown_person", "role_of_nobody", "manager_circle", "empty_period", "several_stood_in_for", "empty_chain",
    "empty_stage", "bad_stage", "time_passed", "invalid_document", "unknown_action", "unknown_transition",
})  # fmt: skip
"""Rejections that are about the request, and not about the current state."""

REMEDIES: Mapping[str, str] = {
    "standfast_error": "report the trace id to the operator of the server",
    "invalid_definition": "correct every finding in `errors`; each names its place and its remedy",
    "invalid_expression": "correct the expression",
    "rejected": "look at it again: it cannot be done as things stand",
    "not_allowed": "ask with a credential that has the capability or the role that the message names",
    "decider_failed": "report the trace id to the author of the decider",
    "workflow_failed": "look at its steps and its history",
    "not_found": "check the id and the credential: what another tenant has looks as if it did not exist",
    "conflict": "look at it again, and repeat the request if it still makes sense",
    "held": "try again in a moment",
    "reused_id": "repeat the first request as it was, or give this one a key of its own",
    "bad_payload": "correct or shorten the value that the message names",
    "replay_failed": "run the code that wrote the history",
    "unknown_event": "run the code that wrote the history",
    "store_failed": "report the trace id to the operator of the server",
    "store_unavailable": "try again after a while",
    "schema_mismatch": "have the migrations run, or the server updated",
    "corrupt_history": "report the trace id to the operator of the server",
    "stopped": "try again when the engine runs again",
    "deadlock": "report the trace id to the operator of the server",
    "bad_configuration": "have the server configured as the message says",
}
"""Remedies by code."""

_FORM: Final = "correct the field in the message; `form` of the step or the task describes the fields"
_NAMED: Final = "give one of those that the message names"
_CHOICES: Final = "look at `choices` under /ui/workflows/{id}: the events that are open, and why others are not"
_REMEDIES_OF_REASONS: Mapping[str, str] = {
    "VALIDATION_ERROR": _FORM,
    "invalid_form": _FORM,
    "invalid_document": "correct what the message names; /api/v1/contracts/{type} says what the fields are",
    "unknown_outcome": _NAMED,
    "unknown_action": _NAMED,
    "unknown_transition": _NAMED,
    "reason_required": "send a `comment` with the decision",
    "already_started": "look at what was started before, or give another key; a start that is sent again has an Idempotency-Key",
    "APPROVAL_VERSION_STALE": "look at the version that is asked about, and decide with its number as `document_version`",
    "INVALID_TRANSITION": _CHOICES,
    "no_transition": _CHOICES,
    "IDEMPOTENCY_CONFLICT": REMEDIES["reused_id"],
    "WORKFLOW_RATE_LIMITED": "ask again after as long as the message says; edits of documents are not counted",
    "dead_letters": "retry the failed step; for a process use /ui/workflows/{id}/resume",
}
"""Remedies of rejections for which reading again is not enough."""

_IN_WORDS_OF_PROCESSES: Mapping[str, str] = {
    "not_found": "NOT_FOUND",
    "not_allowed": "FORBIDDEN",
    EdgeCode.FORBIDDEN: "FORBIDDEN",
    EdgeCode.OTHER_PARTITION: "FORBIDDEN",
    "bad_payload": "VALIDATION_ERROR",
    EdgeCode.MALFORMED: "VALIDATION_ERROR",
    EdgeCode.CHANGED_MEANWHILE: "VERSION_CONFLICT",
}
_AWAY: Final = "what the server keeps its data in cannot be used now"
_SERVER_FAULT: Final = 500
_RETRY_SECONDS: Final = 1


class ProblemDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of several things that are wrong."""

    code: str
    message: str
    position: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Problem details, by RFC 9457."""

    type: str
    """Names the kind of problem, as a URN with its code."""
    title: str
    """The status in words."""
    status: int
    detail: str
    """What is wrong, in one sentence."""
    code: str
    """Stable: the reason of a refusal, or the code of the error."""
    message: str
    """The same as `detail`."""
    remedy: str
    """How to fix it."""
    retryable: bool = False
    """Whether the same request can succeed later."""
    trace_id: str = ""
    """Names the request in the server's logs and traces."""
    errors: list[ProblemDetail] = []
    """Every single finding, where there are several."""
    error: str = ""
    """The code of the underlying error of the library, whatever its reason; empty if the HTTP layer refused the
    request."""


class EdgeError(Exception):
    """The edge refuses a request."""

    def __init__(self, code: EdgeCode, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})


def edge_status(code: EdgeCode) -> int:
    """The status of a refusal of the edge."""
    return _EDGE[code][0]


def problem_of(error: BaseException, *, trace_id: str, is_of_processes: bool = False) -> Problem:
    """Return the problem of an error; an unexpected error is reported without details."""
    found = _told(error)
    if is_of_processes and isinstance(
        error, e.NotFoundError
    ):  # The hint is for developers, and contains internal names.
        told = f"no {error.kind} {error.name!r}"
        found = msgspec.structs.replace(found, detail=told, message=told)
    code = _IN_WORDS_OF_PROCESSES.get(found.code, found.code) if is_of_processes else found.code
    kind = error.code if isinstance(error, e.StandfastError) else ""
    return msgspec.structs.replace(
        found, code=code, type=f"urn:standfast:problem:{code}", trace_id=trace_id, error=kind
    )


def headers_of(error: BaseException) -> dict[str, str]:
    """The headers that belong to an error."""
    if isinstance(error, EdgeError):
        challenge = {"www-authenticate": "Bearer"} if error.code is EdgeCode.UNAUTHENTICATED else {}
        return challenge | error.headers
    is_passing = isinstance(error, e.StandfastError) and error.retryable
    return {"retry-after": str(_RETRY_SECONDS)} if is_passing else {}


def _told(error: BaseException) -> Problem:
    if isinstance(error, EdgeError):
        status, remedy = _EDGE[error.code]
        is_passing = status in {408, 429, 503} or error.code is EdgeCode.KEY_UNDER_WAY
        return _problem(status, error.code.value, error.detail, remedy, retryable=is_passing)
    if not isinstance(error, e.StandfastError):
        return _told(EdgeError(EdgeCode.INTERNAL, "the server failed"))
    status = status_of(error)
    reason = str(getattr(error, "reason", "")) if isinstance(error, e.RejectedError | e.PayloadError) else ""
    remedy = REMEDIES.get(error.code, REMEDIES["standfast_error"])
    if isinstance(error, e.RejectedError):
        remedy = _REMEDIES_OF_REASONS.get(reason, remedy)
    if status >= _SERVER_FAULT and not error.retryable:
        return _problem(status, error.code, "the server failed", remedy, retryable=False)
    told = str(error).removesuffix(f" [{reason}]") if reason else str(error)
    if isinstance(error, e.StoreUnavailableError):
        told = _AWAY  # The engine's message names hosts, and the client may be anonymous.
    found = _problem(status, reason or error.code, told, remedy, retryable=error.retryable)
    if isinstance(error, e.DefinitionError):
        findings = [ProblemDetail(code=x.code, message=x.message, position=x.position) for x in error.diagnostics]
        return msgspec.structs.replace(found, errors=findings)
    return found


def status_of(error: e.StandfastError) -> int:
    """The status of an error of the engine."""
    if isinstance(error, e.RejectedError) and not isinstance(error, e.ForbiddenError):
        if error.reason == "not_started":
            return HTTPStatus.NOT_FOUND
        if error.reason == "WORKFLOW_RATE_LIMITED":
            return HTTPStatus.TOO_MANY_REQUESTS
        if error.reason in _UNPROCESSABLE:
            return HTTPStatus.UNPROCESSABLE_ENTITY
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def _problem(status: int, code: str, detail: str, remedy: str, *, retryable: bool) -> Problem:
    return Problem(
        type="",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        message=detail,
        code=code,
        remedy=remedy,
        retryable=retryable,
    )
