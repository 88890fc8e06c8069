"""Working in a transaction of the caller's: his connection, our statements, his commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import RawCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from holdfast.errors import ConfigurationError, SchemaMismatchError
from holdfast.store.postgres import packing
from holdfast.store.postgres.commits import PostgresUnit
from holdfast.store.postgres.faults import translated
from holdfast.store.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    is_here: str
    mark: str
    keep: str
    undo: str
    hint: str


_sql = read_numbered(_Sql, __package__, "borrowing.sql")


class _Borrowed(psycopg.Connection[tuple[object, ...]]):
    """The caller's connection with our cursors and types: nothing that he has set on his own is met, and nothing of ours stays on it."""

    def __del__(self, *_: object) -> None:
        """Nothing: it is the caller's to close."""


@contextmanager
def borrowed(given: psycopg.Connection[Any], *, base: int, identity: str, url: str) -> Iterator[PostgresUnit]:
    """The caller's transaction. What is done in the block is undone when it raises, and his transaction goes on."""
    status = given.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise ConfigurationError("a statement of the transaction has failed, and it can only be rolled back")
    if status != TransactionStatus.INTRANS and given.autocommit:
        raise ConfigurationError(
            "the connection has no open transaction: begin one, with `with connection.transaction():`"
        )
    connection = _Borrowed(given.pgconn, tuple_row)
    connection.cursor_factory = RawCursor
    connection.prepare_threshold = None  # A statement that we prepare would outlive us on it.
    packing.register(connection)
    with translated(url):
        _check_place(connection, identity, url)
        try:
            yield PostgresUnit(connection, base)
            connection.execute(_sql.hint)  # The server tells it when the caller commits.
        except BaseException:
            if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
                connection.execute(_sql.undo)
                connection.execute(_sql.keep)
            raise
        connection.execute(_sql.keep)


def _check_place(connection: _Borrowed, identity: str, url: str) -> None:
    """Mark where to come back to, and raise if the connection is to another database."""
    connection.execute(
        _sql.mark
    )  # Begins a transaction where the caller has not said anything yet, as his next statement would.
    is_here = False
    try:
        with translated(url):
            is_here = connection.execute(_sql.is_here, [identity]).fetchone() is not None
    except SchemaMismatchError:
        connection.execute(_sql.undo)
    if not is_here:
        connection.execute(_sql.keep)
        raise ConfigurationError(f"the connection is to another database than {url}; give one to that database")
