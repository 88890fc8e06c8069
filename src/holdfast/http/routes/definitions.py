"""Routes of published workflows."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

import msgspec

from holdfast.app.operator_views import DefinitionCheck, DefinitionInfo
from holdfast.http import cursors
from holdfast.http.cursors import Listing
from holdfast.http.routes.executions import Drawing
from holdfast.http.routing import Answer, Call, NoQuery, Paged, Route, Subject


class DefinitionQuery(Paged, frozen=True, kw_only=True):
    """Which definitions are wanted."""

    name: str = ""
    """All versions of one; of all if this is empty."""


class VersionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version is meant."""

    version: str = ""
    """The newest one if it is empty."""


class DrawingQuery(VersionQuery, frozen=True, kw_only=True):
    """Which version is meant, and how a drawing is written."""

    format: Literal["mermaid", "dot", "json"] = "mermaid"


async def list_definitions(call: Call[DefinitionQuery, None]) -> Listing[DefinitionInfo]:
    """List published versions by name, each oldest first; those of the tenant and those that all share."""
    found = await call.calls.definitions.list()
    wanted = [each for each in found if call.query.name in {"", each.name}]
    return cursors.sliced(wanted, call.query.cursor, call.page(call.query.limit))


async def publish_definition(call: Call[NoQuery, dict[str, object]]) -> Answer:
    """Publish a workflow that is given as data, for the tenant; the same again changes nothing."""
    found = await call.calls.definitions.publish(call.body)
    return Answer(value=found, status=201, headers={"location": f"/api/v1/definitions/{quote(found.name, safe='')}"})


async def validate_definition(call: Call[NoQuery, dict[str, object]]) -> DefinitionCheck:
    """Whether a workflow that is given as data could be published, with every finding; nothing is stored."""
    return await call.calls.definitions.validate(call.body)


async def get_definition(call: Call[VersionQuery, None]) -> DefinitionInfo:
    """Look at one version: whose it is, its hash, who published it."""
    data = await call.calls.definitions.data(call.path["name"], call.query.version)
    found = await call.calls.definitions.list()
    return next(each for each in found if (each.name, each.version) == (data["name"], str(data["version"])))


async def get_source(call: Call[VersionQuery, None]) -> dict[str, object]:
    """A version as data, which can be changed and published as another one."""
    return await call.calls.definitions.data(call.path["name"], call.query.version)


async def draw_definition(call: Call[DrawingQuery, None]) -> Drawing:
    """A drawing of a version."""
    source = await call.calls.definitions.diagram(call.path["name"], call.query.version, format=call.query.format)
    return Drawing(format=call.query.format, source=source)


_DEFINITIONS = Subject("definitions", "/api/v1/definitions", "definition:read", "own")
_PUBLISH = "definition:publish"
_EXAMPLE = {"name": "order", "version": "1", "kind": "saga"}

ROUTES: tuple[Route, ...] = (
    _DEFINITIONS.get("", list_definitions, query=DefinitionQuery, answer=Listing[DefinitionInfo]),
    _DEFINITIONS.post(
        "",
        publish_definition,
        permission=_PUBLISH,
        reach="tenant",
        body=dict[str, object],
        answer=DefinitionInfo,
        status=201,
        example=_EXAMPLE,
    ),
    _DEFINITIONS.post(
        "/validate", validate_definition, body=dict[str, object], answer=DefinitionCheck, example=_EXAMPLE
    ),
    _DEFINITIONS.get("/{name}", get_definition, query=VersionQuery, answer=DefinitionInfo),
    _DEFINITIONS.get("/{name}/source", get_source, query=VersionQuery, answer=dict[str, object]),
    _DEFINITIONS.get("/{name}/diagram", draw_definition, query=DrawingQuery, answer=Drawing),
)
