"""An engine with something of everything in it, of two tenants and two partitions, served over HTTP; and clients with keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx
import msgspec
from starlette.types import ASGIApp

from app.processes.acting import INPUT, published
from standfast import Actor, Calls, Engine, RequestContext, Saga
from standfast.http import HttpOptions, create_app
from standfast.testing import ManualEngine
from support.samples import Add, Counter

BASE = "http://standfast.test"
ACME, RIVAL = "acme", "rival"
NORTH, SOUTH = "north", "south"
TRACE = {"traceparent": "00-" + "cd" * 16 + "-" + "ef" * 8 + "-00", "x-request-id": "same"}
"""Names of a request that answers are compared under."""
GENEROUS = HttpOptions(
    requests_per_second=1e6, burst=1_000_000, failures_per_second=1e6, failures_burst=1_000_000,
    refusals_per_second=1e6, refusals_burst=1_000_000,
)  # fmt: skip
"""Limits that no test meets by accident."""


INVOICE: dict[str, object] = {"number": "R-1", "vendor_id": "V-1", "grand_total": 40_000}
CONTRACT = """
entity_type: invoice
version: 1
fields:
  number: {type: string, required: true}
  vendor_id: {type: string}
  grand_total: {type: money, required: true}
  bank_account: {type: string, visible_to: [finance]}
lifecycle:
  version: 1
  initial: draft
  terminal: [cancelled]
  amended: amended
  states:
    draft: {window: editable}
    submitted: {window: amend_only}
    active: {window: locked}
    cancelled: {window: locked}
    amended: {window: editable}
  transitions:
    - {name: submit, from: [draft, amended], to: submitted}
    - {name: approve, from: [submitted], to: active, begins: by_itself, on_reject: draft}
    - {name: cancel, from: [draft, submitted, active, amended], to: cancelled, kind: cancel}
