"""How long a client may hold a connection: while it does not ask, while it does not read what it is answered, and after a request of two lengths.

uvicorn waits for both without end. Whoever opens as many connections as there may be, and says nothing, would keep everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_HEAD_SECONDS: Final = 15.0
"""How long a client may take to say what it wants."""
_UNREAD_SECONDS: Final = 30.0
"""How long a client may read nothing of what was sent to it."""

_FRAMES: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Whoever says both may have told a proxy of another end of the request than the server sees: what comes after it is not believed."""


class Connection(H11Protocol):
    """A connection that is closed when nobody asks by it, or nobody reads. It is always h11's, whose limit on headers the server sets."""

    _head: asyncio.TimerHandle | None = None
    """Goes off if the head of a request does not come to its end."""
    _unread: asyncio.TimerHandle | None = None
    """Goes off if what was sent is not taken."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As the class above has it.
        """Somebody came."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """They said something."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle  # There is none before the first request.
        if cycle is not None and not cycle.response_complete:
            self._forget_head()
            if {name for name, _ in self.headers} >= _FRAMES:
                cycle.keep_alive = False
        elif self._head is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._forget_head()
        self._forget_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """They read more slowly than they are told."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """They have caught up."""
        super().resume_writing()
        self._forget_unread()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing was asked for a while. What is on its way is told first, if somebody reads it."""
        super().timeout_keep_alive_handler()
        self._await_reading()

    def _await_head(self) -> None:
        self._head = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _await_reading(self) -> None:
        self._forget_unread()
        size = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(_UNREAD_SECONDS, self._check_reading, size)

    def _check_reading(self, before: int) -> None:
        """Go on waiting for who reads, however slowly."""
        if self.transport.get_write_buffer_size() < before:
            self._await_reading()
        else:
            self.transport.abort()

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
