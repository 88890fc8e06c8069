"""Calls of handlers as a graph has them: which one, how often, how long."""

from __future__ import annotations

from typing import Literal

import msgspec


class RetryRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How often work is called, and how long to wait in between."""

    max_calls: int = 3
    """Calls in all, the first one included."""
    delay_ms: int = 0
    backoff: Literal["fixed", "linear", "exponential"] = "fixed"
    factor_percent: int = 200
    cap_ms: int = 300_000
    jitter_percent: int = 0
    is_default: bool = False
    """Whether the definition says nothing of it: then the engine's setting `retry` counts, and not these values."""


class HandlerCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A call of a handler."""

    handler: str
    """Name under which a worker has it."""
    retry: RetryRule = RetryRule()
    once: bool = False
    """At most once: never called again, not even after a crash."""
    transactional: bool = False
    """Called inside the commit that records it."""
    timeout_ms: int | None = None
    start_after_ms: int = 0
    """How long the first call waits."""
    capability: str = ""
    """What the starter of the run must be allowed to do for the step to be entered; a handler that requires one is called by no other step."""
