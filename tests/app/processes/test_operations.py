"""What steps of processes call: handlers, operations of OpenAPI documents on a real server, and invokers of others."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.processes.acting import published
from outbound.serving import Line, Received, Server, answer, serving
from standfast import (
    Actor,
    ApiDocument,
    ConfigurationError,
    Definition,
    Engine,
    Fail,
    Invocation,
    Invoker,
    OpenApi,
    Settings,
    load_processes,
)
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import beat
from support.installing import install_invoker
from support.waiting import arrives, eventually

BILLING: dict[str, object] = {
    "openapi": "3.1.0",
    "info": {"title": "Billing", "version": "1"},
    "security": [{"key": []}],
    "paths": {
        "/orders/{order}/invoices": {
            "post": {
                "operationId": "createInvoice",
                "parameters": [{"name": "order", "in": "path", "required": True}],
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                "responses": {"201": {"description": "made"}},
            }
        }
    },
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
}
PROCESS = """
domain: billing
workflows:
  - id: billing.invoice
    steps:
      - id: bill
        type: system
        operation: {invoker: openapi, name: billing.createInvoice}
        input: {order: workflow.order_id, total: workflow.total, tenant: context.tenant_id}
        output: {invoice: response.body.id, status: response.status, tag: response.headers.etag, via: "response.headers['x-via']"}
        retry: {attempts: 3, delay: 1m}
      - {id: done, type: terminal, outcome: billed}
      - {id: refused, type: terminal, outcome: refused}
    transitions:
      - {from: bill, event: completed, to: done}
"""
REFUSED = "      - {from: bill, event: error, to: refused}\n"
GIVEN: dict[str, object] = {"order_id": "o/1", "total": 5}
INVOICED = answer({"id": "i-1", "secret": "not kept"}, status=201, headers={"ETag": "e-1", "Set-Cookie": "not=kept"})
KEY = "billing-key-1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The billing service."""
    monkeypatch.setenv("BILLING_KEY", KEY)
    with serving() as made:
        made.answers = [INVOICED]
        yield made


def billing(engine: ManualEngine, server: Server, text: str = PROCESS) -> InstanceId:
    """A process that calls the service, as far as it comes."""
    api = ApiDocument("billing", BILLING, server=server.url, secrets={"key": "env:BILLING_KEY"})
    for definition in load_processes(text):
        engine.register(definition)
    engine.invoker("openapi", OpenApi(api))
    started = engine.processes.start("billing.invoice", GIVEN)
    engine.drain()
    return started.id


ALLOWED = Settings(outbound_allow=("127.0.0.1",))


@pytest.mark.row("P-082", "P-083", "P-084", "P-086", "P-088")
def test_a_step_calls_an_operation_of_a_document(place: Place, server: Server) -> None:
    """What the mapping gives is sent, and what the mapping names of status, headers and body is kept; nothing else is, anywhere."""
    engine = place.engine(ALLOWED)
    instance = billing(engine, server)
    seen = engine.processes.get(instance).instance
    assert (seen.status, seen.outcome) == ("completed", "billed")
    assert seen.state == {**GIVEN, "invoice": "i-1", "status": 201, "tag": "e-1", "via": None}
    (request,) = server.received
    assert (request.method, request.target) == ("POST", "/orders/o%2F1/invoices")
    assert request.data == {"total": 5, "tenant": "default"}
    assert request.headers["x-key"] == KEY
    told = f"{engine.run(instance).history()} {engine.run(instance).steps()}"
    assert "kept" not in told
    assert KEY not in told


@pytest.mark.row("P-098")
def test_every_attempt_has_the_key_of_the_first(place: Place, server: Server) -> None:
    """A service that was busy, or hung up, is asked again by the rule of the step, or when it wants, under the same idempotency key."""
    server.answers = [
        answer({}, status=503, headers={"Retry-After": "300"}),
        lambda line, _request: line.close(),
        INVOICED,
    ]
    engine = place.engine(ALLOWED)
    instance = billing(engine, server)
    engine.advance(seconds=299)
    assert len(server.received) == 1
    engine.advance(seconds=1)
    assert len(server.received) == 2
    engine.advance(minutes=1)
    assert engine.processes.get(instance).instance.outcome == "billed"
    keys = [each.headers["idempotency-key"] for each in server.received]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    other = billing_again(engine)
    assert engine.processes.get(other).instance.outcome == "billed"
    assert server.received[-1].headers["idempotency-key"] not in keys


