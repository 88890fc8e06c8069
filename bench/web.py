"""Programs that are measured from outside, over HTTP: they are started as a user starts them, and asked by clients that cost little themselves."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.callers import CALLERS, Answers

ROOT = Path(__file__).resolve().parent.parent
_PATIENCE_SECONDS = 60.0
_OK = 300
_UNKEPT = "PYTHONDONTWRITEBYTECODE"
_LIMITS = {"STANDFAST_SERVE_REQUESTS_PER_SECOND": "1000000", "STANDFAST_SERVE_BURST": "1000000"}


class Line:
    """A connection that stays open: one request at a time. A library for HTTP would take more of the machine than what it measures."""

    def __init__(self, address: str, key: str = "") -> None:
        self._host, _, port = address.removeprefix("http://").partition(":")
        self._port = int(port)
        self._head = f"host: {self._host}\r\n" + (f"authorization: Bearer {key}\r\n" if key else "")
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> Line:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        return self

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """The JSON that is answered; AssertionError for a refusal."""
        sent = b"" if body is None else msgspec.json.encode(body)
        head = f"{method} {path} HTTP/1.1\r\n{self._head}content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
        self._writer.write(head.encode() + sent)
        told = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = told.split("content-length: ")[1].split("\r\n")[0]
        answer = await self._reader.readexactly(int(length))
        assert int(told.split(" ")[1]) < _OK, f"{method} {path}: {told} {answer.decode()}"
        return msgspec.json.decode(answer)

    def close(self) -> None:
        """Let go of it."""
        self._writer.close()


class Stream(asyncio.BufferedProtocol):
    """A stream that is listened to. What comes is looked at where it was put: with so many who listen, copies would take more than those who work."""

    _room = bytearray(1 << 18)  # All of them are read by one thread, one after the other.
    _view = memoryview(_room)

    def __init__(self, heard: Callable[[bytearray, int], None]) -> None:
        self._heard = heard
        self._has_begun = False

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as asyncio calls it
        """Where the next piece is put."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """A piece is there, so long."""
        if not self._has_begun:
            self._has_begun = True
            assert int(self._room.split(b" ", 2)[1]) < _OK, bytes(self._view[:nbytes]).decode()
        self._heard(self._room, nbytes)


async def listen(address: str, key: str, path: str, heard: Callable[[bytearray, int], None]) -> asyncio.Transport:
    """Have what a stream brings looked at until the connection is closed."""
    host, _, port = address.removeprefix("http://").partition(":")
    line, _ = await asyncio.get_running_loop().create_connection(lambda: Stream(heard), host, int(port))
    line.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n".encode())
    return line


async def ask_all(lines: Sequence[Line], requests: Sequence[tuple[str, str, object]]) -> Answers:
    """Every request, one at a time on each line: when each began, and when its answer was there."""
    begun, ended, waiting = [0.0] * len(requests), [0.0] * len(requests), iter(enumerate(requests))

    async def client(line: Line) -> None:
        for number, request in waiting:
            begun[number] = time.perf_counter()
            await line.ask(*request)
            ended[number] = time.perf_counter()

    await asyncio.gather(*map(client, lines))
    return Answers(begun, ended)


async def opened(address: str, key: str = "", count: int = CALLERS) -> list[Line]:
    """So many connections."""
    return [await Line(address, key).open() for _ in range(count)]


@contextmanager
def server(url: str) -> Iterator[str]:
    """The address of `standfast server` on a database, in a process of its own."""
    command = [sys.executable, "-m", "standfast.cli", "server", "--database", url, "--port", "0"]
    with program(command, "serving at ", _LIMITS) as told:
        yield told


@contextmanager
def worker(url: str, app: str) -> Iterator[None]:
    """`standfast worker` on a database, in a process of its own."""
    with program([sys.executable, "-m", "standfast.cli", "worker", "--database", url, "--app", app], "working on "):
        yield


@contextmanager
def program(command: Sequence[str], word: str, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """A program, as long as the block lasts; what it says behind a word on standard error."""
    # Where nothing that was compiled is kept, every program would compile all of it anew before it begins.
    others = {name: value for name, value in os.environ.items() if not name.startswith(("STANDFAST_", _UNKEPT))}
    environment = {**others, **(more or {})}
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if word in line:
                    break
            else:
                raise AssertionError(f"{' '.join(command)} ended: {''.join(said)}")
            threading.Thread(target=process.stderr.read, daemon=True).start()  # Nobody stops because nobody reads.
            yield line.partition(word)[2].strip()
        finally:
            process.terminate()
            try:
                process.wait(timeout=_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
