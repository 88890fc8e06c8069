"""API keys, sessions and refused requests, stored in Postgres."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import msgspec
from psycopg.types.numeric import Int8

from standfast.store.ports.access import StoredKey, StoredRefusal, StoredRequest, StoredSession
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    add_key: str
    key: str
    keys: str
    has_key: str
    revoke: str
    note_use: str
    add_session: str
    forget_sessions: str
    end_surplus_sessions: str
    forget_surplus_sessions: str
    session: str
    sessions: str
    end_session: str
    note_session: str
    note_refusal: str
    forget_refusals: str
    refusals: str
    begin_request: str
    forget_requests: str
    request: str
    answer_request: str
    forget_request: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "access.sql")


class PostgresAccess:
    """The API keys, sessions and requests of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def add_key(self, key: StoredKey) -> None:
        """Store a new key."""
        with self._line.use() as connection:
            connection.execute(_sql.add_key, list(msgspec.structs.astuple(key)))

    def key(self, identity: str) -> StoredKey | None:
        """Return a key by its id."""
        with self._line.use() as connection:
            row = connection.execute(_sql.key, [identity], binary=True).fetchone()
        return None if row is None else _key(cast("Row", row))

    def keys(self, tenant: str, *, after: str, limit: int) -> list[StoredKey]:
        """Return a page of a tenant's keys."""
        with self._line.use() as connection:
            found = connection.execute(_sql.keys, [tenant, after, Int8(limit)], binary=True).fetchall()
        return [_key(cast("Row", row)) for row in found]

    def has_key(self, *, at: datetime) -> bool:
        """Return whether any key is valid."""
        with self._line.use() as connection:
            row = connection.execute(_sql.has_key, [at], binary=True).fetchone()
        return row is not None and bool(row[0])

    def revoke(self, tenant: str, identity: str, *, by: str, at: datetime) -> bool:
        """Revoke a key."""
        with self._line.use() as connection:
            return connection.execute(_sql.revoke, [at, by, tenant, identity]).rowcount == 1

    def note_use(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """Record the use of a key."""
        with self._line.use() as connection:
            connection.execute(_sql.note_use, [at, identity, unless_since])

    def add_session(self, session: StoredSession, *, keep_since: datetime, most: int, kept: int) -> None:
        """Store a new session, end surplus ones, and delete old ones."""
        with self._line.transaction() as connection:
            connection.execute(_sql.add_session, list(msgspec.structs.astuple(session)))
            connection.execute(_sql.forget_sessions, [session.tenant, keep_since])
            own = [session.tenant, session.actor, session.credential, session.id]
            connection.execute(_sql.end_surplus_sessions, [session.created_at, *own, Int8(most - 1)])
            connection.execute(_sql.forget_surplus_sessions, [*own, Int8(kept - 1)])

    def session(self, identity: str) -> StoredSession | None:
        """Return a session by its id."""
        with self._line.use() as connection:
            row = connection.execute(_sql.session, [identity], binary=True).fetchone()
        return None if row is None else _session(cast("Row", row))

    def sessions(self, tenant: str, *, actor: str, after: str, limit: int) -> list[StoredSession]:
        """Return a page of a tenant's sessions."""
        with self._line.use() as connection:
            asked = [tenant, after, actor, actor, Int8(limit)]
            found = connection.execute(_sql.sessions, asked, binary=True).fetchall()
        return [_session(cast("Row", row)) for row in found]

    def end_session(self, tenant: str, identity: str, *, at: datetime) -> bool:
        """End a session."""
        with self._line.use() as connection:
            return connection.execute(_sql.end_session, [at, tenant, identity]).rowcount == 1

    def note_session(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """Record the use of a session."""
        with self._line.use() as connection:
            connection.execute(_sql.note_session, [at, identity, unless_since])

    def note_refusal(self, refusal: StoredRefusal, *, keep_since: datetime) -> None:
        """Store a refusal, and delete old ones."""
        with self._line.transaction() as connection:
            connection.execute(_sql.note_refusal, list(msgspec.structs.astuple(refusal)[1:]))
            connection.execute(_sql.forget_refusals, [refusal.tenant, keep_since])

    def refusals(self, tenant: str, *, before: int, limit: int) -> list[StoredRefusal]:
        """Return a page of refused requests."""
        with self._line.use() as connection:
            found = connection.execute(_sql.refusals, [tenant, Int8(before), Int8(limit)], binary=True).fetchall()
        return [_refusal(cast("Row", row)) for row in found]

    def begin_request(self, request: StoredRequest, *, keep_since: datetime) -> StoredRequest | None:
        """Store a request that begins, or return the existing one."""
        values = list(msgspec.structs.astuple(request))
        with self._line.transaction() as connection:
            connection.execute(_sql.forget_requests, [request.tenant, keep_since])
            row = None
            while row is None:  # The conflicting request may have been deleted meanwhile.
                if connection.execute(_sql.begin_request, values).rowcount == 1:
                    return None
                row = connection.execute(_sql.request, values[:3], binary=True).fetchone()
        return StoredRequest(**dict(zip(StoredRequest.__struct_fields__, cast("Row", row), strict=True)))

    def answer_request(
        self, tenant: str, actor: str, key: str, *, status: int, headers: str, body: bytes | None
    ) -> None:
        """Store a response."""
        with self._line.use() as connection:
            connection.execute(_sql.answer_request, [status, headers, body, tenant, actor, key])

    def forget_request(self, tenant: str, actor: str, key: str) -> None:
        """Delete a request without a response."""
        with self._line.use() as connection:
            connection.execute(_sql.forget_request, [tenant, actor, key])


def _key(row: Row) -> StoredKey:
    return StoredKey(**dict(zip(StoredKey.__struct_fields__, row, strict=True)))


def _session(row: Row) -> StoredSession:
    return StoredSession(**dict(zip(StoredSession.__struct_fields__, row, strict=True)))


def _refusal(row: Row) -> StoredRefusal:
    return StoredRefusal(**dict(zip(StoredRefusal.__struct_fields__, row, strict=True)))
