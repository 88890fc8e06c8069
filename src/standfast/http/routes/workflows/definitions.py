"""Routes of published workflows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import quote

import msgspec

from standfast.calls.operator_views import ArchivedDefinition, DefinitionCheck, DefinitionInfo
from standfast.errors import ConfigurationError, DefinitionError
from standfast.features.definitions.files import FileChanges, FileCheck, FilePublication, taken
from standfast.features.runs.pauses.pause_points import PausePoint
from standfast.features.simulation import DryRun
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.routes.workflows.assumptions import Supposed
from standfast.http.routes.workflows.runs import Drawing
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing


class DefinitionQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of definitions."""

    name: str = ""
    """All versions of one; of all if this is empty."""


class VersionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version is meant."""

    version: str = ""
    """The newest one if it is empty."""


class DefinitionVersionsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which versions are compared."""

    old: str
    new: str = ""
    """The newest one if it is empty."""


class DrawingQuery(VersionQuery, frozen=True, kw_only=True):
    """Which version is meant, and how a drawing is written."""

    format: Literal["mermaid", "dot", "json"] = "mermaid"


class PausePointQuery(VersionQuery, frozen=True, kw_only=True):
    """The filters of a list of pause points."""

    trigger: Literal["", "approval", "wait", "manual"] = ""
    """Only those at which a run rests for this; all of them if it is empty."""


class Version(RequestModel, frozen=True, kw_only=True):
    """Which version is meant."""

    version: str


class Archive(Version, frozen=True, kw_only=True):
    """Which version is taken out of use, and why."""

    reason: str = ""


class DryRunOfWorkflow(Supposed, frozen=True, kw_only=True):
    """A run that is tried out."""

    version: str = ""
    """The newest one if it is empty."""
    input: dict[str, object] | None = None


class DryRunOfFile(Supposed, frozen=True, kw_only=True):
    """A run of a workflow that need not be published."""

    text: str
    """The file: processes in YAML or JSON, rules or a graph in JSON."""
    workflow: str = ""
    """Which workflow of the file, if it has several."""
    name: str = "the file"
    """The file name in messages."""
    input: dict[str, object] | None = None


class FileQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a file."""

    name: str = "the file"
    """The file name in messages."""


class PublishQuery(FileQuery, frozen=True, kw_only=True):
    """The options of publishing a file."""

    check: bool = False
    """Only report what would happen."""


class DiffQuery(VersionQuery, frozen=True, kw_only=True):
    """The version to compare a file with."""

    workflow: str = ""
    """Which workflow of the file, if it has several."""


async def list_definitions(call: RouteCall[DefinitionQuery, None]) -> Listing[DefinitionInfo]:
    """List published versions by name, each oldest first; those of the tenant and those that all share."""
    found = await call.calls.definitions.list()
    wanted = [each for each in found if call.query.name in {"", each.name}]
    return cursors.named(wanted, call.query.cursor, call.page(call.query.limit), _named)


async def publish_definition(call: RouteCall[NoQuery, dict[str, object]]) -> RouteResponse:
    """Publish a workflow that is given as data, for the tenant; the same again changes nothing."""
    with _clients_own("the workflow"):
        found = await call.calls.definitions.publish(call.body)
    return RouteResponse(
        value=found, status=201, headers={"location": f"/api/v1/definitions/{quote(found.name, safe='')}"}
    )


async def validate_definition(call: RouteCall[NoQuery, dict[str, object]]) -> DefinitionCheck:
    """Validate a workflow given as data, and return every finding; nothing is stored."""
    return await call.calls.definitions.validate(call.body)


async def publish_file(call: RouteCall[PublishQuery, object]) -> RouteResponse:
    """Publish all workflows of a file (processes in YAML or JSON, rules or a graph in JSON), or none of them, and report each."""
    asked = call.query
    with _clients_own(asked.name):
        found = await call.calls.definitions.publish_file(call.raw, name=asked.name, check=asked.check)
    return RouteResponse(value=found, status=201 if found.is_published else 200)


async def validate_file(call: RouteCall[FileQuery, object]) -> FileCheck:
    """Validate a file of workflows; return its content, errors and warnings with their positions. Nothing is stored."""
    return await call.calls.definitions.validate_file(call.raw, name=call.query.name)


async def diff_file(call: RouteCall[DiffQuery, object]) -> FileChanges:
    """Compare a workflow of a file with a published version; the newest by default."""
    return await call.calls.definitions.diff_file(call.raw, call.query.version, workflow=call.query.workflow)


async def diff_definition(call: RouteCall[DefinitionVersionsRequest, None]) -> FileChanges:
    """Compare two published versions of a workflow; the second one defaults to the newest."""
    return await call.calls.definitions.diff(call.path["name"], call.query.old, call.query.new)


async def dry_run_definition(call: RouteCall[NoQuery, DryRunOfWorkflow]) -> DryRun:
    """Simulate a run's path; nothing is stored, no notification is sent, and no handler is called."""
    asked = call.body
    return await call.calls.definitions.dry_run(call.path["name"], asked.input, version=asked.version, **asked.told())


async def dry_run_file(call: RouteCall[NoQuery, DryRunOfFile]) -> DryRun:
    """Simulate a run of a workflow in a file, which need not be published; nothing is stored."""
    asked = call.body
    return await call.calls.definitions.dry_run_file(
        asked.text, asked.input, workflow=asked.workflow, name=asked.name, **asked.told()
    )


async def archive_definition(call: RouteCall[NoQuery, Archive]) -> None:
    """Archive a version of the tenant: no new run starts with it, and existing runs continue."""
    await call.calls.definitions.archive(call.path["name"], call.body.version, reason=call.body.reason)


