"""Connections. A line belongs to one thread at a time, connects when it is first used and again after it broke."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.errors import ConfigurationError
from holdfast.store.postgres import arrays
from holdfast.store.postgres.faults import translate

Connection = psycopg.Connection[tuple[object, ...]]

_PATIENT: dict[str, str | int | None] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "target_session_attrs": "read-write",
    "application_name": "holdfast",
}
"""A half-open connection is noticed within seconds; a server that turned read-only counts as gone."""

_SESSION = "select set_config('statement_timeout', '60s', false), set_config('lock_timeout', '10s', false), set_config('TimeZone', 'UTC', false)"


class Line:
    """One connection, made anew when it broke. Errors leave it in the engine's own words."""

    def __init__(self, dsn: str, *, prepare: bool = True) -> None:
        self.url = public_url(dsn)
        self._conninfo = patient_conninfo(dsn)
        self._prepare = prepare
        self._connection: Connection | None = None

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """The connection, in autocommit mode. A broken one is dropped, and the next use connects again."""
        try:
            yield self._connected()
        except psycopg.Error as error:
            if self._connection is not None and (self._connection.broken or self._connection.closed):
                self.close()
            raise translate(error, self.url) from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """The connection inside a transaction: committed at the end of the block, rolled back when it raises."""
        with self.use() as connection, connection.transaction():
            yield connection

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self._conninfo, prepare=self._prepare)
        return self._connection


def connect(conninfo: str, *, prepare: bool) -> Connection:
    """A connection with our manners."""
    connection = psycopg.connect(conninfo, autocommit=True, cursor_factory=RawCursor)
    prepare_connection(connection, prepare=prepare)
    return connection


def prepare_connection(connection: Connection, *, prepare: bool) -> None:
    """What every connection of ours needs, also one that a pool made."""
    connection.prepare_threshold = 0 if prepare else None  # A transaction pooler cannot keep prepared statements.
    arrays.register(connection)
    connection.execute(_SESSION)


def patient_conninfo(dsn: str) -> str:
    """The caller's connection string with our defaults below it."""
    try:
        return make_conninfo("", **{**_PATIENT, **conninfo_to_dict(dsn)})
    except psycopg.ProgrammingError as error:
        raise ConfigurationError(f"{public_url(dsn)} is not a Postgres URL: {error}") from error


def public_url(dsn: str) -> str:
    """The URL without password and options."""
    parts = urlsplit(dsn)
    return f"postgresql://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
