"""Doors that were open too far, or not far enough: parts of a tenant, slashes in names, lock-outs, sessions, proxies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import timedelta
from itertools import accumulate
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.serving import serving
from api.test_attacks import HOOK, PAID, delivery
from api.test_sessions import LOGIN, RUNS, SECURE, came_in, key_of
from api.tokens import issuer
from api.world import ACME, GENEROUS, NORTH, SOUTH, World, documented, problem
from standfast import ConfigurationError, Engine, PayloadError, Saga
from standfast.http import InboundHook, LoginProvider, create_app
from standfast.http.auth.authenticator import Authenticator, Identity
from standfast.http.auth.tokens import InvalidTokenError
from standfast.http.serving import configuration, listening
from standfast.http.wire.problems import EdgeError
from standfast.store.opening import open_store

PARTITION = "standfast-partition"


@pytest.fixture(scope="module")
def papers(world: World) -> World:
    """A world with a document and a schedule in the north."""
    documented(world)
    world.calls(ACME, NORTH).schedules.put("tides", "order", cron="0 2 * * *")
    return world


def test_who_is_of_the_whole_tenant_says_which_part_they_mean(papers: World) -> None:
    """What is listed of a partition is addressed by naming it; who is bound to one gets no other, and that is on record."""
    whole = papers.client()
    north = {PARTITION: NORTH}
    for address in ("/api/v1/documents/acme_invoice/acme-1", "/api/v1/schedules/tides"):
        assert whole.get(address).status_code == 404
        assert whole.get(address, headers=north).status_code == 200
        assert whole.get(address, headers={PARTITION: SOUTH}).status_code == 404
    changed = {"changes": {"grand_total": 5}}
    answer = whole.ask("PATCH", "/api/v1/documents/acme_invoice/acme-1", json=changed, headers=north)
    assert answer.json()["version"] == 2
    started = whole.post(RUNS, {"definition": "ask"}, headers=north).json()["id"]
    assert started not in papers.client(actor="sue", partition=SOUTH).get(RUNS).text
    assert whole.get("/api/v1/me", headers=north).json()["partition"] == NORTH
    bound = papers.client(actor="sue", partition=SOUTH)
    assert bound.get(RUNS, headers={PARTITION: SOUTH}).status_code == 200
    refused = bound.get(RUNS, headers=north)
    assert (refused.status_code, problem(refused)["code"]) == (403, "partition_bound")
    assert papers.engine.as_tenant(ACME).refusals.list(limit=1)[0].code == "partition_bound"
    spans = whole.post("/api/v1/pauses", {"definition": "order"}, headers=north)
    assert (spans.status_code, problem(spans)["code"]) == (403, "partition_bound")


@pytest.mark.parametrize("value", ["", "a" * 600, "%00", "%", "no rth\x7f", "%ff"])
def test_a_part_that_cannot_be_is_refused(world: World, value: str) -> None:
    """Its name is a name, or the request is none."""
    answer = world.client().get(RUNS, headers={PARTITION.encode(): value.encode()})
    assert (answer.status_code, problem(answer)["code"]) == (400, "bad_header")


def test_a_name_with_a_slash_stands_in_an_address(papers: World) -> None:
    """As `%2F` it is a part of the name, as `/` it parts; what is below the name is found, and logs and problems show it as it is."""
    whole = papers.client()
    made = whole.post("/api/v1/documents/acme_invoice", {"data": {"number": "1", "grand_total": 1}, "id": "2026/01"})
    assert made.status_code == 201
    place = made.headers["location"]
    assert place == "/api/v1/documents/acme_invoice/2026%2F01"
    assert whole.get(place).json()["id"] == "2026/01"
    assert len(whole.get(f"{place}/versions").json()["items"]) == 1
    assert whole.get("/api/v1/documents/acme_invoice/2026/01").status_code == 404
    assert "'a/b'" in problem(whole.get("/api/v1/definitions/a%2fb"))["detail"]
    assert problem(whole.get("/api%2Fv1/executions"))["code"] == "no_route"
    outsider = papers.client(capabilities=("execution:read",))
    assert outsider.get("/api/v1/keys/a%2Fb").status_code == 403
    assert papers.engine.as_tenant(ACME).refusals.list(limit=1)[0].path == "/api/v1/keys/a/b"


@pytest.mark.parametrize("name", [".", ".."])
def test_nothing_is_made_that_has_no_address(papers: World, name: str) -> None:
    """A document, a schedule, a batch or a person whose id leads elsewhere in an address could not be asked for by anybody, and is refused."""
    ann, calls = papers.client(), papers.calls(ACME, NORTH)
    made = [
        ann.post("/api/v1/documents/acme_invoice", {"id": name, "data": {"number": "R-2", "grand_total": 1}}),
        ann.post("/api/v1/batches", {"batch_id": name, "verb": "cancel", "definition": "order", "reason": "why not"}),
    ]
    assert [(each.status_code, problem(each)["code"]) for each in made] == [(422, "bad_payload")] * 2
    for make in (
        lambda: calls.schedules.put(name, "order", cron="0 2 * * *"),
        lambda: calls.documents.adopt("acme_invoice", name, {"number": "R-2"}, status="draft"),
        lambda: papers.calls(ACME).directory.put(name),
    ):
        with pytest.raises(PayloadError, match="leads elsewhere in an address"):
            make()


@pytest.mark.parametrize("name", ["../../x", "..", ".", "a/../b", "a\\..\\b", "/x", "a//b", "a\nb", "x\x7f"])
def test_a_name_that_leads_elsewhere_is_published_by_nobody(world: World, name: str) -> None:
    """Of a workflow, a chain or a contract: names end up in addresses, files and logs."""
    calls = world.calls(ACME)
    data = {**calls.definitions.data("paid"), "name": name}
    answer = world.client().post("/api/v1/definitions", data)
    assert answer.status_code == 422
    assert "name" in problem(answer)["detail"]
    chain = world.client().post("/api/v1/chains", {"name": name, "stages": [{"asks": ["manager"]}]})
    assert chain.status_code == 422
    with pytest.raises(Exception, match="name"):
        world.engine.register(Saga(name).wait_for("w", "s").build())
    assert name not in {each.name for each in calls.definitions.list()}


class Addressed:
    """An application whose requests come from an address."""

    def __init__(self, world: World, options: object) -> None:
        self.app = create_app(world.engine, options)  # type: ignore[arg-type]
        self.address = "203.0.113.7"

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Pass a request on."""
        await self.app({**scope, "client": (self.address, 1)}, receive, send)


