"""The file and its connections: one writer, and as many readers as there are concurrent reads.

One connection of the process does all writing and checkpointing, under a fair lock, so that threads never get "database
is locked". Other processes may open the file: every writing transaction begins IMMEDIATE and waits for its turn.

While user code borrows the writing connection, no other code can write, not even the heartbeat. The connection is
therefore revoked after a time limit.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from standfast.errors import ConfigurationError, StoreUnavailableError
from standfast.store.ports.store import EndedTransactionError
from standfast.store.sql.nonblocking import check_nonblocking
from standfast.store.sqlite.connection.errors import is_busy, translate, translated
from standfast.store.sqlite.connection.handler_connection import (
    SQLiteHandlerConnection,
    SQLiteLentConnection,
    loans,
)

_log = logging.getLogger("standfast.store")

OLDEST_SQLITE = (3, 38, 0)
_WAL_LIMIT = 64 * 1024 * 1024
_BUSY_ROUND_MS = 1_000
_LOOK_SECONDS = 0.01
_MOST_IDLE = 8
"""Idle readers kept for reuse. There are more only while more threads read at the same time."""
_NOBODY = -1
_CLOSING_SECONDS = 2.0
"""How long writers may continue when the file is closed. A wait for another process ends within a second."""
_HAS_WRITER = (
    "you have a transaction of your own open on the file, which is its only writer, and this call would wait for it: "
    "tell it with the unit of `engine.within`, or after your commit"
)
_WOULD_WAIT_FOR_EVER = (
    "a transactional handler or a projection holds the file's only writer, so whatever the engine has to write now would wait for it: "
    "use engine.deciders.submit(..., connection=context.connection), which writes in the same transaction, or return a command"
)


class FairLock:
    """A fair, reentrant lock."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for the lock, up to the timeout if it is not negative. Return whether it was acquired."""
        me = threading.get_ident()
        with self._guard:
            if self._owner in {None, me}:
                self._owner = me
                self._depth += 1
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        is_granted = False
        try:
            is_granted = turn.acquire(timeout=timeout)  # The thread that passes the lock on releases it.
        finally:
            if not is_granted:
                self._give_up(turn)
        if is_granted:
            self._owner = me
        return is_granted

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._owner != threading.get_ident():
                return  # The lock was taken away.
            self._depth -= 1
            if not self._depth:
                self._pass_on()

    @property
    def is_mine(self) -> bool:
        """Whether the current thread holds the lock."""
        return self._owner == threading.get_ident()

    def take_away(self, thread: int) -> None:
        """Take the lock away from a thread that holds it."""
        with self._guard:
            if self._owner == thread:
                self._depth = 0
                self._pass_on()

    def _pass_on(self) -> None:
        self._owner = None
        if self._waiting:
            self._owner, self._depth = _NOBODY, 1  # No other thread can acquire it in between.
            self._waiting.popleft().release()

    def _give_up(self, turn: threading.Lock) -> None:
        """Leave the queue after an interrupt or a timeout, or pass on a lock that was just acquired."""
        with self._guard:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._depth = 0
                self._pass_on()


_IN_MEMORY = (
    "the engine's database is in memory, where no transaction of yours can be: open the engine on the database of your "
    "connection, in a test as ManualEngine(url)"
)


class _Here(threading.local):
    """The connections of the current thread."""

    reader: sqlite3.Connection | None = None
    """The connection of its open read transaction."""
    writer: sqlite3.Connection | None = None
    """The connection of its open write transaction."""


_entered: ContextVar[tuple[str, ...]] = ContextVar("entered", default=())
"""The files on which the current code has its own open transaction."""


