"""Routes of the directory: users, roles, capabilities and deputies."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from standfast.features.runs.views import HumanTask
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.routes.workflows.dead_letters import numbered
from standfast.http.routes.workflows.tasks import AskedPlace
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing
from standfast.kernel.people import Absence, Delegation, DirectoryChange, Principal


class PersonRequest(RequestModel, frozen=True, kw_only=True):
    """The attributes of a user to set; omitted ones stay as they are."""

    name: str | None = None
    email: str | None = None
    kind: Literal["user", "service"] | None = None
    manager: str | None = None
    """The user's manager; empty means none."""
    attributes: dict[str, object] | None = None


class Period(RequestModel, frozen=True, kw_only=True):
    """Since when, and until when."""

    begins_at: datetime | None = None
    ends_at: datetime | None = None


class Away(Period, frozen=True, kw_only=True):
    """An absence."""

    person: str
    reason: str = ""


class DeputyRequest(Period, frozen=True, kw_only=True):
    """A delegation."""

    giver: str
    to: str
    role: str = ""
    definition: str = ""
    reason: str = ""


class OfPerson(NoQuery, frozen=True, kw_only=True):
    """The user concerned."""

    person: str


class ChangesQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of changes."""

    person: str = ""


class Preferences(RequestModel, frozen=True, kw_only=True):
    """A user's notification preferences."""

    language: str = ""
    off: list[str] = msgspec.field(default_factory=list)
    """Channels that the user has turned off."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The result: whether anything was changed."""

    was: bool


async def list_people(call: RouteCall[Paged, None]) -> Listing[Principal]:
    """List all users by id."""
    size, last = call.page(call.query.limit), cursors.read(call.query.cursor, str) or ""
    found = await call.calls.directory.list(after=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


async def get_person(call: RouteCall[NoQuery, None]) -> Principal:
    """Get a user."""
    return await call.calls.directory.get(call.path["person"])


async def put_person(call: RouteCall[NoQuery, PersonRequest]) -> Principal:
    """Create or update a user."""
    asked = call.body
    return await call.calls.directory.put(
        call.path["person"],
        name=asked.name,
        email=asked.email,
        kind=asked.kind,
        manager=asked.manager,
        attributes=asked.attributes,
    )


async def prefer(call: RouteCall[NoQuery, Preferences]) -> Principal:
    """Set a user's language and the channels to turn off; every user may do this for themselves."""
    asked = call.body
    return await call.calls.directory.prefer(call.path["person"], language=asked.language, off=asked.off)


async def activate_person(call: RouteCall[NoQuery, None]) -> None:
    """Activate a user, so that they can decide and be assigned again."""
    await call.calls.directory.activate(call.path["person"])


async def deactivate_person(call: RouteCall[NoQuery, None]) -> None:
    """Deactivate a user, so that they can neither decide nor be assigned."""
    await call.calls.directory.deactivate(call.path["person"])


async def list_roles(call: RouteCall[NoQuery, None]) -> list[str]:
    """List the current roles of a user."""
    return await call.calls.directory.roles_of(call.path["person"])


async def grant_role(call: RouteCall[NoQuery, Period]) -> None:
    """Grant a role to a user, optionally for a period."""
    asked = call.body
    await call.calls.directory.grant(
        call.path["person"], call.path["role"], begins_at=asked.begins_at, ends_at=asked.ends_at
    )


async def revoke_role(call: RouteCall[NoQuery, None]) -> Done:
    """Revoke a role of a user."""
    return Done(was=await call.calls.directory.revoke(call.path["person"], call.path["role"]))


async def list_holders(call: RouteCall[Paged, None]) -> Listing[Principal]:
    """List the current holders of a role."""
    found = await call.calls.directory.holders(call.path["role"])
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), lambda each: [each.id])


async def list_delegations(call: RouteCall[OfPerson, None]) -> list[Delegation]:
    """List the current and future delegations by and to a user."""
    return await call.calls.directory.delegations(call.query.person)


async def add_delegation(call: RouteCall[NoQuery, DeputyRequest]) -> RouteResponse:
    """Create a delegation: a deputy decides for a user. For the caller's own tasks it takes no capability."""
    asked = call.body
    found = await call.calls.directory.delegate(
        asked.giver,
        asked.to,
        begins_at=asked.begins_at,
        ends_at=asked.ends_at,
        role=asked.role,
        definition=asked.definition,
        reason=asked.reason,
    )
    return RouteResponse(value=found, status=201)


