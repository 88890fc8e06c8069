"""Traces end to end, seen by the real SDK of OpenTelemetry with an exporter in memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap

import httpx
import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from standfast import Actor, ConfigurationError, RejectedError, Rejection, RequestContext, Saga, StepContext
from standfast.contrib.opentelemetry import trace
from standfast.http import create_app
from support.engines import Live, Place
from support.samples import Act, Do, Puppet, act


class Seen:
    """A provider, and the spans that it was given."""

    def __init__(self, *, is_sampled: bool = True) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider() if is_sampled else TracerProvider(sampler=ALWAYS_OFF)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.all if each.name == name]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.named(name)
        return found


def is_below(child: ReadableSpan, parent: ReadableSpan) -> bool:
    """Whether a span is the child of another one."""
    assert child.parent is not None
    assert parent.context is not None
    return (child.parent.span_id, child.parent.trace_id) == (parent.context.span_id, parent.context.trace_id)


def reserve() -> dict[str, object]:
    """The first step."""
    return {"r": 1}


@pytest.mark.row("E-811", "E-812", "E-957", "E-963", "E-383", "E-500", "G-15")
def test_one_trace_leads_from_the_caller_through_commits_and_handlers_of_several_processes(place: Place) -> None:
    """Caller, command, commit, claim, call, next command: each is below the one that led to it, and what is stored and handed on names them."""
    client, worker = Seen(), Seen()
    traces: list[str] = []

    def charge(context: StepContext) -> dict[str, object]:
        traces.append(context.trace)
        with api.get_tracer("bank", tracer_provider=worker.provider).start_as_current_span("at the bank"):
            return {"c": 2}

    order = Saga("order").step("reserve", reserve).step("charge", charge).build()
    shop, other = trace(place.engine(), client.provider), trace(place.engine().register(order), worker.provider)
    with client.provider.get_tracer("shop").start_as_current_span("the shop") as caller:
        run = shop.start("order", {"sku": "lamp"})
    other.drain()

    asked = client.one("standfast command StartWorkflow")
    assert is_below(asked, client.one("the shop"))
    assert is_below(client.one("standfast commit"), asked)
    reserved, charged = worker.one("standfast call reserve"), worker.one("standfast call charge")
    assert is_below(reserved, asked)
    assert is_below(worker.named("standfast claim")[0], asked)
    first, second = worker.named("standfast command CompleteStep")
    assert is_below(first, reserved)
    assert is_below(charged, first)
    assert is_below(worker.one("at the bank"), charged)
    assert is_below(second, charged)
    trace_id = f"{caller.get_span_context().trace_id:032x}"
    assert {f"{each.context.trace_id:032x}" for each in [*client.all, *worker.all] if each.context} == {trace_id}
    assert all(each.trace.split("-")[1] == trace_id for each in run.history())
    assert charged.context is not None
    assert [each.split("-")[1:3] for each in traces] == [[trace_id, f"{charged.context.span_id:016x}"]]
    assert charged.attributes is not None
    assert charged.attributes["standfast.step"] == "charge"
    assert charged.attributes["standfast.instance"] == str(run.id)


def test_whoever_drives_an_engine_inside_a_span_does_not_draw_the_traces_of_others_into_it(place: Place) -> None:
    """What follows from an answer, a timer or a message goes on below what it follows from, whatever span the thread that does it is in.

    So do threads whose instrumentation has them begin in the span of whoever has started them, such as the first request of a process.
    """
    seen = Seen()
    saga = Saga("order").step("reserve", reserve).wait("pause", 60).step("again", reserve).build()
    engine = trace(place.engine().register(saga), seen.provider)
    tracer = seen.provider.get_tracer("shop")
    with tracer.start_as_current_span("the shop") as caller:
        engine.start("order", {})
    with tracer.start_as_current_span("the minder") as minder:
        engine.advance(minutes=2)
    ours = [each for each in seen.all if each.name.startswith("standfast ")]
    assert len(seen.named("standfast call reserve")) == 2
    assert {each.context.trace_id for each in ours if each.context} == {caller.get_span_context().trace_id}
    assert minder.get_span_context().trace_id != caller.get_span_context().trace_id


def test_what_is_accepted_for_later_and_what_follows_by_a_timer_goes_on_from_the_caller(place: Place) -> None:
    """A message in the inbox keeps the caller's span, also if another process decides it."""
    seen = Seen()
    engine = trace(place.engine().register(Puppet(act), lambda context, effect: None), seen.provider)
    with seen.provider.get_tracer("shop").start_as_current_span("the shop"):
        engine.deciders.submit(Puppet, Do("p-1", "x"))
    engine.drain()
    assert is_below(seen.one("standfast command Do"), seen.one("the shop"))
    assert is_below(seen.one("standfast call puppet"), seen.one("standfast command Do"))


def test_what_a_handler_raises_is_told_by_its_span_and_a_refusal_is_no_fault(place: Place) -> None:
    """A failed call has the exception and the status; a command that was refused says by which code, and is as it should be."""
    seen = Seen()

    def fails(context: object, effect: Act) -> None:
        raise LookupError("no such card")

    def choose(state: object, command: Do, moment: object) -> object:
        return Rejection(code="not_today", message="no") if command.what == "no" else act(state, command, moment)  # type: ignore[arg-type]

    engine = trace(place.engine().register(Puppet(choose), fails), seen.provider)  # type: ignore[arg-type]
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    with pytest.raises(RejectedError):
        engine.deciders.execute(Puppet, Do("p-1", "no"))
    engine.execute_next()
    failed = seen.one("standfast call puppet")
    assert failed.status.status_code is StatusCode.ERROR
    assert [each.name for each in failed.events] == ["exception"]
    refused = seen.named("standfast command Do")[1]
    assert refused.attributes is not None
    assert (refused.attributes["standfast.refusal"], refused.status.status_code) == ("not_today", StatusCode.UNSET)


