"""OpenTelemetry traces from the caller through all work that follows, across processes and days.

A command is a span, below the caller's span or below its cause. Its `traceparent` is stored with its events and
effects. The commit is a child span. Work of a worker has two more spans: the time in the queue, and the handler call,
which is the current span there. Commands that follow from the handler's result continue below the call.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from standfast.app.engine import Engine

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["trace"]

E = TypeVar("E", bound=Engine)

_log = logging.getLogger("standfast.contrib")


def trace(engine: E, provider: TracerProvider | None = None) -> E:
    """Trace an engine with this provider or the global one; without OpenTelemetry it does nothing."""
    try:
        from standfast.contrib.opentelemetry.spans import Spans
    except ImportError as error:
        _log.info("tracing_disabled reason=opentelemetry_missing error=%r", error)
        return engine
    return engine.accompany(Spans(provider))
