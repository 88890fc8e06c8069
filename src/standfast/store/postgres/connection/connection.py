"""Connections. Only one thread uses a connection at a time. It connects on first use, and again after it broke."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

import psycopg
from psycopg import RawCursor
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from standfast.errors import ConfigurationError, StoreError, StoreUnavailableError
from standfast.store.ports.store import EndedTransactionError, LostRaceError
from standfast.store.postgres.connection import packing as columns
from standfast.store.postgres.connection.errors import is_transient, translate
from standfast.store.postgres.connection.prepared_statements import drop_prepared
from standfast.store.records.instances import Borrower
from standfast.store.sql.nonblocking import check_nonblocking

Connection = psycopg.Connection[tuple[object, ...]]

_PATIENT: dict[str, str | int | None] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "target_session_attrs": "read-write",
    "application_name": "standfast",
}
_FIXED = {"client_encoding": "utf8"}
"""The encoding of all statements, whatever the database or the environment uses."""

"""A half-open connection is noticed within seconds. A server that turned read-only counts as unavailable."""

_REST_SECONDS = 0.05
"""A connection that was idle for this long may have been cut."""

_CANCEL_SECONDS = 2.0
"""How long a server may take to cancel a statement."""

_HIGHEST_PORT = 65_535

_ENCODED = "percent-encoded"
_QUOTED = re.compile(r'"[^"]*"')
"""Parts of an unreadable address that the driver repeats and that may belong to a password."""
_RESERVED = "a password with one of %/?#@: in it has that as %25, %2F, %3F, %23, %40, %3A"

_MARKER = "standfast.unit"
"""Setting that distinguishes a lent transaction from the next one on the same connection."""

_LOANS, _loans = secrets.token_hex(8), itertools.count()
"""Each loan has a unique marker. It need not be secret, because the borrower can read it."""

_UNENDED = (
    "the call has ended in the middle of a COPY, a stream() or another statement, which blocks the connection: what it "
    "wrote is undone. Use COPY inside `with`, read a stream to its end or close it, and wait for your threads"
)

_HANG_UP = ("25006",)
"""A server that turned read-only stays so for this connection. A new connection finds the writable server."""

LOCK_TIMEOUT = "10s"
COMMITTER_LOCK_TIMEOUT = "300ms"
"""A committer handles many instances, so a transaction that holds one of them must not block it."""

_SESSION = {
    "statement_timeout": "60s",
    "lock_timeout": LOCK_TIMEOUT,
    "TimeZone": "UTC",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""Every statement of the engine finds its rows by an index. A planner without statistics, as in a new database,
prefers sequential scans and keeps to them."""


class ReconnectingConnection:
    """A connection that reconnects after it broke. It raises errors of the engine."""

    def __init__(self, dsn: str, *, prepare: bool = True, lock_timeout: str = LOCK_TIMEOUT) -> None:
        self.url = public_url(dsn)
        self._lock_timeout = lock_timeout
        self._conninfo = patient_conninfo(dsn)
        self._prepare = prepare
        self._connection: Connection | None = None
        self._uses = 0
        self._used_at = 0.0
        """Monotonic time at which it became idle."""
        self.is_spoken_to = False
        """Whether the server sends unsolicited messages, as for LISTEN. On other connections these mean that it
        closes."""
        self._is_retired = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Return the connection in autocommit mode. A broken one is dropped, and the next use reconnects."""
        check_nonblocking()
        self._uses += 1
        was_sent = False
        try:
            connection = self._connected()
            was_sent = True
            yield connection
        except psycopg.Error as error:
            if self._connection is not None and (self._connection.closed or error.sqlstate in _HANG_UP):
                self.close()
            raise translate(error, self.url, was_sent=was_sent) from error
        finally:
            self._used_at = time.monotonic()
            self._uses -= 1
            if self._is_retired:
                self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction, committed at the end of the block and rolled back when it raises."""
        with self.use() as connection:
            try:
                with connection.transaction():
                    yield connection
            except BaseException:
                drop_prepared(connection)
                raise

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection:
        resting = self._connection
        if resting is not None and self._is_rested() and has_something_to_say(resting):
            self.close()  # Detected before a statement is sent, so that its outcome cannot be unknown.
        if self._connection is None or self._connection.closed:
            self._check_open()
            self._connection = connect(self._conninfo, prepare=self._prepare, lock_timeout=self._lock_timeout)
        self._check_open()
        return self._connection

    def _is_rested(self) -> bool:
        """Return whether it was idle long enough to check it. Busy connections skip the check."""
        return self._uses == 1 and not self.is_spoken_to and time.monotonic() - self._used_at >= _REST_SECONDS

    def retire(self) -> None:
        """Close permanently. A thread that outlives its engine must not reconnect, because that connection would never be closed.

        If a thread is using the connection, it is cut, and that thread closes it. Closing it from another thread would
        crash the process.
        """
        self._is_retired = True
        connection = self._connection
        if not self._uses:
            self.close()
        elif connection is not None:
            cut(connection)

    def _check_open(self) -> None:
        if self._is_retired:
            self.close()
            raise StoreUnavailableError(f"{self.url} cannot be used any more: the engine that used it was stopped")


