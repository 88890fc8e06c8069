"""Limits on connections: idle time, number, and size of an unfinished request head.

uvicorn has no timeout for clients that send nothing or read nothing. A client could open all connections, send nothing,
and lock out all others.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from standfast.errors import StoppedError
from standfast.http.requests.endpoint import SECURITY, Sent, refusal
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.http.wire.tracing import trace_of

_HEAD_SECONDS: Final = 15.0
"""Time for a client to send the head of a request."""
_UNREAD_SECONDS: Final = 30.0
"""Time that a client may leave sent data unread."""

_AGAIN_SECONDS: Final = 1
"""`Retry-After` of a refused client."""
_PIECE_BYTES: Final = 4096
"""Bytes of a head that are parsed at a time.

The limit on an unfinished head is checked between two pieces, and the network may deliver 256 kB in one.
"""
_PAIR_BYTES: Final = 4
"""A colon, a blank, and the end of a line."""
_CLOSE: Final = {"connection": "close"}

_FRAMES: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that frame a body.

A request with both may end elsewhere for a proxy than for the server, so nothing after it is processed.
"""


class Connection(H11Protocol):
    """A connection that is closed when its client sends no request, or does not read.

    It is always h11's, whose header limit the server sets.
    """

    _head: asyncio.TimerHandle | None = None
    """Goes off if the head of a request does not come to its end."""
    _unread: asyncio.TimerHandle | None = None
    """Fires if sent data is not read."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(config, server_state, app_state, **more)
        self._most, self.limit_concurrency = (
            self.limit_concurrency,
            None,
        )  # uvicorn's response to an excess client is no problem document.
        self._longest_head = config.h11_max_incomplete_event_size
        self._inside, self.app = self.app, self._enter

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if there is room for it and its head is not too long."""
        if {name for name, _ in scope["headers"]} >= _FRAMES:  # Here, because several may come in one piece.
            self.cycle.keep_alive = False
        refused: EdgeError | StoppedError | None = self._refused(scope)
        cycle = self.cycle
        if refused is None:
            try:
                await self._inside(scope, receive, send)
            except asyncio.CancelledError:
                if cycle.response_started:  # The client sees that the response was cut.
                    return
                refused = StoppedError("the server ends, and waits no longer")
            else:
                return
        request = Request(scope, receive)
        trace = trace_of(request.headers)
        response = refusal(refused, request, trace)
        await response(scope, receive, Sent(send, trace, is_secure=scope["scheme"] == "https"))

    def _refused(self, scope: Scope) -> EdgeError | None:
        if self._most is not None and max(len(self.connections), len(self.tasks)) > self._most:
            headers = {**_CLOSE, "retry-after": str(_AGAIN_SECONDS)}
            return EdgeError(EdgeCode.TOO_MANY_CONNECTIONS, "there are as many connections as may be", headers=headers)
        said = sum(len(name) + len(value) + _PAIR_BYTES for name, value in scope["headers"])
        if (
            self._longest_head is not None
            and said + len(scope["raw_path"]) + len(scope["query_string"]) > self._longest_head
        ):
            return self._too_long()
        return None

    def _too_long(self) -> EdgeError:
        told = f"the address and the headers are longer than {self._longest_head} bytes"
        return EdgeError(EdgeCode.HEAD_TOO_LONG, told, headers=_CLOSE)

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed or oversized request with a problem document, like every other error."""
        is_long = self._longest_head is not None and len(self.conn.trailing_data[0]) > self._longest_head
        error = self._too_long() if is_long else EdgeError(EdgeCode.BAD_REQUEST, msg, headers=_CLOSE)
        nothing = Request({"type": "http", "method": "", "path": "", "headers": []})
        response = refusal(error, nothing, trace_of(nothing.headers))
        headers = [*response.raw_headers, *((name.encode(), value.encode()) for name, value in SECURITY.items())]
        for part in (
            h11.Response(status_code=response.status_code, headers=headers),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(part) or b"")
        self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As the class above has it.
        """Handle a new connection."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Handle received data."""
        while len(data) > _PIECE_BYTES and self._awaits_request:
            super().data_received(data[:_PIECE_BYTES])
            if self.transport.is_closing():
                return
            data = data[_PIECE_BYTES:]
        super().data_received(data)
        if not self._awaits_request:
            self._forget_head()
        elif self._head is None:
            self._await_head()

    @property
    def _awaits_request(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # There is none before the first request.
        return cycle is None or cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._forget_head()
        self._forget_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Pause: the client reads more slowly than data is sent."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """They have caught up."""
        super().resume_writing()
        self._forget_unread()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection. Pending data is sent first, if the client reads it."""
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
        """Keep waiting for a client that reads, however slowly."""
        if self.transport.get_write_buffer_size() < before:
            self._await_reading()
        else:
            self.transport.abort()

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
