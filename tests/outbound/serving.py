"""A server of the test's own: it answers with the very bytes that a test gives, however wrong they are."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple


class Received(NamedTuple):
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> object:
        """The body as JSON."""
        return json.loads(self.body)


Line = socket.socket
Answering = Callable[[Line, Received], None]


def answer(
    body: object = None, *, status: int = 200, headers: dict[str, str] | None = None, raw: bytes | None = None
) -> bytes:
    """A sound answer: JSON, or the bytes that are given."""
    data = json.dumps(body).encode() if raw is None else raw
    lines = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
    head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return head.encode() + b"\r\n" + data


class Server:
    """One server. `answers` are given one after the other, the last one again and again: bytes, or what is done with the line."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.received: list[Received] = []
        self.answers: list[bytes | Answering] = [answer({"id": "i-1"})]
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.closing = threading.Event()
        self.port = self._listening.getsockname()[1]
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.port}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def close(self) -> None:
        """Stop; whoever still answers is told by `closing`."""
        self.closing.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in [self._accepting, *self._threads]:
            each.join()

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(line,)))
            self._threads[-1].start()

    def _serve(self, line: Line) -> None:
        with suppress(OSError, ValueError), line if self._context is None else self._encrypted(line) as spoken:
            self._talk(spoken)

    def _encrypted(self, line: Line) -> Line:
        assert self._context is not None
        try:
            return self._context.wrap_socket(line, server_side=True)
        except OSError:
            line.close()
            raise

    def _talk(self, line: Line) -> None:
        request = _read(line)
        self.received.append(request)
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(said):
            said(line, request)
        else:
            line.sendall(said)
        with suppress(OSError):
            line.shutdown(socket.SHUT_WR)
            line.recv(1)  # Until the other side has read all of it, and closes.


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for a while."""
    server = Server(context)
    try:
        yield server
    finally:
        server.close()


def _read(line: Line) -> Received:
    with line.makefile("rb") as incoming:
        method, target, _ = incoming.readline().decode().split(" ")
        headers: dict[str, str] = {}
        while (text := incoming.readline().decode().strip()) != "":
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = incoming.read(int(headers.get("content-length", 0)))
    return Received(method, target, headers, body)
