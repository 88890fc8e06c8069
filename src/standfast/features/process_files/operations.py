"""Names by which steps of processes reach the operations of an invoker; the engine loads these without the compiler."""

from __future__ import annotations

from typing import Final

SDK: Final = "sdk"
"""The invoker that calls a handler of the application."""
OWN_INVOKERS: Final = (SDK, "python")
"""Its names."""
ARGUMENTS: Final = "arguments"
"""In the metadata of a call: the arguments that its invoker gets besides the input."""
RESPONSE_HEADERS: Final = "response_headers"
"""In the metadata of a call: the headers of an answer that its mapping reads, in lower case."""


def operation_handler(invoker: str, operation: str) -> str:
    """Return the name of the handler by which an invoker makes a call."""
    return f"{invoker}:{operation}"
