"""Connections. A line belongs to one thread at a time, connects when it is first used and again after it broke."""

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
"""What we send is written so, whatever the database or the environment has."""

"""A half-open connection is noticed within seconds; a server that turned read-only counts as gone."""

_REST_SECONDS = 0.05
"""A line that was at rest for so long may have been cut meanwhile."""

_CANCEL_SECONDS = 2.0
"""How long a server may take to hear that nobody wants the answer any more."""

_HIGHEST_PORT = 65_535

_ENCODED = "percent-encoded"
_QUOTED = re.compile(r'"[^"]*"')
"""What the driver repeats of an address that it cannot read, and when that may be a part of a password."""
_RESERVED = "a password with one of %/?#@: in it has that as %25, %2F, %3F, %23, %40, %3A"

_MARKER = "standfast.unit"
"""Setting that tells a lent transaction from the next one on the same connection."""

_LOANS, _loans = secrets.token_hex(8), itertools.count()
"""No two loans have the same marker. It needs to be no secret: whoever has the transaction can read it there."""

_UNENDED = (
    "the call has ended in the middle of a COPY, a stream() or another statement, which keeps everybody from the connection: what it "
    "wrote is undone. Use COPY inside `with`, read a stream to its end or close it, and wait for your threads"
)

_HANG_UP = ("25006",)
"""A server that turned read-only stays so for this connection; a new one finds the server that takes writes."""

LOCK_TIMEOUT = "10s"
COMMITTER_LOCK_TIMEOUT = "300ms"
"""A committer has the commands of many instances in hand: whoever holds one of these in a transaction of his own must not keep it."""

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
"""Every statement of ours finds its few rows by an index. A planner that has no statistics yet, as in a new database, would rather
read whole tables, and keep to it."""


class ReconnectingConnection:
    """One connection, made anew when it broke. Errors leave it in the engine's own words."""

    def __init__(self, dsn: str, *, prepare: bool = True, lock_timeout: str = LOCK_TIMEOUT) -> None:
        self.url = public_url(dsn)
        self._lock_timeout = lock_timeout
        self._conninfo = patient_conninfo(dsn)
        self._prepare = prepare
        self._connection: Connection | None = None
        self._uses = 0
        self._used_at = 0.0
        """When it came to rest (monotonic time)."""
        self.is_spoken_to = False
        """Whether the server says something unasked, as it does where hints are listened for; else that means that it hangs up."""
        self._is_retired = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """The connection, in autocommit mode. A broken one is dropped, and the next use connects again."""
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
        """The connection inside a transaction: committed at the end of the block, rolled back when it raises."""
        with self.use() as connection:
            try:
                with connection.transaction():
                    yield connection
            except BaseException:
                drop_prepared(connection)
                raise

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection:
        resting = self._connection
        if resting is not None and self._is_rested() and has_something_to_say(resting):
            self.close()  # Found out before anything is sent, of which nobody would know whether it was carried out.
        if self._connection is None or self._connection.closed:
            self._check_open()
            self._connection = connect(self._conninfo, prepare=self._prepare, lock_timeout=self._lock_timeout)
        self._check_open()
        return self._connection

    def _is_rested(self) -> bool:
        """Whether it was at rest for so long that a look at it is worth its while; busy lines are spared it."""
        return self._uses == 1 and not self.is_spoken_to and time.monotonic() - self._used_at >= _REST_SECONDS

    def retire(self) -> None:
        """Hang up for good: a thread that outlives its engine must not connect again, for nobody would ever hang up.

        A connection that a thread is using is cut, and closed by that thread: closed under its hands, it would take the process along.
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
    """A connection with our manners."""
    connection = psycopg.connect(conninfo, autocommit=True, cursor_factory=RawCursor)
    try:
        prepare_connection(connection, prepare=prepare, lock_timeout=lock_timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def has_something_to_say(connection: Connection) -> bool:
    """Whether the server has sent something, or has closed its end; it costs no round trip."""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            return bool(selector.select(0))
    except (psycopg.Error, OSError, ValueError):  # It is closed on this side.
        return True


def cut(connection: Connection) -> None:
    """End a connection that another thread is using: the server rolls back and lets go of all locks; the other thread meets an error."""
    with suppress(psycopg.Error, OSError):
        # A server that is busy with a statement would notice only at its end that nobody is there any more.
        connection.cancel_safe(timeout=_CANCEL_SECONDS)
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class HeldConnection(ReconnectingConnection):
    """A line on a connection that is in use already: whoever made it hangs up, and translates what goes wrong."""

    def __init__(self, connection: Connection, url: str) -> None:
        self.url = url
        self._held = connection

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """The connection, inside the transaction that it has open."""
        yield self._held


class PostgresHandlerConnection:
    """A connection in the hands of user code."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._guard = threading.Lock()
        self._is_over = False

    def end(self) -> None:
        """The engine has the connection again."""
        with self._guard:
            self._is_over = True

    def call_back(self) -> None:
        """Cut the connection, unless the engine has it again."""
        with self._guard:
            if not self._is_over:
                cut(self.connection)


