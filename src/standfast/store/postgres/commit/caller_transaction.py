"""Statements of the engine within a caller's transaction, which the caller commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import RawCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from standfast.errors import ConfigurationError, ConflictError, SchemaMismatchError
from standfast.store.ports.store import LostRaceError
from standfast.store.postgres.commit.transactions import PostgresUnit
from standfast.store.postgres.connection import packing
from standfast.store.postgres.connection.errors import is_transient, translated
from standfast.store.postgres.connection.packing import Uuids
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    is_here: str
    mark: str
    keep: str
    undo: str
    hint: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "borrowing.sql")


class _Borrowed(psycopg.Connection[tuple[object, ...]]):
    """The caller's connection with the engine's cursors and types.

    The caller's own settings are ignored, and none of the engine's remain.
    """

    def __del__(self, *_: object) -> None:
        """Do nothing: the caller closes the connection."""


@contextmanager
def borrowed(given: psycopg.Connection[Any], *, base: int, identity: str, url: str) -> Iterator[PostgresUnit]:
    """Join the caller's transaction. Writes of the block are undone when it raises, and the transaction goes on."""
    _begin(given)
    handlers = given.pgconn.notice_handler, given.pgconn.notify_handler
    with given.lock, translated(url):  # Blocks other threads of the caller, as they block one another.
        connection = _Borrowed(given.pgconn, tuple_row)
        connection.cursor_factory = RawCursor
        connection.prepare_threshold = None  # A prepared statement would outlive the engine's use of the connection.
        packing.register(connection)
        try:
            connection.execute(_sql.mark)
            try:
                unit = PostgresUnit(connection, base, floor=_floor(connection, identity, url))
                yield unit
                connection.execute(_sql.hint, [Uuids(unit.written)])  # The server sends it when the caller commits.
            except BaseException as error:
                if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
                    connection.execute(_sql.undo)
                    connection.execute(_sql.keep)
                if isinstance(error, LostRaceError) and is_transient(error):
                    # The caller's snapshot is too old, or its transaction is the victim: a retry inside it would fail
                    # again.
                    raise ConflictError(f"{error}: roll back, and begin your transaction anew") from error
                raise
            connection.execute(_sql.keep)
        finally:
            given.pgconn.notice_handler, given.pgconn.notify_handler = handlers


def _begin(given: psycopg.Connection[Any]) -> None:
    """Begin the caller's transaction through its own connection and settings.

    Raises ConfigurationError if it cannot be used.
    """
    status = given.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise ConfigurationError("a statement of the transaction has failed, and it can only be rolled back")
    if status == TransactionStatus.ACTIVE or given.pgconn.pipeline_status:
        raise ConfigurationError(
            "the connection is in the middle of something, a pipeline, a COPY or a stream(): end that first"
        )
    if status != TransactionStatus.INTRANS:
        if given.autocommit:
            raise ConfigurationError(
                "the connection has no open transaction: begin one, with `connection.transaction()`, or `transaction.atomic()` of Django"
            )
        given.execute("select 1")
    if given.info.encoding != "utf-8":
        raise ConfigurationError(
            f"the connection speaks {given.info.encoding}: set client_encoding to UTF8, or texts would be stored as others"
        )


def _floor(connection: _Borrowed, identity: str, url: str) -> int:
    """Return the position of the newest event that the transaction has written.

    Raises if the connection is to another database.
    """
    try:
        with translated(url):
            row = connection.execute(_sql.is_here, [identity]).fetchone()
    except SchemaMismatchError:
        row = None
    if row is None:
        raise ConfigurationError(f"the connection is to another database than {url}; give one to that database")
    return int(str(row[0]))
