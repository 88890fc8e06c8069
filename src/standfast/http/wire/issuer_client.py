"""HTTP client for token issuers: keys, metadata and tokens. Responses are small, and redirects are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from standfast.outbound.connections import Deadline, OutboundConnection

_PATIENCE_SECONDS: Final = 5.0
"""Time limit of a connection, and of the whole call, so that a slow server cannot stretch it."""
_MOST_BYTES: Final = 262_144
_HERE: Final = frozenset({"127.0.0.1", "localhost"})


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: an issuer must not send the server elsewhere."""

    def redirect_request(  # noqa: PLR0917 - the signature of the class it replaces
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow none."""


class _Lines:
    """The connections of one call, on which no wait exceeds the time left."""

    def __init__(self, seconds: float) -> None:
        self.deadline = Deadline(seconds)
        self._open: list[OutboundConnection] = []

    def bounded(self, connection: Any) -> OutboundConnection:
        """Replace the socket of an `http.client` connection by a bounded one."""
        line = OutboundConnection(connection.sock, self.deadline)
        self._open.append(line)
        return line

    def end(self) -> None:
        """Close them."""
        for each in self._open:
            each.end()


class _Plain(HTTPConnection):
    """A connection of a call."""

    def __init__(self, host: str, *, lines: _Lines, **more: Any) -> None:
        super().__init__(host, **more)
        self._lines = lines

    def connect(self) -> None:
        """Have a line."""
        super().connect()
        self.sock: Any = self._lines.bounded(self)


class _Secure(HTTPSConnection):
    """The same by https; that it is encrypted takes no longer than a wait may."""

    def __init__(self, host: str, *, lines: _Lines, **more: Any) -> None:
        super().__init__(host, **more)
        self._lines = lines

    def connect(self) -> None:
        """Have a line."""
        super().connect()
        self.sock: Any = self._lines.bounded(self)


class _PlainWay(HTTPHandler):
    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self._lines = lines

    def http_open(self, req: Request) -> HTTPResponse:
        """Ask."""
        return self.do_open(partial(_Plain, lines=self._lines), req)


class _SecureWay(HTTPSHandler):
    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self._lines = lines

    def https_open(self, req: Request) -> HTTPResponse:
        """Ask."""
        return self.do_open(partial(_Secure, lines=self._lines), req)


def is_trusted(address: str) -> bool:
    """Return whether a URL is trustworthy: https, or this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    is_named = host is not None and "@" not in parts.netloc  # A name before it may look like a host.
    return is_named and (parts.scheme == "https" or (parts.scheme == "http" and host in _HERE))


async def fetched(
    address: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """Fetch a URL, with a form if one is given; OSError or ValueError if the response is unusable."""
    return await asyncio.to_thread(fetch, address, form, headers)


def fetch(address: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    """Fetch a URL without blocking the event loop."""
    if not is_trusted(address):
        raise ValueError(f"{address!r} is neither https nor on this machine")
    body = None if form is None else urlencode(form).encode()
    request = Request(address, data=body, headers={"accept": "application/json", **(headers or {})})  # noqa: S310 - checked above
    lines = _Lines(_PATIENCE_SECONDS)
    opener = build_opener(_NoRedirects, _PlainWay(lines), _SecureWay(lines))
    try:
        with opener.open(request, timeout=_PATIENCE_SECONDS) as answer:
            data: bytes = answer.read(_MOST_BYTES + 1)
    except HTTPError as error:
        error.close()  # An unread error body holds the connection, and guessed codes could use up all of them.
        raise
    except HTTPException as error:
        raise ValueError(f"what answers there does not speak HTTP: {error!r}") from error
    finally:
        lines.end()
    if len(data) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    return data
