"""Port for API keys, browser sessions, refused requests and repeatable requests."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

import msgspec


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key. Only the hash of its secret is stored."""

    id: str
    """Part of the key itself, so that it is found without the secret."""
    tenant: str
    partition: str
    name: str
    """Purpose of the key, as its creator named it."""
    actor: str
    """The actor that the key authenticates."""
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
    """A browser session. Only the hash of its secret is stored."""

    id: str
    tenant: str
    partition: str
    actor: str
    kind: Literal["user", "service"]
    roles: str
    """JSON list. All these values are those of the session's start."""
    capabilities: str
    """A JSON list."""
    hash: bytes
    credential: str
    """The credential that opened it, as in StoredRefusal. The session ends with its key."""
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime
    ended_at: datetime | None


class StoredRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was refused because of its caller."""

    id: int
    tenant: str
    actor: str
    credential: str
    """The caller's credential: the id of a key, or the issuer of a token."""
    method: str
    path: str
    code: str
    detail: str
    trace: str
    at: datetime


class StoredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A repeatable HTTP request, identified by the caller's idempotency key."""

    tenant: str
    actor: str
    key: str
    mark: bytes
    """Hash of the request's content."""
    began_at: datetime
    status: int | None
    """Status of the response. None until there is one."""
    headers: str
    """A JSON object."""
    body: bytes | None
    """None if the response is not stored."""


class AccessPort(Protocol):
    """The API keys, sessions and requests of all tenants."""

    def add_key(self, key: StoredKey) -> None:
        """Store a new key."""
        ...

    def key(self, identity: str) -> StoredKey | None:
        """Return a key by its id, of any tenant."""
        ...

    def keys(self, tenant: str, *, after: str, limit: int) -> list[StoredKey]:
        """Return a page of a tenant's keys by id, including revoked ones."""
        ...

    def has_key(self, *, at: datetime) -> bool:
        """Return whether any tenant has a key that is valid at a time."""
        ...

    def revoke(self, tenant: str, identity: str, *, by: str, at: datetime) -> bool:
        """Revoke a key. Return False if the tenant has no valid one with this id."""
        ...

    def note_use(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """Record the use of a key, unless a use was recorded since `unless_since`."""
        ...

    def add_session(self, session: StoredSession, *, keep_since: datetime, most: int, kept: int) -> None:
        """Store a new session, and delete those of its tenant that expired before `keep_since`.

        Of its actor and credential the newest `most` stay open, and the newest `kept` are retained.
        """
        ...

    def session(self, identity: str) -> StoredSession | None:
        """Return a session by its id, of any tenant."""
        ...

    def sessions(self, tenant: str, *, actor: str, after: str, limit: int) -> list[StoredSession]:
        """Return a page of a tenant's sessions by id, including ended ones, for one actor if given."""
        ...

    def end_session(self, tenant: str, identity: str, *, at: datetime) -> bool:
        """End a session. Return False if the tenant has no open one with this id."""
        ...

    def note_session(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """Record the use of a session, unless a use was recorded since `unless_since`."""
        ...

    def note_refusal(self, refusal: StoredRefusal, *, keep_since: datetime) -> None:
        """Store a refusal, and delete those of its tenant that are older than `keep_since`.

        The database assigns the id.
        """
        ...

    def refusals(self, tenant: str, *, before: int, limit: int) -> list[StoredRefusal]:
        """Return a page of a tenant's refused requests below an id, newest first."""
        ...

    def begin_request(self, request: StoredRequest, *, keep_since: datetime) -> StoredRequest | None:
        """Store a request that begins, or return the existing one with its key.

        Requests of its tenant older than `keep_since` are deleted first.
        """
        ...

    def answer_request(
        self, tenant: str, actor: str, key: str, *, status: int, headers: str, body: bytes | None
    ) -> None:
        """Store the response to a request."""
        ...

    def forget_request(self, tenant: str, actor: str, key: str) -> None:
        """Delete a request that has no response."""
        ...
