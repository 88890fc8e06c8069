"""Handling of one request: authentication, authorisation, parsing, the handler, and the response."""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from standfast.errors import ForbiddenError
from standfast.http.auth.authenticator import CrossSiteError, Identity
from standfast.http.auth.rate_limits import check_rate
from standfast.http.requests.error_responses import error_answer
from standfast.http.requests.idempotency import key_of, once
from standfast.http.requests.routing import Route, RouteCall, RouteResponse, Stream, TextResponse
from standfast.http.requests.server import Server
from standfast.http.wire import path_escaping as slashes
from standfast.http.wire.body import check_depth, decoded, read_body
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.http.wire.tracing import Trace, renamed, trace_of
from standfast.kernel.actor import Actor
from standfast.kernel.codec.type_cache import settled

_log = logging.getLogger("standfast.http")
_encode = msgspec.json.Encoder(enc_hook=str).encode
_PROCESSES: Final = "/ui/"
_SERVER_FAULT: Final = 500
_LONGEST_REASON: Final = 1000
_JSON = re.compile(r"application/json\s*(?:;.*)?", re.IGNORECASE)
_NOBODY = Identity(tenant="default", partition="", actor=Actor(id="nobody"), credential="")

SECURITY: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response: data for the client alone, which browsers must not render, cache or frame."""
_SECURITY: Final = tuple((name.encode(), value.encode()) for name, value in SECURITY.items())


class Endpoint:
    """One address: an ASGI application that answers its methods."""

    def __init__(self, routes: Mapping[str, Route], server: Server) -> None:
        self._routes = routes
        self._server = server
        looks = routes.get("GET")
        # A stream has no end that a HEAD request could wait for.
        has_head = looks is not None and looks.media_type != "text/event-stream"
        self._methods = {**routes, "HEAD": looks} if looks is not None and has_head else dict(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        slashes.read(scope)
        request, began = Request(scope, receive), time.perf_counter()
        trace = trace_of(request.headers)
        route = self._methods.get(request.method)
        name = route.path if route is not None else next(iter(self._routes.values())).path
        companions, failure = self._server.engine.service.shared.telemetry.companions, None
        ways, parent = (
            companions.with_request(
                request.method, name, request_id=trace.request_id, caller=trace.caller, trace=trace.parent
            )
            if companions.is_any
            else ((), trace.parent)
        )
        trace = renamed(trace, parent)
        sent = Sent(send, trace, is_secure=self._server.options.is_secure(f"{scope.get('scheme')}://"))
        try:
            response = await self._response(route, request, trace)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told and the server goes on
            response, failure = refusal(error, request, trace), error
        try:
            await response(scope, receive, sent)
        finally:
            companions.end(ways, failure if sent.status >= _SERVER_FAULT else None)
            self._server.gauges.answered(request.method, name, sent.status, time.perf_counter() - began)

    async def _response(self, route: Route | None, request: Request, trace: Trace) -> Response:
        if route is None:
            allowed = ", ".join(sorted(self._methods))
            told = f"{request.method} is not for this address"
            raise EdgeError(EdgeCode.METHOD_NOT_ALLOWED, told, headers={"allow": allowed})
        if route.is_public:
            return _answered(await route.handler(await self._call(route, request, trace, _NOBODY)), route, request)
        try:
            identity = await self._server.door.identify(request)
        except CrossSiteError as error:
            await self._server.audit.note(error.identity, request, trace, error)
            raise
        check_rate(self._server.rate.take(identity.account), "this credential")
        try:
            identity = identity.narrowed(request.headers)
            self._check(route, identity)
            call = await self._call(route, request, trace, identity)

            async def work() -> Response:
                return _answered(await route.handler(call), route, request)

            key = key_of(route, call)
            return await (once(route, call, request, work, key=key) if key else work())
        except (EdgeError, ForbiddenError) as error:
            await self._server.audit.note(identity, request, trace, error)
            raise

    def _check(self, route: Route, identity: Identity) -> None:
        identity.check(route.permission)
        platform = self._server.options.platform_tenant or self._server.engine.futures.request.tenant
        if route.reach == "platform" and (identity.tenant != platform or identity.partition):
            raise EdgeError(EdgeCode.PLATFORM_ONLY, "this is about all tenants, and the credential is of one")
        if route.reach == "tenant" and identity.partition:
            told = f"this is about the whole tenant, and the credential is bound to {identity.partition!r}"
            raise EdgeError(EdgeCode.OTHER_PARTITION, told)

    async def _call(
        self, route: Route, request: Request, trace: Trace, identity: Identity
    ) -> RouteCall[object, object]:
        if not route.takes_condition and "if-match" in request.headers:
            raise EdgeError(EdgeCode.CONDITION_UNSUPPORTED, "this route does not understand If-Match")
        if route.method != "GET" and "if-none-match" in request.headers:
            told = 'If-None-Match is understood where something is looked at; where something is put, If-Match: "v0" is for what is new'
            raise EdgeError(EdgeCode.CONDITION_UNSUPPORTED, told)
        query = _query(route, request.query_params)
        raw = await read_body(request, self._server.options) if route.method != "GET" else b""
        context = identity.context(trace.parent, route.permission, reason=_reason(request))
        return RouteCall(
            server=self._server,
            calls=self._server.engine.aio.acting(context),
            identity=identity,
            path=request.path_params,
            query=query,
            body=self._body(route, request, raw),
            raw=raw,
            headers=request.headers,
            trace=trace.parent,
            scope=request.scope,
            client=request.client.host if request.client is not None else "",
            revisit=functools.partial(self._revisited, route, request),
        )

    def _body(self, route: Route, request: Request, raw: bytes) -> object:
        """Return the body as the route declares it; None where the handler reads it."""
        if route.body is None:
            if raw.strip():
                raise EdgeError(EdgeCode.MALFORMED, "this route takes no body")
            return None
        given = request.headers.get("content-type", "")
        is_text = given.split(";")[0].strip().lower() in route.texts
        if raw and not is_text and not _JSON.fullmatch(given):
            taken = " or ".join(("application/json", *route.texts))
            raise EdgeError(EdgeCode.UNSUPPORTED_MEDIA_TYPE, f"the body is to be {taken}")
        if raw and request.headers.get("content-encoding", "identity").lower() != "identity":
            raise EdgeError(EdgeCode.UNSUPPORTED_MEDIA_TYPE, "the body is to be sent as it is, and not packed")
        if route.is_signed:
            return None
        check_depth(raw, self._server.options.max_depth)
        return None if is_text else decoded(raw, route.body, is_file=bool(route.texts))

    async def _revisited(self, route: Route, request: Request) -> Identity:
        identity = (await self._server.door.identify(request)).narrowed(request.headers)
        self._check(route, identity)
        return identity


class Sent:
    """Sends an answer with the headers that every answer has, and remembers its status."""

    def __init__(self, send: Send, trace: Trace, *, is_secure: bool) -> None:
        self._send = send
        self._trace = trace
        self._is_secure = is_secure
        self.status = _SERVER_FAULT

    async def __call__(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = message["headers"]
            said = {name for name, _ in headers}
            headers += [each for each in _SECURITY if each[0] not in said]
            if self._is_secure:
                headers.append((b"strict-transport-security", b"max-age=31536000"))
            headers.append((b"x-request-id", self._trace.request_id.encode()))
            headers.append((b"traceparent", self._trace.parent.encode()))
        await self._send(message)


def refusal(error: Exception, request: Request, trace: Trace) -> Response:
    """The answer to a request that was refused, or failed."""
    path = request.scope.get("path", "").removeprefix(request.scope.get("root_path", ""))
    return _told(error, request, trace, is_of_processes=path.startswith(_PROCESSES))


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer an error of the engine in an application of your own as the API does: status, stable code, remedy.

    For FastAPI and Starlette: `app.add_exception_handler(StandfastError, answer_error)`.
    """
    return _told(error, request, trace_of(request.headers), is_of_processes=False)


