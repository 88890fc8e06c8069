"""Several statements in one round trip.

They are sent together and end with one sync: outside of a transaction the database carries out all of them or none. Every statement is
prepared once for each connection. This goes past the cursors of the driver: what comes here is packed already, and each statement is
to leave before the next one is made.
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
    """A statement that is sent again and again. Its placeholders tell their types."""

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
"""What reads the answers of connections; it remembers how types are read, so it is made once for each."""


def ask(connection: Connection, calls: Iterable[StatementCall]) -> list[pq.abc.PGresult]:
    """Carry out statements that leave together; what the database said to each, to be read by `rows_of`."""
    said: list[pq.abc.PGresult] = []
    send(connection, calls, said, at_once=False)
    return said


def rows_of(connection: Connection, result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
    """The rows of an answer, as the driver reads them."""
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
    """Carry out statements; the error of the first one that fails, and then none of them was carried out.

    Each is sent as soon as it is there: the database works on it while the next one is being made. That is worth its while where much has
    to be made; else they leave together. `said` gets what the database says.
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
        except Exception as error:  # noqa: BLE001 - whoever makes the calls failed, and what was sent must not stand
            trouble = error
            sending.call_off()
        pgconn.pipeline_sync()
        refusal = connection.wait(sending.results([] if said is None else said))
        pgconn.exit_pipeline_mode()
    except BaseException:
        connection.close()  # Nobody knows what is still on its way.
        raise
    if isinstance(refusal, psycopg.errors.InvalidSqlStatementName):
        # Somebody to whom the connection was lent has rolled back to a savepoint, and may do so again.
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
        """What results will come for: statements to be prepared, and None for those to be carried out."""

    def send(self, call: StatementCall) -> None:
        """Send a statement, and first its text if the server does not know it yet."""
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
        """Have everything undone that was sent."""
        self._pgconn.send_query_params(_CALL_OFF, None)
        self._sent.append(None)

    def results(self, said: list[pq.abc.PGresult]) -> Generator[Wait, Ready | int, psycopg.Error | None]:
        """Read the results up to the sync, and keep what is said; the first error among them."""
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
    """What the driver would raise."""
    if pgconn.status == pq.ConnStatus.BAD:
        return psycopg.OperationalError(pgconn.get_error_message())
    return psycopg.errors.error_from_result(result)
