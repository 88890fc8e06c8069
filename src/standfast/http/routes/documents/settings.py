"""Routes of an organisation's document rules and settings, and of document invariants."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from standfast.errors import NotFoundError, PayloadError, RejectedError
from standfast.features.documents.invariants.views import Invariant, InvariantPage, Mended, Violation
from standfast.features.documents.settings_calls import Charter
from standfast.http.requests.etags import changed, tag_of
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.routes.documents.bodies import NumberQuery
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing

_RULES, _SETTINGS = "rules:", "settings"


class PutCharter(RequestModel, frozen=True, kw_only=True):
    """The new rules of a type, or the new settings of the organisation."""

    rules: list[dict[str, object]] | None = None
    """All rules for the type, in the order in which they are judged."""
    settings: dict[str, object] | None = None
    """All settings; expressions read them as `org`."""
    comment: str = ""


class Patrol(RequestModel, frozen=True, kw_only=True):
    """The options of a check of documents."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    """The number of documents of a batch; reduced to the server's limit."""
    rules: list[str] = msgspec.field(default_factory=list)
    """Codes such as `WF-03`; all rules if none is named."""
    anew: bool = False
    """Whether it begins with the newest, wherever the last look was stopped."""


class InvariantRepairRequest(RequestModel, frozen=True, kw_only=True):
    """Why something is set right."""

    reason: str


class PatrolQuery(Paged, frozen=True, kw_only=True):
    """The documents and invariants to check."""

    rules: list[str] = msgspec.field(default_factory=list)
    """Codes such as `WF-03`; all rules if none is named."""


async def list_charters(call: RouteCall[Paged, None]) -> Listing[Charter]:
    """List all versions of all rules and settings, by name, each oldest first."""
    found = await call.calls.charters.list()
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), lambda each: [each.name, each.version])


async def get_charter(call: RouteCall[NumberQuery, None]) -> RouteResponse:
    """Get the rules of a document type, `rules:invoice`, or the `settings`; the newest version by default."""
    name, version = call.path["charter"], call.query.version
    if name == _SETTINGS:
        return _tagged(await call.calls.charters.settings(version))
    return _tagged(await call.calls.charters.rules(_type_of(name), version))


async def put_charter(call: RouteCall[NoQuery, PutCharter]) -> RouteResponse:
    """Publish all rules of a document type, or all settings of the organisation; they replace the previous ones.

    `If-Match` checks the version, `"v0"` that there is none.
    """
    try:
        return _tagged(await _put(call))
    except RejectedError as error:
        raise changed(call, error) from None


async def _put(call: RouteCall[NoQuery, PutCharter]) -> Charter:
    name, asked = call.path["charter"], call.body

    async def found_there() -> int:
        charters = call.calls.charters
        return (await (charters.settings() if name == _SETTINGS else charters.rules(_type_of(name)))).version

    seen = await call.replaced_version(found_there)
    if name == _SETTINGS:
        if asked.settings is None or asked.rules is not None:
            raise PayloadError("`settings` of the organisation are given here, and no rules")
        return await call.calls.charters.publish_settings(asked.settings, replaces=seen, comment=asked.comment)
    type_ = _type_of(name)
    if asked.rules is None or asked.settings is not None:
        raise PayloadError("`rules` for a type are given here, and no settings")
    return await call.calls.charters.publish_rules(type_, asked.rules, replaces=seen, comment=asked.comment)


async def refresh_charters(call: RouteCall[NoQuery, None]) -> None:
    """Reload published rules and settings in this process, which happens without this call within a few seconds."""
    await call.calls.charters.refresh()


async def list_invariants(call: RouteCall[Paged, None]) -> Listing[Invariant]:
    """List the invariants of documents, and the remedy for each."""
    return cursors.sliced(await call.calls.invariants.list(), call.query.cursor, call.page(call.query.limit))


async def check_documents(call: RouteCall[PatrolQuery, None]) -> InvariantPage:
    """Check the invariants of a batch of documents, newest first; `next` is the cursor of the following batch."""
    asked = call.query
    place = cursors.read(asked.cursor, UUID)
    found = await call.calls.invariants.check(
        cursor=None if place is None else str(place), limit=call.page(asked.limit), rules=asked.rules
    )
    return msgspec.structs.replace(found, next=None if found.next is None else cursors.written(found.next))


async def patrol_documents(call: RouteCall[NoQuery, Patrol]) -> InvariantPage:
    """Check the next batch of documents; the database stores the position."""
    asked = call.body
    return await call.calls.invariants.patrol(limit=call.page(asked.limit), rules=asked.rules, anew=asked.anew)


async def check_document(call: RouteCall[NoQuery, None]) -> list[Violation]:
    """List the invariants that one document breaks; it is named by the id of its run."""
    return await call.calls.invariants.of(call.run_id)


async def repair_document(call: RouteCall[NoQuery, InvariantRepairRequest]) -> Mended:
    """Repair a document from its history: its stored rows and calls are rebuilt."""
    return await call.calls.invariants.repair(call.run_id, reason=call.body.reason)


async def check_workflows(call: RouteCall[Paged, None]) -> Listing[Violation]:
    """List where the published workflows of documents break a rule."""
    found = await call.calls.invariants.workflows()
    return cursors.named(
        found, call.query.cursor, call.page(call.query.limit), lambda each: [each.rule, each.definition, each.told]
    )


def _tagged(charter: Charter) -> RouteResponse:
    return RouteResponse(value=charter, headers={"etag": tag_of(charter, charter.version)})


def _type_of(name: str) -> str:
    """Return the type whose rules a path names."""
    if not name.startswith(_RULES) or name == _RULES:
        raise NotFoundError("charter", name, hint="there is `settings`, and `rules:` with a type")
    return name.removeprefix(_RULES)


_CHARTERS = Subject("charters", "/api/v1/charters", "charters:read", "own")
_INVARIANTS = Subject("invariants", "/api/v1/invariants", "execution:read", "own")

ROUTES: tuple[Route, ...] = (
    _CHARTERS.get("", list_charters, query=Paged, answer=Listing[Charter]),
    _CHARTERS.post("/refresh", refresh_charters, permission="documents:govern", reach="tenant"),
    _CHARTERS.get("/{charter}", get_charter, query=NumberQuery, answer=Charter, also=(304,)),
    _CHARTERS.put(
        "/{charter}",
        put_charter,
        permission="documents:govern",
        reach="tenant",
        body=PutCharter,
        answer=Charter,
        takes_condition=True,
        example={"rules": [], "comment": "no rules yet"},
    ),
    _INVARIANTS.get("", list_invariants, query=Paged, answer=Listing[Invariant]),
    _INVARIANTS.get("/documents", check_documents, query=PatrolQuery, answer=InvariantPage),
    _INVARIANTS.get("/documents/{id}", check_document, reach="run", answer=list[Violation]),
    _INVARIANTS.post(
        "/documents/{id}/repair",
        repair_document,
        permission="execution:repair",
        reach="run",
        body=InvariantRepairRequest,
        answer=Mended,
        example={"reason": "a row was lost"},
    ),
    _INVARIANTS.post("/patrol", patrol_documents, body=Patrol, answer=InvariantPage, example={"limit": 100}),
    _INVARIANTS.get("/workflows", check_workflows, query=Paged, answer=Listing[Violation]),
)