STRICT = replace(GENEROUS, failures_per_second=1e-6, failures_burst=3, credential_memory=timedelta(0))


@pytest.fixture
def gate(world: World) -> Iterator[tuple[World, Addressed]]:
    """A server that has little patience."""
    other = World(world.engine, STRICT)
    made = Addressed(world, STRICT)
    other.app = made  # type: ignore[assignment]
    yield other, made
    other.close()


def test_a_neighbour_who_guesses_locks_nobody_out(gate: tuple[World, Addressed]) -> None:
    """Failures of an address keep out what does not hold, and no key that does, be it known there or new; one that is revoked stays out."""
    world, _ = gate
    made = world.engine.as_tenant(ACME).keys.create("shop", actor="shop", capabilities=["*"])
    client = world.bearer(made.secret)
    assert client.get(RUNS).status_code == 200
    for _ in range(5):
        guessed = world.bearer("sf_00_00").get(RUNS).status_code
    assert guessed == 429
    assert world.bearer(key_of(world)).get(RUNS).status_code == 200
    assert client.get(RUNS).status_code == 200
    world.engine.as_tenant(ACME).keys.revoke(made.key)
    assert {client.get(RUNS).status_code for _ in range(3)} <= {401, 429}


def test_whoever_guesses_on_is_looked_up_one_at_a_time(world: World) -> None:
    """Keys that come from where too much did not hold are looked up one after the other, so that nobody floods the database with them."""
    at_once: list[int] = []

    class Slow(Authenticator):
        async def _looked_up(self, secret: str) -> Identity:
            at_once.append(1)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            at_once.append(-1)
            raise InvalidTokenError(secret)

    async def scenario() -> None:
        door = Slow(world.engine, STRICT, insecure_dev=False)
        await asyncio.gather(*(door.admit(f"sf_{n}", "203.0.113.7") for n in range(3)), return_exceptions=True)
        at_once.clear()
        told = await asyncio.gather(*(door.admit(f"sf_{n}", "203.0.113.7") for n in range(9)), return_exceptions=True)
        assert {type(each) for each in told} == {EdgeError}

    asyncio.run(scenario())
    assert max(accumulate(at_once)) == 1


