"""Who holds a server without asking, reading or having a right to: connections, streams and waiting requests, each of which ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from api.serving import served, serving
from api.test_wire import QUICK, RUNS, key
from api.tokens import ISSUER
from api.world import ACME, registered
from standfast import Engine
from standfast.http import HttpOptions, Issuer, LoginProvider, connections, create_app, ending
from standfast.http import serving as serving_
from standfast.http.requests.server import Server
from standfast.http.routes.admin.health import is_ready
from standfast.http.wire.broadcaster import EventBroadcaster, StreamSubscriber
from standfast.store.ports.store import StoreParts
from support.waiting import eventually


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine; what is tried here is the edge, and the same on every store."""
    with Engine("sqlite://") as made:
        registered(made)
        yield made


def test_who_says_nothing_is_sent_away(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection on which no request comes to the end of its head is closed, whether it is the first one or a later one."""
    monkeypatch.setattr(connections, "_HEAD_SECONDS", 0.3)
    begun = b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: "

    def answers(address: str, *parts: bytes) -> int:
        """How many answers come before the server hangs up, if each part is said after an answer to the one before."""
        host, _, port = address.removeprefix("http://").partition(":")
        heard = b""
        with socket.create_connection((host, int(port)), timeout=10) as line, suppress(ConnectionError):
            for part in parts:
                line.sendall(part)
                heard += line.recv(65_536)
            while chunk := line.recv(65_536):
                heard += chunk
        return heard.count(b"HTTP/1.1 200")

    with served(engine) as address:
        assert answers(address) == 0
        assert answers(address, begun) == 0
        # A slow machine may be sent away before it has said anything.
        assert eventually(lambda: answers(address, begun + b"y\r\n\r\n", begun) == 1)


@pytest.mark.parametrize("before", [0, 1, 3])
def test_nobody_hides_a_request_in_another_one(engine: Engine, before: int) -> None:
    """What follows a request that says two lengths of itself is not answered, however many were sent ahead of it: a proxy may have taken it for a part of that one."""
    hidden = b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    head = b"POST /hooks/x HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n"
    with served(engine) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * before + head + b"0\r\n\r\n" + hidden)
            heard = b"".join(iter(lambda: line.recv(65_536), b""))
    assert [each[:3] for each in heard.split(b"HTTP/1.1 ")[1:]] == [b"200"] * before + [b"401"]


def test_there_are_so_many_connections_and_no_more(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds no room is told so by a problem, and when to come back; there is room again once others have left."""
    monkeypatch.setattr(serving_, "_MOST_REQUESTS", 2)
    with served(engine) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))):
            assert eventually(lambda: httpx.get(f"{address}/healthz").status_code == 503)
            refused = httpx.get(f"{address}/healthz")
            assert (refused.json()["code"], refused.json()["retryable"]) == ("too_many_connections", True)
            assert refused.headers["content-type"] == "application/problem+json"
            assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
            assert refused.headers["x-content-type-options"] == "nosniff"
        assert eventually(lambda: httpx.get(f"{address}/healthz").status_code == 200)


HEAD = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
FULL = 32_768
HEADS: dict[str, tuple[bytes, list[int]]] = {
    "as long as may be": (HEAD + b"x: " + b"a" * (FULL - 100) + b"\r\n\r\n", [200]),
    "longer, in one piece": (HEAD + b"x: " + b"a" * FULL + b"\r\n\r\n", [431]),
    "of many lines": (HEAD + b"x: y\r\n" * 6000 + b"\r\n", [431]),
    "of blanks": (HEAD + b"x:" + b" " * (2 * FULL) + b"y\r\n\r\n", [431]),
    "a long address": (b"GET /" + b"a" * (2 * FULL) + b" HTTP/1.1\r\nhost: x\r\n\r\n", [431]),
    "without an end": (HEAD + b"x: " + b"a" * (4 * FULL), [431]),
    "behind a request": (HEAD + b"\r\n" + HEAD + b"x: " + b"a" * FULL + b"\r\n\r\n", [200, 431]),
    "no HTTP": (b"\x16\x03\x01 hello\r\n\r\n", [400]),
}


@pytest.mark.parametrize("case", HEADS)
def test_heads_are_so_long_and_no_longer(engine: Engine, case: str) -> None:
    """The limit on address and headers holds however they come: a piece at a time, all at once, or behind another request."""
    said, statuses = HEADS[case]
    with served(engine) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        heard = b""
        with socket.create_connection((host, int(port)), timeout=20) as line, suppress(ConnectionError):
            line.sendall(said)
            while heard.count(b"HTTP/1.1 ") < len(statuses) or b"}" not in heard.rpartition(b"HTTP/1.1 ")[2]:
                chunk = line.recv(65_536)
                if not chunk:
                    break
                heard += chunk
    answers = heard.split(b"HTTP/1.1 ")[1:]
    assert [int(each[:3]) for each in answers] == statuses
    if statuses[-1] != 200:
        told = json.loads(answers[-1].partition(b"\r\n\r\n")[2])
        assert told["code"] == ("head_too_long" if statuses[-1] == 431 else "bad_request")
        assert b"connection: close" in answers[-1].lower()


