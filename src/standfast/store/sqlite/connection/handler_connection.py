"""The writing connection lent to user code. The code may write, but cannot end the transaction, which belongs to the engine.

User code gets a proxy that forwards to the writer during the loan only; the same holds for cursors. An authorizer
denies statements that begin or end transactions, and settings. Savepoints are allowed. Anything that stays on a
connection, such as a temporary table, is noted, and the writer is replaced after the transaction.
"""

from __future__ import annotations

import sqlite3
import threading
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, NoReturn, Self
from weakref import WeakSet

from standfast.errors import ConfigurationError

NOT_YOURS = (
    "the connection of a transactional handler or a projection is lent: its transaction is the engine's and ends with the call, so "
    "do not commit, roll back or close it, and use neither `with connection:` nor executescript (savepoints are fine)"
)
_NOT_THIS_PRAGMA = (
    "PRAGMA {} is not for the connection of a transactional handler or a projection, which is lent: others depend on its settings, and "
    "on those of the file; use a connection of your own outside of the call"
)
_LOOK_EVERY = 100_000
"""Instructions of SQLite's virtual machine between two checks of the time limit."""

_TELLING = {
    "collation_list", "compile_options", "data_version", "database_list", "foreign_key_check", "foreign_key_list", "freelist_count",
    "function_list", "index_info", "index_list", "index_xinfo", "integrity_check", "module_list", "page_count", "pragma_list",
    "quick_check", "table_info", "table_list", "table_xinfo",
    "defer_foreign_keys",
}  # fmt: skip
"""Pragmas without effects beyond the transaction."""
_SETTINGS = {
    "application_id", "auto_vacuum", "busy_timeout", "cache_size", "encoding", "foreign_keys", "journal_mode", "locking_mode",
    "page_size", "query_only", "recursive_triggers", "synchronous", "temp_store", "user_version",
}  # fmt: skip
"""Pragmas that only read if they have no value."""
_STICKING = {
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_CREATE_TEMP_INDEX,
    sqlite3.SQLITE_CREATE_TEMP_TABLE,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
}
"""Statements whose effects stay on their connection."""


class SQLiteHandlerConnection:
    """One loan of the writing connection to user code."""

    def __init__(self, writer: sqlite3.Connection, owner: object = None) -> None:
        self.writer = writer
        self.owner = owner
        """The owner of the loan. Only the end of its owner ends it early."""
        self.thread = threading.get_ident()
        """The thread that holds the writer's lock during the loan."""
        self.guard = threading.Lock()
        """Held by the thread that ends the loan, so that it ends once and nothing is opened afterwards."""
        self.is_over = False
        self.is_called_back = False
        """Whether the engine revoked the connection because the call took too long."""
        self.refusal = ""
        """Why a statement was denied. Empty if none was."""
        self.has_left_traces = False
        """Whether the call may have left traces on the writer."""
        self._caller: int | None = None
        self._opened: WeakSet[sqlite3.Cursor | sqlite3.Blob] = WeakSet()
        """Cursors and blobs that would keep working after the call."""
        self._text_factory = writer.text_factory

    def begin(self) -> SQLiteLentConnection:
        """Lend the connection."""
        self.writer.set_authorizer(self._authorize)
        self.writer.set_progress_handler(lambda: self.is_over, _LOOK_EVERY)
        return SQLiteLentConnection(self)

    def end(self) -> None:
        """End the loan and restore the connection, unless it was revoked."""
        with self.guard:
            if self.is_over:
                return
            self.is_over = True
            self._close_opened()
            self.writer.set_authorizer(None)
            self.writer.set_progress_handler(None, 0)
            self.writer.text_factory = self._text_factory

    def call_back(self) -> None:
        """Roll back and close the connection during its use. The caller holds the guard."""
        self._caller = threading.get_ident()
        self.is_over = self.is_called_back = True
        writer = self.writer
        try:
            writer.execute("pragma query_only = on")  # A write after the rollback would start its own transaction.
            writer.execute("rollback")
        finally:
            self._close_opened()
            writer.close()

    def cursor(self, lent: SQLiteLentConnection, factory: type[sqlite3.Cursor]) -> sqlite3.Cursor:
        """Open a cursor of the writer that ends with the loan."""
        with self.guard:
            cursor = _leading_back(factory)(self.reached())
            cursor.__dict__["lent"] = lent
            if lent.row_factory is not None:
                cursor.row_factory = lent.row_factory
            self._opened.add(cursor)
        return cursor

    def blob(self, *given: Any, **named: Any) -> sqlite3.Blob:
        """Open a blob of the writer that ends with the loan."""
        with self.guard:
            blob = self.reached().blobopen(*given, **named)
            self._opened.add(blob)
        return blob

    def reached(self) -> sqlite3.Connection:
        """Return the writer. Raises after the end of the loan."""
        if self.is_called_back:
            raise sqlite3.ProgrammingError("the call took too long: its connection was taken from it")
        if self.is_over:
            raise sqlite3.ProgrammingError("the call that this connection was lent to has ended; open one of your own")
        return self.writer

    def _close_opened(self) -> None:
        for each in list(self._opened):
            try:
                each.close()
            except sqlite3.Error:  # A leftover thread of the call is using it.
                self.has_left_traces = True

    def _authorize(self, action: int, name: str | None, value: str | None, *_: str | None) -> int:
        if self._caller == threading.get_ident():
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_TRANSACTION:
            self.refusal = NOT_YOURS
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA and not _is_harmless(str(name).lower(), value):
            self.refusal = _NOT_THIS_PRAGMA.format(name)
            return sqlite3.SQLITE_DENY
        if action in _STICKING:
            self.has_left_traces = True
        return sqlite3.SQLITE_OK


