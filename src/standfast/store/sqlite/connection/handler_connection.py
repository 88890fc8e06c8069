"""The writing connection in the hands of user code: it may write, and cannot end the transaction, which is the engine's.

User code gets an object of its own, which leads to the writer for as long as the loan lasts, and then to nothing: neither does a cursor
that the call has kept. SQLite itself refuses what would harm others: while the writer is lent, an authorizer denies statements that begin
or end a transaction, and settings. Savepoints are allowed. Whatever sticks to a connection, such as a temporary table, is noted: that
writer is replaced behind the transaction.
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
"""Instructions of SQLite's machine between two looks whether the loan is over."""

_TELLING = {
    "collation_list", "compile_options", "data_version", "database_list", "foreign_key_check", "foreign_key_list", "freelist_count",
    "function_list", "index_info", "index_list", "index_xinfo", "integrity_check", "module_list", "page_count", "pragma_list",
    "quick_check", "table_info", "table_list", "table_xinfo",
    "defer_foreign_keys",
}  # fmt: skip
"""Pragmas that change nothing, or nothing beyond the transaction."""
_SETTINGS = {
    "application_id", "auto_vacuum", "busy_timeout", "cache_size", "encoding", "foreign_keys", "journal_mode", "locking_mode",
    "page_size", "query_only", "recursive_triggers", "synchronous", "temp_store", "user_version",
}  # fmt: skip
"""Pragmas that tell something when they are given no value."""
_STICKING = {
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_CREATE_TEMP_INDEX,
    sqlite3.SQLITE_CREATE_TEMP_TABLE,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
}
"""What a statement leaves on its connection."""


class SQLiteHandlerConnection:
    """One call of user code with the writing connection."""

    def __init__(self, writer: sqlite3.Connection, owner: object = None) -> None:
        self.writer = writer
        self.owner = owner
        """On whose behalf it is: only with its owner's end does it end before its time."""
        self.thread = threading.get_ident()
        """Holds the lock of the writer for as long as the loan lasts."""
        self.guard = threading.Lock()
        """Held by whoever ends the loan, so that it ends once and nothing is opened behind it."""
        self.is_over = False
        self.is_called_back = False
        """Whether the engine took the connection back, because the call took too long."""
        self.refusal = ""
        """Why a statement was denied; empty if none was."""
        self.has_left_traces = False
        """Whether something of the call may stick to the writer."""
        self._caller: int | None = None
        self._opened: WeakSet[sqlite3.Cursor | sqlite3.Blob] = WeakSet()
        """What would go on working behind the call."""
        self._text_factory = writer.text_factory

    def begin(self) -> SQLiteLentConnection:
        """Hand the connection over."""
        self.writer.set_authorizer(self._authorize)
        self.writer.set_progress_handler(lambda: self.is_over, _LOOK_EVERY)
        return SQLiteLentConnection(self)

    def end(self) -> None:
        """Take the connection back as it was given, unless it was called back before."""
        with self.guard:
            if self.is_over:
                return
            self.is_over = True
            self._close_opened()
            self.writer.set_authorizer(None)
            self.writer.set_progress_handler(None, 0)
            self.writer.text_factory = self._text_factory

    def call_back(self) -> None:
        """Undo what was written and close the connection under the hands of whoever has it; for the holder of the guard."""
        self._caller = threading.get_ident()
        self.is_over = self.is_called_back = True
        writer = self.writer
        try:
            writer.execute("pragma query_only = on")  # A write behind the rollback would be a transaction of its own.
            writer.execute("rollback")
        finally:
            self._close_opened()
            writer.close()

    def cursor(self, lent: SQLiteLentConnection, factory: type[sqlite3.Cursor]) -> sqlite3.Cursor:
        """A cursor of the writer that ends with the loan."""
        with self.guard:
            cursor = _leading_back(factory)(self.reached())
            cursor.__dict__["lent"] = lent
            if lent.row_factory is not None:
                cursor.row_factory = lent.row_factory
            self._opened.add(cursor)
        return cursor

    def blob(self, *given: Any, **named: Any) -> sqlite3.Blob:
        """A blob of the writer that ends with the loan."""
        with self.guard:
            blob = self.reached().blobopen(*given, **named)
            self._opened.add(blob)
        return blob

    def reached(self) -> sqlite3.Connection:
        """The writer, for as long as the loan lasts."""
        if self.is_called_back:
            raise sqlite3.ProgrammingError("the call took too long: its connection was taken from it")
        if self.is_over:
            raise sqlite3.ProgrammingError("the call that this connection was lent to has ended; open one of your own")
        return self.writer

    def _close_opened(self) -> None:
        for each in list(self._opened):
            try:
                each.close()
            except sqlite3.Error:  # A thread that the call has left behind is just using it.
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
    """A kind of cursor that names as its connection what was lent, and not the writer."""
    return type(factory.__name__, (factory,), {"connection": property(lambda cursor: cursor.__dict__.get("lent"))})


def _passed_on(name: str, *, sticks: bool = False) -> Any:
    """A method that the writer answers while it is lent."""

    def call(lent: SQLiteLentConnection, *given: Any, **named: Any) -> Any:
        writer = lent.loan.reached()
        lent.loan.has_left_traces |= sticks
        return getattr(writer, name)(*given, **named)

    return call


class SQLiteLentConnection(sqlite3.Connection):
    """The writer as user code has it. Of itself it is connected to nothing, so that what is not passed on does not work."""

    def __init__(self, loan: SQLiteHandlerConnection) -> None:  # It is not opened: see above.
        self.loan = loan

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """A cursor, for as long as the call lasts."""
        if not isinstance(factory, type):
            raise ConfigurationError("the cursors of a lent connection are made of a class: give one as the factory")
        return self.loan.cursor(self, factory)

    def execute(self, *given: Any) -> sqlite3.Cursor:
        """Carry out a statement."""
        return self.loan.cursor(self, sqlite3.Cursor).execute(*given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        """Carry out a statement for each of many rows."""
        return self.loan.cursor(self, sqlite3.Cursor).executemany(*given)

    def blobopen(self, *given: Any, **named: Any) -> sqlite3.Blob:
        """A value of a table as a file, for as long as the call lasts."""
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
        """Rows that the writer has changed."""
        return self.loan.reached().total_changes

    @property
    def text_factory(self) -> Any:
        """What texts are read as, until the call ends."""
        return self.loan.reached().text_factory

    @text_factory.setter
    def text_factory(self, factory: Any) -> None:
        self.loan.reached().text_factory = factory

    @property
    def isolation_level(self) -> None:
        """None: no transaction begins by itself."""

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
"""The loans in whose calls the present code runs: the threads and tasks that a call makes with its context inherit them."""
