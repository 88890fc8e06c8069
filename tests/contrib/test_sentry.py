"""Errors of handlers and loops, reported by the real sentry-sdk to a receiver on this machine."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk

from standfast import (
    Actor,
    Engine,
    RequestContext,
    Retry,
    Saga,
    StandfastError,
    StepContext,
    StoreUnavailableError,
    WorkflowFailedError,
)
from standfast.contrib.sentry import report
from standfast.engine.concurrency.loop import Loop
from support.engines import Live, Place
from support.waiting import eventually


class Receiver:
    """What a server of Sentry would have got."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def take(self, body: bytes) -> None:
        for line in body.splitlines():
            told = json.loads(line)
            if "exception" in told:
                self.events.append(told)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A server that takes envelopes, and the client that sends them there."""
    receiver = Receiver()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            sentry_sdk.init(f"http://key@127.0.0.1:{server.server_port}/1", auto_enabling_integrations=False)
            yield receiver
        finally:
            sentry_sdk.get_client().close(timeout=5)
            # A client without an address would still add headers to requests.
            sentry_sdk.get_global_scope().set_client(None)
            server.shutdown()
            thread.join(10)


@pytest.mark.row("E-814", "E-965", "EH-18")
def test_what_a_handler_raises_is_reported_with_run_step_and_trace(place: Place) -> None:
    """So is what was logged in the call, and only in that call; what a handler says by `Retry` is no error."""

    def reserve() -> dict[str, object]:
        logging.getLogger("shop").warning("the shelf is looked at")
        return {}

    def pay(context: StepContext) -> None:
        logging.getLogger("shop").warning("the bank is called")
        if context.attempt == 1:
            raise Retry("the bank is closed", after=0)
        raise LookupError("no such card")

    with receiving() as receiver:
        saga = Saga("order").step("reserve", reserve).step("charge", pay, attempts=2, delay=1).build()
        engine = report(place.engine().register(saga))
        context = RequestContext(tenant="acme", actor=Actor(id="ann"), trace="t-1")
        run = engine.acting(context).start("order", {})
        engine.drain()
        engine.advance(seconds=5)
        sentry_sdk.flush(5)
        (event,) = receiver.events
    assert event["exception"]["values"][-1]["value"] == "no such card"
    told = event["contexts"]["standfast"]
    assert {name: told[name] for name in ("tenant", "definition", "run", "step", "attempt", "trace")} == {
        "tenant": "acme", "definition": "order", "run": str(run.id), "step": "charge", "attempt": 2, "trace": "t-1",
    }  # fmt: skip
    assert event["tags"]["standfast.handler"] == "pay"
    messages = [each["message"] for each in event["breadcrumbs"]["values"]]
    assert messages[0].startswith("pay is called for charge")
    assert messages[1:] == ["the bank is called"]


def test_a_report_shows_no_values_in_frames_of_the_engine(place: Place) -> None:
    """Sentry hides what has a telling name, and reads no objects: the engine's own, with all that a workflow works on, are not shown at all."""

    def pay(password: str) -> None:
        raise LookupError("no such card")

    secret = "".join(reversed("2-retnuh"))  # Not in the source, whose lines are shown, too.
    with receiving() as receiver:
        engine = report(place.engine().register(Saga("order").step("charge", pay, attempts=1).build()))
        engine.start("order", {"password": secret})
        engine.drain()
        try:
            engine.start("ordre", {"password": secret})
        except StandfastError as error:
            sentry_sdk.capture_exception(error)  # As whoever answers requests does.
        sentry_sdk.flush(5)
        by_worker, by_caller = receiver.events
    frames = by_worker["exception"]["values"][-1]["stacktrace"]["frames"]
    assert frames[-1]["vars"]["password"] == "[Filtered]"
    assert secret not in json.dumps(by_worker)
    (told,) = by_caller["exception"]["values"]
    assert [each.get("vars") for each in told["stacktrace"]["frames"] if each["module"].startswith("standfast.")][
        -1
    ] is None


def test_a_report_says_nothing_of_whoever_happened_to_open_the_engine(live: Live) -> None:
    """A worker that a request has started works for others ever after; what is said of the whole program is in every report."""

    def pay() -> None:
        raise LookupError("no such card")

    with receiving() as receiver:
        sentry_sdk.get_global_scope().set_tag("service", "shop")
        with sentry_sdk.isolation_scope() as scope:  # As integrations have one around each request.
            scope.set_user({"id": "bob"})
            scope.set_transaction_name("GET /orders")
            scope.add_event_processor(lambda event, _hint: {**event, "request": {"url": "http://shop/orders"}})
            engine = report(live.engine().register(Saga("order").step("charge", pay, attempts=1).build()))
            engine.start_worker()
        with pytest.raises(WorkflowFailedError):
            engine.start("order", {}).result(timeout=60)
        engine.stop()
        sentry_sdk.flush(5)
        sentry_sdk.get_global_scope().remove_tag("service")
        (event,) = receiver.events
    assert event["tags"]["service"] == "shop"
    assert not {"user", "request", "transaction"} & event.keys()


def test_what_a_loop_of_the_engine_raises_is_reported_once_for_each_failure(tmp_path: Path) -> None:
    """It says which loop; a database that is away is none of it."""
    failures: list[BaseException] = [StoreUnavailableError("away"), ZeroDivisionError("a bug")]

    def step() -> float:
        if failures:
            raise failures.pop(0)
        return 60.0

    engine = Engine(f"sqlite:///{tmp_path / 'h.db'}", threads=False)
    with receiving() as receiver:
        loop = Loop("odd jobs", step, report(engine).service.shared.telemetry)
        loop.start()
        eventually(lambda: not failures)
        loop.stop()
        loop.join(10)
        sentry_sdk.flush(5)
        (event,) = receiver.events
    engine.stop()
    assert event["exception"]["values"][-1]["type"] == "ZeroDivisionError"
    assert event["tags"]["standfast.loop"] == "odd jobs"