def billing_again(engine: ManualEngine) -> InstanceId:
    """Another instance of the same process."""
    started = engine.processes.start("billing.invoice", GIVEN)
    engine.drain()
    return started.id


@pytest.mark.row("P-091", "P-092", "P-093", "C-25", "G-22")
@pytest.mark.parametrize("has_way", [True, False])
def test_a_final_answer_is_an_error_of_the_step(place: Place, server: Server, *, has_way: bool) -> None:
    """It is not tried again: the way for errors is taken, or the instance is suspended; the error tells the answer, without the secret."""
    server.answers = [answer({"title": f"{KEY} may not"}, status=403)]
    engine = place.engine(ALLOWED)
    instance = billing(engine, server, PROCESS + REFUSED if has_way else PROCESS)
    seen = engine.processes.get(instance).instance
    assert (seen.status, seen.outcome) == (("completed", "refused") if has_way else ("suspended", ""))
    assert len(server.received) == 1
    error = str(seen.state["_last_error"])
    assert "has answered 403" in error
    assert "*** may not" in error
    assert KEY not in f"{error} {engine.run(instance).history()}"


@pytest.mark.row("P-039", "P-093")
def test_a_suspended_call_is_made_again_when_somebody_resumes_it(place: Place, server: Server) -> None:
    """Under the same key, and the error is gone when it succeeds."""
    server.answers = [answer({}, status=404), INVOICED]
    engine = place.engine(ALLOWED)
    instance = billing(engine, server)
    engine.processes.resume(instance)
    engine.drain()
    seen = engine.processes.get(instance).instance
    assert (seen.outcome, seen.state.get("_last_error")) == ("billed", None)
    assert len({each.headers["idempotency-key"] for each in server.received}) == 1


@pytest.mark.row("C-26", "EC-09")
def test_no_transaction_is_open_while_a_service_is_asked(place: Place, server: Server) -> None:
    """While it answers, another process writes, and sees that the step was entered: that is stored before the call is made."""
    other = place.engine()
    published(other)
    seen: list[str] = []

    def answering(line: Line, _request: Received) -> None:
        seen.extend(each.workflow_id for each in other.processes.list(status="active").items)
        other.processes.start("orders.approval", {"order_id": "x", "total": 1})
        line.sendall(INVOICED)

    server.answers = [answering]
    engine = place.engine(ALLOWED)
    instance = billing(engine, server)
    assert engine.processes.get(instance).instance.outcome == "billed"
    assert seen == ["billing.invoice"]
    assert [each.workflow_id for each in engine.processes.list(status="active").items] == ["orders.approval"]


def test_an_address_that_the_settings_do_not_allow_is_not_called(place: Place, server: Server) -> None:
    """The step fails for good, and says what to do."""
    engine = place.engine()
    instance = billing(engine, server)
    seen = engine.processes.get(instance).instance
    assert seen.status == "suspended"
    assert "add the host or its network to outbound_allow" in str(seen.state["_last_error"])
    assert not server.received


def test_an_answer_of_a_person_may_lead_to_a_call(place: Place, server: Server) -> None:
    """An approval whose operation is that of a document: called once it is answered, before it is left."""
    asked = PROCESS.replace("type: system", "type: approval").replace("event: completed", "event: approved")
    engine = place.engine(ALLOWED)
    instance = billing(engine, server, asked)
    assert not server.received
    engine.processes.advance(instance, "approved")
    engine.drain()
    seen = engine.processes.get(instance).instance
    assert (seen.outcome, seen.state["invoice"], seen.state["tag"]) == ("billed", "i-1", "e-1")


# -- other invokers


class Recorder(Invoker):
    """Notes what it is asked to do."""

    def __init__(self, *operations: str) -> None:
        self.made: list[Invocation] = []
        self._operations = operations

    def operations(self) -> Iterable[str]:
        return self._operations

    def invoke(self, invocation: Invocation) -> object:
        self.made.append(invocation)
        if invocation.input.get("fails"):
            raise Fail("it cannot be")
        return {"said": f"{invocation.operation} done"}


CALLING = """
domain: calls
workflows:
  - id: calls.one
    steps:
      - id: call
        type: system
        operation: OPERATION
        input: {x: workflow.x}
        output: {said: response.said}
        timeout: 30s
      - {id: done, type: terminal}
    transitions:
      - {from: call, event: completed, to: done}
"""


