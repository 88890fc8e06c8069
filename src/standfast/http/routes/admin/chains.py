"""Routes of approval chains."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import msgspec

from standfast.errors import NotFoundError
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing
from standfast.people.approval_chains import Chain


class PublishChain(RequestModel, frozen=True, kw_only=True):
    """A chain in a new version."""

    name: str
    stages: list[dict[str, object]]
    description: str = ""


class ChainQuery(NoQuery, frozen=True, kw_only=True):
    """Which version is meant."""

    version: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """The newest one if it is 0."""


async def list_chains(call: RouteCall[Paged, None]) -> Listing[Chain]:
    """List the newest version of each chain."""
    found = await call.calls.chains.list()
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), lambda each: [each.name])


async def publish_chain(call: RouteCall[NoQuery, PublishChain]) -> RouteResponse:
    """Publish a chain, as the version behind the newest one."""
    asked = call.body
    found = await call.calls.chains.publish(asked.name, asked.stages, description=asked.description)
    return RouteResponse(value=found, status=201, headers={"location": f"/api/v1/chains/{quote(found.name, safe='')}"})


async def get_chain(call: RouteCall[ChainQuery, None]) -> Chain:
    """Get a version of a chain."""
    return await call.calls.chains.get(call.path["name"], call.query.version)


async def list_chain_versions(call: RouteCall[Paged, None]) -> Listing[Chain]:
    """List all versions of a chain, oldest first."""
    found = await call.calls.chains.versions(call.path["name"])
    if not found:
        raise NotFoundError("approval chain", call.path["name"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


_CHAINS = Subject("chains", "/api/v1/chains", "chains:read", "own")

ROUTES: tuple[Route, ...] = (
    _CHAINS.get("", list_chains, query=Paged, answer=Listing[Chain]),
    _CHAINS.post(
        "",
        publish_chain,
        permission="chains:publish",
        reach="tenant",
        body=PublishChain,
        answer=Chain,
        status=201,
        example={"name": "expenses", "stages": [{"asks": ["manager"]}, {"asks": ["role:finance"]}]},
    ),
    _CHAINS.get("/{name}", get_chain, query=ChainQuery, answer=Chain),
    _CHAINS.get("/{name}/versions", list_chain_versions, query=Paged, answer=Listing[Chain]),
)
