"""What workflows of documents send to other systems: one request, signed, traced, with evidence, and never inside a transaction."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, body, register
from people.test_webhook import KEY, LOCAL, SECRET, Receiver, receiver
from standfast import ConfigurationError, Engine, RequestContext, Settings, StepContext
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import check_body
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.testing import ManualEngine
from support.engines import Place

__all__ = ["receiver"]

SLOT = '"slot:submitted_to_approved"'
ALLOWED = Settings(outbound_allow=tuple(LOCAL))
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def hook(url: str, more: str = "") -> str:
    """A node that posts."""
    return (
        f"{{id: tell, type: webhook_out, url: '{url}', payload: {{order: entity.id, total: entity.grand_total}}{more}}}"
    )


def sent(engine: ManualEngine, *, trace: str = "") -> None:
    """An order that was submitted, and all that follows from it."""
    mine = engine.acting(RequestContext(actor=SELLER, trace=trace)).documents
    mine.create("sales_order", GIVEN, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()


def stood(engine: ManualEngine) -> tuple[str, str]:
    """How the order stands."""
    seen = engine.documents.get("sales_order", "O-1")
    return seen.status, seen.run_status


@pytest.mark.row("E-018", "E-030", "E-413", "E-424", "E-612", "ED-21", "EC-28", "EH-13", "EO-29", "EO-30")
def test_a_request_is_sent_signed_and_its_answer_kept(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request with a key that stays the same, the payload by expressions, and an answer that later conditions read.

    Of a long one the beginning is kept, with the hash of all of it.
    """
    receiver.status, receiver.body = 200, b"x" * 70_000
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    engine = place.engine(msgspec.structs.replace(ALLOWED, webhook_secrets=("env:HOOK_SECRET",)))
    port = receiver.url.rpartition(":")[2].partition("/")[0]
    url = f"http://127.0.0.1:{port}/orders/{{entity.number}}"
    nodes = (
        hook(url, ", secret: 'env:HOOK_SECRET', into: told")
        + ", {id: ok, type: condition, expression: context.told.status == 200}"
    )
    edges = "{from: tell, to: ok}, {from: ok, to: out, on: 'true'}, {from: ok, to: out, on: 'false'}"
    register(engine, "sales_order", body(SLOT, nodes, edges))
    sent(engine)
    (request,) = receiver.requests
    assert (request.path, json.loads(request.body)) == ("/orders/S-1", {"order": "O-1", "total": 90_000})
    assert request.headers["idempotency-key"].count(":") == 1
    assert request.headers["webhook-signature"].startswith("v1,")
    assert KEY not in request.body
    assert stood(engine) == ("active", "running")
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    (told,) = [each.output for each in run.steps() if each.name.endswith(":tell")]
    assert isinstance(told, dict)
    kept = told["told"]
    assert isinstance(kept, dict)
    assert (kept["status"], kept["body"], set(kept["request"])) == (200, "x" * 65_536, {"url", "bytes", "sha256"})
    whole = hashlib.sha256(receiver.body).hexdigest()
    assert (kept["is_truncated"], kept["bytes"], kept["sha256"]) == (True, 70_000, whole)


@pytest.mark.row("EO-30")
@pytest.mark.parametrize("more", ["", ", await: false"])
def test_a_long_answer_is_an_answer(place: Place, receiver: Receiver, more: str) -> None:
    """A request that was answered 200 was taken, however long the answer is: the document goes on, and the request is sent once."""
    receiver.status, receiver.body = 200, b"x" * 2_000_000
    engine = place.engine(ALLOWED)
    register(engine, "sales_order", body(SLOT, hook(receiver.url, more or ", into: told")))
    sent(engine)
    engine.advance(hours=6)
    assert (stood(engine), len(receiver.requests)) == (("active", "running"), 1)
    assert engine.dead_letters.list() == []
    outputs = [each.output for each in engine.run(engine.documents.get("sales_order", "O-1").instance).steps()]
    kept = [each["told"] for each in outputs if isinstance(each, dict) and "told" in each]
    for each in kept:
        assert isinstance(each, dict)
        whole = hashlib.sha256(receiver.body).hexdigest()
        assert (each["bytes"], each["sha256"], each["is_truncated"]) == (2_000_000, whole, True)
        assert (each["body"], "is_hash_partial" in each) == ("x" * 65_536, False)
    assert len(kept) == (0 if more else 1)


