"""Slashes that stand in names: `%2F` is a character of a name, and `/` parts an address."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_KEPT: Final = "\udc2f"
"""Half a character, which no address can hold: it keeps the place of a slash until the address is parted."""
_WRITTEN: Final = re.compile("%2f", re.IGNORECASE)


class Parted:
    """Restores escaped paths for the inner application. Servers unescape them before they can be split."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" in raw.lower():
            text = raw.partition(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": unquote(_WRITTEN.sub(_KEPT, text))}
        await self._app(scope, receive, send)


def read(scope: Scope) -> None:
    """Put the slashes back where an address has been parted."""
    if _KEPT in scope["path"]:
        scope["path"] = scope["path"].replace(_KEPT, "/")
        params: dict[str, str] = scope.get("path_params", {})
        scope["path_params"] = {name: value.replace(_KEPT, "/") for name, value in params.items()}
