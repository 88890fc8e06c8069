"""Parsed and validated URLs of requests."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import msgspec

_PORTS: Final = {"http": 80, "https": 443}
_UNSOUND: Final = re.compile(r"[\x00-\x20\x7f\\]")
_LONGEST: Final = 8_192


class Url(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a URL."""

    scheme: str
    host: str
    """The host as it is resolved: in ASCII, without brackets."""
    port: int
    target: str
    """Path and query."""

    @property
    def name(self) -> str:
        """Return the URL for messages, without the query, which may hold a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return the origin: equal for two URLs of one server."""
        return self.scheme, self.host, self.port


def place_of(url: str) -> Url:
    """Parse a URL; ValueError describes the mistake, without repeating the URL."""
    if len(url) > _LONGEST:
        raise ValueError(f"it is longer than {_LONGEST} characters")
    if _UNSOUND.search(url):
        raise ValueError("it holds white space, a backslash or a control character")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise ValueError("it does not begin with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("it holds a user name or password; give it as a secret")
    if not parts.hostname:
        raise ValueError("it names no host")
    try:
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
    except UnicodeError:
        raise ValueError("its host is no name") from None
    port = parts.port or _PORTS[parts.scheme]  # The property raises ValueError for an invalid port.
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=-._~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=-._~?[]")
    return Url(scheme=parts.scheme, host=host, port=port, target=target)


def redirected(place: Url, location: str) -> Url:
    """Return the URL of a redirect."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    return place_of(urljoin(f"{place.scheme}://{host}:{place.port}{place.target}", location))
