"""What the engine shows of access: API keys and sessions without their secrets, requests that were refused, and what was written since."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from standfast.kernel.actor import Actor
from standfast.kernel.ids import InstanceId
from standfast.store.ports.access import StoredKey, StoredRefusal, StoredSession
from standfast.store.records.queries import Headline

_KEY: Final = "key:"
"""How the credential of a session begins that was opened with an API key."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its secret."""

    id: str
    """Names it in calls such as `revoke`; it stands in the key itself."""
    tenant: str
    partition: str
    """The part of the tenant that its bearer is bound to; empty if to none."""
    name: str
    """What it is for."""
    actor: str
    """As whom its bearer acts."""
    kind: Literal["user", "service"]
    roles: list[str]
    capabilities: list[str]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """When it was last used, give or take a minute; None if it never was."""
    revoked_at: datetime | None
    revoked_by: str

    @property
    def bearer(self) -> Actor:
        """Who comes with it."""
        return Actor(
            id=self.actor,
            kind=self.kind,
            roles=frozenset(self.roles),
            capabilities=frozenset(self.capabilities),
            key=self.id,
        )

    def holds(self, at: datetime) -> bool:
        """Whether it opens anything at an instant."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


class NewApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was just made."""

    key: ApiKey
    secret: str
    """What its bearer sends. It is shown here and never again."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that somebody came in with, without its secret."""

    id: str
    tenant: str
    partition: str
    """The part of the tenant that it is bound to; empty if to none."""
    actor: str
    kind: Literal["user", "service"]
    roles: list[str]
    """What they had when they came in, like their capabilities."""
    capabilities: list[str]
    credential: str
    """What they came in with: `key:` and its id, or `jwt:` and the issuer."""
    created_at: datetime
    expires_at: datetime
    """When it ends, however much it is used."""
    last_used_at: datetime
    """Give or take a minute."""
    ended_at: datetime | None

    @property
    def bearer(self) -> Actor:
        """Who comes with it."""
        return Actor(
            id=self.actor,
            kind=self.kind,
            roles=frozenset(self.roles),
            capabilities=frozenset(self.capabilities),
            key=self.credential.removeprefix(_KEY) if self.credential.startswith(_KEY) else "",
        )


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that has just begun."""

    session: Session
    secret: str
    """What the browser keeps. It is shown here and never again."""


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was refused because of who asked."""

    id: int
    actor: str
    credential: str
    """What the caller came with: `key:` and its id, or `jwt:` and the issuer."""
    method: str
    path: str
    code: str
    """Why, as a word."""
    detail: str
    """The same as a sentence."""
    trace: str
    """Names the request in logs and traces."""
    at: datetime


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """That an instance has one event more."""

    position: int
    """Its place in the order of all events."""
    tenant: str
    instance: InstanceId
    sequence: int
    type: str
    """Name of the event."""
    definition: str
    """Name of what the instance is one of."""


class WrittenPage(msgspec.Struct, frozen=True, kw_only=True):
    """What was written behind a position."""

    items: list[Written]
    next: int
    """Give it as `after` for what follows."""


def api_key(stored: StoredKey) -> ApiKey:
    """A key without its hash."""
    return ApiKey(**_without_hash(stored, ApiKey.__struct_fields__))


def session_of(stored: StoredSession) -> Session:
    """A session without its hash."""
    return Session(**_without_hash(stored, Session.__struct_fields__))


def refused_request(stored: StoredRefusal) -> RefusedRequest:
    """A stored refusal."""
    return RefusedRequest(**{name: getattr(stored, name) for name in RefusedRequest.__struct_fields__})


def written(event: Headline) -> Written:
    """An event of the feed, without what it says."""
    return Written(  # Every event that anybody listens to comes by here.
        position=event.position,
        tenant=event.tenant,
        instance=event.instance,
        sequence=event.sequence,
        type=event.type,
        definition=event.definition,
    )


def _without_hash(stored: StoredKey | StoredSession, names: tuple[str, ...]) -> dict[str, Any]:
    fields = {name: getattr(stored, name) for name in names}
    return fields | {name: json.loads(fields[name]) for name in ("roles", "capabilities")}
