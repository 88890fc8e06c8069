"""Idempotency keys: repeated requests with one `Idempotency-Key` of one actor get the stored response.

Routes that pass the key to the engine do not use this module: there the key is part of the commit. For all others the
key is stored before the work, and the response after it. A server that dies in between leaves a key without a response.
The client then gets an error, and nothing is done twice.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from standfast.errors import ReusedIdError, StandfastError, StoreError, StoreUnavailableError
from standfast.http.requests.routing import Route, RouteCall
from standfast.http.wire.problems import EdgeCode, EdgeError

_log = logging.getLogger("standfast.http")
_TOLD: Final = ("location", "etag", "content-type")
_LARGEST: Final = 100_000
"""Longer responses are not stored: clients must not fill the database."""
_PATIENCE: Final = timedelta(minutes=2)
"""No request takes longer: one without a response by then never gets one."""
_AGAIN: Final = {"idempotency-replayed": "true"}


def key_of(route: Route, call: RouteCall[object, object]) -> str:
    """The key under which a request is noted here; empty if it has none, if the engine itself takes it, or if nothing is done."""
    key = call.idempotency_key if route.is_repeatable else ""
    return "" if route.takes_key or route.is_look else key


async def once(
    route: Route,
    call: RouteCall[object, object],
    request: Request,
    work: Callable[[], Awaitable[Response]],
    *,
    key: str,
) -> Response:
    """The answer to a request, be it the first under its key or not."""
    mark = _mark(route, request, call)
    known = await call.calls.repeats.begin(key, mark)
    if known is not None:
        if known.mark != mark:
            raise ReusedIdError(key)
        if known.status is None and known.age < _PATIENCE:
            told = "the first request with this Idempotency-Key is still in progress"
            raise EdgeError(EdgeCode.KEY_UNDER_WAY, told, headers={"retry-after": "1"})
        if known.status is None or known.body is None:
            told = (
                "was done, and its response is returned only once"
                if known.status is not None
                else "has no stored response: its outcome is unknown"
            )
            raise EdgeError(EdgeCode.KEY_UNTOLD, f"the first request with this Idempotency-Key {told}")
        headers = msgspec.json.decode(known.headers, type=dict[str, str])
        return Response(known.body, status_code=known.status, headers={**headers, **_AGAIN})
    try:
        response = await work()
    except (EdgeError, StandfastError) as error:
        if not _may_be_done(error):  # The request may be repeated, and with another body.
            with suppress(StandfastError):
                await call.calls.repeats.forget(key)
        raise
    headers = {name: response.headers[name] for name in _TOLD if name in response.headers}
    is_kept = not route.tells_secret and len(response.body) <= _LARGEST
    body = bytes(response.body) if is_kept else None
    try:
        await call.calls.repeats.answer(key, response.status_code, msgspec.json.encode(headers).decode(), body)
    except (
        StandfastError
    ):  # The work is done, and the client has the response; only a repeated request will not get it.
        _log.exception("idempotent_response_not_stored")
    return response


def _may_be_done(error: Exception) -> bool:
    if isinstance(error, StoreUnavailableError):
        return error.may_be_done
    return isinstance(error, StoreError)


def _mark(route: Route, request: Request, call: RouteCall[object, object]) -> bytes:
    """Return a hash of the request: everything but the caller and the time."""
    query = request.scope["query_string"].decode("latin-1")
    told = [route.method, route.path, dict(call.path), query, request.headers.get("if-match", "")]
    return hashlib.sha256(msgspec.json.encode(told) + call.raw).digest()
