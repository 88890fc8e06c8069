"""Public health routes: liveness, readiness and features of the server."""

from __future__ import annotations

import asyncio

import msgspec

from standfast.http.requests.routing import NoQuery, Route, RouteCall, RouteResponse, Subject
from standfast.http.requests.server import Server


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the server. `/api/v1/health` has the details, with a credential."""

    status: str
    """`ok` or `unavailable`."""


async def tell_alive(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Return whether this process is alive; 503 if it should be restarted.

    An unavailable database is no reason for that.
    """
    return _told(is_well=not call.server.engine.health().needs_restart)


async def tell_ready(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Return whether the server is ready: the database responds, and commands are accepted; 503 otherwise."""
    return _told(is_well=await is_ready(call.server))


async def is_ready(server: Server) -> bool:
    """Return whether a server is ready for requests."""
    health = server.engine.health()
    return health.is_healthy and health.maintenance != "refuse" and await server.pulse.beats()


async def get_document(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Get the OpenAPI document of this API."""
    place = str(call.scope.get("root_path") or "/")
    return RouteResponse(value=msgspec.Raw(await asyncio.to_thread(call.server.document, place)))


def _told(*, is_well: bool) -> RouteResponse:
    return RouteResponse(value=HealthAnswer(status="ok" if is_well else "unavailable"), status=200 if is_well else 503)


_STANDING = Subject("standing", "", "", "public")

ROUTES: tuple[Route, ...] = (
    _STANDING.get("/healthz", tell_alive, answer=HealthAnswer, also=(503,)),
    _STANDING.get("/readyz", tell_ready, answer=HealthAnswer, also=(503,)),
    _STANDING.get("/openapi.json", get_document, answer=dict[str, object]),
)
