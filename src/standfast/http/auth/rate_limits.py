"""Rate limits and stream limits by client."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from standfast.http.wire.problems import EdgeCode, EdgeError

_SIX: Final = 6
_NETWORK_BITS: Final = 64
_AGAIN_SECONDS: Final = 1
"""`Retry-After` of a refused client."""


def network_of(address: str) -> str:
    """Return the network that counts as one client: the IPv4 address, or the IPv6 network that one host can own."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == _SIX and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)


def check_rate(seconds: float, what: str) -> None:
    """Refuse a request above the rate limit."""
    if seconds > 0:
        headers = {"retry-after": str(math.ceil(seconds))}
        raise EdgeError(EdgeCode.TOO_MANY_REQUESTS, f"{what} has made too many requests", headers=headers)


class StreamSlots:
    """Limits how many streams are open: by credential, and in total."""

    def __init__(self, each: int, most: int, what: str) -> None:
        self._each = each
        self._all = most
        self._what = what
        self._open: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Return the number of open slots."""
        return self._open.total()

    @contextmanager
    def place(self, credential: str) -> Iterator[None]:
        """Hold a slot for the duration of the block."""
        if self._open[credential] >= self._each or self.open >= self._all:
            told = f"at most {self._each} {self._what} of one credential are open at once"
            raise EdgeError(EdgeCode.TOO_MANY_STREAMS, told, headers={"retry-after": str(_AGAIN_SECONDS)})
        self._open[credential] += 1
        try:
            yield
        finally:
            self._open[credential] -= 1
            self._open += Counter()  # Forgets those that have none.
