"""Several statements in one round trip.

They are sent together and end with one sync: outside of a transaction the database carries out all of them or none. Every statement is
prepared once for each connection. This goes past the cursors of the driver, which would cost as much as the database itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq
from psycopg.waiting import Ready, Wait

from holdfast.store.postgres.lines import Connection


class Statement:
    """A statement that is sent again and again. Its placeholders tell their types."""

    __slots__ = ("formats", "name", "text")

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.name = b"holdfast_%d" % next(_numbers)
        self.formats = [pq.Format.BINARY] * len(set(_PLACEHOLDER.findall(text)))


class Call(NamedTuple):
    """A statement with its arguments in binary form."""

    statement: Statement
    arguments: list[bytes | None]


_PLACEHOLDER = re.compile(r"\$\d+")
_numbers = itertools.count()
_prepared: WeakKeyDictionary[Connection, set[Statement]] = WeakKeyDictionary()
"""What the servers behind the connections know."""


def send(connection: Connection, calls: Sequence[Call]) -> None:
    """Carry out statements; the error of the first one that fails, and then none of them was carried out."""
    if connection.closed:
        raise psycopg.OperationalError("the connection is closed")
    pgconn = connection.pgconn
    is_prepared = connection.prepare_threshold is not None
    if is_prepared:
        _prepare(connection, calls)
    try:
        pgconn.enter_pipeline_mode()
        for statement, arguments in calls:
            if is_prepared:
                pgconn.send_query_prepared(statement.name, arguments, statement.formats, pq.Format.BINARY)
            else:
                pgconn.send_query_params(statement.text, arguments, None, statement.formats, pq.Format.BINARY)
        pgconn.pipeline_sync()
        error = connection.wait(_results(pgconn))
        pgconn.exit_pipeline_mode()
    except BaseException:
        connection.close()  # Nobody knows what is still on its way.
        raise
    if isinstance(error, psycopg.errors.InvalidSqlStatementName):
        forget_prepared(connection)  # Somebody to whom the connection was lent has rolled back to a savepoint.
    if error is not None:
        raise error


def forget_prepared(connection: Connection) -> None:
    """After a rollback the driver drops all prepared statements, ours too."""
    _prepared.pop(connection, None)


def _prepare(connection: Connection, calls: Sequence[Call]) -> None:
    """Make sure that the server knows the statements."""
    known = _prepared.get(connection)
    if known is None:
        known = _prepared[connection] = set()
    for call in calls:
        if call.statement not in known:
            result = connection.pgconn.prepare(call.statement.name, call.statement.text)
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise _error(connection.pgconn, result)
            known.add(call.statement)


def _results(pgconn: pq.abc.PGconn) -> Generator[Wait, Ready | int, psycopg.Error | None]:
    """Read the results up to the sync; the first error among them."""
    while pgconn.flush():
        ready = yield Wait.RW
        if ready & Ready.R:
            pgconn.consume_input()
    error: psycopg.Error | None = None
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:  # The end of one statement's results.
            if pgconn.status == pq.ConnStatus.BAD:
                raise psycopg.OperationalError("the connection is lost")
        elif result.status == pq.ExecStatus.PIPELINE_SYNC:
            return error
        elif result.status == pq.ExecStatus.FATAL_ERROR and error is None:
            error = _error(pgconn, result)


def _error(pgconn: pq.abc.PGconn, result: pq.abc.PGresult) -> psycopg.Error:
    """What the driver would raise."""
    if pgconn.status == pq.ConnStatus.BAD:
        return psycopg.OperationalError(pgconn.get_error_message())
    return psycopg.errors.error_from_result(result)