slots:
  - {id: "slot:submitted_to_approved", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
"""
BODY: dict[str, object] = {
    "base": {"entity_type": "invoice", "envelope_version": 1},
    "name": "One approver",
    "slots": {
        "slot:submitted_to_approved": {
            "nodes": [{"id": "sign", "type": "approval", "approvers": [{"role": "approver"}]}]
        }
    },
}


class Client:
    """Somebody who asks, with a credential or without, and waits for the answer."""

    def __init__(self, app: ASGIApp, secret: str = "", *, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop or asyncio.new_event_loop()
        self._owns_loop = loop is None
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        transport = httpx.ASGITransport(app=app)
        self.http = httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The answer to a request."""
        return self.loop.run_until_complete(self.http.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Look."""
        return self.ask("GET", path, **more)

    def post(self, path: str, body: object = None, **more: Any) -> httpx.Response:
        """Do something."""
        return self.ask("POST", path, json={} if body is None else body, **more)

    def close(self) -> None:
        """Let go of the loop."""
        self.loop.run_until_complete(self.http.aclose())
        if self._owns_loop:
            self.loop.close()


class World:
    """The engine, its application, and those who come."""

    def __init__(self, engine: ManualEngine, options: HttpOptions = GENEROUS) -> None:
        self.engine = engine
        self.app = create_app(engine, options)
        self.loop = asyncio.new_event_loop()
        self._clients: list[Client] = []
        self._known: dict[object, Client] = {}

    def client(
        self,
        *,
        tenant: str = ACME,
        actor: str = "ann",
        capabilities: Sequence[str] = ("*",),
        roles: Sequence[str] = (),
        partition: str = "",
    ) -> Client:
        """Somebody with a key that says this."""
        mark = (tenant, actor, tuple(capabilities), tuple(roles), partition)
        if mark not in self._known:
            made = self.engine.as_tenant(tenant).keys.create(
                "test", actor=actor, kind="user", capabilities=capabilities, roles=roles, partition=partition
            )
            self._known[mark] = self.bearer(made.secret)
        return self._known[mark]

    def bearer(self, secret: str = "") -> Client:
        """Somebody with this credential."""
        client = Client(self.app, secret, loop=self.loop)
        self._clients.append(client)
        return client

    def calls(self, tenant: str = ACME, partition: str = "", actor: str = "ann") -> Calls:
        """The engine for whoever prepares something."""
        mighty = Actor(id=actor, roles=frozenset({"approver"}), capabilities=frozenset({"*"}))
        return self.engine.acting(RequestContext(tenant=tenant, partition=partition, actor=mighty))

    def close(self) -> None:
        """Let go of everything."""
        for client in self._clients:
            client.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            with suppress(asyncio.CancelledError):
                self.loop.run_until_complete(task)
        self.loop.close()


def fails() -> object:
    """A handler that never gets anywhere."""
    raise ValueError("the printer 4711 is on fire")


def registered(engine: Engine) -> None:
    """The workflows of all tests."""
    engine.register(Saga("ask").human("sign", role="approver").build())
    engine.register(Saga("order").step("ship", _ship).build())
    engine.register(Saga("fragile", dlq=True).step("print", fails, attempts=1).build())
    engine.register(Saga("paid").wait_for("wait", signal="paid").build())
    engine.register(Counter())
    published(engine)


def _ship() -> dict[str, object]:
    return {"parcel": 77}


def furnished(world: World) -> Mapping[str, str]:
    """Something of everything for acme, in the north; what addresses call it."""
    engine, north = world.engine, world.calls(ACME, NORTH)
    ask = north.start("ask", {"secret": "of acme"}, key="acme-1")
    process = north.processes.start("orders.approval", INPUT)
    north.start("fragile", {"secret": "of acme"})
    engine.drain()
    whole = world.calls(ACME)
    letter = whole.dead_letters.list()[0]
    event = whole.events.publish("acme.happened", "k", {"secret": "of acme"}, ttl=3600)
    pause = whole.pauses.pause("order", reason="acme moves")
    whole.directory.put("acme-ann", name="Ann of acme")
    whole.directory.put("acme-bob")
    whole.directory.grant("acme-ann", "acme-role")
    delegation = whole.directory.delegate("acme-ann", "acme-bob")
    absence = whole.directory.absent("acme-bob")
    whole.chains.publish("acme-chain", [{"asks": ["manager"]}])
    data = whole.definitions.data("paid")
    whole.definitions.publish({**data, "name": "acme-own"})
    whole.schedules.put("acme-schedule", "order", {"secret": "of acme"}, cron="0 2 * * *")
    batch = whole.batches.begin("resume", [ask.id], reason="of acme")
    key = whole.keys.create("acme's key", actor="robot", capabilities=["execution:read"])
    session = whole.sessions.open(credential="key:of acme").session
    draft = documented(world)
    paper = north.documents.get("acme_invoice", "acme-1").instance
    engine.drain()
    north.deciders.submit(Counter, Add("of acme"))
    (message,) = north.inbox.list()
    return {
        "run": str(ask.id),
        "message": str(message.id),
        "task": f"{ask.id}:1",
        "process": str(process.id),
        "letter": str(letter.id),
        "event": event,
        "pause": str(pause.id),
        "person": "acme-ann",
        "role": "acme-role",
        "delegation": str(delegation.id),
        "absence": str(absence.id),
        "chain": "acme-chain",
        "definition": "acme-own",
        "key": key.key.id,
        "session": session.id,
        "notification": "1",
        "schedule": "acme-schedule",
        "batch": batch.id,
        "type": "acme_invoice",
        "document": "acme-1",
        "draft": draft,
        "paper": str(paper),
        "charter": "rules:acme_invoice",
    }


def contract(type_: str) -> str:
    """The contract of a type of documents that somebody approves."""
    return CONTRACT.replace("invoice", type_)


def documented(world: World) -> str:
    """A type of documents that only acme has, with a body, one in the north, and a draft, whose id this is."""
    whole = world.calls(ACME)
    whole.contracts.publish(contract("acme_invoice"))
    body = {**BODY, "base": {"entity_type": "acme_invoice", "envelope_version": 1}}
    whole.bodies.publish(whole.bodies.save(body).id)
    whole.charters.publish_rules("acme_invoice", [])
    world.calls(ACME, NORTH).documents.create("acme_invoice", INVOICE, id="acme-1")
    return whole.bodies.save(body, comment="of acme").id


def problem(response: httpx.Response) -> dict[str, Any]:
    """The problem that an answer tells of."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    return msgspec.json.decode(response.content, type=dict[str, Any])