class Database:
    """An open SQLite database."""

    def __init__(self, path: str, *, patience: float) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            wanted = ".".join(map(str, OLDEST_SQLITE))
            raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} is too old: {wanted} or newer is needed")
        self.url = f"sqlite:///{path}" if path else "sqlite://"
        self._path = path
        self._place = self._path or f"memory {id(self)}"
        self.patience = patience
        """Seconds to wait for another process to release the file."""
        self._round_ms = max(1, min(_BUSY_ROUND_MS, round(patience * 1000)))
        self._rounds = max(1, round(patience * 1000 / self._round_ms))
        self._lock = FairLock()
        self._locked_since: float | None = None
        """Monotonic time since which another process holds the write lock."""
        self._here = _Here()
        self._readers: set[sqlite3.Connection] = set()
        self._idle: deque[sqlite3.Connection] = deque()
        """Idle readers. They are not bound to threads."""
        self._loan: SQLiteHandlerConnection | None = None
        """The loan of the writing connection to user code."""
        self._is_marked = False
        """Whether user code has left traces on the writer, which is then replaced."""
        self._is_closed = False
        if path and not Path(path).exists():
            _create_private(path, self.url)
        self._writer = self._connect_writer()
        self._file = _identity(path)
        """Identity of the file, even if it is renamed."""
        if path:
            try:
                self._prepare_file()
            except BaseException:  # For example if the file is no database.
                self._writer.close()
                raise

    @property
    def path(self) -> str:
        """Path of the file. Empty for one in memory."""
        return self._path

    @property
    def is_file(self) -> bool:
        """Whether the database outlives the process."""
        return bool(self._path)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction, committed at the end of the block and rolled back when it raises.

        Inside `together` it joins the outer one.
        """
        if self._here.writer is not None:
            with translated(self.url):
                yield self._here.writer
            return
        check_nonblocking()
        self.refuse_inside()
        with self._lock, translated(self.url):
            connection = self._writer
            self._begin(connection)
            try:
                yield connection
                self._check_place()
                connection.execute("commit")
            except BaseException:
                if connection is self._writer and connection.in_transaction:
                    connection.execute("rollback")
                raise
            finally:
                if self._is_marked:
                    self._replace_writer()

    @contextmanager
    def together(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction for all reads and writes of the current thread in the block.

        An exception rolls all of it back.
        """
        with self.writing() as connection:
            self._here.writer = connection
            try:
                yield connection
            finally:
                self._here.writer = None

    @contextmanager
    def lending(self, loan: SQLiteHandlerConnection, limit: float | None) -> Iterator[SQLiteLentConnection]:
        """Lend the writing connection of an open transaction to user code, for `limit` seconds.

        None means the time for which others wait for the file. After the limit the writes are rolled back and the
        connection is revoked. A database in memory has no other connection, so it cannot be revoked there.
        """
        limit = self.patience if limit is None else limit
        clock = threading.Timer(limit, self.call_back, [loan]) if self._path else None
        lent = loan.begin()
        self._loan = loan
        token = loans.set((*loans.get(), loan))
        if clock is not None:
            clock.daemon, clock.name = True, "standfast-loan"
            clock.start()
        try:
            yield lent
        except Exception as error:
            if loan.is_called_back:
                raise _too_long(limit) from error
            if loan.refusal and getattr(error, "sqlite_errorname", "") == "SQLITE_AUTH":
                raise ConfigurationError(loan.refusal) from error
            raise
        finally:
            loans.reset(token)
            if clock is not None:
                clock.cancel()
            if self._loan is loan:
                self._loan = None
            loan.end()
            self._is_marked = self._is_marked or (loan.has_left_traces and not loan.is_called_back)
        if loan.is_called_back:
            raise _too_long(limit)
        if not loan.writer.in_transaction:
            raise EndedTransactionError("a statement of the handler, such as INSERT OR ROLLBACK, ended its transaction")

    @property
    def is_lent(self) -> bool:
        """Whether the calling code runs inside a call that borrows the writing connection."""
        return any(loan.writer is self._writer and not loan.is_over for loan in loans.get())

    def refuse_inside(self) -> None:
        """Raise if a wait for the writer would be a deadlock."""
        if self._place in _entered.get():
            raise ConfigurationError(_HAS_WRITER)
        if loans.get() and self.is_lent:
            raise ConfigurationError(_WOULD_WAIT_FOR_EVER)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Note that the caller has its own open transaction on the file, in its thread and tasks."""
        if not self._path:
            raise ConfigurationError(_IN_MEMORY)
        token = _entered.set((*_entered.get(), self._place))
        try:
            yield
        finally:
            _entered.reset(token)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a consistent snapshot of the last commit. Nested calls of a thread share it.

        In memory there is one connection, so readers and the writer take turns.
        """
        check_nonblocking()
        if self._here.writer is not None:
            with translated(self.url):
                yield self._here.writer
            return
        if not self._path:
            if not self._lock.is_mine:
                self.refuse_inside()
            with self._lock, translated(self.url):
                yield self._writer
            return
        if self._here.reader is not None:
            with translated(self.url):
                yield self._here.reader
            return
        self._check_place()
        with translated(self.url):
            connection = self._here.reader = self._take_reader()
            try:
                connection.execute("begin")
                try:
                    yield connection
                finally:
                    connection.execute("rollback")
            finally:
                self._here.reader = None
                self._leave_reader(connection)

    def checkpoint(self) -> None:
        """Write the log into the file and truncate it, unless a reader uses an old snapshot."""
        if self._path:
            with self._lock, translated(self.url):
                self._writer.execute("pragma wal_checkpoint(truncate)")

    def locked_for(self) -> float:
        """Seconds for which another process has held the write lock, as far as a writer of this process knows."""
        since = self._locked_since
        return 0.0 if since is None else time.monotonic() - since

    def changed(self) -> int:
        """Return a number that changes when another process commits."""
        with self._lock, translated(self.url):
            version: int = self._writer.execute("pragma data_version").fetchone()[0]
        return version

    def take_back(self, owner: object = None) -> None:
        """Revoke the writing connection from user code of this owner, or of any if None."""
        loan = self._loan
        if loan is not None and (owner is None or loan.owner is owner):
            self.call_back(loan)

    def close(self) -> None:
        """Close all unused connections. A hanging borrower of the writer loses it, except in memory.

        A reader closes its own connection at its end, because closing it from another thread would crash SQLite.
        """
        self._is_closed = True
        self.take_back()
        self._close_idle()
        if not self._lock.acquire(timeout=_CLOSING_SECONDS):
            _log.warning("connection_left_open url=%s: a hanging call holds its only connection", self.url)
            return
        try:
            self._writer.close()
        finally:
            self._lock.__exit__()

    def _begin(self, connection: sqlite3.Connection) -> None:
        for left in range(self._rounds, 0, -1):
            self._check_open()
            asked_at = time.monotonic()
            try:
                connection.execute("begin immediate")
            except sqlite3.OperationalError as error:
                if is_busy(error):
                    self._locked_since = self._locked_since or asked_at
                if not is_busy(error) or left == 1:
                    raise translate(error, self.url) from error
            else:
                self._locked_since = None
                return

    def _connect(self) -> sqlite3.Connection:
        with translated(self.url):
            connection = sqlite3.connect(
                self._path or ":memory:",
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
            )
            connection.execute(f"pragma busy_timeout = {self._round_ms}")
            return connection

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        with translated(self.url):
            connection.execute("pragma synchronous = full")  # NORMAL loses acknowledged commits in a power failure.
            connection.execute(f"pragma journal_size_limit = {_WAL_LIMIT}")
        return connection

    def _prepare_file(self) -> None:
        with self._lock, translated(self.url):
            self._switch_to_wal()

    def _replace_writer(self) -> None:
        """Replace the writer with its leftover state. A database in memory has no other."""
        if not self._path or self._is_closed:
            self._is_marked = False
            return
        try:
            writer = self._connect_writer()
        except Exception:  # noqa: BLE001 - the commit stands; the next transaction tries again
            _log.exception("writer_not_replaced url=%s", self.url)
            return
        self._is_marked = False
        before, self._writer = self._writer, writer
        before.close()

    def call_back(self, loan: SQLiteHandlerConnection) -> None:
        """Give the file a new writer and its lock to the waiting threads. Writes of the borrower are rolled back.

        A database in memory keeps its connection, but a long statement is interrupted.
        """
        with loan.guard:
            if loan.is_over:
                return
            if not self._path:
                loan.writer.interrupt()
                return
            try:
                self._writer = self._connect_writer()
            except Exception:  # noqa: BLE001 - the call then keeps the old one until it returns
                _log.exception("writer_not_revoked url=%s: a handler holds it for too long", self.url)
                return
            try:
                loan.call_back()
            except Exception:  # noqa: BLE001 - it is closed, and the next write reports what is wrong with the file
                _log.exception("writer_not_rolled_back url=%s", self.url)
            self._lock.take_away(loan.thread)

    def _switch_to_wal(self) -> None:
        """Switch to WAL mode, with retries.

        Several processes may open a new file together, and SQLite does not wait for the lock that this needs.
        """
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._writer.execute("pragma journal_mode = wal")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_SECONDS)
            else:
                return

    def _check_place(self) -> None:
        """Raise StoreUnavailableError if the file was moved, deleted or replaced.

        Writes to an unlinked file would be lost.
        """
        if self._path and _identity(self._path) != self._file:
            told = "its file was moved or removed, or another one is in its place; put it back, or end this process and begin anew"
            raise StoreUnavailableError(f"{self.url} cannot be used now: {told}")

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailableError(f"{self.url} cannot be used any more: the engine that used it was stopped")

    def _take_reader(self) -> sqlite3.Connection:
        self._check_open()
        try:
            return self._idle.pop()  # The last one used has its statements cached.
        except IndexError:
            connection = self._connect()
        connection.execute("pragma query_only = on")
        self._readers.add(connection)
        return connection

    def _leave_reader(self, connection: sqlite3.Connection) -> None:
        if len(self._idle) < _MOST_IDLE and not connection.in_transaction:
            self._idle.append(connection)
            if self._is_closed:
                self._close_idle()
        else:
            self._close_reader(connection)

    def _close_idle(self) -> None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # Another thread has it.
                return
            self._close_reader(connection)

    def _close_reader(self, connection: sqlite3.Connection) -> None:
        self._readers.discard(connection)
        connection.close()


def _too_long(limit: float) -> TimeoutError:
    return TimeoutError(
        f"the call held the file's only writer for more than {limit} s, so that no other code could write: its writes are rolled back"
    )


def _identity(path: str) -> tuple[int, int] | None:
    """Return the identity of a file on this machine, or None if there is none with this name."""
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as fast, and called in every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _create_private(path: str, url: str) -> None:
    """Create the file, readable by its owner alone, because it holds the data of all users."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{url} cannot be created: {error.strerror}; does the folder exist?") from error
