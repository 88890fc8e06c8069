"""Routes of access: API keys, denied requests, the audit log and the caller's identity."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from standfast.features.access.views import ApiKey, NewApiKey, RefusedRequest
from standfast.features.runs.audit_entries import AuditEntry
from standfast.http.auth.authenticator import Identity
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
from standfast.kernel.row_kinds.changes import Change


class NewKey(RequestModel, frozen=True, kw_only=True):
    """A key that is to be made."""

    name: str
    """The purpose of the key."""
    actor: str
    """The actor of the key's bearer."""
    kind: Literal["user", "service"] = "service"
    roles: list[str] = msgspec.field(default_factory=list)
    capabilities: list[str] = msgspec.field(default_factory=list)
    partition: str = ""
    """The part of the tenant that it is bound to."""
    expires_at: datetime | None = None


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's identity."""

    id: str
    kind: str
    tenant: str
    partition: str
    roles: list[str]
    capabilities: list[str]
    credential: str


class AuditQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of changes."""

    subject: str = ""
    """One kind of thing: `person`, `definition`, `key`, `pause`, `charter`."""
    name: str = ""
    """One of them; needs `subject`."""
    actor: str = ""
    """The actor of the change."""


async def create_key(call: RouteCall[NoQuery, NewKey]) -> RouteResponse:
    """Create an API key. Its secret is returned only here."""
    asked = call.body
    made = await call.calls.keys.create(
        asked.name,
        actor=asked.actor,
        kind=asked.kind,
        roles=asked.roles,
        capabilities=asked.capabilities,
        partition=asked.partition,
        expires_at=asked.expires_at,
    )
    return RouteResponse(value=made, status=201, headers={"location": f"/api/v1/keys/{made.key.id}"})


async def list_keys(call: RouteCall[Paged, None]) -> Listing[ApiKey]:
    """List the API keys of the tenant, revoked ones included, oldest first."""
    size, last = call.page(call.query.limit), cursors.read(call.query.cursor, str) or ""
    found = await call.calls.keys.list(after=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


async def get_key(call: RouteCall[NoQuery, None]) -> ApiKey:
    """Get a key, without its secret."""
    return await call.calls.keys.get(call.path["key"])


async def revoke_key(call: RouteCall[NoQuery, None]) -> ApiKey:
    """Revoke a key, permanently."""
    found = await call.calls.keys.revoke(call.path["key"])
    call.server.door.forget()
    return found


async def list_refusals(call: RouteCall[Paged, None]) -> Listing[RefusedRequest]:
    """List requests that were denied because of the caller's identity or rights, newest first."""
    size, last = call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.refusals.list(before=last or None, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


async def list_audit_changes(call: RouteCall[AuditQuery, None]) -> Listing[Change]:
    """List changes of people, definitions, keys, rules and pauses, newest first: actor, principal, reason, and the values before and after."""
    asked, size, last = call.query, call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.audit.changes(
        subject=asked.subject, name=asked.name, actor=asked.actor, before=last or None, limit=size + 1
    )
    return cursors.listing(found, size, lambda each: each.id)


async def list_acts(call: RouteCall[Paged, None]) -> Listing[AuditEntry]:
    """List the calls on an instance in order: a run, a document, a schedule or a batch."""
    size, last = call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.audit.of(call.run_id, after=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.sequence)


async def tell_me(call: RouteCall[NoQuery, None]) -> Me:
    """Return the caller's identity and permissions."""
    return me(call.identity)


def me(who: Identity) -> Me:
    """Return a caller's own identity."""
    actor = who.actor
    return Me(
        id=actor.id,
        kind=actor.kind,
        tenant=who.tenant,
        partition=who.partition,
        roles=sorted(actor.roles),
        capabilities=sorted(actor.capabilities),
        credential=who.credential,
    )


_AUDIT = Subject("access", "/api/v1/audit", "audit:read", "tenant")
_KEYS = Subject("access", "/api/v1/keys", "keys:manage", "own")

ROUTES: tuple[Route, ...] = (
    _KEYS.post(
        "",
        create_key,
        tells_secret=True,
        body=NewKey,
        answer=NewApiKey,
        status=201,
        example={"name": "the shop's backend", "actor": "shop", "capabilities": ["execution:start"]},
    ),
    _KEYS.get("", list_keys, query=Paged, answer=Listing[ApiKey]),
    _KEYS.get("/{key}", get_key, answer=ApiKey),
    _KEYS.post("/{key}/revoke", revoke_key, answer=ApiKey),
    _AUDIT.get("/refusals", list_refusals, query=Paged, answer=Listing[RefusedRequest]),
    _AUDIT.get("/changes", list_audit_changes, query=AuditQuery, answer=Listing[Change]),
    _AUDIT.get("/instances/{id}", list_acts, reach="run", query=Paged, answer=Listing[AuditEntry]),
    Subject("access", "/api/v1", "", "own").get("/me", tell_me, answer=Me),
)
