"""Traces of OpenTelemetry from the caller to whatever follows, however many processes and days lie in between.

A command is a span, below the span of whoever calls, or below what it follows from; the trace that is stored with its events and effects is
that span's `traceparent`. The commit is a span inside of it. Work that a worker takes leads to two more: how long it waited, and the call of
its handler, in which the span is the current one. What the handler's answer leads to goes on below that.
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
    """Trace what an engine does, by this provider or by the one that the program has set; without OpenTelemetry nothing is done."""
    try:
        from standfast.contrib.opentelemetry.spans import Spans
    except ImportError as error:
        _log.info("no traces: OpenTelemetry is not installed (%s)", error)
        return engine
    return engine.accompany(Spans(provider))