def test_a_name_of_the_applications_own_stays_what_it_is(place: Place) -> None:
    """A trace that is no `traceparent` is stored as it was given, and the spans tell it."""
    seen = Seen()
    engine = trace(place.engine().register(Puppet(act), lambda context, effect: None), seen.provider)
    engine.acting(RequestContext(actor=Actor(id="ann"), trace="ticket 4711")).deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert [each.trace for each in engine.deciders.history(Puppet, "p-1")] == ["ticket 4711"]
    assert {(each.attributes or {}).get("standfast.trace") for each in seen.all if each.name != "standfast commit"} == {
        "ticket 4711"
    }


def test_what_is_not_sampled_is_not_told_and_still_leads_on(place: Place) -> None:
    """The stored trace says that nobody looks, so that no process further on does."""
    seen = Seen(is_sampled=False)
    engine = trace(place.engine().register(Puppet(act), lambda context, effect: None), seen.provider)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert seen.all == []
    (event,) = engine.deciders.history(Puppet, "p-1")
    assert int(event.trace.rpartition("-")[2], 16) & 1 == 0  # The bit that says that somebody looks.


def test_coroutines_and_transactions_have_the_span_of_their_call(live: Live) -> None:
    """On the event loop and in a transaction of the engine too the current span is that of the call, and none is left behind."""
    seen = Seen()
    inside: list[str] = []

    async def wait() -> dict[str, object]:
        inside.append(api.get_current_span().name)  # type: ignore[attr-defined]
        return {}

    def write(context: object) -> dict[str, object]:
        inside.append(api.get_current_span().name)  # type: ignore[attr-defined]
        return {}

    saga = Saga("order").step("wait", wait).step("write", write, transactional=True).build()
    engine = trace(live.engine().register(saga), seen.provider)
    engine.start_worker()
    engine.start("order", {}).result(timeout=30)
    assert inside == ["standfast call wait", "standfast call write"]
    engine.stop()
    ends = seen.named("standfast command CompleteStep")
    calls = [seen.one("standfast call wait"), seen.one("standfast call write")]
    assert [sum(is_below(each, call) for each in ends) for call in calls] == [1, 1]


def test_a_request_over_http_goes_on_from_its_client(live: Live) -> None:
    """It has a span below the client's, or below that of whoever serves the application; the answer names it, and what is started is below it."""
    seen = Seen()
    engine = trace(live.engine().register(Saga("order").step("reserve", reserve).build()), seen.provider)
    key = engine.keys.create("a client", actor="ann", capabilities=["*"]).secret
    app = create_app(engine)
    sent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"

    async def ask(**headers: str) -> httpx.Response:
        given = {"authorization": f"Bearer {key}", **headers}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://here", headers=given
        ) as client:
            return await client.post("/api/v1/executions", json={"definition": "order"})

    async def within() -> httpx.Response:
        with seen.provider.get_tracer("web").start_as_current_span("the middleware"):
            return await ask()

    answers = [asyncio.run(ask(traceparent=sent)), asyncio.run(ask()), asyncio.run(within())]
    assert [each.status_code for each in answers] == [201, 201, 201]
    first, second = seen.named("POST /api/v1/executions")
    commands = seen.named("standfast command StartWorkflow")
    assert [is_below(*pair) for pair in zip(commands, (first, second, seen.one("the middleware")), strict=True)] == [
        True
    ] * 3
    assert first.parent is not None
    assert (f"{first.parent.trace_id:032x}", f"{first.parent.span_id:016x}") == ("a" * 32, "b" * 16)
    assert second.parent is None
    for answer, span in zip(answers, (first, second, seen.one("the middleware")), strict=True):
        assert span.context is not None
        assert answer.headers["traceparent"].split("-")[1:3] == [
            f"{span.context.trace_id:032x}",
            f"{span.context.span_id:016x}",
        ]


@pytest.mark.row("EH-18")
def test_without_the_library_nothing_is_done() -> None:
    """A program that asks for traces runs where OpenTelemetry is not installed, and an engine that nobody traces makes nothing for it."""
    program = """
        import sys
        sys.modules["opentelemetry"] = None
        sys.modules["sentry_sdk"] = None
        from standfast import Engine, Saga
        from standfast.contrib.opentelemetry import trace
        from standfast.contrib.sentry import report
        engine = Engine("sqlite://", threads=False).register(Saga("s").step("a", lambda: {}).build())
        assert report(trace(engine)) is engine
        run = engine.start("s", {})
        engine.drain()
        assert run.describe().status == "completed"
        assert not engine.service.shared.telemetry.companions.is_any
    """
    subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(program)], check=True, timeout=60)


def test_a_companion_that_raises_does_no_harm(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """What goes along with work never keeps it from being done."""
    from standfast.engine.common.interceptors import CallFacts, CommandFacts, Interceptor

    class Broken(Interceptor):
        def command(self, facts: CommandFacts) -> None:
            raise ZeroDivisionError

        def call(self, facts: CallFacts) -> None:
            raise ZeroDivisionError

    engine = place.engine().register(Puppet(act), lambda context, effect: None).accompany(Broken())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
    assert [each.message for each in caplog.records].count("interceptor_failed") == 2
    with pytest.raises(ConfigurationError, match="derives from Interceptor"):
        engine.accompany(lambda facts: None)  # type: ignore[arg-type]