def connect(conninfo: str, *, prepare: bool, lock_timeout: str = LOCK_TIMEOUT) -> Connection:
    """Open a connection with the engine's settings."""
    connection = psycopg.connect(conninfo, autocommit=True, cursor_factory=RawCursor)
    try:
        prepare_connection(connection, prepare=prepare, lock_timeout=lock_timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def has_something_to_say(connection: Connection) -> bool:
    """Return whether the server has sent something, or has closed the connection. It needs no round trip."""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            return bool(selector.select(0))
    except (psycopg.Error, OSError, ValueError):  # The connection is closed on this side.
        return True


def cut(connection: Connection) -> None:
    """Cut a connection that another thread is using.

    The server rolls back and releases all locks; the other thread gets an error.
    """
    with suppress(psycopg.Error, OSError):
        # A server that executes a statement would notice the cut only at its end.
        connection.cancel_safe(timeout=_CANCEL_SECONDS)
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class HeldConnection(ReconnectingConnection):
    """Wraps a connection in use. Its owner closes it and translates its errors."""

    def __init__(self, connection: Connection, url: str) -> None:
        self.url = url
        self._held = connection

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Return the connection inside its open transaction."""
        yield self._held


class PostgresHandlerConnection:
    """A connection lent to user code."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._guard = threading.Lock()
        self._is_over = False

    def end(self) -> None:
        """Note that the engine has the connection again."""
        with self._guard:
            self._is_over = True

    def call_back(self) -> None:
        """Cut the connection, unless the engine has it again."""
        with self._guard:
            if not self._is_over:
                cut(self.connection)


def prepare_connection(connection: Connection, *, prepare: bool, lock_timeout: str = LOCK_TIMEOUT) -> None:
    """Apply the engine's settings to a connection, also to one from a pool."""
    connection.prepare_threshold = 0 if prepare else None  # A transaction pooler does not support prepared statements.
    columns.register(connection)
    connection.execute(_set({**_SESSION, "lock_timeout": lock_timeout}, is_local=False))


def prepare_reader(connection: Connection, *, prepare: bool) -> None:
    """Make the transactions of a reader's connection repeatable-read and read-only.

    This is set per transaction and not per session, because a pooler may give the session to a writer.
    """
    prepare_connection(connection, prepare=prepare)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True


def check_reader(connection: Connection) -> None:
    """Check a pooled connection before its next use if its server has sent something, as it does when it closes one."""
    line = select.poll()
    line.register(connection.pgconn.socket, select.POLLIN)
    if line.poll(0):
        ConnectionPool.check_connection(connection)


def patient_conninfo(dsn: str) -> str:
    """Return the caller's connection string with the engine's defaults added."""
    return make_conninfo("", **{**_PATIENT, **_parsed(dsn), **_FIXED})


def public_url(dsn: str) -> str:
    """Return the URL without user, password and options."""
    told = _parsed(dsn)
    host, port = str(told.get("host", "")), told.get("port")
    where = "" if host.startswith("/") else host  # A socket directory means nothing on other hosts.
    return f"postgresql://{where}{f':{port}' if port else ''}/{told.get('dbname', '')}"


def _parsed(dsn: str) -> Mapping[str, str | int | None]:
    """Parse a connection string. An invalid one is not repeated in the error, because it may contain a password."""
    try:
        told = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        reason = str(error).strip().replace(dsn, "...")
        if _ENCODED in reason or "@" in dsn.partition("?")[2]:
            reason = f"{_QUOTED.sub('...', reason)}; {_RESERVED}"
        raise ConfigurationError(
            f"this is not a Postgres URL: {reason}; write postgresql://user@host:5432/database"
        ) from None
    for port in str(told.get("port", "")).split(","):
        if port and not (port.isdecimal() and 0 < int(port) <= _HIGHEST_PORT):
            is_number = port.removeprefix("-").isdecimal()  # Otherwise it may be the start of a password.
            wrong = f"{port!r} is not a port" if is_number else f"what stands for the port is not a port; {_RESERVED}"
            raise ConfigurationError(f"{wrong}; write postgresql://user@host:5432/database")
    return told


@contextmanager
def lent(
    loan: PostgresHandlerConnection,
    borrower: Borrower | None = None,
    *,
    enter: Callable[[str, list[str]], None] | None = None,
    owe: Callable[[str], None] | None = None,
) -> Iterator[Connection]:
    """Lend the connection with standard cursors and planner settings. The planner settings stay until the end of the transaction.

    psycopg refuses `commit()`, `rollback()` and `with connection:` inside a transaction. Statements that end it are
    detected, because they reset a setting that lives only in this transaction.

    The role is switched with statements that are sent anyway, which saves a round trip. A caller that combines further
    statements passes `enter`, which starts the loan, and `owe`, which receives the check for `check_marker`.
    """
    connection, marker = loan.connection, f"{_LOANS} {next(_loans)}"
    _enter(enter or partial(connection.execute, prepare=False), marker, borrower)
    rows, threshold, adapters = connection.row_factory, connection.prepare_threshold, connection.adapters
    connection.cursor_factory = psycopg.Cursor
    connection._adapters = AdaptersMap(adapters)  # noqa: SLF001 - types registered during the call end with it
    failure: Exception | None = None
    try:
        yield connection
    except Exception as error:  # noqa: BLE001 - raised below, after its meaning is known
        failure = error
    finally:
        loan.end()
        connection.cursor_factory, connection.row_factory, connection.prepare_threshold = RawCursor, rows, threshold
        connection._adapters = adapters  # noqa: SLF001 - see above
    status = connection.info.transaction_status
    if status == TransactionStatus.ACTIVE or connection.lock.locked():
        _break_off(connection)
        failure = failure or StoreError(_UNENDED)
    elif failure is None and owe is not None and status == TransactionStatus.INTRANS:
        owe(marker)
    else:
        _check_open(connection, marker)
    if failure is not None:
        if is_transient(failure):
            raise LostRaceError(str(failure)) from failure
        if borrower is not None and isinstance(failure, psycopg.errors.InsufficientPrivilege):
            raise _lacking(borrower, failure) from failure
        raise failure
    if status == TransactionStatus.INERROR:
        raise StoreError(
            "a statement failed and the call went on: everything behind it is lost. Let the error out, or use a savepoint"
        )


def _enter(enter: Callable[[str, list[str]], object], marker: str, borrower: Borrower | None) -> None:
    """Apply the settings of a loan."""
    if borrower is None:
        enter(_LEND, [marker])
        return
    try:
        enter(_LEND_TO, [marker, borrower.tenant, borrower.role])
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as error:
        raise ConfigurationError(
            f"transactional handlers cannot run under the role {borrower.role!r}: {str(error).strip()}. Create it and grant it to the "
            "user that the engine connects as, or leave Settings.handler_role empty"
        ) from error


def _lacking(borrower: Borrower, failure: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"the role {borrower.role!r}, under which transactional handlers run, lacks a right: {str(failure).strip()}. Grant it to the role; "
        f"a table with row-level security needs a policy that lets the tenant {borrower.tenant!r} through"
    )


def _break_off(connection: Connection) -> None:
    """Close the connection during an operation.

    A leftover thread of the call is stopped first; objects that the call has merely kept are not.
    """
    cut(connection)
    if connection.lock.acquire(timeout=_CANCEL_SECONDS):
        connection.lock.release()
    connection.close()


def _check_open(connection: Connection, marker: str) -> None:
    """Raise if the lent transaction has ended. A failed or broken one can only be rolled back."""
    status = connection.info.transaction_status
    if status == TransactionStatus.INTRANS:
        row = connection.execute(RETURN).fetchone()
        check_marker(row, marker)
    elif status == TransactionStatus.IDLE:
        check_marker(None, marker)


def check_marker(row: tuple[object, ...] | None, marker: str) -> None:
    """Raise EndedTransactionError unless the row read by `RETURN` shows that the lent transaction is still open."""
    if row is None or row[0] != marker:
        raise EndedTransactionError("a statement of the call, such as COMMIT or ROLLBACK, ended its transaction")


def _set(settings: Mapping[str, str], *, is_local: bool) -> bytes:
    calls = (f"set_config('{name}', '{value}', {str(is_local).lower()})" for name, value in settings.items())
    return f"select {', '.join(calls)}".encode()


_LEND = _set({name: "on" for name in _SESSION if name.startswith("enable_")}, is_local=True).decode() + (
    f", set_config('{_MARKER}', $1::text, true)"
)
_LEND_TO = f"{_LEND}, set_config('standfast.tenant', $2::text, true), set_config('role', $3::text, true)"
RETURN = f"select current_setting('{_MARKER}', true), set_config('role', 'none', true)"
"""Ends a loan: restores the engine's role and reads the transaction's marker."""
