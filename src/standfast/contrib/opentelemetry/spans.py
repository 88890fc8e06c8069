"""The spans of commands, commits, waits and calls."""

from __future__ import annotations

import time
from contextvars import Token

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from standfast.app.logs import step_call
from standfast.engine.common.interceptors import CallFacts, CommandFacts, Interceptor, RequestFacts
from standfast.errors import RejectedError

_HEADER = "traceparent"
_NANO = 1_000_000_000
_propagator = TraceContextTextMapPropagator()


class Spans(Interceptor):
    """Creates the spans of an engine."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._tracer = api.get_tracer("standfast", tracer_provider=provider)

    def caller(self, trace: str) -> str:
        """Return the caller's span, unless the call's trace is of another kind."""
        return trace if _is_name(trace) else _written(api.get_current_span()) or trace

    def request(self, facts: RequestFacts) -> CurrentSpan | Caller:
        """Begin the span of a request, unless the server's instrumentation has begun one."""
        if api.get_current_span().get_span_context().is_valid:
            return Caller(api.get_current_span())
        told: dict[str, AttributeValue] = {
            "http.request.method": facts.method,
            "http.route": facts.route,
            "standfast.request": facts.request_id,
        }
        parent = _read(facts.caller)
        span = self._tracer.start_span(f"{facts.method} {facts.route}", parent, kind=SpanKind.SERVER, attributes=told)
        return CurrentSpan(span, parent)

    def command(self, facts: CommandFacts) -> CommandSpan:
        """Begin the span of a command."""
        return CommandSpan(self._tracer, facts)

    def call(self, facts: CallFacts) -> CurrentSpan:
        """Record the time in the queue, and begin the span of the call."""
        parent = _read(facts.trace)
        called = step_call(facts)
        told: dict[str, AttributeValue] = {
            **_attributes(facts.definition, facts.tenant, str(facts.instance), facts.trace),
            "standfast.handler": facts.handler,
            "standfast.step": called.step,
            "standfast.effect": facts.number,
            "standfast.attempt": called.attempt,
        }
        now = time.time_ns()
        waited = int((facts.claimed_at - facts.created_at).total_seconds() * _NANO)
        # Its length counts. Its time comes from the database's clock, which may differ from this one.
        self._tracer.start_span("standfast claim", parent, attributes=told, start_time=now - max(0, waited)).end(now)
        span = self._tracer.start_span(
            f"standfast call {facts.handler}", parent, kind=SpanKind.CONSUMER, attributes=told
        )
        return CurrentSpan(span, parent, is_named=_is_name(facts.trace))


class CommandSpan:
    """The span of a command, from submission to the reply."""

    def __init__(self, tracer: Tracer, facts: CommandFacts) -> None:
        self._tracer = tracer
        parent = _cause(facts.trace)
        name = "" if facts.instance is None else str(facts.instance)
        told = _attributes(facts.definition, facts.tenant, name, facts.trace)
        told |= {"standfast.command": facts.command, "standfast.key": facts.key, "enduser.id": facts.actor}
        self._span = tracer.start_span(
            f"standfast command {facts.command}", parent, kind=SpanKind.PRODUCER, attributes=told
        )
        self.trace = "" if _is_name(facts.trace) else _written(self._span)

    def committed(self, seconds: float) -> None:
        """Record the commit, which has just ended."""
        now = time.time_ns()
        inside = api.set_span_in_context(self._span, Context())
        self._tracer.start_span("standfast commit", inside, start_time=now - int(seconds * _NANO)).end(now)

    def ended(self, error: BaseException | None) -> None:
        """End the span with the reply. A rejection is a reply, and no error."""
        if isinstance(error, RejectedError):
            self._span.set_attribute("standfast.refusal", error.reason)
        elif error is not None:
            _fail(self._span, error)
        self._span.end()


class CurrentSpan:
    """A span that is current until it ends on the same thread or in the same task."""

    def __init__(self, span: Span, parent: Context, *, is_named: bool = False) -> None:
        self._span = span
        self._token: Token[Context] = contexts.attach(api.set_span_in_context(span, parent))
        self.trace = "" if is_named else _written(span)

    def ended(self, error: BaseException | None) -> None:
        """End the span."""
        contexts.detach(self._token)
        if error is not None:
            _fail(self._span, error)
        self._span.end()


class Caller:
    """A span of another owner, who ends it."""

    def __init__(self, span: Span) -> None:
        self.trace = _written(span)

    def ended(self, error: BaseException | None) -> None:
        """Do nothing."""


def _cause(trace: str) -> Context:
    """Return the parent of a command's span: the span of its stored trace, or the current span of this thread.

    An engine thread may be in a span of the code that started or drives it, which is not the parent of other callers'
    work.
    """
    stored = _read(trace)
    here = api.get_current_span().get_span_context()
    told = api.get_current_span(stored).get_span_context()
    if not told.is_valid or (told.trace_id, told.span_id) == (here.trace_id, here.span_id):
        return contexts.get_current() if here.is_valid else stored
    return stored


def _attributes(definition: str, tenant: str, instance: str, trace: str) -> dict[str, AttributeValue]:
    told: dict[str, AttributeValue] = {
        "standfast.definition": definition,
        "standfast.tenant": tenant,
        "standfast.instance": instance,
    }
    if _is_name(trace):  # An application's trace name has no parent, but can be searched for.
        told["standfast.trace"] = trace
    return told


def _is_name(trace: str) -> bool:
    """Return whether a trace is the application's own name, which is kept, and no `traceparent`."""
    return bool(trace) and not _carrier(_read(trace))


def _fail(span: Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, type(error).__name__))


def _read(trace: str) -> Context:
    """Parse a stored trace; empty if it is no `traceparent`."""
    return _propagator.extract({_HEADER: trace}, Context())


def _written(span: Span) -> str:
    """Format a span for storage; empty if it is invalid."""
    return _carrier(api.set_span_in_context(span, Context()))


def _carrier(context: Context) -> str:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, context)
    return carrier.get(_HEADER, "")