def calling(operation: str) -> list[Definition]:
    """A process that calls one thing."""
    return load_processes(CALLING.replace("OPERATION", operation))


def said(engine: ManualEngine) -> object:
    """What a run of that process keeps."""
    started = engine.acting(Actor(id="ann")).processes.start("calls.one", {"x": 1})
    engine.drain()
    return engine.processes.get(started.id).instance.state.get("said")


@pytest.mark.row("P-083", "P-162")
def test_an_engine_is_made_of_its_parts(place: Place) -> None:
    """Store, settings, invokers and capabilities are given to it; an invoker is told what is called with what, by whom, and until when."""
    soap = Recorder("Orders.Submit")
    with ManualEngine(store=place.store, clock=place.clock, seed=99, is_alone=False, invokers={"soap": soap}) as engine:
        for definition in calling("{invoker: soap, name: Orders.Submit, arguments: {version: 2}}"):
            engine.register(definition)
        assert said(engine) == "Orders.Submit done"
    (made,) = soap.made
    assert (made.operation, made.input, made.arguments) == ("Orders.Submit", {"x": 1}, {"version": 2})
    assert (made.tenant, made.workflow, made.step, made.attempt) == ("default", "calls.one", "call", 1)
    assert (made.actor.id, made.time_limit, made.response_headers) == ("ann", 30.0, ())
    assert str(made.instance) in made.idempotency_key


@pytest.mark.row("P-085")
@pytest.mark.parametrize(
    "operation",
    ["orders.say", "{name: orders.say}", "{invoker: sdk, name: orders.say}", "{invoker: python, name: orders.say}"],
)
def test_handlers_of_the_application_have_an_invoker_of_two_names(place: Place, operation: str) -> None:
    """`python`, or `sdk`; or none, since it is the usual one. All of them make the same graph."""
    engine = place.engine()
    (definition,) = calling(operation)
    (plain,) = calling("orders.say")
    assert definition.graph.hash == plain.graph.hash
    engine.register(definition).handle("orders.say", lambda x: {"said": x})
    assert said(engine) == 1


def test_work_of_an_invoker_waits_for_a_process_that_has_it(place: Place) -> None:
    """One without it leaves the call to others."""
    definitions = calling("{invoker: soap, name: submit}")
    without, having = place.engine(), place.engine().invoker("soap", Recorder("submit"))
    for definition in definitions:
        without.register(definition)
    assert said(without) is None
    having.drain()
    (found,) = having.processes.list(status="completed").items
    assert having.processes.get(found.id).instance.state["said"] == "submit done"


@pytest.mark.parametrize(
    ("operation", "remedy"),
    [
        ("{invoker: soap, name: submit}", "an invoker 'soap' that has the operation 'submit'"),
        ("orders.say", "handle('orders.say', …)"),
    ],
)
def test_what_nobody_can_call_is_told_with_how_to_bring_it(place: Place, operation: str, remedy: str) -> None:
    """In the words of whoever writes the application, not by the inner name of the call."""
    engine = place.engine().handle("other", lambda: None)
    for definition in calling(operation):
        engine.register(definition)
    assert said(engine) is None
    beat(engine)
    (found,) = engine.processes.list(status="active").items
    (reason,) = engine.run(found.id).why().reasons
    assert (reason.kind, remedy in reason.remedy) == ("no_handler", True)