@pytest.mark.row("EO-45")
def test_what_was_answered_while_the_document_was_cancelled_is_kept(place: Place, receiver: Receiver) -> None:
    """A request that is under way when its document is cancelled ends, and its answer is recorded; nothing follows from it."""
    receiver.status, receiver.body, receiver.headers = 200, b'{"booking": 7}', {"content-type": "application/json"}
    engine = place.engine(ALLOWED)
    register(engine, "sales_order", body(SLOT, hook(receiver.url, ", into: told")))
    mine = asking(engine, SELLER).documents
    receiver.meanwhile = lambda: mine.transition("sales_order", "O-1", "cancel")
    sent(engine)
    engine.advance(hours=6)
    assert (engine.documents.get("sales_order", "O-1").status, len(receiver.requests)) == ("cancelled", 1)
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    (step,) = [each for each in run.steps() if each.name.endswith(":tell")]
    assert step.status == "cancelled"
    assert isinstance(step.output, dict)
    assert (step.output["status"], step.output["body"]) == (200, {"booking": 7})


@pytest.mark.row("EO-29", "E-576")
@pytest.mark.parametrize(
    "reference",
    [
        "env:SHOP_SECRET",
        "env:HOOK_SECRETS",
        "env:HOME",
        "file:/dev/zero",
        "file:/dev/stdin",
        "file:/etc/passwd",
        "file:/no/such/file",
        "file:FOLDER/shop",
        "file:FOLDER/hooks/../shop",
        "file:FOLDER/hooks/./../shop",
        "file:FOLDER/hooks",
        "FILE:FOLDER/hooks/own",
        "env:",
        "SHOP_SECRET",
    ],
)
def test_nobody_signs_with_a_secret_that_was_not_lent_to_workflows(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, reference: str
) -> None:
    """Whoever writes a body names no variable and no file of the machine that the settings do not: nothing is read, and nothing is sent.

    With the secret of somebody else's hook they could sign deliveries to it; and what is wrong with a file tells whether there is one.
    """
    for name in ("shop", "hooks/own"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SECRET, encoding="utf-8")
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    monkeypatch.setenv("HOOK_SECRETS", SECRET)
    lent = ("env:HOOK_SECRET", f"file:{tmp_path}/hooks/*")
    engine = place.engine(msgspec.structs.replace(ALLOWED, webhook_secrets=lent))
    register(
        engine,
        "sales_order",
        body(SLOT, hook(receiver.url, f", secret: '{reference.replace('FOLDER', str(tmp_path))}'")),
    )
    sent(engine)
    assert (receiver.requests, stood(engine)) == ([], ("submitted", "paused"))
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    (told,) = [each.error for each in run.steps() if each.error]
    assert told.endswith("webhook_secrets of the settings does not name the secret that it is to be signed with")


def test_secrets_that_were_lent_are_signed_with(place: Place, receiver: Receiver, tmp_path: Path) -> None:
    """A star at the end of an entry stands for whatever is in a folder, or for all variables that begin so."""
    (tmp_path / "own").write_text(f"{SECRET}\n", encoding="utf-8")
    engine = place.engine(msgspec.structs.replace(ALLOWED, webhook_secrets=(f"file:{tmp_path}/*",)))
    register(engine, "sales_order", body(SLOT, hook(receiver.url, f", secret: 'file:{tmp_path}/own'")))
    sent(engine)
    assert receiver.requests[0].headers["webhook-signature"].startswith("v1,")
    for wrong in ("HOOK_SECRET", "*", "env:", "file:"):
        with pytest.raises(ConfigurationError, match="webhook_secrets"):
            Engine("sqlite://", settings=Settings(webhook_secrets=(wrong,)))


@pytest.mark.row("E-425", "E-421", "ED-21", "EO-29", "E-060", "E-061", "E-911")
def test_a_receiver_that_fails_is_tried_again_and_then_fails_the_step(place: Place, receiver: Receiver) -> None:
    """Five requests with one key, further and further apart; then the run waits for an operator."""
    engine = place.engine(ALLOWED)
    receiver.status = 500
    register(engine, "sales_order", body(SLOT, hook(receiver.url)))
    sent(engine)
    engine.advance(timedelta(hours=3))
    assert (len(receiver.requests), stood(engine)) == (5, ("submitted", "paused"))
    assert len({each.headers["idempotency-key"] for each in receiver.requests}) == 1


