"""The API as an ASGI application, to be served by uvicorn or mounted into another application."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route as Address
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from standfast.app.engine import Engine
from standfast.http.landing_page import Front
from standfast.http.openapi import document_of
from standfast.http.requests.endpoint import Endpoint, Sent, refusal
from standfast.http.requests.routing import Route
from standfast.http.requests.server import Server
from standfast.http.routes import ROUTES
from standfast.http.routes.admin.platform import METRICS
from standfast.http.shutdown import ending
from standfast.http.wire import path_escaping as slashes
from standfast.http.wire.options import HttpOptions, checked_options
from standfast.http.wire.path_escaping import Parted
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.http.wire.tracing import trace_of

_PLACES = 4
"""For so many places at which it is mounted the OpenAPI document is kept."""


def create_app(engine: Engine, options: HttpOptions | None = None, *, insecure_dev: bool = False) -> Starlette:
    """Create the API of an engine. The caller starts and stops the engine.

    Mounted into another application, `app.mount("/standfast", create_app(engine))`, its paths begin there; `ending`
    ends its streams with that application. With `insecure_dev` every client on this machine, and no other, may do
    everything without a credential.
    """
    server = Server(engine, checked_options(options or HttpOptions()), insecure_dev=insecure_dev)
    routes = offered(server.options)
    server.document = functools.lru_cache(_PLACES)(lambda place: document_of(routes, place))
    nowhere = _Nowhere(server.options)
    front = Address("/", Front(server, nowhere))  # The landing page for browsers.
    app = Starlette(routes=[front, *addresses(routes, server)], middleware=[Middleware(Parted)], lifespan=ending)
    app.state.server = server
    app.router.redirect_slashes = False
    app.router.default = nowhere
    return app


def offered(options: HttpOptions) -> tuple[Route, ...]:
    """The routes as the options have them."""
    if not options.open_metrics:
        return ROUTES
    is_open = msgspec.structs.replace
    return tuple(is_open(each, reach="public", permission="") if each.path == METRICS else each for each in ROUTES)


def addresses(routes: Sequence[Route], server: Server) -> list[Address]:
    """An endpoint for each address, which answers all of its methods."""
    found: dict[str, dict[str, Route]] = {}
    for route in routes:
        found.setdefault(route.path, {})[route.method] = route
    return [Address(path, Endpoint(methods, server)) for path, methods in found.items()]


class _Nowhere:
    """The answer at an address that there is not; it has the headers of all others."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request."""
        if scope["type"] != "http":
            await WebSocketClose()(scope, receive, send)
            return
        slashes.read(scope)
        request = Request(scope, receive)
        trace = trace_of(request.headers)
        response = refusal(EdgeError(EdgeCode.NO_ROUTE, "there is nothing at this address"), request, trace)
        is_secure = self._options.is_secure(f"{scope.get('scheme')}://")
        await response(scope, receive, Sent(send, trace, is_secure=is_secure))
