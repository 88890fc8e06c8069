"""The options of a step, in the words of the builder, and what they become in the graph."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Literal, TypedDict

from holdfast.machine.graph import Plain, Retry, Work

Duration = timedelta | float
"""A timedelta, or seconds."""

Function = Callable[..., object]

_NAME = "__holdfast_handler__"


class StepOptions(TypedDict, total=False):
    """How a step is called."""

    retries: int
    """Calls in all, the first one included."""
    delay: Duration
    """Wait before the second call."""
    backoff: Literal["fixed", "linear", "exponential"]
    cap: Duration
    """Longest wait between two calls."""
    timeout: Duration
    """A call that takes longer has failed."""
    once: bool
    """At most once: one call, never repeated, not even after a crash."""
    transactional: bool
    """Called inside the commit that records it, with the open connection."""
    priority: int
    """0 to 100; higher is called earlier."""
    metadata: dict[str, Plain]
    """Anything; the handler sees it."""


def handler(name: str) -> Callable[[Function], Function]:
    """Decorator: the name under which workers know a handler. Default: the name of the function."""

    def mark(function: Function) -> Function:
        setattr(function, _NAME, name)
        return function

    return mark


def handler_name(function: Function | str) -> str:
    """The name under which workers know a handler."""
    if isinstance(function, str):
        return function
    named = getattr(function, _NAME, None) or getattr(function, "name", None)
    return str(named or getattr(function, "__name__", type(function).__name__))


def work_of(function: Function | str, options: StepOptions, *, default_calls: int = 3) -> Work:
    """The call that a step makes."""
    once = options.get("once", False)
    retry = Retry(
        max_calls=1 if once else options.get("retries", default_calls),
        delay_ms=milliseconds(options.get("delay", 0)),
        backoff=options.get("backoff", "fixed"),
        cap_ms=milliseconds(options.get("cap", 300)),
    )
    timeout = options.get("timeout")
    return Work(
        handler=handler_name(function),
        retry=retry,
        once=once,
        transactional=options.get("transactional", False),
        timeout_ms=None if timeout is None else milliseconds(timeout),
    )


def milliseconds(duration: Duration) -> int:
    """A duration as the graph keeps it."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)