def test_deliveries_that_nobody_signed_are_few(world: World) -> None:
    """An address from which signatures do not hold is slowed down; one that holds is taken all the same, and keys are not kept out."""
    hook = InboundHook(name="shop", secrets=(HOOK,), event="shop.paid", tenant=ACME)
    options = replace(STRICT, hooks=(hook,))
    other, made = World(world.engine, options), Addressed(world, options)
    other.app = made  # type: ignore[assignment]
    client, now = other.bearer(), int(world.engine.clock.now().timestamp())
    forged, signed = delivery(PAID, secret=b"x" * 32, at=now), delivery(PAID, at=now, identity="signed")

    def sent(headers: dict[str, str], name: str = "shop") -> httpx.Response:
        return client.ask("POST", f"/hooks/{name}", content=PAID, headers=headers)

    assert [sent(forged).status_code, sent(forged, "none").status_code, sent(forged).status_code] == [401] * 3
    refused = sent(forged)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    assert int(refused.headers["retry-after"]) > 0
    assert sent(signed).status_code == 202
    assert other.bearer("sf_00_00").get(RUNS).status_code == 401
    made.address = "203.0.113.8"
    assert sent(forged).status_code == 401
    other.close()


def test_addresses_of_one_network_count_as_one(gate: tuple[World, Addressed]) -> None:
    """Whoever has a network of version 6 has 2^64 addresses, and is one all the same."""
    world, app = gate
    for number in range(5):
        app.address = f"2001:db8:1:2::{number}"
        answer = world.bearer("sf_00_00").get(RUNS)
    assert answer.status_code == 429
    app.address = "2001:db8:1:3::1"
    assert world.bearer("sf_00_00").get(RUNS).status_code == 401
    app.address = "::ffff:203.0.113.9"
    assert world.bearer("sf_00_00").get(RUNS).status_code == 401


def test_sessions_of_one_credential_are_few(world: World) -> None:
    """One more than may be open sends the oldest away; those of others stay."""
    other = World(world.engine, replace(GENEROUS, sessions_per_credential=2, credential_memory=timedelta(0)))
    try:
        secret = key_of(other)
        _, stranger = came_in(other)
        opened = [came_in(other, secret)[1] for _ in range(3)]
        client = other.bearer()
        *older, newest = [client.get(RUNS, headers=each).status_code for each in opened]
        assert (sorted(older), newest) == ([200, 401], 200)  # Of one instant, any may be the oldest.
        assert client.get(RUNS, headers=stranger).status_code == 200
        made = world.engine.as_tenant(ACME).keys.create("often", actor="often", capabilities=["*"])
        for _ in range(25):
            came_in(other, made.secret)
        assert len(world.engine.as_tenant(ACME).sessions.list(actor="often")) == 20  # Ten for each that is open.
    finally:
        other.close()
    with pytest.raises(ConfigurationError, match="sessions_per_credential"):
        create_app(world.engine, replace(GENEROUS, sessions_per_credential=0))


def test_a_provider_that_is_away_is_left_alone_for_a_while(world: World, tmp_path: Path) -> None:
    """Whoever wants to come in is told so at once; the provider is asked again later, and once at a time."""
    asked: list[str] = []

    async def away(request: Request) -> Response:
        asked.append(request.url.path)
        return Response(status_code=503)

    with serving(Starlette(routes=[Route("/.well-known/openid-configuration", away)])) as address:
        company = LoginProvider(name="company", issuer=replace(issuer(tmp_path), issuer=address))
        other = World(world.engine, replace(GENEROUS, logins=(company,)))
        try:
            for _ in range(3):
                answer = other.bearer().get(LOGIN)
                assert (answer.status_code, problem(answer)["code"]) == (503, "provider_unreachable")
        finally:
            other.close()
    assert len(asked) == 1


def test_by_https_is_what_browsers_come_by(world: World) -> None:
    """Behind a proxy that takes https off, the public address says so: browsers are told to come by https alone."""
    client = world.bearer()
    assert "strict-transport-security" in client.get(f"{SECURE}/healthz").headers
    assert "strict-transport-security" not in client.get("/healthz").headers
    other = World(world.engine, replace(GENEROUS, public_address=SECURE))
    try:
        for path in ("/healthz", "/nowhere", RUNS):
            assert "strict-transport-security" in other.bearer().get(path).headers
    finally:
        other.close()


def test_an_answer_does_not_wait_for_its_own_head() -> None:
    """Lines of the server send at once what is written: otherwise each answer on a line that stays open takes forty milliseconds more."""
    with (
        listening("127.0.0.1", 0) as line,
        socket.create_connection(line.getsockname()),
        line.accept()[0] as taken,
    ):
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_everybody_is_no_proxy() -> None:
    """A server that believed everybody about whom they ask for would let each request choose its address."""
    engine = Engine(store=open_store("sqlite://"), threads=False)
    try:
        for proxies in ("*", "10.0.0.1, *", "0.0.0.0/0", "::/0"):
            with pytest.raises(ConfigurationError, match="trusted_proxies"):
                configuration(engine, trusted_proxies=proxies)
        assert configuration(engine, trusted_proxies="10.0.0.0/8, ::1").forwarded_allow_ips == "10.0.0.0/8, ::1"
    finally:
        engine.stop()
