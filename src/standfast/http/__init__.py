"""The HTTP API of an engine, and its security. It needs the extra `standfast[server]`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from standfast.http.application import create_app
    from standfast.http.requests.endpoint import answer_error
    from standfast.http.serving import serve
    from standfast.http.shutdown import end_streams, ending
    from standfast.http.wire.options import HttpOptions, InboundHook, Issuer, LoginProvider

__all__ = [
    "HttpOptions",
    "InboundHook",
    "Issuer",
    "LoginProvider",
    "answer_error",
    "create_app",
    "end_streams",
    "ending",
    "serve",
]
_HOMES: Final = {
    "application": "create_app",
    "requests.endpoint": "answer_error",
    "serving": "serve",
    "shutdown": "end_streams ending",
    "wire.options": "HttpOptions InboundHook Issuer LoginProvider",
}
"""Loaded on first use: programs without the server need the HTTP form of errors and metrics, too."""
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # Type checkers see every name above, and that there are no others.

    def __getattr__(name: str) -> object:
        """Import a name of the package on first use."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        return found


def __dir__() -> list[str]:
    """Return all names, including those that are not imported yet."""
    return sorted({*globals(), *__all__})
