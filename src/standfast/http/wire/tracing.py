"""Request names in logs and traces: a W3C `traceparent` that continues the caller's, and a request id."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

import msgspec

_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-.*)?")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_LONGEST: Final = 512


class Trace(msgspec.Struct, frozen=True):
    """The names of one request."""

    trace_id: str
    span_id: str
    flags: str
    request_id: str
    caller: str = ""
    """The `traceparent` that the client sent, if it is sound."""

    @property
    def parent(self) -> str:
        """The parent of everything that follows from the request."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def trace_of(headers: Mapping[str, str]) -> Trace:
    """Return the trace of a request from its headers: the caller's trace if it is valid, with a new span."""
    given = headers.get("traceparent", "")
    found = _PARENT.fullmatch(given) if given and len(given) <= _LONGEST else None
    wanted = headers.get("x-request-id", "")
    drawn = secrets.token_hex(32)
    return Trace(
        trace_id=found[1] if found else drawn[:32],
        span_id=drawn[32:48],
        flags=found[2] if found else "00",
        request_id=wanted if wanted and _REQUEST_ID.fullmatch(wanted) else drawn[48:],
        caller=found[0] if found else "",
    )


def renamed(trace: Trace, parent: str) -> Trace:
    """Return the request under the `traceparent` of an interceptor."""
    if parent == trace.parent or _PARENT.fullmatch(parent) is None:
        return trace
    _, trace_id, span_id, flags = parent.split("-")[:4]
    return msgspec.structs.replace(trace, trace_id=trace_id, span_id=span_id, flags=flags)
