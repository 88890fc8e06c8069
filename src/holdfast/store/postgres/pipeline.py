"""Several statements in one round trip.

They are sent together and end with one sync: outside of a transaction the database carries out all of them or none. Every statement is
prepared once for each connection. This goes past the cursors of the driver, which would cost as much as the database itself.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq
from psycopg.waiting import Ready, Wait

from holdfast.store.postgres.lines import Connection


class Call(NamedTuple):
    """A statement with its arguments in binary form."""

    statement: str
    oids: list[int]
    arguments: list[bytes | None]


_BINARY = [pq.Format.BINARY] * 64
_names: WeakKeyDictionary[Connection, dict[str, bytes]] = WeakKeyDictionary()
"""The names of prepared statements, by their texts."""


def send(connection: Connection, calls: Sequence[Call]) -> None:
    """Carry out statements; the error of the first one that fails, and then none of them was carried out."""
    if connection.closed:
        raise psycopg.OperationalError("the connection is closed")
    pgconn = connection.pgconn
    is_prepared = connection.prepare_threshold is not None
    names = [_prepared(connection, call) if is_prepared else b"" for call in calls]
    try:
        pgconn.enter_pipeline_mode()
        for name, call in zip(names, calls, strict=True):
            formats = _BINARY[: len(call.arguments)]
            if name:
                pgconn.send_query_prepared(name, call.arguments, formats, pq.Format.BINARY)
            else:
                statement = call.statement.encode()
                pgconn.send_query_params(statement, call.arguments, call.oids, formats, pq.Format.BINARY)
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
    _names.pop(connection, None)


def _prepared(connection: Connection, call: Call) -> bytes:
    """The name under which the server knows the statement."""
    names = _names.get(connection)
    if names is None:
        names = _names[connection] = {}
    name = names.get(call.statement)
    if name is None:
        name = b"holdfast_%d" % len(names)
        result = connection.pgconn.prepare(name, call.statement.encode(), call.oids)
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise _error(connection.pgconn, result)
        names[call.statement] = name
    return name


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
