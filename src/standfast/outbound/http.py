"""HTTP client for one request, with limits of time and size, and only to allowed addresses.

Errors are those of handlers: `Fail` where a retry cannot help, `Retry` where it may.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import zlib
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Final

import msgspec

from standfast.engine.common.handlers import Fail, Retry
from standfast.outbound.addresses import NOTHING_BESIDES, AddressAllowance
from standfast.outbound.connections import Deadline, OutboundConnection, Resolve, connected, resolved
from standfast.outbound.urls import Url, redirected

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_OWN: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect", "te"}
)
"""Headers that frame a request; callers may not set them."""
_CHUNK: Final = 65_536
_MOST_HASHED: Final = 64 * 1024 * 1024
"""Bytes of a body that are read only for its hash."""
_GZIP: Final = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER: Final = 47
"""Has zlib detect gzip or deflate."""

_SUCCESS: Final = range(200, 300)
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_SEE_OTHER: Final = 303
_SAME_REQUEST: Final = frozenset({307, 308})
_FOR_ALL: Final = frozenset({"accept", "accept-language", "user-agent"})
"""Headers that are safe for another server. All others may be secret, and are dropped on a redirect."""
_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses of client errors that are worth a retry; so are all server errors."""
_SERVER_FAULT: Final = 500
_LONGEST_PAUSE: Final = 3600
"""Longest `Retry-After` that is followed, in seconds."""


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a request."""

    connect_seconds: float = 5.0
    """Time to connect, TLS included."""
    total_seconds: float = 30.0
    """Time until the whole response is read."""
    request_bytes: int = 1_000_000
    response_bytes: int = 1_000_000
    reads_body: bool = True
    """Whether the caller wants the body of the response, and not only its status and headers."""
    cuts_body: bool = False
    """Whether a success counts whatever its body is: a body that is too long or cannot be unpacked is cut."""
    redirects: int = 0
    """Number of redirects to follow."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    method: str
    place: Url
    headers: dict[str, str] = {}
    body: bytes | None = None


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a truncated body."""

    size: int
    """Bytes that were read."""
    sha256: str
    """The hash of these bytes."""
    is_whole: bool
    """Whether these bytes are the whole body."""


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    """By name in lower case; repeated headers are joined by commas."""
    body: bytes
    place: Url
    """The URL of the response, after all redirects."""
    cut: Cut | None = None
    """Set if `body` is the beginning of a longer one, or of one that became unreadable."""

    @property
    def is_success(self) -> bool:
        """Return whether the status is a success."""
        return self.status in _SUCCESS


class Outbound:
    """The HTTP client of one engine."""

    def __init__(
        self,
        allowed: AddressAllowance = NOTHING_BESIDES,
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = resolved,
    ) -> None:
        self._allowed = allowed
        self._tls = tls
        self._resolve = resolve

    def extended(self, allow: Iterable[str], tls: ssl.SSLContext | None) -> Outbound:
        """Return a client that allows more addresses, or trusts other certificates."""
        return Outbound(self._allowed | AddressAllowance.of(allow), tls=tls or self._tls, resolve=self._resolve)

    def send(self, request: HttpRequest, limits: HttpLimits) -> HttpResponse:
        """Send a request and read the whole response. A redirect that is not to be followed is an ordinary response."""
        _check(request, limits)
        deadline = Deadline(limits.total_seconds)
        for _ in range(limits.redirects):
            answer = self._exchanged(request, limits, deadline)
            if answer.status not in _MOVED:
                return answer
            request = _moved(request, answer)
        return self._exchanged(request, limits, deadline)

    def _exchanged(self, request: HttpRequest, limits: HttpLimits, deadline: Deadline) -> HttpResponse:
        place = request.place
        try:
            line = connected(
                place,
                deadline,
                allowed=self._allowed,
                connect_seconds=limits.connect_seconds,
                tls=self._trusted,
                resolve=self._resolve,
            )
            try:
                with _asked(request, line) as response:
                    body, cut = _read(response, limits, place) if limits.reads_body else (b"", None)
                    headers = _headers(response)
                    return HttpResponse(status=response.status, headers=headers, body=body, place=place, cut=cut)
            finally:
                line.end()
        except TimeoutError as error:
            raise Retry(f"{place.name} has not answered in time: {error}") from error
        except (OSError, HTTPException) as error:
            raise Retry(f"{place.name} has not answered: {type(error).__name__} {error}") from error

    def _trusted(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def judge(answer: HttpResponse, *, detail: str = "") -> None:
    """Raise `Retry` or `Fail` for a response that is no success."""
    if answer.is_success:
        return
    told = f"{answer.place.name} has answered {answer.status}{detail}"
    if answer.status in _MOVED:
        told += "; redirections are not followed unless they are allowed"
    if answer.status < _SERVER_FAULT and answer.status not in _AGAIN:
        raise Fail(told)
    asked = answer.headers.get("retry-after", "")
    is_number = asked.isascii() and asked.isdecimal()
    raise Retry(told, after=min(int(asked[:9]), _LONGEST_PAUSE) if is_number else None)


def check_header(name: str, value: str) -> None:
    """Raise `Fail` for a header that could be read as another one, or that callers may not set."""
    if not _TOKEN.fullmatch(name) or name.lower() in _OWN:
        raise Fail(f"{name!r} is no header that can be set")
    if not _VALUE.fullmatch(value) or value != value.strip():
        raise Fail(f"the value of the header {name!r} holds a character that cannot stand there")


def _check(request: HttpRequest, limits: HttpLimits) -> None:
    for name, value in request.headers.items():
        check_header(name, value)
    size = len(request.body or b"")
    if size > limits.request_bytes:
        told = f"the request to {request.place.name} has {size} bytes, and the limit is {limits.request_bytes}"
        raise Fail(f"{told}; send less, or raise the limit")


def _asked(request: HttpRequest, line: OutboundConnection) -> HTTPResponse:
    place = request.place
    connection = HTTPConnection(place.host, place.port)
    connection.sock = line  # The socket is connected already, to a checked address.
    connection.putrequest(request.method, place.target, skip_host=True, skip_accept_encoding=True)
    sent = {"Host": place.name, "Accept-Encoding": "identity", "Connection": "close", **request.headers}
    for name, value in sent.items():
        connection.putheader(name, value)
    if request.body is not None:
        connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body)
    response = connection.getresponse()
    if line.has_ended:  # The library takes the end of the connection for the end of the headers.
        raise IncompleteRead(b"")
    return response


def _headers(response: HTTPResponse) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in response.getheaders():
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def _read(response: HTTPResponse, limits: HttpLimits, place: Url) -> tuple[bytes, Cut | None]:
    """Read the body, unpacked, up to the limit.

    The body of an error status is cut, because the status counts in any case.
    """
    limit, kept = limits.response_bytes, bytearray()
    may_cut = limits.cuts_body or response.status not in _SUCCESS
    if not may_cut and response.length is not None and response.length > limit:
        raise _too_large(place, limit)
    pieces = _pieces(response, place)
    try:
        for piece in pieces:
            kept += piece
            if len(kept) > limit:
                if not may_cut:
                    raise _too_large(place, limit)
                return _cut(kept, pieces, limit, most=_MOST_HASHED if limits.cuts_body else limit)
    except Fail:
        if not may_cut:
            raise
        return bytes(kept), Cut(size=len(kept), sha256=hashlib.sha256(kept).hexdigest(), is_whole=False)
    return bytes(kept), None


def _cut(kept: bytearray, pieces: Iterator[bytes], limit: int, *, most: int) -> tuple[bytes, Cut]:
    """Keep the beginning of a body, and read on for the hash of the whole.

    The request was answered, so errors here do not fail it.
    """
    digest, size, is_whole = hashlib.sha256(kept), len(kept), False
    try:
        while size <= most and not is_whole:
            piece = next(pieces, None)
            if piece is None:
                is_whole = True
            else:
                digest.update(piece)
                size += len(piece)
    except (OSError, HTTPException, Fail, Retry):
        pass
    return bytes(kept[:limit]), Cut(size=size, sha256=digest.hexdigest(), is_whole=is_whole)


def _pieces(response: HTTPResponse, place: Url) -> Iterator[bytes]:
    """Iterate over the body in pieces of bounded size, unpacked."""
    encoding = (response.getheader("content-encoding") or "identity").strip().lower()
    if encoding not in {"identity", *_GZIP}:
        raise Fail(f"{place.name} has packed its answer as {encoding[:50]!r}, which was not asked for")
    unpack = zlib.decompressobj(_EITHER) if encoding in _GZIP else None
    has_begun = False
    while chunk := response.read1(_CHUNK):
        has_begun = True
        if unpack is None:
            yield chunk
            continue
        while True:
            piece = _unpacked(unpack, chunk, _CHUNK, place)
            yield piece
            chunk = unpack.unconsumed_tail
            if not chunk and len(piece) < _CHUNK:  # No compressed data is left either.
                break
        if unpack.unused_data:  # Data that is not unpacked would never reach a limit.
            raise Fail(f"{place.name} goes on after the end of its packed answer")
    if response.length or (unpack is not None and has_begun and not unpack.eof):
        raise Retry(f"{place.name} has broken off in the middle of its answer")


def _unpacked(unpack: zlib._Decompress, chunk: bytes, room: int, place: Url) -> bytes:
    try:
        return unpack.decompress(chunk, room)
    except zlib.error:
        raise Fail(f"{place.name} says that its answer is packed, and it is not") from None


def _too_large(place: Url, limit: int) -> Fail:
    return Fail(f"the answer of {place.name} has more than {limit} bytes; have it answer less, or raise the limit")


def _moved(request: HttpRequest, answer: HttpResponse) -> HttpRequest:
    """Build the request of a redirect, to be checked like the first."""
    before = request.place
    try:
        place = redirected(before, answer.headers.get("location", ""))
    except ValueError as error:
        raise Fail(f"{before.name} leads on to a place that is none: {error}") from None
    if before.scheme == "https" and place.scheme == "http":
        raise Fail(f"{before.name} leads on to {place.name} without encryption, which is not followed")
    headers: Mapping[str, str] = request.headers
    if place.origin != before.origin:
        if answer.status in _SAME_REQUEST and request.body is not None:
            raise Fail(
                f"{before.name} leads on to {place.name}, and what was meant for the one is not sent to the other"
            )
        headers = {name: value for name, value in headers.items() if name.lower() in _FOR_ALL}
    if answer.status in _SAME_REQUEST or request.method in {"GET", "HEAD"}:
        return msgspec.structs.replace(request, place=place, headers=dict(headers))
    if answer.status != _SEE_OTHER:
        raise Fail(
            f"{before.name} has answered {answer.status} to a {request.method}, which is not sent anew elsewhere"
        )
    kept = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    return msgspec.structs.replace(request, method="GET", place=place, headers=kept, body=None)
