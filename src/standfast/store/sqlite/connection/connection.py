"""The file and its connections: one that writes, and readers apart, as many as read at the same time.

One connection in the process does all writing and checkpointing, under a lock that is granted in the order of asking; so threads
never meet "database is locked", and the lock can be waited for fairly. A second process may attach: every writing transaction
begins IMMEDIATE and waits for its turn. While user code has the writing connection, nobody else can write, not even the heartbeat:
so it is called back when it was away for too long.
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
"""Readers that are kept for the next who reads; there are more of them only while more threads read at the same time."""
_NOBODY = -1
_CLOSING_SECONDS = 2.0
"""How long those who write may go on when the file is closed; a wait for another process ends within a second."""
_HAS_WRITER = (
    "you have a transaction of your own open on the file, which is its only writer, and this call would wait for it: "
    "tell it with the unit of `engine.within`, or after your commit"
)
_WOULD_WAIT_FOR_EVER = (
    "a transactional handler or a projection holds the file's only writer, so whatever the engine has to write now would wait for it: "
    "use engine.deciders.submit(..., connection=context.connection), which writes in the same transaction, or return a command"
)


class FairLock:
    """A lock that is granted in the order of asking, and may be taken again by the thread that holds it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for the lock, for so many seconds if that is not negative; whether it was granted."""
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
            is_granted = turn.acquire(timeout=timeout)  # Released by the thread that hands the lock over.
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
                return  # It was taken away.
            self._depth -= 1
            if not self._depth:
                self._pass_on()

    @property
    def is_mine(self) -> bool:
        """Whether the thread that asks holds the lock."""
        return self._owner == threading.get_ident()

    def take_away(self, thread: int) -> None:
        """Have a thread lose the lock, if it holds it."""
        with self._guard:
            if self._owner == thread:
                self._depth = 0
                self._pass_on()

    def _pass_on(self) -> None:
        self._owner = None
        if self._waiting:
            self._owner, self._depth = _NOBODY, 1  # Nobody can slip in between.
            self._waiting.popleft().release()

    def _give_up(self, turn: threading.Lock) -> None:
        """An interrupt came while waiting, or it took too long: leave the queue, or pass on what was just handed over."""
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
    """What the present thread does."""

    reader: sqlite3.Connection | None = None
    """With which it reads."""
    writer: sqlite3.Connection | None = None
    """With which it does several things in one transaction."""


_entered: ContextVar[tuple[str, ...]] = ContextVar("entered", default=())
"""The files on which the present code has a transaction of its own open."""


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
        """Seconds to wait for another process to let go of the file."""
        self._round_ms = max(1, min(_BUSY_ROUND_MS, round(patience * 1000)))
        self._rounds = max(1, round(patience * 1000 / self._round_ms))
        self._lock = FairLock()
        self._locked_since: float | None = None
        """Since when another process is known to hold the write lock (monotonic time)."""
        self._here = _Here()
        self._readers: set[sqlite3.Connection] = set()
        self._idle: deque[sqlite3.Connection] = deque()
        """Readers that nobody uses. They do not belong to threads, which come and go."""
        self._loan: SQLiteHandlerConnection | None = None
        """The writing connection in the hands of user code."""
        self._is_marked = False
        """Whether something that user code did sticks to the writer, which is replaced then."""
        self._is_closed = False
        if path and not Path(path).exists():
            _create_private(path, self.url)
        self._writer = self._connect_writer()
        self._file = _identity(path)
        """Which file this is, whatever becomes of its name."""
        if path:
            try:
                self._prepare_file()
            except BaseException:  # It is no database, for example.
                self._writer.close()
                raise

    @property
    def path(self) -> str:
        """Where the file is; empty for one in memory."""
        return self._path

    @property
    def is_file(self) -> bool:
        """Whether the database outlives the process."""
        return bool(self._path)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that may write: committed at the end of the block, rolled back when it raises. Inside `together` it is a part of that."""
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
        """One transaction for all that the present thread reads and writes in the block. What raises in it undoes all of it."""
        with self.writing() as connection:
            self._here.writer = connection
            try:
                yield connection
            finally:
                self._here.writer = None

    @contextmanager
    def lending(self, loan: SQLiteHandlerConnection, limit: float | None) -> Iterator[SQLiteLentConnection]:
        """The writing connection of an open transaction for user code, which has so many seconds.

        None means the patience with which others wait for the file. What it does is undone when it takes longer: in a file, where the
        connection can be taken from it. A database in memory has no other connection.
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
        """Whether the code that asks runs inside a call that has the writing connection."""
        return any(loan.writer is self._writer and not loan.is_over for loan in loans.get())

    def refuse_inside(self) -> None:
        """Raise where waiting for the writer is waiting for oneself."""
        if self._place in _entered.get():
            raise ConfigurationError(_HAS_WRITER)
        if loans.get() and self.is_lent:
            raise ConfigurationError(_WOULD_WAIT_FOR_EVER)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Inside it the caller has a transaction of his own open on the file, as far as his thread and its tasks go."""
        if not self._path:
            raise ConfigurationError(_IN_MEMORY)
        token = _entered.set((*_entered.get(), self._place))
        try:
            yield
        finally:
            _entered.reset(token)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A consistent view of the last commit; inside another one of the same thread, the same view.

        In memory there is one connection, so readers take turns with the writer.
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
        """Bring the log into the file and cut it, when nobody reads an old state."""
        if self._path:
            with self._lock, translated(self.url):
                self._writer.execute("pragma wal_checkpoint(truncate)")

    def locked_for(self) -> float:
        """Seconds for which another process has held the write lock, as far as a writer of this process knows."""
        since = self._locked_since
        return 0.0 if since is None else time.monotonic() - since

    def changed(self) -> int:
        """A number that changes when another process commits."""
        with self._lock, translated(self.url):
            version: int = self._writer.execute("pragma data_version").fetchone()[0]
        return version

    def take_back(self, owner: object = None) -> None:
        """Take the writing connection from user code, if it has it, and if it has it on behalf of this owner; None means of any."""
        loan = self._loan
        if loan is not None and (owner is None or loan.owner is owner):
            self.call_back(loan)

    def close(self) -> None:
        """Close all connections that nobody uses. Whoever hangs with the writer loses it, or, where there is no other, keeps it.

        Whoever reads closes what he reads with when he leaves it: SQLite does not survive it if that is done under his hands.
        """
        self._is_closed = True
        self.take_back()
        self._close_idle()
        if not self._lock.acquire(timeout=_CLOSING_SECONDS):
            _log.warning("%s is left open: a call that does not come back holds its only connection", self.url)
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
            connection.execute("pragma synchronous = full")  # NORMAL loses acknowledged commits in a power cut.
            connection.execute(f"pragma journal_size_limit = {_WAL_LIMIT}")
        return connection

    def _prepare_file(self) -> None:
        with self._lock, translated(self.url):
            self._switch_to_wal()

    def _replace_writer(self) -> None:
        """Leave what sticks to the writer behind; a database in memory has no other."""
        if not self._path or self._is_closed:
            self._is_marked = False
            return
        try:
            writer = self._connect_writer()
        except Exception:  # noqa: BLE001 - what was written stands; it is tried again behind the next transaction
            _log.exception("the writer of %s could not be replaced", self.url)
            return
        self._is_marked = False
        before, self._writer = self._writer, writer
        before.close()

    def call_back(self, loan: SQLiteHandlerConnection) -> None:
        """Give the file a new writer, and those who wait for it their turn; what user code did with the old one is undone.

        In memory there is no other one, but a statement that takes long ends.
        """
        with loan.guard:
            if loan.is_over:
                return
            if not self._path:
                loan.writer.interrupt()
                return
            try:
                self._writer = self._connect_writer()
            except Exception:  # noqa: BLE001 - then the call keeps the old one until it comes back
                _log.exception("a handler holds the writer of %s for too long, and there is no other", self.url)
                return
            try:
                loan.call_back()
            except Exception:  # noqa: BLE001 - it is closed, and whoever writes next finds out what is wrong with the file
                _log.exception("the writer of %s could not be rolled back", self.url)
            self._lock.take_away(loan.thread)

    def _switch_to_wal(self) -> None:
        """Several processes may find a new file at once. SQLite does not wait for the lock that this needs, so it is done here."""
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
        """StoreUnavailableError if the file was moved, removed or replaced: what is written into one that has no name is lost, however well it is kept."""
        if self._path and _identity(self._path) != self._file:
            told = "its file was moved or removed, or another one is in its place; put it back, or end this process and begin anew"
            raise StoreUnavailableError(f"{self.url} cannot be used now: {told}")

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailableError(f"{self.url} cannot be used any more: the engine that used it was stopped")

    def _take_reader(self) -> sqlite3.Connection:
        self._check_open()
        try:
            return self._idle.pop()  # The last one that was used has the statements at hand.
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
        f"the call held the file's only writer for more than {limit} s, so that nobody else could write: what it wrote is undone"
    )


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file from every other one on this machine; None if there is none of this name."""
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as quick, and asked with every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _create_private(path: str, url: str) -> None:
    """Make the file readable by its owner alone: it holds everybody's data."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{url} cannot be created: {error.strerror}; does the folder exist?") from error
