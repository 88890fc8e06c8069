"""API keys, sessions and refused requests, stored in the file."""

from __future__ import annotations

import sqlite3
from datetime import datetime

import msgspec

from standfast.store.ports.access import StoredKey, StoredRefusal, StoredRequest, StoredSession
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import Row, instant, instant_or_none, text, text_or_none


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


_sql = read_statements(_Sql, "standfast.store.sqlite", "access.sql")
_SESSION_INSTANTS = ("created_at", "expires_at", "last_used_at", "ended_at")
_INSTANTS = ("created_at", "expires_at", "last_used_at", "revoked_at")


class SQLiteAccess:
    """The API keys, sessions and requests of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_key(self, key: StoredKey) -> None:
        """Store a new key."""
        values = msgspec.structs.asdict(key)
        values.update({name: text_or_none(values[name]) for name in _INSTANTS})
        with self._database.writing() as connection:
            connection.execute(_sql.add_key, tuple(values.values()))

    def key(self, identity: str) -> StoredKey | None:
        """Return a key by its id."""
        with self._database.reading() as connection:
            return key_in(connection, identity)

    def keys(self, tenant: str, *, after: str, limit: int) -> list[StoredKey]:
        """Return a page of a tenant's keys."""
        with self._database.reading() as connection:
            return [_key(row) for row in connection.execute(_sql.keys, (tenant, after, limit))]

    def has_key(self, *, at: datetime) -> bool:
        """Return whether any key is valid."""
        with self._database.reading() as connection:
            return bool(connection.execute(_sql.has_key, (text(at),)).fetchone()[0])

    def revoke(self, tenant: str, identity: str, *, by: str, at: datetime) -> bool:
        """Revoke a key."""
        with self._database.writing() as connection:
            return connection.execute(_sql.revoke, (text(at), by, tenant, identity)).rowcount == 1

    def note_use(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """Record the use of a key."""
        with self._database.writing() as connection:
            connection.execute(_sql.note_use, (text(at), identity, text(unless_since)))

    def add_session(self, session: StoredSession, *, keep_since: datetime, most: int, kept: int) -> None:
        """Store a new session, end surplus ones, and delete old ones."""
        values = msgspec.structs.asdict(session)
        values.update({name: text_or_none(values[name]) for name in _SESSION_INSTANTS})
        with self._database.writing() as connection:
            connection.execute(_sql.add_session, tuple(values.values()))
            connection.execute(_sql.forget_sessions, (session.tenant, text(keep_since)))
            own = (session.tenant, session.actor, session.credential, session.id)
            connection.execute(_sql.end_surplus_sessions, (text(session.created_at), *own, most - 1))
            connection.execute(_sql.forget_surplus_sessions, (*own, kept - 1))

    def session(self, identity: str) -> StoredSession | None:
        """Return a session by its id."""
        with self._database.reading() as connection:
            return session_in(connection, identity)

    def sessions(self, tenant: str, *, actor: str, after: str, limit: int) -> list[StoredSession]:
        """Return a page of a tenant's sessions."""
        with self._database.reading() as connection:
            return [_session(row) for row in connection.execute(_sql.sessions, (tenant, after, actor, actor, limit))]

    def end_session(self, tenant: str, identity: str, *, at: datetime) -> bool:
        """End a session."""
        with self._database.writing() as connection:
            return connection.execute(_sql.end_session, (text(at), tenant, identity)).rowcount == 1

    def note_session(self, identity: str, *, at: datetime, unless_since: datetime) -> None:
        """Record the use of a session."""
        with self._database.writing() as connection:
            connection.execute(_sql.note_session, (text(at), identity, text(unless_since)))

    def note_refusal(self, refusal: StoredRefusal, *, keep_since: datetime) -> None:
        """Store a refusal, and delete old ones."""
        values = msgspec.structs.astuple(msgspec.structs.replace(refusal, at=text(refusal.at)))
        with self._database.writing() as connection:
            connection.execute(_sql.note_refusal, values[1:])
            connection.execute(_sql.forget_refusals, (refusal.tenant, text(keep_since)))

    def refusals(self, tenant: str, *, before: int, limit: int) -> list[StoredRefusal]:
        """Return a page of refused requests."""
        with self._database.reading() as connection:
            return [_refusal(row) for row in connection.execute(_sql.refusals, (tenant, before, limit))]

    def begin_request(self, request: StoredRequest, *, keep_since: datetime) -> StoredRequest | None:
        """Store a request that begins, or return the existing one."""
        values = msgspec.structs.astuple(msgspec.structs.replace(request, began_at=text(request.began_at)))
        with self._database.writing() as connection:
            connection.execute(_sql.forget_requests, (request.tenant, text(keep_since)))
            if connection.execute(_sql.begin_request, values).rowcount == 1:
                return None
            return _request(connection.execute(_sql.request, values[:3]).fetchone())

    def answer_request(
        self, tenant: str, actor: str, key: str, *, status: int, headers: str, body: bytes | None
    ) -> None:
        """Store a response."""
        with self._database.writing() as connection:
            connection.execute(_sql.answer_request, (status, headers, body, tenant, actor, key))

    def forget_request(self, tenant: str, actor: str, key: str) -> None:
        """Delete a request without a response."""
        with self._database.writing() as connection:
            connection.execute(_sql.forget_request, (tenant, actor, key))


def key_in(connection: sqlite3.Connection, identity: str) -> StoredKey | None:
    """Return a key by its id."""
    row = connection.execute(_sql.key, (identity,)).fetchone()
    return None if row is None else _key(row)


def session_in(connection: sqlite3.Connection, identity: str) -> StoredSession | None:
    """Return a session by its id."""
    row = connection.execute(_sql.session, (identity,)).fetchone()
    return None if row is None else _session(row)


def _request(row: Row) -> StoredRequest:
    values = dict(zip(StoredRequest.__struct_fields__, row, strict=True))
    return StoredRequest(**(values | {"began_at": instant(values["began_at"])}))


def _key(row: Row) -> StoredKey:
    values = dict(zip(StoredKey.__struct_fields__, row, strict=True))
    return StoredKey(**(values | {name: instant_or_none(values[name]) for name in _INSTANTS}))


def _session(row: Row) -> StoredSession:
    values = dict(zip(StoredSession.__struct_fields__, row, strict=True))
    return StoredSession(**(values | {name: instant_or_none(values[name]) for name in _SESSION_INSTANTS}))


def _refusal(row: Row) -> StoredRefusal:
    values = dict(zip(StoredRefusal.__struct_fields__, row, strict=True))
    return StoredRefusal(**(values | {"at": instant(row[-1])}))
