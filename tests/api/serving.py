"""A real server in a thread, for what is about the wire."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from standfast import Engine
from standfast.http import HttpOptions
from standfast.http.serving import configuration
from support.waiting import eventually


@contextmanager
def served(engine: Engine, options: HttpOptions | None = None, **more: Any) -> Iterator[str]:
    """The address of a server, as long as the block lasts."""
    yield from _running(uvicorn.Server(configuration(engine, options, port=0, **more)))


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The same for any application."""
    yield from _running(uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off")))


def _running(server: uvicorn.Server) -> Iterator[str]:
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started)
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(20)
        assert not thread.is_alive()


def spoken(address: str, *parts: bytes) -> bytes:
    """What a server answers to bytes as they are, until it closes the connection."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as line:
        for part in parts:
            line.sendall(part)
        heard = b""
        while chunk := line.recv(65536):
            heard += chunk
            if b"\r\n\r\n" in heard and b"connection: close" not in heard.lower():
                return heard
    return heard