async def restore_definition(call: RouteCall[NoQuery, Version]) -> None:
    """Restore an archived version."""
    await call.calls.definitions.restore(call.path["name"], call.body.version)


async def list_archived(call: RouteCall[Paged, None]) -> Listing[ArchivedDefinition]:
    """List the versions that are out of use, by name."""
    found = await call.calls.definitions.archived()
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), _named)


async def get_definition(call: RouteCall[VersionQuery, None]) -> DefinitionInfo:
    """Get a version: tenant, hash and publisher."""
    data = await call.calls.definitions.data(call.path["name"], call.query.version)
    found = await call.calls.definitions.list()
    return next(each for each in found if (each.name, each.version) == (data["name"], str(data["version"])))


async def get_source(call: RouteCall[VersionQuery, None]) -> dict[str, object]:
    """A version as data, which can be changed and published as another one."""
    return await call.calls.definitions.data(call.path["name"], call.query.version)


async def list_pause_points(call: RouteCall[PausePointQuery, None]) -> list[PausePoint]:
    """List the steps at which runs of a version wait: the reason, and how they continue."""
    asked = call.query
    return await call.calls.definitions.pause_points(call.path["name"], asked.version, trigger=asked.trigger)


async def draw_definition(call: RouteCall[DrawingQuery, None]) -> Drawing:
    """A drawing of a version."""
    source = await call.calls.definitions.diagram(call.path["name"], call.query.version, format=call.query.format)
    return Drawing(format=call.query.format, source=source)


def _named(version: DefinitionInfo | ArchivedDefinition) -> object:
    return [version.tenant, version.name, version.version]


@contextmanager
def _clients_own(name: str) -> Iterator[None]:
    """A conflict with published definitions is the client's error, not the server's."""
    try:
        yield
    except ConfigurationError as error:
        raise DefinitionError(name, [taken(error)]) from None


_DEFINITIONS = Subject("definitions", "/api/v1/definitions", "definition:read", "own")
_PUBLISH = "definition:publish"
_EXAMPLE = {
    "name": "greeting",
    "version": "1",
    "kind": "saga",
    "entry": "greet",
    "nodes": {"greet": {"id": "greet", "op": {"op": "task", "work": {"handler": "greet"}}}},
    "edges": [],
}
_FILE = {
    "domain": "holidays",
    "workflows": [
        {
            "id": "holidays.request",
            "version": 1,
            "initial_step": "asked",
            "steps": [
                {"id": "asked", "type": "approval", "assignee": {"role": "manager"}},
                {"id": "granted", "type": "terminal", "outcome": "granted"},
                {"id": "refused", "type": "terminal", "outcome": "refused"},
            ],
            "transitions": [
                {"from": "asked", "event": "approved", "to": "granted"},
                {"from": "asked", "event": "rejected", "to": "refused"},
            ],
        }
    ],
}
_TEXTS = ("application/yaml", "text/yaml")

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
        "/validate", validate_definition, is_look=True, body=dict[str, object], answer=DefinitionCheck, example=_EXAMPLE
    ),
    _DEFINITIONS.post(
        "/files",
        publish_file,
        permission=_PUBLISH,
        reach="tenant",
        query=PublishQuery,
        body=object,
        texts=_TEXTS,
        answer=FilePublication,
        status=201,
        also=(200,),
        example=_FILE,
    ),
    _DEFINITIONS.post(
        "/files/validate",
        validate_file,
        is_look=True,
        query=FileQuery,
        body=object,
        texts=_TEXTS,
        answer=FileCheck,
        example=_FILE,
    ),
    _DEFINITIONS.post(
        "/files/diff",
        diff_file,
        is_look=True,
        query=DiffQuery,
        body=object,
        texts=_TEXTS,
        answer=FileChanges,
        example=_FILE,
    ),
    _DEFINITIONS.post(
        "/files/dry-run",
        dry_run_file,
        is_look=True,
        body=DryRunOfFile,
        answer=DryRun,
        example={"text": json.dumps(_FILE), "decisions": {"asked": "rejected"}},
    ),
    _DEFINITIONS.get("/archived", list_archived, query=Paged, answer=Listing[ArchivedDefinition]),
    _DEFINITIONS.post(
        "/{name}/archive",
        archive_definition,
        permission=_PUBLISH,
        reach="tenant",
        body=Archive,
        example={"version": "1", "reason": "it pays the wrong account"},
    ),
    _DEFINITIONS.post(
        "/{name}/restore",
        restore_definition,
        permission=_PUBLISH,
        reach="tenant",
        body=Version,
        example={"version": "1"},
    ),
    _DEFINITIONS.get("/{name}", get_definition, query=VersionQuery, answer=DefinitionInfo),
    _DEFINITIONS.post(
        "/{name}/dry-run",
        dry_run_definition,
        is_look=True,
        body=DryRunOfWorkflow,
        answer=DryRun,
        example={"input": {"total": 40}, "failing": ["charge"]},
    ),
    _DEFINITIONS.get("/{name}/diff", diff_definition, query=DefinitionVersionsRequest, answer=FileChanges),
    _DEFINITIONS.get("/{name}/source", get_source, query=VersionQuery, answer=dict[str, object]),
    _DEFINITIONS.get("/{name}/pause-points", list_pause_points, query=PausePointQuery, answer=list[PausePoint]),
    _DEFINITIONS.get("/{name}/diagram", draw_definition, query=DrawingQuery, answer=Drawing),
)
