"""Cookies of browser sessions, and CSRF tokens."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers

SESSION: Final = "standfast"
LOGIN: Final = "standfast-login"
CSRF: Final = "x-csrf-token"
"""The header in which a page says the token of its session."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_NEAR: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site for a page of this server, and for an address typed by the user."""


def named(name: str, *, is_secure: bool) -> str:
    """Return the name of a cookie. Over https the prefix `__Host-` has browsers accept it from this host only."""
    return f"__Host-{name}" if is_secure else name


def kept(name: str, value: str, *, is_secure: bool, lasts: timedelta, is_strict: bool = True) -> str:
    """The header that has a browser keep a cookie. No script reads it, and no page of another site has it sent."""
    parts = [
        f"{named(name, is_secure=is_secure)}={value}",
        "Path=/",
        f"Max-Age={int(lasts.total_seconds())}",
        "HttpOnly",
    ]
    return "; ".join([*parts, f"SameSite={'Strict' if is_strict else 'Lax'}", *(["Secure"] if is_secure else [])])


def dropped(name: str, *, is_secure: bool, is_strict: bool = True) -> str:
    """The header that has a browser forget a cookie."""
    return kept(name, "", is_secure=is_secure, lasts=timedelta(0), is_strict=is_strict)


def shown(headers: Headers, name: str, *, is_secure: bool) -> str:
    """The value of a cookie that came with a request; empty unless there is exactly one."""
    wanted = named(name, is_secure=is_secure)
    found = [value for key, value in _pairs(headers) if key == wanted]
    return found[0] if len(found) == 1 else ""


def csrf_token(secret: str) -> str:
    """Return the CSRF token of a session. A page that cannot read the session's responses cannot know it."""
    return urlsafe_b64encode(sha256(b"csrf\0" + secret.encode()).digest()).decode().rstrip("=")


def is_own_page(headers: Headers, method: str, secret: str) -> bool:
    """Whether a request with a cookie was made by a page of this server, and not by one of another site."""
    if not is_near(headers):
        return False
    said = headers.get(CSRF, "")
    return method in _SAFE or hmac.compare_digest(said.encode(), csrf_token(secret).encode())


def is_near(headers: Headers) -> bool:
    """Whether nothing tells of a page of another site: browsers say of every request where it comes from, other programs say nothing."""
    origin = headers.get("origin", "")
    is_here = not origin or origin.partition("://")[2] == headers.get("host", "")
    return is_here and headers.get("sec-fetch-site", "same-origin") in _NEAR


def _pairs(headers: Headers) -> Iterator[tuple[str, str]]:
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            yield key, value
