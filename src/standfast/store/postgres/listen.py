"""Hints between processes by LISTEN and NOTIFY, on separate connections and never inside a commit.

Commits with a NOTIFY wait for one another, which costs most of the throughput.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    listen: str
    notify: str


_sql = read_numbered(_Sql, __package__, "wakeups.sql")

_SHORTEST_PAUSE_SECONDS = 0.02
"""Minimum interval between hints. Those in between are combined."""


class PostgresWakeups:
    """Hints to and from other processes."""

    must_send = True

    def __init__(
        self, ear: ReconnectingConnection, mouth: ReconnectingConnection, notice: Callable[[str], None]
    ) -> None:
        self._ear = ear
        ear.is_spoken_to = True
        self._mouth = mouth
        self._notice = notice
        self._listening_on: object = None
        self._said_at = 0.0
        self._guard = threading.Lock()
        self._is_closed = False
        self._bell: socket.socket | None = None
        """Wakes the listening thread when the store is closed. None while no thread listens."""

    def send(self, hint: str) -> None:
        """Notify the other processes, at a limited rate."""
        pause = self._said_at + _SHORTEST_PAUSE_SECONDS - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        with self._mouth.use() as connection:
            connection.execute(_sql.notify, [hint])
        self._said_at = time.monotonic()

    def listen(self, timeout: float) -> None:
        """Wait for hints up to the timeout. A new connection may have missed hints, so it counts as one."""
        with self._ear.use() as connection:
            if connection is not self._listening_on:
                connection.execute(_sql.listen)
                self._listening_on = connection
                self._notice("")
            else:
                self._wait(connection, timeout)
            for hint in connection.notifies(timeout=0):
                self._notice(hint.payload)
            if self._is_closed:
                self._ear.close()

    def close(self) -> None:
        """Stop listening. The listening thread closes its connection."""
        with self._guard:
            self._is_closed = True
            if self._bell is not None:
                self._bell.send(b"!")
        self._mouth.close()

    def _wait(self, connection: Connection, timeout: float) -> None:
        """Wait until the server sends something or the store is closed."""
        with self._rung() as bell, selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(bell, selectors.EVENT_READ)
            selector.select(0.0 if self._is_closed else timeout)

    @contextmanager
    def _rung(self) -> Iterator[socket.socket]:
        """Open the socket that ends the wait."""
        heard, rung = socket.socketpair()
        with heard, rung:
            with self._guard:
                self._bell = rung
            try:
                yield heard
            finally:
                with self._guard:
                    self._bell = None