def prepare_connection(connection: Connection, *, prepare: bool, lock_timeout: str = LOCK_TIMEOUT) -> None:
    """What every connection of ours needs, also one that a pool made."""
    connection.prepare_threshold = 0 if prepare else None  # A transaction pooler cannot keep prepared statements.
    columns.register(connection)
    connection.execute(_set({**_SESSION, "lock_timeout": lock_timeout}, is_local=False))


def prepare_reader(connection: Connection, *, prepare: bool) -> None:
    """What the connections of readers need besides: each transaction of theirs sees one moment, and cannot write.

    It is said when a transaction begins, and not once for the session, which a pooler may give to somebody who writes.
    """
    prepare_connection(connection, prepare=prepare)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True


def check_reader(connection: Connection) -> None:
    """Have a connection proved alive before it is used again, if its server has said anything meanwhile: it says goodbye when it ends one."""
    line = select.poll()
    line.register(connection.pgconn.socket, select.POLLIN)
    if line.poll(0):
        ConnectionPool.check_connection(connection)


def patient_conninfo(dsn: str) -> str:
    """The caller's connection string with our defaults below it."""
    return make_conninfo("", **{**_PATIENT, **_parsed(dsn), **_FIXED})


def public_url(dsn: str) -> str:
    """The URL without user, password and options."""
    told = _parsed(dsn)
    host, port = str(told.get("host", "")), told.get("port")
    where = "" if host.startswith("/") else host  # A folder with a socket is of no use to others.
    return f"postgresql://{where}{f':{port}' if port else ''}/{told.get('dbname', '')}"


def _parsed(dsn: str) -> Mapping[str, str | int | None]:
    """What a connection string says. Nothing of a string that says nothing is repeated: there may be a password in it."""
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
            is_number = port.removeprefix("-").isdecimal()  # Else it may be how a password begins.
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
    """The connection with the cursors and the planner that users know; the planner stays so for the rest of the transaction.

    psycopg refuses `commit()`, `rollback()` and `with connection:` inside a transaction. Statements that end it are found out: they
    take a setting with them that lives only in this transaction.

    The role of a borrower is taken and left with statements that are sent anyhow, so that it costs no round trip. Whoever has more to send
    sends these statements along: `enter` carries out what begins the loan, and `owe` is told what `check_marker` has to find
    before anything else is done.
    """
    connection, marker = loan.connection, f"{_LOANS} {next(_loans)}"
    _enter(enter or partial(connection.execute, prepare=False), marker, borrower)
    rows, threshold, adapters = connection.row_factory, connection.prepare_threshold, connection.adapters
    connection.cursor_factory = psycopg.Cursor
    connection._adapters = AdaptersMap(adapters)  # noqa: SLF001 - what is registered for the call ends with it
    failure: Exception | None = None
    try:
        yield connection
    except Exception as error:  # noqa: BLE001 - raised below, once it is clear what it means
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
    """Set what holds while the connection is lent."""
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
    """Hang up in the middle of something. A thread that the call has left behind goes first; what the call has merely kept does not."""
    cut(connection)
    if connection.lock.acquire(timeout=_CANCEL_SECONDS):
        connection.lock.release()
    connection.close()


def _check_open(connection: Connection, marker: str) -> None:
    """Raise if the transaction that was lent has ended. One that failed, or whose connection broke, can only be rolled back."""
    status = connection.info.transaction_status
    if status == TransactionStatus.INTRANS:
        row = connection.execute(RETURN).fetchone()
        check_marker(row, marker)
    elif status == TransactionStatus.IDLE:
        check_marker(None, marker)


def check_marker(row: tuple[object, ...] | None, marker: str) -> None:
    """EndedTransactionError unless what `RETURN` has found says that it is still the transaction that was lent."""
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
"""Ends a loan: the engine's own role again, and the marker of the transaction that it is in."""
