"""The landing page at `/` for browsers: product, readiness and links.

Programs get a 404 there, as at any other unknown path.

It is one application at one path, which a web UI can replace. It shows nothing of the engine's data, has no script, and
loads nothing from other hosts.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator
from html import escape
from importlib.metadata import version
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from standfast.http.requests.endpoint import Sent
from standfast.http.requests.server import Server
from standfast.http.routes.admin.health import is_ready
from standfast.http.routes.admin.platform import METRICS
from standfast.http.wire.tracing import trace_of

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;color:#222;background:#fff}"
    "h1{font-size:1.6rem}dt{font-weight:600;margin-top:1rem}dd{margin:0}code{background:#eee;padding:.1rem .3rem;border-radius:.2rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code{background:#333}a{color:#8cf}}"
)
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "vary": "accept",
}
_LOOKS: Final = frozenset({"GET", "HEAD"})
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_DATA: Final = frozenset({"application/json", "application/problem+json"})


class Front:
    """The address `/`."""

    def __init__(self, server: Server, nowhere: ASGIApp) -> None:
        self._server = server
        self._nowhere = nowhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        if request.method not in _LOOKS or not wants_page(request.headers.get("accept", "")):
            await self._nowhere(scope, receive, send)
            return
        page = HTMLResponse("\n".join(self._lines(request, is_well=await is_ready(self._server))), headers=_HEADERS)
        is_secure = self._server.options.is_secure(f"{scope.get('scheme')}://")
        await page(scope, receive, Sent(send, trace_of(request.headers), is_secure=is_secure))

    def _lines(self, request: Request, *, is_well: bool) -> Iterator[str]:
        url = request.url
        address = (
            self._server.options.public_address or f"{url.scheme}://{url.netloc}{request.scope.get('root_path', '')}"
        )
        yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Standfast</title><style>{_STYLE}</style></head><body>'
        yield "<h1>Standfast</h1><p>This is a server of Standfast, an engine for durable workflows. Clients use its HTTP API.</p><dl>"
        yield _entry("Version", escape(_version()))
        yield _entry("Ready", f"{'yes' if is_well else 'no: send requests to another server'} ({_link('readyz')})")
        yield _entry(
            "API",
            f"{_link('openapi.json')}, the OpenAPI document of every route",
        )
        if self._server.options.open_metrics:
            yield _entry("Metrics", f"{_link(METRICS.strip('/'))}, in the Prometheus text format")
        yield _entry("Authentication", "; ".join(self._ways()))
        yield _entry(
            "Command line",
            f"{_code(f'standfast list --server {address}')}, with the key in {_code('STANDFAST_API_KEY')}",
        )
        yield "</dl></body></html>"

    def _ways(self) -> Iterator[str]:
        if self._server.door.is_open:
            yield "off (development mode); only this machine can connect"
        for each in self._server.options.logins:
            yield _link(f"api/v1/session/login/{quote(each.name, safe='')}", f"with {each.label or each.name}")
        if not self._server.door.is_open:
            yield f"with an API key, in the header {_code('Authorization: Bearer sf_…')}; {_code('standfast keys create')} makes one"


@functools.cache
def _version() -> str:
    return version("standfast")


def wants_page(accept: str) -> bool:
    """Return whether the client prefers a page to data; a client that accepts anything is a program."""
    weights = dict(map(_weighed, accept.split(",")))
    pages = max(weights.get(each, 0.0) for each in _PAGES)
    return pages > 0 and pages >= max(weights.get(each, 0.0) for each in _DATA)


def _weighed(part: str) -> tuple[str, float]:
    """A media type of `Accept`, and how much it is wanted; not at all if that cannot be read."""
    name, *parameters = (each.strip().lower() for each in part.split(";"))
    said = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return name, float(said) if said.replace(".", "", 1).isdecimal() and said.isascii() else 0.0


def _entry(term: str, told: str) -> str:
    return f"<dt>{term}</dt><dd>{told}</dd>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _link(place: str, label: str = "") -> str:
    """A link that leads on from where the page is, wherever that is mounted."""
    return f'<a href="{escape(place)}">{escape(label or f"/{place}")}</a>'
