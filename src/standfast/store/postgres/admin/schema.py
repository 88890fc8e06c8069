"""The schema version, the required roles, and the facts that a database stores about itself."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import cast

import msgspec
import psycopg
from psycopg import sql
from psycopg.types.numeric import Int4

from standfast.errors import ConfigurationError, StoreUnavailableError
from standfast.store.postgres.admin.maintenance import make_partitions
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.reads.feed import missing_base
from standfast.store.sql.migrations import Migration, read_migrations, scripted
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    exists: str
    version: str
    try_lock: str
    unlock: str
    make_roles: str
    prepare: str
    prepare_table: str
    impatient: str
    remember: str
    role_exists: str
    is_member: str
    meta: str
    set_meta: str
    set_meta_once: str
    clock: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "schema.sql")

ENGINE_ROLE, TENANT_ROLE = "standfast_engine", "standfast_tenant"
_LOCK_PATIENCE_SECONDS = 60.0
_LOCK_POLL_SECONDS = 0.1


class PostgresSchema:
    """A database that can be migrated."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self.url = line.url
        self._line = line

    def version(self) -> int:
        """The number of the newest applied migration."""
        with self._line.use() as connection:
            return cast("int", _one(connection, _sql.version)) if _one(connection, _sql.exists) else 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the migration lock. Other processes poll until it is free."""
        with self._line.use() as connection:
            deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
            while not _one(connection, _sql.try_lock):
                if time.monotonic() > deadline:
                    raise StoreUnavailableError(
                        f"{self.url}: another process has been migrating for a minute; check why it hangs"
                    )
                time.sleep(_LOCK_POLL_SECONDS)
            try:
                _make_roles(connection, self.url)
                connection.execute(_sql.prepare)
                connection.execute(_sql.prepare_table)
                yield
            finally:
                if not connection.closed:
                    connection.execute(_sql.unlock)

    def apply(self, migration: Migration) -> None:
        """Run the migration and record its number, in one transaction."""
        with self._line.transaction() as connection:
            connection.execute(_sql.impatient)
            connection.execute(migration.sql.encode(), prepare=False)
            connection.execute(_sql.remember, [Int4(migration.number), migration.name])


def postgres_script(after: int) -> str:
    """Return the SQL script that migrates from a schema version to that of this code. Empty if it is current."""

    def noted(migration: Migration) -> str:
        return _sql.remember.replace("$1", str(migration.number)).replace("$2", f"'{migration.name}'")

    steps = scripted(read_migrations("standfast.store.postgres"), after=after, noted=noted)
    return steps and "".join(f"{each};\n" for each in (_sql.make_roles, _sql.prepare, _sql.prepare_table)) + steps


def settle(line: ReconnectingConnection, codec: str) -> tuple[int, str]:
    """Check the codec and create this month's partitions.

    Return the base of the event positions and the database's identity.
    """
    with line.transaction() as connection:
        connection.execute(_sql.set_meta_once, ["codec", codec])
        connection.execute(_sql.set_meta_once, ["identity", secrets.token_hex(16)])
        kept = _one(connection, _sql.meta, "codec")
        if kept != codec:
            raise ConfigurationError(
                f"{line.url} was written with the {kept!r} codec; open it with that one, not with {codec!r}"
            )
        make_partitions(connection, cast("datetime", _one(connection, _sql.clock)))
        stored = int(str(_one(connection, _sql.meta, "position_base") or 0))
        base = missing_base(connection, stored)
        if base != stored:
            connection.execute(_sql.set_meta, ["position_base", str(base)])
        return base, str(_one(connection, _sql.meta, "identity"))


def read_clock(line: ReconnectingConnection) -> datetime:
    """Return the server's time."""
    with line.use() as connection:
        return cast("datetime", _one(connection, _sql.clock))


def _make_roles(connection: Connection, url: str) -> None:
    """Create the two roles of row-level security.

    They belong to the cluster, so another database may have created them.
    """
    try:
        for role in (ENGINE_ROLE, TENANT_ROLE):
            if not _one(connection, _sql.role_exists, role):
                _create_role(connection, role)
        # The engine's role may also act as the role of one tenant.
        _grant(connection, TENANT_ROLE, ENGINE_ROLE)
        _grant(connection, ENGINE_ROLE, None)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"{url}: this user may not create roles. Let an administrator run: create role {ENGINE_ROLE} nologin; "
            f"create role {TENANT_ROLE} nologin; grant {TENANT_ROLE} to {ENGINE_ROLE}; grant {ENGINE_ROLE} to <this user>;"
        ) from error


def _create_role(connection: Connection, role: str) -> None:
    try:
        connection.execute(sql.SQL("create role {} nologin").format(sql.Identifier(role)))
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        return  # Another database of the cluster was migrated concurrently.


def _grant(connection: Connection, role: str, member: str | None) -> None:
    """Grant a role to another role, or to the connection's user.

    An existing membership is kept, because granting takes a privilege.
    """
    if not _one(connection, _sql.is_member, member, role):
        name = sql.SQL("current_user") if member is None else sql.Identifier(member)
        connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), name))


def _one(connection: Connection, statement: str, *values: str | None) -> object:
    row = connection.execute(statement, values).fetchone()
    return row[0] if row else None
