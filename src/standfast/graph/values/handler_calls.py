"""Handler calls in a graph: name, retries and timeouts."""

from __future__ import annotations

from typing import Literal

import msgspec


class RetryRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Retry rule of a call."""

    max_calls: int = 3
    """Total number of calls, including the first."""
    delay_ms: int = 0
    backoff: Literal["fixed", "linear", "exponential"] = "fixed"
    factor_percent: int = 200
    cap_ms: int = 300_000
    jitter_percent: int = 0
    is_default: bool = False
    """Whether the definition has no retry rule. The engine's setting `retry` then applies instead of these values."""


class HandlerCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A handler call."""

    handler: str
    """Name of the handler."""
    retry: RetryRule = RetryRule()
    once: bool = False
    """At most once: never repeated, not even after a crash."""
    transactional: bool = False
    """Called inside the commit that records it."""
    timeout_ms: int | None = None
    start_after_ms: int = 0
    """Delay of the first call."""
    capability: str = ""
    """Capability that the starter of the run needs for entering the step. A handler that requires one is called by
    no other step."""