def test_who_reads_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose other end takes nothing of a long answer is cut off; whoever had answered it is told."""
    monkeypatch.setattr(connections, "_UNREAD_SECONDS", 0.05)
    gone = asyncio.Event()

    async def talkative(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200})

        async def talk() -> None:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})

        talking = asyncio.create_task(talk())
        assert (await receive())["type"] == "http.disconnect"
        talking.cancel()
        gone.set()

    async def scenario() -> None:
        told = uvicorn.Config(talkative, log_config=None, lifespan="off")
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: connections.Connection(told, ServerState(), {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=16)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(20):
            await gone.wait()
        assert not reader.at_eof()
        writer.close()
        server.close()

    asyncio.run(scenario())


def test_those_who_come_late_are_told_too(engine: Engine) -> None:
    """Whoever begins to listen while the reader of the feed is about to rest keeps it going; a failure of whatever kind does not end it."""
    options = HttpOptions(heartbeat=timedelta(milliseconds=1), stream_interval=timedelta(milliseconds=100))

    async def scenario() -> bool:
        hub, watcher = EventBroadcaster(engine, options), StreamSubscriber("default", None, 10)
        await hub.begun()
        await asyncio.sleep(0.02)  # It has read once for nobody, and looks once more before it rests.
        with hub.watching(watcher):
            await hub.begun()
            await asyncio.sleep(0.2)
            await engine.aio.start("paid")
            async with asyncio.timeout(20):
                return await watcher.wait(20)

    assert asyncio.run(scenario())


def test_two_who_come_first_miss_nothing_of_one_another(engine: Engine) -> None:
    """Of two who begin to listen at the same time, the slower one does not take the reader past what the faster one has not heard."""
    looks = iter(range(3))
    both, read, started = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def written(**span: int) -> object:
        look = next(looks, None)
        if look == 1:  # The slower one, who looks when a run has begun.
            both.set()
            await started.wait()
        await both.wait()
        page = await engine.aio.admin.written(**span)
        if look == 2:
            read.set()
        return page

    async def scenario() -> bool:
        slowed = SimpleNamespace(aio=SimpleNamespace(admin=SimpleNamespace(written=written)))
        hub, watcher = EventBroadcaster(cast("Engine", slowed), HttpOptions()), StreamSubscriber("default", None, 10)
        with hub.watching(watcher):
            faster, slower = asyncio.create_task(hub.begun()), asyncio.create_task(hub.begun())
            await faster
            await read.wait()
            await engine.aio.start("paid")
            started.set()
            await slower
            return await watcher.wait(5)

    assert asyncio.run(scenario())


def test_whoever_waits_is_told_when_the_server_ends(engine: Engine) -> None:
    """A request that waits for a result is answered with how the run stands as soon as the server is asked to end."""
    app = create_app(engine)
    with serving(app) as address, httpx.Client(base_url=address, headers=key(engine), timeout=15) as ann:
        run = ann.post(RUNS, json={"definition": "paid"}).json()["id"]
        app.state.server.hub.close()
        told = ann.get(f"{RUNS}/{run}/result", params={"wait": 30})
    assert (told.status_code, told.json()["is_finished"]) == (202, False)


def test_streams_end_with_the_application_that_it_is_mounted_into(engine: Engine) -> None:
    """Ctrl-C of uvicorn does not hang on an open stream of a mounted API: it ends in peace, and the signal is passed on."""
    api = create_app(engine)
    app = FastAPI(lifespan=lambda _: ending(api))
    app.mount("/standfast", api)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=20))
    heard: list[str] = []

    def listen() -> None:
        eventually(lambda: server.started)
        address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/standfast"
        with httpx.stream("GET", f"{address}{RUNS}/events", headers=key(engine), timeout=60) as response:
            lines = response.iter_lines()
            heard.append(next(lines))
            os.kill(os.getpid(), signal.SIGINT)
            heard.extend(lines)  # A torn one would raise.
        heard.append("ended")

    listener = threading.Thread(target=listen)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell has its background jobs ignore it.
    try:
        listener.start()
        with pytest.raises(KeyboardInterrupt):  # uvicorn passes it on, too.
            server.run()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    listener.join(60)
    assert (heard[0], heard[-1]) == (": still here", "ended")


def test_a_signal_that_nobody_heeded_does_what_it_does() -> None:
    """Where nobody listens to a signal, or it is ignored, that stays so; streams are told either way."""
    told: list[int] = []
    api = Starlette()
    api.state.server = SimpleNamespace(hub=SimpleNamespace(close=lambda: told.append(1)))

    async def scenario() -> None:
        async with ending(api):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert told == [1]

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        asyncio.run(scenario())
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_strangers_keep_no_database_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask at once whether the server is ready, the database is asked once, and not for what grows with the work that waits."""
    engine = Engine("sqlite://")  # Without a worker, which looks at the database by itself.
    looks, asked = engine.service.store.survey, 0

    def counted() -> AbstractContextManager[StoreParts]:
        nonlocal asked
        asked += 1
        return looks()

    async def scenario(server: Server) -> list[bool]:
        found = await asyncio.gather(*(is_ready(server) for _ in range(50)))
        return [*found, await is_ready(server)]

    monkeypatch.setattr(engine.service.store, "survey", counted)
    assert asyncio.run(scenario(create_app(engine).state.server)) == [True] * 51
    assert asked == 2
    engine.stop()


