"""The options of a step, in the words of the builder, and what they become in the graph."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Literal, TypedDict, TypeVar, cast

from standfast.errors import ConfigurationError
from standfast.graph.definition import CAPABILITY_MARK, Function, required_by
from standfast.graph.model import HandlerCall, Plain, RetryRule

Duration = timedelta | float
"""A timedelta, or seconds."""

F = TypeVar("F", bound=Function)

DEFAULT_CALLS = 3

SAME_OPTIONS = (("attempts", "max_retries"), ("once", "no_idempotent"))
"""Options that have two names."""

NO_OPTIONS = {
    "retries": "say `attempts`: calls in all, the first one included, so that attempts=3 is what retries=2 means elsewhere",
}
"""Words for options that are none because they mean different things to different people, and what to say instead."""

_NAME = "__standfast_handler__"
_LAMBDA = "<lambda>"


class StepOptions(TypedDict, total=False):
    """How a step is called."""

    attempts: int
    """Calls in all, the first one included."""
    max_retries: int
    """Another name for `attempts`."""
    start_after: Duration
    """Wait before the first call."""
    delay: Duration
    """Wait before the second call."""
    backoff: Literal["fixed", "linear", "exponential"]
    factor: float
    """Growth of the exponential wait."""
    cap: Duration
    """Longest wait between two calls."""
    jitter: float
    """Share of the wait that is added at random, from 0 to 1."""
    timeout: Duration
    """A call that takes longer has failed."""
    once: bool
    """At most once: one call, never repeated, not even after a crash."""
    no_idempotent: bool
    """Another name for `once`."""
    transactional: bool
    """Called inside the commit that records it, with the open connection."""
    priority: int
    """0 to 100; higher is called earlier."""
    metadata: dict[str, Plain]
    """Anything; the handler sees it."""
    capability: str
    """What the starter of the run must be allowed to do for the step to be entered; that of the handler, if it requires one."""


def handler(name: str, *, capability: str = "") -> Callable[[F], F]:
    """Decorator: the name under which workers know a handler. Default: the name of the function.

    With a `capability` the handler is called only for runs whose starter has it.
    """

    def mark(function: F) -> F:
        try:
            setattr(function, _NAME, name)
            setattr(function, CAPABILITY_MARK, capability)
        except AttributeError:  # A bound method, or something built in.
            raise ConfigurationError(
                f"{function!r} cannot be marked with a name; give its steps the text {name!r} and register it with engine.handle({name!r}, …)"
            ) from None
        return function

    return mark


def handler_name(function: Function | str, *, default: str = "") -> str:
    """The name under which workers know a handler: the one it was given, its own, or `default` if it has none."""
    if isinstance(function, str):
        return function
    named = getattr(function, _NAME, None) or getattr(function, "name", None) or getattr(function, "__name__", None)
    if named is None or named == _LAMBDA:
        return default or type(function).__name__
    return str(named)


def work_of(function: Function | str, step: str, options: StepOptions) -> HandlerCall:
    """The call that a step makes."""
    once = options.get("once", False) or options.get("no_idempotent", False)
    calls = options.get("attempts", options.get("max_retries", 1 if once else DEFAULT_CALLS))
    timeout = options.get("timeout")
    return HandlerCall(
        handler=handler_name(function, default=step),
        retry=RetryRule(
            max_calls=calls,
            delay_ms=milliseconds(options.get("delay", 0)),
            backoff=options.get("backoff", "fixed"),
            factor_percent=_percent(options.get("factor", 2.0)),
            cap_ms=milliseconds(options.get("cap", 300)),
            jitter_percent=_percent(options.get("jitter", 0.0)),
        ),
        once=once,
        transactional=options.get("transactional", False),
        timeout_ms=None if timeout is None else milliseconds(timeout),
        start_after_ms=milliseconds(options.get("start_after", 0)),
        capability=options.get("capability", required_by(function)),
    )


def _percent(share: float) -> int:
    """A share as the graph keeps it; what is no number is left as it is, for the checks of the graph to find."""
    try:
        return round(share * 100)
    except (TypeError, ValueError, OverflowError):
        return cast("int", share)


def milliseconds(duration: Duration) -> int:
    """A duration as the graph keeps it."""
    try:
        return round(1000 * (duration.total_seconds() if isinstance(duration, timedelta) else duration))
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(f"{duration!r} is no duration; give a timedelta or a number of seconds") from None
