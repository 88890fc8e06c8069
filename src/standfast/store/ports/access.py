"""API keys, sessions of browsers, refused and repeated requests as the database keeps them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

import msgspec


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key. Of its secret only the hash is kept."""

    id: str
    """Stands in the key itself, so that it is found without its secret."""
    tenant: str
    partition: str
    name: str
    """What it is for, in its maker's words."""
    actor: str
    """As whom its bearer acts."""
    kind: Literal["user", "service"]
    roles: str
    """A JSON list."""
    capabilities: str
    """A JSON list."""
    hash: bytes
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whom a browser came in for. Of its secret only the hash is kept."""

    id: str
    tenant: str
    partition: str
    actor: str
    kind: Literal["user", "service"]
    roles: str
    """A JSON list, as all of these were when it began."""
    capabilities: str
    """A JSON list."""
    hash: bytes
    credential: str
    """What they came in with, as in StoredRefusal. A session ends with the key that opened it."""
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime
    ended_at: datetime | None


class StoredRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was refused because of who asked."""

    id: int
    tenant: str
    actor: str
    credential: str
    """What the caller came with: the id of a key, or the issuer of a token."""
    method: str
    path: str
    code: str
    detail: str
    trace: str
    at: datetime


class StoredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to an edge of the engine that may be sent again, by the key of whoever sends it."""

    tenant: str
    actor: str
    key: str
    mark: bytes
    """A hash of what it is about."""
    began_at: datetime
    status: int | None
    """What was answered; None until that is told."""
    headers: str
    """A JSON object."""
    body: bytes | None
    """None if the answer is not kept."""


class AccessPort(Protocol):
    """The keys of all tenants, and what was refused to them."""

    def add_key(self, key: StoredKey) -> None:
        """Store a new key."""
        ...

    def key(self, identity: str) -> StoredKey | None:
        """A key by its id, whosever it is."""
        ...

    def keys(self, tenant: str, *, after: str, limit: int) -> list[StoredKey]:
        """A page of a tenant's keys by id, revoked ones included."""
        ...

    def has_key(self, *, at: datetime) -> bool:
        """Whether any tenant has a key that holds at an instant."""
        ...

    def revoke(self, tenant: str, identity: str, *, by: str, at: datetime) -> bool:
        """End a key; False if the tenant has none that still holds."""
        ...

    def note_use(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """A key was used; nothing is written if it was noted since the other instant."""
        ...

    def add_session(self, session: StoredSession, *, keep_since: datetime, most: int, kept: int) -> None:
        """Store a new session, and forget those of its tenant that expired before the instant.

        Of its actor and credential the newest `most` stay open, and the newest `kept` are remembered.
        """
        ...

    def session(self, identity: str) -> StoredSession | None:
        """A session by its id, whosever it is."""
        ...

    def sessions(self, tenant: str, *, actor: str, after: str, limit: int) -> list[StoredSession]:
        """A page of a tenant's sessions by id, ended ones included; only those of an actor unless that is empty."""
        ...

    def end_session(self, tenant: str, identity: str, *, at: datetime) -> bool:
        """End a session; False if the tenant has none that had not ended."""
        ...

    def note_session(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """A session was used; nothing is written if it was noted since the other instant."""
        ...

    def note_refusal(self, refusal: StoredRefusal, *, keep_since: datetime) -> None:
        """Store a refusal, whatever id it is given, and forget those of its tenant that are older than the instant."""
        ...

    def refusals(self, tenant: str, *, before: int, limit: int) -> list[StoredRefusal]:
        """A page of what was refused to a tenant, newest first, below an id."""
        ...

    def begin_request(self, request: StoredRequest, *, keep_since: datetime) -> StoredRequest | None:
        """Store a request that begins; the one that stands under its key if there is one. Those of its tenant that are older than the instant are forgotten first."""
        ...

    def answer_request(
        self, tenant: str, actor: str, key: str, *, status: int, headers: str, body: bytes | None
    ) -> None:
        """Keep what was answered to a request that has begun."""
        ...

    def forget_request(self, tenant: str, actor: str, key: str) -> None:
        """Forget a request that has begun, and to which nothing was answered."""
        ...