async def end_delegation(call: RouteCall[NoQuery, None]) -> Done:
    """End a delegation now."""
    return Done(was=await call.calls.directory.end_delegation(numbered(call.path["number"], "delegation")))


async def list_absences(call: RouteCall[OfPerson, None]) -> list[Absence]:
    """List the current and future absences of a user."""
    return await call.calls.directory.absences(call.query.person)


async def add_absence(call: RouteCall[NoQuery, Away]) -> RouteResponse:
    """Record an absence of a user; for the caller it takes no capability."""
    asked = call.body
    found = await call.calls.directory.absent(
        asked.person, begins_at=asked.begins_at, ends_at=asked.ends_at, reason=asked.reason
    )
    return RouteResponse(value=found, status=201)


async def end_absence(call: RouteCall[NoQuery, None]) -> Done:
    """End an absence of a user."""
    return Done(was=await call.calls.directory.end_absence(numbered(call.path["number"], "absence")))


async def list_stranded(call: RouteCall[Paged, None]) -> Listing[HumanTask]:
    """List open tasks whose approvers are all deactivated."""
    size, place = call.page(call.query.limit), cursors.read(call.query.cursor, AskedPlace)
    behind = (
        None
        if place is None
        else cursors.resting(HumanTask, asked_at=place.asked_at, instance=place.instance, step_number=place.number)
    )
    found = await call.calls.directory.open_tasks_of_inactive(after=behind, limit=size + 1)
    return cursors.listing(found, size, lambda each: [each.asked_at, each.instance, each.step_number])


async def list_changes(call: RouteCall[ChangesQuery, None]) -> Listing[DirectoryChange]:
    """List changes of the directory with actor and time, newest first."""
    size, last = call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.directory.changes(call.query.person, before=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


_PEOPLE = Subject("directory", "/api/v1/directory", "directory:read", "tenant")
_CHANGE = "directory:change"
_USE = "directory:use"

ROUTES: tuple[Route, ...] = (
    _PEOPLE.get("/people", list_people, reach="own", query=Paged, answer=Listing[Principal]),
    _PEOPLE.get("/people/{person}", get_person, reach="own", answer=Principal),
    _PEOPLE.put(
        "/people/{person}",
        put_person,
        permission=_CHANGE,
        body=PersonRequest,
        answer=Principal,
        example={"name": "Ann Example", "email": "ann@example.org", "manager": "bob"},
    ),
    _PEOPLE.put(
        "/people/{person}/preferences",
        prefer,
        permission=_USE,
        body=Preferences,
        answer=Principal,
        example={"language": "de", "off": ["email"]},
    ),
    _PEOPLE.post("/people/{person}/activate", activate_person, permission=_CHANGE),
    _PEOPLE.post("/people/{person}/deactivate", deactivate_person, permission=_CHANGE),
    _PEOPLE.get("/people/{person}/roles", list_roles, reach="own", answer=list[str]),
    _PEOPLE.put("/people/{person}/roles/{role}", grant_role, permission=_CHANGE, body=Period, example={}),
    _PEOPLE.delete("/people/{person}/roles/{role}", revoke_role, permission=_CHANGE, answer=Done),
    _PEOPLE.get("/roles/{role}/holders", list_holders, reach="own", query=Paged, answer=Listing[Principal]),
    _PEOPLE.get(
        "/delegations", list_delegations, reach="own", permission=_USE, query=OfPerson, answer=list[Delegation]
    ),
    _PEOPLE.post(
        "/delegations",
        add_delegation,
        reach="own",
        permission=_USE,
        body=DeputyRequest,
        answer=Delegation,
        status=201,
        example={"giver": "ann", "to": "bob", "reason": "holidays"},
    ),
    _PEOPLE.delete("/delegations/{number}", end_delegation, reach="own", permission=_USE, answer=Done),
    _PEOPLE.get("/absences", list_absences, reach="own", permission=_USE, query=OfPerson, answer=list[Absence]),
    _PEOPLE.post(
        "/absences",
        add_absence,
        reach="own",
        permission=_USE,
        body=Away,
        answer=Absence,
        status=201,
        example={"person": "ann", "reason": "holidays"},
    ),
    _PEOPLE.delete("/absences/{number}", end_absence, reach="own", permission=_USE, answer=Done),
    _PEOPLE.get(
        "/stranded-tasks",
        list_stranded,
        reach="own",
        permission="execution:read",
        query=Paged,
        answer=Listing[HumanTask],
    ),
    _PEOPLE.get("/changes", list_changes, permission="audit:read", query=ChangesQuery, answer=Listing[DirectoryChange]),
)
