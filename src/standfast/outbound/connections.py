"""Connections to a URL: resolve the name, check the addresses, and connect to one that passed."""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from standfast.engine.common.handlers import Fail, Retry
from standfast.outbound.addresses import AddressAllowance, address_of, why_forbidden
from standfast.outbound.urls import Url

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, as text."""

_CHUNK: Final = 65_536


class Deadline:
    """The time limit of a whole call. Every wait is bounded by the time left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds

    def left(self, at_most: float | None = None) -> float:
        """Return the seconds left; TimeoutError if there are none."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"it took longer than {self.seconds:g} s")
        return left if at_most is None else min(left, at_most)


class OutboundConnection:
    """A connected socket on which no wait exceeds the deadline. To `http.client` it looks like a socket."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline
        self.has_ended = False
        """Whether the reader wanted more than there was."""

    def sendall(self, data: ReadableBuffer) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(self._deadline.left())
            rest = rest[self._socket.send(rest[:_CHUNK]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file to read the response from."""
        return io.BufferedReader(_Incoming(self._receive))

    def close(self) -> None:
        """Do nothing: the response may not have been read yet. `end` closes the connection."""

    def end(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self, buffer: WriteableBuffer) -> int:
        self._socket.settimeout(self._deadline.left())
        count = self._socket.recv_into(buffer)
        self.has_ended = self.has_ended or not count
        return count


class _Incoming(io.RawIOBase):
    """The received bytes as a file."""

    def __init__(self, receive: Callable[[WriteableBuffer], int]) -> None:
        super().__init__()
        self._receive = receive

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._receive(buffer)


def resolved(host: str, port: int) -> list[str]:
    """Resolve a host by the system's resolver, in its order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def connected(
    place: Url,
    deadline: Deadline,
    *,
    allowed: AddressAllowance,
    connect_seconds: float,
    tls: Callable[[], ssl.SSLContext],
    resolve: Resolve = resolved,
) -> OutboundConnection:
    """Connect to a URL. Raises `Fail` if none of its addresses may be reached, `Retry` if none answers."""
    addresses = _permitted(place, lambda: _in_time(resolve, place, deadline.left(connect_seconds)), allowed)
    failure: OSError | None = None
    for address in addresses:
        try:
            return OutboundConnection(_opened(place, address, lambda: deadline.left(connect_seconds), tls), deadline)
        except OSError as error:
            failure = error
    raise Retry(f"{place.name} cannot be reached: {_told(failure)}") from failure


def _in_time(resolve: Resolve, place: Url, seconds: float) -> Sequence[str]:
    """Resolve a host within the deadline, or raise TimeoutError.

    A thread of its own waits, because the system's resolver has no time limit.
    """
    if _is_address(place.host):
        return resolve(place.host, place.port)
    answer: Future[Sequence[str]] = Future()

    def ask() -> None:
        try:
            answer.set_result(resolve(place.host, place.port))
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            answer.set_exception(error)

    threading.Thread(target=ask, name=f"resolving {place.host}", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        raise TimeoutError(f"its name was not resolved within {seconds:.3g} s") from None


def _is_address(host: str) -> bool:
    try:
        address_of(host)
    except ValueError:
        return False
    return True


def _permitted(place: Url, resolve: Callable[[], Sequence[str]], allowed: AddressAllowance) -> list[str]:
    try:
        found = resolve()
    except TimeoutError:
        raise
    except (OSError, UnicodeError) as error:
        raise Retry(f"the name {place.host!r} cannot be resolved: {_told(error)}") from error
    if allowed.covers_name(place.host):
        return list(found)
    kinds = {each: why_forbidden(address_of(each)) for each in found}
    permitted = [each for each, why in kinds.items() if not why or allowed.covers(address_of(each))]
    if found and not permitted:
        told = f"{place.name} has {next(iter(kinds.values()))} address, which is not reached unless it is allowed"
        raise Fail(f"{told}; if it is meant, add the host or its network to outbound_allow in the settings")
    return permitted


def _opened(place: Url, address: str, left: Callable[[], float], tls: Callable[[], ssl.SSLContext]) -> socket.socket:
    plain = socket.create_connection((address, place.port), timeout=left())
    if place.scheme == "http":
        return plain
    try:
        plain.settimeout(left())
        return tls().wrap_socket(plain, server_hostname=place.host)
    except BaseException:
        plain.close()
        raise


def _told(error: BaseException | None) -> str:
    return "it has no address" if error is None else f"{type(error).__name__}: {error}"