def test_a_stream_ends_with_the_credential(engine: Engine) -> None:
    """Whoever listens with a key that is revoked meanwhile is not told until the stream would have ended by itself."""
    made = engine.as_tenant(ACME).keys.create("to be revoked", actor="bob", capabilities=["*"])
    told = replace(QUICK, heartbeat=timedelta(milliseconds=50), credential_memory=timedelta(0))
    headers = {"authorization": f"Bearer {made.secret}"}
    with served(engine, told) as address, httpx.stream("GET", f"{address}{RUNS}/events", headers=headers) as response:
        lines = (line for line in response.iter_lines() if not line.startswith("id: "))
        assert [next(lines) for _ in range(4)] == [": still here", ""] * 2  # It has been looked at again, and held.
        engine.as_tenant(ACME).keys.revoke(made.key.id)
        assert set(lines) <= {": still here", ""}


def test_whoever_waits_with_a_key_that_ends_is_told_nothing(engine: Engine) -> None:
    """A request that waits for a result is refused if its key was revoked meanwhile, although it held when the request came."""
    made = engine.as_tenant(ACME).keys.create("to be revoked", actor="bob", capabilities=["execution:read"])
    app = create_app(engine, replace(QUICK, credential_memory=timedelta(0)))
    run = engine.as_tenant(ACME).start("paid", {"secret": "of acme"})
    engine.start_worker()
    found: list[httpx.Response] = []
    with serving(app) as address:
        where, headers = f"{address}{RUNS}/{run.id}/result?wait=30", {"authorization": f"Bearer {made.secret}"}
        asking = threading.Thread(target=lambda: found.append(httpx.get(where, headers=headers, timeout=40)))
        asking.start()
        assert eventually(lambda: app.state.server.waits.open == 1)
        engine.as_tenant(ACME).keys.revoke(made.key.id)
        run.signal("paid")
        asking.join(40)
    assert (found[0].status_code, "of acme" in found[0].text) == (401, False)
    assert app.state.server.waits.open == 0


def test_nobody_keeps_others_out_by_waiting(engine: Engine) -> None:
    """So many requests of one credential wait at once, and one more is told so at once; who does not wait, and who has another key, is answered."""
    app = create_app(engine, replace(QUICK, waits_per_credential=1))
    ann, bob = key(engine), key(engine, ACME, "bob")
    run = engine.as_tenant(ACME).start("paid")
    with serving(app) as address:
        where = f"{address}{RUNS}/{run.id}/result"

        def wait() -> httpx.Response:
            return httpx.get(where, params={"wait": 30}, headers=ann, timeout=40)

        asking = threading.Thread(target=wait)
        asking.start()
        assert eventually(lambda: app.state.server.waits.open == 1)
        refused = wait()
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert (refused.headers["retry-after"], refused.json()["retryable"]) == ("1", True)
        assert httpx.get(where, headers=ann).status_code == 202
        assert httpx.get(where, params={"wait": 0.01}, headers=bob).status_code == 202
        app.state.server.hub.close()
        asking.join(40)
    assert app.state.server.waits.open == 0


def test_a_stream_ends_in_peace_with_its_engine(engine: Engine) -> None:
    """What cannot be read ends a stream as if its time was over, so that whoever listens comes back; nothing is torn."""
    run = engine.as_tenant(ACME).start("paid")
    with (
        served(engine, replace(QUICK, heartbeat=timedelta(milliseconds=50))) as address,
        httpx.stream("GET", f"{address}{RUNS}/{run.id}/events", headers=key(engine)) as response,
    ):
        lines = response.iter_lines()
        assert next(lines) == ": still here"
        engine.stop()
        assert "event: end" not in list(lines)  # A torn one would raise.


def test_addresses_begin_where_it_is_mounted(engine: Engine) -> None:
    """Mounted into another application, the addresses that answers name lead to the API, and not beside it."""
    issuer = Issuer(issuer=ISSUER, audience="ui", jwks="keys.json")
    options = HttpOptions(logins=(LoginProvider(name="company", issuer=issuer),))
    app = FastAPI()
    app.mount("/standfast", create_app(engine, options))
    with serving(app) as address, httpx.Client(base_url=address, headers=key(engine)) as ann:
        made = ann.post("/standfast/api/v1/pauses", json={"definition": "order"})
        assert ann.get(made.headers["location"]).json() == made.json()
        (server,) = ann.get("/standfast/openapi.json").json()["servers"]
        assert server["url"] == "/standfast"
        ways = ann.get("/standfast/api/v1/session/ways").json()["providers"]
        assert [each["path"] for each in ways] == ["/standfast/api/v1/session/login/company"]