@pytest.mark.parametrize(
    ("name", "invoker", "why"),
    [
        ("", Recorder("a"), "is not a non-empty text"),
        ("sdk", Recorder("a"), "engine's own invoker.*engine.handle"),
        ("python", Recorder("a"), "engine's own invoker"),
        ("$x", Recorder("a"), "cannot be the name"),
        ("a:b", Recorder("a"), "cannot be the name"),
        ("soap", Recorder, "is a class; give an object"),
        ("soap", print, "give an object of a class that is an Invoker"),
        ("soap", Recorder("x" * 2000), "longer than"),
        ("twice", Recorder("a"), "already an invoker 'twice'"),
    ],
)
def test_an_invoker_that_cannot_be_is_refused(name: str, invoker: Invoker, why: str) -> None:
    """With what to do instead."""
    with ManualEngine(invokers={"twice": Recorder("b")}) as engine, pytest.raises(ConfigurationError, match=why):
        engine.invoker(name, invoker)


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that is really installed, in a folder of its own."""
    install_invoker(tmp_path, "soap")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_installed")
def test_an_installed_distribution_brings_an_invoker_along(place: Place) -> None:
    """It is loaded if the settings name it, also those of the environment; nothing that is merely installed is run."""
    engine = place.engine(Settings.from_environment({"STANDFAST_INVOKERS": "soap"}))
    for definition in calling("{invoker: soap, name: submit}"):
        engine.register(definition)
    assert said(engine) == "soap for default"
    assert said(place.engine()) is None


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sopa", "no installed distribution has the invoker 'sopa'.*installed are: broken, soap, wrong"),
        ("broken", "cannot be made: RuntimeError no licence"),
        ("wrong", "soap_for_tests:wrong.*give an object of a class that is an Invoker"),
    ],
)
def test_an_invoker_that_is_not_there_is_told_when_the_engine_opens(name: str, why: str) -> None:
    """A worker that could not do its work does not begin it."""
    with pytest.raises(ConfigurationError, match=why):
        Engine("sqlite://", settings=Settings(invokers=(name,)))


@pytest.mark.row("P-089")
def test_a_person_after_a_call_is_waited_for(place: Place, server: Server) -> None:
    """The automatic steps end there: the instance is active, at the step that asks."""
    asking = PROCESS.replace("{id: refused, type: terminal, outcome: refused}", "{id: check, type: approval}").replace(
        "event: completed, to: done", "event: completed, to: check"
    )
    engine = place.engine(ALLOWED)
    instance = billing(engine, server, asking + "      - {from: check, event: approved, to: done}\n")
    seen = engine.processes.get(instance).instance
    assert (seen.status, seen.current_step, seen.state["invoice"]) == ("active", "check", "i-1")
    engine.advance(timedelta(hours=1))
    assert engine.processes.get(instance).instance.current_step == "check"


@pytest.mark.row("C-41", "P-076", "EC-21")
def test_automatic_steps_are_done_in_the_call_or_left_to_workers(live: Live) -> None:
    """A call waits for them; one that has no patience is told how things stand, and they are done all the same."""
    gate = threading.Event()

    def say(x: int) -> dict[str, int]:
        arrives(gate)
        return {"said": x}

    engine = live.engine().handle("orders.say", say)
    for definition in calling("orders.say"):
        engine.register(definition)
    with engine:
        started = engine.processes.start("calls.one", {"x": 1}, patience=0)
        assert (started.status, started.current_step) == ("active", "call")
        gate.set()
        eventually(lambda: engine.processes.get(started.id).instance.status == "completed")
        assert engine.processes.start("calls.one", {"x": 2}).state == {"x": 2, "said": 2}


def test_what_is_odd_about_a_file_is_told_when_it_is_published(place: Place) -> None:
    """Publishing a file gives the warnings that validating it gives; with `check` too."""
    text = """
domain: d
workflows:
  - id: p
    steps: [{id: r, type: approval, assignee: {role: boss}}, {id: x, type: terminal}]
    transitions: [{from: r, event: approved, to: x}]
"""
    definitions = place.engine().definitions
    validated = definitions.validate_file(text).warnings
    assert [each.code for each in validated] == ["no_decision"]
    for check in (True, False):
        assert definitions.publish_file(text, check=check).warnings == validated


def test_a_handler_that_no_live_worker_has_is_told_when_a_file_is_published(place: Place) -> None:
    """A misspelt operation would wait for ever. While no worker is alive, nothing can be said about it."""
    text = """
domain: d
workflows:
  - id: p
    steps: [{id: s, type: system, operation: orders.chek}, {id: x, type: terminal}]
    transitions: [{from: s, event: completed, to: x}]
"""
    engine = place.engine().handle("orders.check", int)
    assert engine.definitions.publish_file(text, check=True).warnings == []
    beat(engine)
    (warning,) = engine.definitions.publish_file(text).warnings
    assert (warning.code, warning.message) == (
        "no_handler",
        "no live worker has the handler 'orders.chek' of 'p'; did you mean 'orders.check'?",
    )
    assert engine.definitions.validate_file(text).warnings == [warning]
    assert engine.definitions.validate_file(text.replace("chek", "check")).warnings == []
