"""Routes of platform operators, for all tenants: workers, queues, read models, maintenance, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from standfast.calls.operator_views import (
    Backlog,
    GivenUp,
    IncidentInfo,
    MissingHandler,
    ProjectionInfo,
    WorkerInfo,
)
from standfast.engine.common.health import Health
from standfast.errors import StandfastError
from standfast.http.requests.routing import NoQuery, RequestModel, Route, RouteCall, Subject, TextResponse
from standfast.http.wire.metrics import MEDIA_TYPE, Labels


class Queues(msgspec.Struct, frozen=True, kw_only=True):
    """How much work waits."""

    items: list[Backlog]
    inbox_depth: int
    """Number of accepted commands that wait."""
    given_up: list[GivenUp]
    """Number of dead letters, by tenant."""


class Maintain(RequestModel, frozen=True, kw_only=True):
    """Begin maintenance: hold all work in all processes."""

    mode: Literal["none", "pause", "refuse"]
    """What is held: nothing, work, or work and commands."""


async def list_workers(call: RouteCall[NoQuery, None]) -> list[WorkerInfo]:
    """List the live workers of all processes."""
    return await call.engine.admin.workers()


async def list_queues(call: RouteCall[NoQuery, None]) -> Queues:
    """List the backlog by handler and by definition, and the dead letters by tenant."""
    admin = call.engine.admin
    return Queues(items=await admin.backlog(), inbox_depth=await admin.inbox_depth(), given_up=await admin.given_up())


async def list_missing_handlers(call: RouteCall[NoQuery, None]) -> list[MissingHandler]:
    """Handlers that work waits for and no live worker has."""
    return await call.engine.admin.missing_handlers()


async def list_incidents(call: RouteCall[NoQuery, None]) -> list[IncidentInfo]:
    """List incidents of all tenants that need an operator: tasks without an eligible approver, hanging calls, work that no code can read."""
    return await call.engine.admin.incidents()


async def list_projections(call: RouteCall[NoQuery, None]) -> list[ProjectionInfo]:
    """List projections with their read positions."""
    return await call.engine.projections.list()


async def drop_projection(call: RouteCall[NoQuery, None]) -> None:
    """Drop the read position of a projection that no process feeds; its tables stay."""
    await call.engine.projections.drop(call.path["projection"])


async def get_health(call: RouteCall[NoQuery, None]) -> Health:
    """Return whether this process works, and what prevents it."""
    return call.server.engine.health()


async def maintain(call: RouteCall[NoQuery, Maintain]) -> None:
    """Begin or end maintenance, in all processes."""
    admin = call.engine.admin
    match call.body.mode:
        case "pause":
            await admin.pause_processing()
        case "refuse":
            await admin.refuse_commands()
        case "none":
            await admin.resume_processing()


async def get_metrics(call: RouteCall[NoQuery, None]) -> TextResponse:
    """Figures of this process and of the queues, in the Prometheus text format."""
    server = call.server
    health = server.engine.health()
    figures: list[tuple[str, str, Labels, float]] = [
        ("standfast_healthy", "Whether this process does its work.", (), float(health.is_healthy)),
        *(
            ("standfast_incidents", "Incidents that need an operator, by kind.", (("kind", kind),), float(count))
            for kind, count in server.engine.incident_counts().items()
        ),
        ("standfast_http_streams", "Streams of events that are open.", (), float(server.room.open)),
    ]
    try:
        # A scraper waits for some seconds, and a database may hang for hours.
        if not await server.pulse.beats():
            return TextResponse(text=server.gauges.text(figures), media_type=MEDIA_TYPE)
        admin = call.engine.admin
        backlog, depth, given_up = await admin.backlog(), await admin.inbox_depth(), await admin.given_up()
        lag = max((each.lag for each in await call.engine.projections.list()), default=0)
    except StandfastError:  # The metrics of this process are useful while the database is unavailable.
        return TextResponse(text=server.gauges.text(figures), media_type=MEDIA_TYPE)
    for kind in ("effect", "timer", "inbox"):
        waiting = float(sum(each.count for each in backlog if each.kind == kind))
        figures.append(("standfast_backlog", "How much work waits.", (("kind", kind),), waiting))
        figures.append(_left(kind, backlog))
        figures.append(_oldest(kind, backlog, server.now()))
    figures.append(("standfast_inbox_depth", "Accepted commands that wait.", (), float(depth)))
    buried = float(sum(each.count for each in given_up))
    figures.append(("standfast_dead_letters", "Dead letters that wait for an operator.", (), buried))
    figures.append(("standfast_projection_lag", "Events that the slowest read model has not read.", (), float(lag)))
    return TextResponse(text=server.gauges.text(figures), media_type=MEDIA_TYPE)


def _left(kind: str, backlog: Sequence[Backlog]) -> tuple[str, str, Labels, float]:
    left = float(sum(each.abandoned for each in backlog if each.kind == kind))
    return ("standfast_backlog_abandoned", "Work claimed by workers that are no longer alive.", (("kind", kind),), left)


def _oldest(kind: str, backlog: Sequence[Backlog], now: datetime) -> tuple[str, str, Labels, float]:
    begun = [each.waits_since for each in backlog if each.kind == kind and each.waits_since is not None]
    waited = max(0.0, (now - min(begun)).total_seconds()) if begun else 0.0
    return (
        "standfast_backlog_seconds",
        "How long the oldest work waits that could be done.",
        (("kind", kind),),
        waited,
    )


METRICS = "/metrics"

_PLATFORM = Subject("platform", "/api/v1", "engine:read", "platform")

ROUTES: tuple[Route, ...] = (
    _PLATFORM.get("/workers", list_workers, answer=list[WorkerInfo]),
    _PLATFORM.get("/queues", list_queues, answer=Queues),
    _PLATFORM.get("/queues/missing-handlers", list_missing_handlers, answer=list[MissingHandler]),
    _PLATFORM.get("/incidents", list_incidents, answer=list[IncidentInfo]),
    _PLATFORM.get("/projections", list_projections, answer=list[ProjectionInfo]),
    _PLATFORM.delete("/projections/{projection}", drop_projection, permission="engine:operate"),
    _PLATFORM.get("/health", get_health, answer=Health),
    _PLATFORM.post("/maintenance", maintain, permission="engine:operate", body=Maintain, example={"mode": "pause"}),
    Subject("platform", METRICS, "metrics:read", "platform").get("", get_metrics, answer=str, media_type=MEDIA_TYPE),
)
