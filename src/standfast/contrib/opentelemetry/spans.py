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
    """Makes a span of everything that it goes along with."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._tracer = api.get_tracer("standfast", tracer_provider=provider)

    def caller(self, trace: str) -> str:
        """The span that the caller is in, unless the call has a name of another kind."""
        return trace if _is_name(trace) else _written(api.get_current_span()) or trace

    def request(self, facts: RequestFacts) -> CurrentSpan | Caller:
        """Begin the span of a request, unless whoever serves the application has one already."""
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
        """Tell how long the work waited, and begin the span of the call."""
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
        # Its length is what counts; when it was is told by the clock of the database, which need not be this one.
        self._tracer.start_span("standfast claim", parent, attributes=told, start_time=now - max(0, waited)).end(now)
        span = self._tracer.start_span(
            f"standfast call {facts.handler}", parent, kind=SpanKind.CONSUMER, attributes=told
        )
        return CurrentSpan(span, parent, is_named=_is_name(facts.trace))


class CommandSpan:
    """A command on its way: from the moment it is handed in to the answer."""

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
        """The commit was the last thing that happened."""
        now = time.time_ns()
        inside = api.set_span_in_context(self._span, Context())
        self._tracer.start_span("standfast commit", inside, start_time=now - int(seconds * _NANO)).end(now)

    def ended(self, error: BaseException | None) -> None:
        """The caller is answered. A refusal is an answer, and no fault."""
        if isinstance(error, RejectedError):
            self._span.set_attribute("standfast.refusal", error.reason)
        elif error is not None:
            _fail(self._span, error)
        self._span.end()


class CurrentSpan:
    """A span that is the current one from now on, until it ends on the same thread or in the same task."""

    def __init__(self, span: Span, parent: Context, *, is_named: bool = False) -> None:
        self._span = span
        self._token: Token[Context] = contexts.attach(api.set_span_in_context(span, parent))
        self.trace = "" if is_named else _written(span)

    def ended(self, error: BaseException | None) -> None:
        """What it is about has come to its end."""
        contexts.detach(self._token)
        if error is not None:
            _fail(self._span, error)
        self._span.end()


class Caller:
    """The span of somebody else, who ends it."""

    def __init__(self, span: Span) -> None:
        self.trace = _written(span)

    def ended(self, error: BaseException | None) -> None:
        """Nothing is to be done."""


def _cause(trace: str) -> Context:
    """What a command follows from: what its trace says, if that is a span; else whoever is in one on this thread.

    A thread of the engine may be in a span, too, of whoever has started or drives it, and works for everybody.
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
    if _is_name(trace):  # It leads nowhere, but can be searched for.
        told["standfast.trace"] = trace
    return told


def _is_name(trace: str) -> bool:
    """Whether a trace is a name of the application's own, which is kept as it is, and no `traceparent`."""
    return bool(trace) and not _carrier(_read(trace))


def _fail(span: Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, type(error).__name__))


def _read(trace: str) -> Context:
    """What a stored trace stands for; nothing if it is no `traceparent`."""
    return _propagator.extract({_HEADER: trace}, Context())


def _written(span: Span) -> str:
    """A span as it is stored; empty if it is none."""
    return _carrier(api.set_span_in_context(span, Context()))


def _carrier(context: Context) -> str:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, context)
    return carrier.get(_HEADER, "")
