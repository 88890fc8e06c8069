"""A proxy between an engine and Postgres that cuts connections at chosen moments, so that outcomes stay unknown."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

Mode = Literal["before", "after", "half"]
"""Before the server hears of it; after it has answered, with nothing or with half of the answer for the client."""

MODES: tuple[Mode, ...] = ("before", "after", "half")

_CHUNK = 1 << 16
_READY = b"Z\x00\x00\x00\x05"
"""How the server says that it is done with what it was asked."""


class Link:
    """One connection through the proxy."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.said = b""
        """All that the client has sent so far: the texts of its prepared statements are in there."""
        self.mode: Mode | None = None
        """How it is being cut; None while it works."""

    def close(self) -> None:
        """Hang up on both sides."""
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


When = Callable[[Link, bytes], bool]
"""Whether to cut this connection now that the client sends this."""


class Proxy:
    """Passes everything on until it is told to cut."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._links: list[Link] = []
        self._cut: tuple[When, Mode] | None = None
        self._is_shut = False
        self.cuts = 0
        """How many connections were cut."""
        user = f"{parts.username}@" if parts.username else ""
        self.url = parts._replace(netloc=f"{user}127.0.0.1:{self._listener.getsockname()[1]}").geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, when: When, mode: Mode) -> None:
        """Cut one connection, the first for which it is time."""
        with self._lock:
            self._cut = (when, mode)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """As if there were no database: nobody gets through for as long as the block lasts."""
        self._is_shut = True
        self._hang_up()
        try:
            yield
        finally:
            self._is_shut = False

    def close(self) -> None:
        """Hang up everywhere."""
        self._listener.close()
        self._hang_up()

    def _hang_up(self) -> None:
        for link in list(self._links):
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_shut:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            link = Link(client, server)
            self._links.append(link)
            for pump in (self._to_server, self._to_client):
                threading.Thread(target=_quietly, args=(pump, link), daemon=True).start()

    def _to_server(self, link: Link) -> None:
        while data := link.client.recv(_CHUNK):
            link.said += data
            if link.mode is None:
                link.mode = self._time_to_cut(link, data)
            if link.mode == "before":
                return
            link.server.sendall(data)

    def _to_client(self, link: Link) -> None:
        answer = b""
        while data := link.server.recv(_CHUNK):
            if link.mode is None:
                link.client.sendall(data)
                continue
            answer += data
            if answer[-6:-1] == _READY:
                if link.mode == "half":
                    link.client.sendall(answer[: len(answer) // 2])
                return

    def _time_to_cut(self, link: Link, data: bytes) -> Mode | None:
        with self._lock:
            if self._cut is None or not self._cut[0](link, data):
                return None
            mode = self._cut[1]
            self._cut = None
            self.cuts += 1
            return mode


def _quietly(pump: Callable[[Link], None], link: Link) -> None:
    try:
        with suppress(OSError):
            pump(link)
    finally:
        link.close()


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy in front of a database for as long as the block lasts."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