def _is_harmless(pragma: str, value: str | None) -> bool:
    return pragma in _TELLING or (pragma in _SETTINGS and value is None)


@lru_cache(maxsize=64)
def _leading_back(factory: type[sqlite3.Cursor]) -> type[sqlite3.Cursor]:
    """Return a cursor class whose `connection` is the proxy and not the writer."""
    return type(factory.__name__, (factory,), {"connection": property(lambda cursor: cursor.__dict__.get("lent"))})


def _passed_on(name: str, *, sticks: bool = False) -> Any:
    """Return a method that forwards to the writer during the loan."""

    def call(lent: SQLiteLentConnection, *given: Any, **named: Any) -> Any:
        writer = lent.loan.reached()
        lent.loan.has_left_traces |= sticks
        return getattr(writer, name)(*given, **named)

    return call


class SQLiteLentConnection(sqlite3.Connection):
    """The proxy of the writer for user code. It has no connection of its own, so that only forwarded methods work."""

    def __init__(self, loan: SQLiteHandlerConnection) -> None:  # The base class is not initialized: see above.
        self.loan = loan

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """Open a cursor for the time of the call."""
        if not isinstance(factory, type):
            raise ConfigurationError("the cursors of a lent connection are made of a class: give one as the factory")
        return self.loan.cursor(self, factory)

    def execute(self, *given: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        return self.loan.cursor(self, sqlite3.Cursor).execute(*given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        """Execute a statement for each of many rows."""
        return self.loan.cursor(self, sqlite3.Cursor).executemany(*given)

    def blobopen(self, *given: Any, **named: Any) -> sqlite3.Blob:
        """Open a value of a table as a file, for the time of the call."""
        return self.loan.blob(*given, **named)

    interrupt = _passed_on("interrupt")
    getlimit = _passed_on("getlimit")
    setlimit = _passed_on("setlimit", sticks=True)
    create_function = _passed_on("create_function", sticks=True)
    create_aggregate = _passed_on("create_aggregate", sticks=True)
    create_window_function = _passed_on("create_window_function", sticks=True)
    create_collation = _passed_on("create_collation", sticks=True)
    set_trace_callback = _passed_on("set_trace_callback", sticks=True)

    @property
    def in_transaction(self) -> bool:
        """Whether the engine's transaction is open."""
        return self.loan.reached().in_transaction

    @property
    def total_changes(self) -> int:
        """Number of rows that the writer has changed."""
        return self.loan.reached().total_changes

    @property
    def text_factory(self) -> Any:
        """The type of texts that are read, until the call ends."""
        return self.loan.reached().text_factory

    @text_factory.setter
    def text_factory(self, factory: Any) -> None:
        self.loan.reached().text_factory = factory

    @property
    def isolation_level(self) -> None:
        """None: no transaction begins implicitly."""

    @isolation_level.setter
    def isolation_level(self, _level: object) -> None:
        self._refuse()

    def __enter__(self) -> Self:
        self._refuse()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Literal[False]:
        return False

    def _refuse(self, *_given: object) -> NoReturn:
        raise ConfigurationError(NOT_YOURS)

    commit = rollback = close = executescript = set_authorizer = set_progress_handler = _refuse  # type: ignore[assignment]


loans: ContextVar[tuple[SQLiteHandlerConnection, ...]] = ContextVar("loans", default=())
"""The loans of the current code. Threads and tasks that a call starts with its context inherit them."""
