"""Sends several statements in one round trip.

They share one sync, so that outside a transaction the database executes all of them or none. Each statement is prepared
once per connection. The module bypasses the driver's cursors: its arguments are already packed, and each statement can
be sent before the next one is built.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq
from psycopg.abc import Transformer as Reading
from psycopg.adapt import Transformer
from psycopg.waiting import Ready, Wait

from standfast.store.postgres.connection.connection import Connection
from standfast.store.postgres.connection.prepared_statements import Names, names_of, prepare_no_more


class Statement:
    """A statement that is sent repeatedly. Its placeholders determine the types."""

    __slots__ = ("formats", "text")

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.formats = [pq.Format.BINARY] * len(set(_PLACEHOLDER.findall(text)))


class StatementCall(NamedTuple):
    """A statement with its arguments in binary form."""

    statement: Statement
    arguments: list[bytes | None]


_PLACEHOLDER = re.compile(r"\$\d+")
_numbers = itertools.count()
_CALL_OFF = b"select standfast.require(false)"
_readers: WeakKeyDictionary[Connection, Reading] = WeakKeyDictionary()
"""Row readers by connection. They cache type loaders, so each connection has one."""


def ask(connection: Connection, calls: Iterable[StatementCall]) -> list[pq.abc.PGresult]:
    """Execute calls together, and return their results for `rows_of`."""
    said: list[pq.abc.PGresult] = []
    send(connection, calls, said, at_once=False)
    return said


def rows_of(connection: Connection, result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
    """Return the rows of a result as the driver reads them."""
    reading = _readers.get(connection)
    if reading is None:
        reading = _readers[connection] = Transformer(connection)
    reading.set_pgresult(result)
    return reading.load_rows(0, result.ntuples, tuple)


def send(
    connection: Connection,
    calls: Iterable[StatementCall],
    said: list[pq.abc.PGresult] | None = None,
    *,
    at_once: bool = True,
) -> None:
    """Execute calls. Raises the error of the first one that fails; then none was executed.

    Each call is sent as soon as it is built, so that the database works meanwhile. This pays off for many calls; few
    are sent together. `said` receives the results.
    """
    if connection.closed:
        raise psycopg.OperationalError("the connection is closed")
    pgconn = connection.pgconn
    sending = _Sending(pgconn, names_of(connection))
    trouble: Exception | None = None
    try:
        pgconn.enter_pipeline_mode()
        try:
            for call in calls:
                sending.send(call)
                if at_once:
                    pgconn.flush()
        except Exception as error:  # noqa: BLE001 - building the calls failed, and the sent ones must not take effect
            trouble = error
            sending.call_off()
        pgconn.pipeline_sync()
        refusal = connection.wait(sending.results([] if said is None else said))
        pgconn.exit_pipeline_mode()
    except BaseException:
        connection.close()  # Unread results are still in transit.
        raise
    if isinstance(refusal, psycopg.errors.InvalidSqlStatementName):
        # The borrower of the connection has rolled back to a savepoint, and may do so again.
        prepare_no_more(connection)
    if trouble is not None or refusal is not None:
        raise trouble or refusal  # type: ignore[misc]


class _Sending:
    """One pipeline."""

    def __init__(self, pgconn: pq.abc.PGconn, known: Names | None) -> None:
        self._pgconn = pgconn
        self._known = known
        self._new: Names = {}
        self._sent: list[Statement | None] = []
        """The pending results: statements to be prepared, and None for those to be executed."""

    def send(self, call: StatementCall) -> None:
        """Send a call, and first the text of its statement if the server does not know it."""
        statement, arguments = call
        if self._known is None:
            self._pgconn.send_query_params(statement.text, arguments, None, statement.formats, pq.Format.BINARY)
        else:
            name = self._known.get(statement) or self._new.get(statement) or self._prepare(statement)
            self._pgconn.send_query_prepared(name, arguments, statement.formats, pq.Format.BINARY)
        self._sent.append(None)

    def _prepare(self, statement: Statement) -> bytes:
        name = self._new[statement] = b"standfast_%d" % next(_numbers)
        self._pgconn.send_prepare(name, statement.text)
        self._sent.append(statement)
        return name

    def call_off(self) -> None:
        """Cancel everything that was sent."""
        self._pgconn.send_query_params(_CALL_OFF, None)
        self._sent.append(None)

    def results(self, said: list[pq.abc.PGresult]) -> Generator[Wait, Ready | int, psycopg.Error | None]:
        """Read the results up to the sync into `said`. Return the first error."""
        pgconn, sent = self._pgconn, iter(self._sent)
        yield from self._flush()
        error: psycopg.Error | None = None
        while True:
            while pgconn.is_busy():
                yield Wait.R
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:  # The end of one statement's results.
                if pgconn.status == pq.ConnStatus.BAD:
                    raise psycopg.OperationalError("the connection is lost")
                continue
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return error
            statement = next(sent)
            if result.status == pq.ExecStatus.FATAL_ERROR:
                error = error or _error(pgconn, result)
            elif statement is None or self._known is None:
                said.append(result)
            elif result.status == pq.ExecStatus.COMMAND_OK:
                self._known[statement] = self._new[statement]

    def _flush(self) -> Generator[Wait, Ready | int, None]:
        while self._pgconn.flush():
            ready = yield Wait.RW
            if ready & Ready.R:
                self._pgconn.consume_input()


def _error(pgconn: pq.abc.PGconn, result: pq.abc.PGresult) -> psycopg.Error:
    """Build the error that the driver would raise."""
    if pgconn.status == pq.ConnStatus.BAD:
        return psycopg.OperationalError(pgconn.get_error_message())
    return psycopg.errors.error_from_result(result)