@pytest.mark.row("E-424")
def test_a_document_waits_for_a_request_and_not_for_a_notice(place: Place, receiver: Receiver) -> None:
    """A notice is passed at once; a request is pending until a worker has sent it, and the document goes on with its answer."""
    engine = place.engine(ALLOWED)
    receiver.status = 200
    nodes = "{id: note, type: notification, to: [ann], subject: hi}, " + hook(receiver.url)
    register(engine, "sales_order", body(SLOT, nodes, "{from: note, to: tell}"))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", GIVEN, id="O-1")
    assert mine.transition("sales_order", "O-1", "submit").status == "submitted"
    run = engine.run(mine.get("sales_order", "O-1").instance)
    assert [each.status for each in run.steps() if each.name.endswith((":note", ":tell"))] == ["completed", "pending"]
    assert receiver.requests == []
    engine.drain()
    assert [each.status for each in run.steps() if each.name.endswith(":tell")] == ["completed"]
    assert (stood(engine)[0], len(receiver.requests)) == ("active", 1)


@pytest.mark.row("E-424", "E-421", "EC-28", "EC-33", "EO-29")
def test_nobody_waits_for_a_request_that_is_not_awaited(place: Place, receiver: Receiver) -> None:
    """The document goes on at once, whatever becomes of the request; that it could not be sent is told, once it is given up."""
    engine = place.engine(ALLOWED)
    receiver.status = 404
    register(engine, "sales_order", body(SLOT, hook(receiver.url, ", await: false")))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", GIVEN, id="O-1")
    assert mine.transition("sales_order", "O-1", "submit").status == "active"
    assert receiver.requests == []
    engine.drain()
    run = engine.run(mine.get("sales_order", "O-1").instance)
    assert (len(receiver.requests), stood(engine)) == (1, ("active", "running"))
    (failed,) = [each for each in run.history() if each.event_type == "notification_failed"]
    assert "404" in str(failed.data)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (", await: false, into: x", "webhook"),
        (", await: false, once: true", "webhook"),
        (", await: false, timeout: 5s", "webhook"),
    ],
)
def test_what_a_request_that_nobody_waits_for_cannot_say(more: str, code: str) -> None:
    """What it keeps, how long it may take, whether it is sent once: nobody would know."""
    found = check_body(generate_envelope(ready_contract("sales_order")), read_body(body(SLOT, hook("http://x/", more))))
    assert [each.code for each in found] == [code]


@pytest.mark.row("EO-29", "E-612")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "ftp://x", "http://{entity.note}/"])
def test_an_address_that_may_not_be_reached_fails_the_step(place: Place, url: str) -> None:
    """One inside of the house, of another protocol, or that has a hole nothing fills: for good, and in words."""
    engine = place.engine()
    register(engine, "sales_order", body(SLOT, hook(url)))
    sent(engine)
    assert stood(engine) == ("submitted", "paused")


@pytest.mark.row("E-383", "E-500", "E-811", "E-957", "E-572", "E-935", "E-574", "E-348")
def test_one_trace_and_one_name_lead_from_the_call_to_the_receiver(place: Place, receiver: Receiver) -> None:
    """The same trace in the mutation, the audit, the step, the handler and the request; and each step tells as whom it was done."""
    engine = place.engine(ALLOWED)
    seen: list[tuple[str, str]] = []

    @engine.handler("look")
    def look(context: StepContext) -> None:
        seen.append((context.trace, context.actor.id))

    nodes = (
        "{id: look, type: task, handler: look}, "
        "{id: mark, type: action, action: sales_order.reserve, run_as: 'service_account:robot'}, "
        "{id: book, type: action, action: gl_entry.create, run_as: system, payload: {account: \"'1'\", amount: entity.grand_total}}, "
        f"{hook(receiver.url)}"
    )
    engine.handle("sales_order.reserve", lambda document, payload: {"reservation": "reserved"})
    register(engine, "gl_entry")
    register(
        engine,
        "sales_order",
        body(SLOT, nodes, "{from: look, to: mark}, {from: mark, to: book}, {from: book, to: tell}"),
    )
    sent(engine, trace=TRACE)
    assert seen == [(TRACE, "sam")]
    assert [each.headers["traceparent"] for each in receiver.requests] == [TRACE]
    mutations = engine.documents.mutations("sales_order", "O-1")
    assert {each.trace for each in mutations} == {TRACE}
    assert [(each.actor, each.run_as) for each in mutations if each.run_as] == [("robot", "robot")]
    assert {each.trace for each in engine.documents.audit("sales_order", "O-1")} == {TRACE}
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    assert {each.trace for each in run.history()} == {TRACE}
    (entry,) = engine.documents.list("gl_entry").items
    (made,) = engine.documents.mutations("gl_entry", entry.id)
    assert (made.actor, made.trace) == ("system", TRACE)


def test_the_name_of_the_handler_is_the_engines(place: Place) -> None:
    """Nobody else can take it, so that every process can send what a workflow wants sent."""
    engine: Engine = place.engine()
    with pytest.raises(ConfigurationError, match="already another handler"):
        engine.handle("standfast.webhook", lambda: None)
