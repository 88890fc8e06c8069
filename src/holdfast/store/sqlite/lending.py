"""The writing connection in the hands of user code: it may write, and cannot end the transaction, which is the engine's.

SQLite itself refuses: while a connection is lent, an authorizer denies every statement that would begin or end a transaction, also those
that `commit()`, `rollback()`, `executescript()` and `with connection:` send. Savepoints are allowed.
"""

from __future__ import annotations

import sqlite3
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import Literal, Self

from holdfast.errors import ConfigurationError

NOT_YOURS = (
    "the connection of a transactional handler or a projection is lent: its transaction is the engine's and ends with the call, so "
    "do not commit, roll back or close it, and use neither `with connection:` nor executescript (savepoints are fine)"
)
_LOOK_EVERY = 100_000
"""Instructions of SQLite's machine between two looks whether the loan was called back."""


class Loan:
    """One call of user code with the writing connection."""

    def __init__(self, connection: WritingConnection) -> None:
        self.connection = connection
        self.thread = threading.get_ident()
        """Holds the lock of the connection for as long as the loan lasts."""
        self.guard = threading.Lock()
        """Held by whoever ends the loan, so that it ends once."""
        self.is_over = False
        self.is_called_back = False
        """Whether the engine took the connection back, because the call took too long."""
        self.has_refused = False
        """Whether a statement was denied that would have ended the transaction."""
        self._caller: int | None = None
        self._kept = (connection.row_factory, connection.text_factory)

    def begin(self) -> None:
        """Hand the connection over."""
        self.connection.loan = self
        self.connection.set_authorizer(self._authorize)
        self.connection.set_progress_handler(lambda: self.is_called_back, _LOOK_EVERY)

    def end(self) -> None:
        """Take the connection back as it was given, unless it was called back before."""
        with self.guard:
            self.is_over = True
            if self.is_called_back:
                return
            self.connection.set_authorizer(None)
            self.connection.set_progress_handler(None, 0)
            self.connection.row_factory, self.connection.text_factory = self._kept
            self.connection.loan = None

    def call_back(self) -> None:
        """Undo what was written and close the connection under the hands of whoever has it; for the holder of the guard."""
        self._caller = threading.get_ident()
        self.is_over = self.is_called_back = True
        connection = self.connection
        try:
            connection.execute(
                "pragma query_only = on"
            )  # A write behind the rollback would be a transaction of its own.
            connection.execute("rollback")
        finally:
            connection.loan = None
            connection.close()

    def _authorize(self, action: int, *_: str | None) -> int:
        if action != sqlite3.SQLITE_TRANSACTION or self._caller == threading.get_ident():
            return sqlite3.SQLITE_OK
        self.has_refused = True
        return sqlite3.SQLITE_DENY


class WritingConnection(sqlite3.Connection):
    """The connection that writes. The ways in which Python code ends a transaction say what is wrong while it is lent."""

    loan: Loan | None = None

    def commit(self) -> None:
        """Commit, unless the connection is lent."""
        self._refuse()
        super().commit()

    def rollback(self) -> None:
        """Roll back, unless the connection is lent."""
        self._refuse()
        super().rollback()

    def close(self) -> None:
        """Close, unless the connection is lent."""
        self._refuse()
        super().close()

    def __enter__(self) -> Self:
        self._refuse()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Literal[False]:
        return super().__exit__(kind, error, trace)

    def _refuse(self) -> None:
        if self.loan is not None:
            raise ConfigurationError(NOT_YOURS)


loans: ContextVar[tuple[Loan, ...]] = ContextVar("loans", default=())
"""The loans in whose calls the present code runs: the threads and tasks that a call makes with its context inherit them."""