def _told(error: Exception, request: Request, trace: Trace, *, is_of_processes: bool) -> Response:
    path = request.scope.get("path", "")
    told = error_answer(error, request.method, path, trace, is_of_processes=is_of_processes)
    return Response(told.body, status_code=told.status, headers=told.headers, media_type=told.media_type)


def _answered(answer: object, route: Route, request: Request) -> Response:
    if isinstance(answer, Stream):
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(answer.chunks, media_type="text/event-stream", headers=headers)
    if isinstance(answer, TextResponse):
        return Response(answer.text, media_type=answer.media_type)
    found = answer if isinstance(answer, RouteResponse) else RouteResponse(value=answer, status=route.status)
    headers = _placed(found.headers, route, request)
    tag = found.headers.get("etag")
    if tag is not None and request.method in {"GET", "HEAD"} and _knows(request, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if route.answer is None:
        response = Response(status_code=route.bodiless, headers=headers)
    else:
        response = Response(
            _encode(found.value), status_code=found.status, headers=headers, media_type="application/json"
        )
    for each in found.cookies:
        response.headers.append("set-cookie", each)
    return response


def _placed(headers: Mapping[str, str], route: Route, request: Request) -> dict[str, str]:
    """The headers of an answer; where something that was made is found begins where the API is mounted."""
    place, root = headers.get("location", ""), request.scope.get("root_path", "")
    is_own = place.startswith("/") and route.status != HTTPStatus.SEE_OTHER  # A redirect, which the browser follows.
    return {**headers, "location": f"{root}{place}"} if is_own else dict(headers)


def _knows(request: Request, tag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return tag in known or "*" in known


def _reason(request: Request) -> str:
    """Return the percent-decoded header `Standfast-Reason`; empty if it is missing."""
    given = request.headers.get("standfast-reason", "")
    reason = unquote(given, errors="replace")
    if not given.isascii() or len(reason) > _LONGEST_REASON or not reason.isprintable() or "\ufffd" in reason:
        told = f"Standfast-Reason is one line of at most {_LONGEST_REASON} characters, with all that is not ASCII escaped as %C3%BC"
        raise EdgeError(EdgeCode.BAD_HEADER, told)
    return reason


def _query(route: Route, given: QueryParams) -> object:
    """The parameters in the address, as the route declares them."""
    lists = _lists(route.query)
    values: dict[str, object] = {}
    for name in given:
        several = given.getlist(name)
        takes_several = name in lists
        if len(several) > 1 and not takes_several:
            raise EdgeError(EdgeCode.BAD_QUERY, f"the parameter {name!r} is given several times")
        values[name] = several if takes_several else several[0]
    try:
        return msgspec.convert(values, settled(route.query), strict=False)
    except msgspec.ValidationError as error:
        raise EdgeError(EdgeCode.BAD_QUERY, f"the address asks for what cannot be: {error}") from None


@functools.cache
def _lists(query: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters that may be given several times."""
    fields = msgspec.structs.fields(query)
    return frozenset(each.encode_name for each in fields if getattr(each.type, "__origin__", None) is list)
