"""What is about the wire, with a real server: streams, waiting, slow and large bodies, mounting, and who may come without a credential."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from msgspec.structs import replace

from api.serving import served, serving, spoken
from api.world import ACME, RIVAL, registered
from standfast import ConfigurationError, Engine, StandfastError, TaskCounts
from standfast.app.api.aio import AsyncTasks
from standfast.http import HttpOptions, answer_error, create_app
from standfast.http.requests import streaming as streams
from standfast.http.serving import configuration, is_loopback
from support.engines import Live
from support.waiting import eventually

RUNS = "/api/v1/executions"
QUICK = HttpOptions(
    stream_interval=timedelta(milliseconds=20), heartbeat=timedelta(seconds=5), body_timeout=timedelta(milliseconds=300),
    max_body_bytes=10_000, streams_per_credential=2, stream_backlog=5, burst=1000,
)  # fmt: skip


class Event(NamedTuple):
    """A server-sent event."""

    id: int
    name: str
    data: Any


def events(response: httpx.Response) -> Iterator[Event]:
    """The events of a stream as they come."""
    return read(blocks(response))


def read(told: Iterator[dict[str, str]]) -> Iterator[Event]:
    """The events among what comes over a stream."""
    for block in told:
        if "data" in block:
            yield Event(int(block["id"]), block["event"], json.loads(block["data"]))


def blocks(response: httpx.Response) -> Iterator[dict[str, str]]:
    """What comes over a stream between empty lines, comments left out: events, and places that are no events."""
    held: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            yield held
            held = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            held[name] = value


def key(
    engine: Engine, tenant: str = ACME, actor: str = "ann", *capabilities: str, roles: tuple[str, ...] = ()
) -> dict[str, str]:
    """The header of somebody with a key."""
    made = engine.as_tenant(tenant).keys.create(
        "wire", actor=actor, kind="user", capabilities=capabilities or ("*",), roles=roles
    )
    return {"authorization": f"Bearer {made.secret}"}


class Scene(NamedTuple):
    """A served engine, and somebody who asks it."""

    engine: Engine
    address: str
    ann: httpx.Client


@pytest.fixture
def scene(live: Live) -> Iterator[Scene]:
    """An engine with a worker, and a server for it."""
    engine = live.engine()
    registered(engine)
    engine.start_worker()
    with served(engine, QUICK) as address, httpx.Client(base_url=address, headers=key(engine), timeout=30) as ann:
        yield Scene(engine, address, ann)


def test_a_run_is_followed_until_its_end(scene: Scene) -> None:
    """A stream tells the history of a run as it grows, and its end; who comes back goes on behind what he has."""
    run = scene.ann.post(RUNS, json={"definition": "paid"}).json()["id"]
    seen: list[Event] = []
    with scene.ann.stream("GET", f"{RUNS}/{run}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for event in events(response):
            seen.append(event)
            if event.data.get("event_type") == "step_started":
                scene.ann.post(f"{RUNS}/{run}/signal", json={"name": "paid", "payload": {"amount": 7}})
    history = scene.ann.get(f"{RUNS}/{run}/history").json()
    assert [each.data for each in seen if each.name == "entry"] == history
    assert [each.id for each in seen[:-1]] == [each["sequence"] for each in history]
    assert (seen[-1].name, seen[-1].data["status"]) == ("end", "completed")
    with scene.ann.stream(
        "GET", f"{RUNS}/{run}/events", headers={"last-event-id": str(history[-2]["sequence"])}
    ) as response:
        rest = list(events(response))
    assert [each.name for each in rest] == ["entry", "end"]


def test_who_is_too_far_behind_reads_anew(scene: Scene) -> None:
    """Who has missed more than is kept, or has an id that there never was, is told to resync, and goes on from now."""
    run = scene.ann.post(RUNS, json={"definition": "paid"}).json()["id"]
    for number in range(6):
        scene.ann.post(f"{RUNS}/{run}/signal", json={"name": f"other-{number}"})
    newest = scene.ann.get(f"{RUNS}/{run}").json()["version"]
    for last in ("1", str(newest + 50)):
        with scene.ann.stream("GET", f"{RUNS}/{run}/events", headers={"last-event-id": last}) as response:
            assert next(events(response)) == Event(newest, "resync", {"position": newest})
    with scene.ann.stream("GET", f"{RUNS}/events", headers={"last-event-id": "1"}) as response:
        assert next(events(response)).name == "resync"


@pytest.mark.row("G-17")
def test_a_list_is_told_of_changes_of_its_tenant(scene: Scene) -> None:
    """A stream of runs tells the changes of its own tenant and partition; so does what a client that comes back has missed."""
    eve = httpx.Client(base_url=scene.address, headers=key(scene.engine, RIVAL, "eve"), timeout=30)
    with eve, scene.ann.stream("GET", f"{RUNS}/events") as response:
        begun = blocks(response)
        begin = next(begun)["id"]
        told = read(begun)
        foreign = eve.post(RUNS, json={"definition": "paid"}).json()["id"]
        own = scene.ann.post(RUNS, json={"definition": "paid"}).json()["id"]
        first = next(told)
        assert (first.name, first.data["id"], first.data["definition"]) == ("changed", own, "paid")
        second = next(told)
    with scene.ann.stream("GET", f"{RUNS}/events", headers={"last-event-id": begin}) as response:
        missed = events(response)
        again = [next(missed), next(missed)]
    assert [each.data for each in again] == [first.data, second.data]
    assert foreign not in str((first, second, again))
    north = {"standfast-partition": "north"}
    with scene.ann.stream("GET", f"{RUNS}/events", headers=north) as response:
        told = events(response)
        scene.ann.post(RUNS, json={"definition": "paid"}, headers={"standfast-partition": "south"})
        ours = scene.ann.post(RUNS, json={"definition": "paid"}, headers=north).json()["id"]
        here = [next(told), next(told)]
    assert {each.data["id"] for each in here} == {ours}
    back = {**north, "last-event-id": str(second.id)}
    with scene.ann.stream("GET", f"{RUNS}/events", headers=back) as response:
        assert next(events(response)).data == here[0].data


@pytest.mark.row("G-17")
def test_who_has_heard_of_nothing_yet_misses_nothing(scene: Scene) -> None:
    """A stream of all runs says at once from where on it tells, so that whoever is cut off before the first event goes on from there."""
    with scene.ann.stream("GET", f"{RUNS}/events") as response:
        (place,) = next(blocks(response)).values()
        with scene.ann.stream("GET", f"{RUNS}/events") as another:
            run = scene.ann.post(RUNS, json={"definition": "paid"}).json()["id"]
            first = next(events(another))  # The server has read it by now, and will not come to it again by itself.
    assert (first.name, first.data["id"], first.data["sequence"]) == ("changed", run, 1)
    with scene.ann.stream("GET", f"{RUNS}/events", headers={"last-event-id": place}) as response:
        assert next(events(response)) == first
    with scene.ann.stream("GET", f"{RUNS}/events", params={"last_event_id": place}) as response:
        assert next(events(response)) == first


def test_what_others_do_keeps_nobody_too_far_behind(live: Live) -> None:
    """A stream that has nothing to tell says now and then how far it is: who comes back is not told to read anew because of what others did meanwhile."""
    engine = live.engine()
    registered(engine)
    options = replace(QUICK, heartbeat=timedelta(milliseconds=50))
    with served(engine, options) as address, httpx.Client(base_url=address, headers=key(engine), timeout=30) as ann:
        with ann.stream("GET", f"{RUNS}/events") as response:
            told = blocks(response)
            begin = int(next(told)["id"])
            rival = engine.as_tenant(RIVAL)
            for _ in range(QUICK.stream_backlog):
                rival.start("paid")
            newest = engine.admin.written(after=begin).next
            later = next(int(each["id"]) for each in told if int(each["id"]) >= newest)
        assert later > begin
        run = ann.post(RUNS, json={"definition": "paid"}).json()["id"]
        with ann.stream("GET", f"{RUNS}/events", headers={"last-event-id": str(later)}) as response:
            first = next(events(response))
        assert (first.name, first.data["id"]) == ("changed", run)


def test_a_browser_says_in_the_address_where_a_stream_begins(scene: Scene) -> None:
    """Browsers send no header with their first request: the address names the last event as well, and the header counts once there is one."""
    run = scene.ann.post(RUNS, json={"definition": "order"}).json()["id"]
    scene.ann.get(f"{RUNS}/{run}/result", params={"wait": 20})
    history = [each["sequence"] for each in scene.ann.get(f"{RUNS}/{run}/history").json()]
    where = {"last_event_id": str(history[-3])}
    with scene.ann.stream("GET", f"{RUNS}/{run}/events", params=where) as response:
        assert [each.id for each in events(response) if each.name == "entry"] == history[-2:]
    headers = {"last-event-id": str(history[-2])}
    with scene.ann.stream("GET", f"{RUNS}/{run}/events", params=where, headers=headers) as response:
        assert [each.id for each in events(response) if each.name == "entry"] == history[-1:]
    with scene.ann.stream("GET", f"{RUNS}/events", params={"last_event_id": str(2**62)}) as response:
        assert response.status_code == 400
    with scene.ann.stream("GET", f"{RUNS}/events", params={"last_event_id": "1"}) as response:
        assert next(events(response)).name in {"changed", "resync"}


def test_an_inbox_is_told_of_its_counts(scene: Scene) -> None:
    """Who looks at an inbox is told how many questions wait, at once and whenever that changes."""
    boss = httpx.Client(
        base_url=scene.address, headers=key(scene.engine, ACME, "boss", "task:use", roles=("approver",)), timeout=30
    )
    with boss, boss.stream("GET", "/api/v1/tasks/events") as response:
        told = events(response)
        assert next(told).data["by_role"] == {}
        scene.ann.post(RUNS, json={"definition": "ask"})
        assert next(told).data["by_role"] == {"approver": 1}


def test_an_inbox_is_not_told_what_it_knows(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written that changes no count is looked at, and is nothing to tell."""
    counted: list[TaskCounts] = []
    counts = AsyncTasks.counts

    async def count(tasks: AsyncTasks) -> TaskCounts:
        counted.append(await counts(tasks))
        return counted[-1]

    monkeypatch.setattr(AsyncTasks, "counts", count)
    monkeypatch.setattr(streams, "_COUNT_SECONDS", 0.0)
    headers = key(scene.engine, ACME, "boss", "task:use", roles=("approver",))
    boss = httpx.Client(base_url=scene.address, headers=headers, timeout=30)
    with boss, boss.stream("GET", "/api/v1/tasks/events") as response:
        told = events(response)
        assert next(told).data["by_role"] == {}
        scene.ann.post(RUNS, json={"definition": "paid"})
        assert eventually(lambda: len(counted) > 1)
        scene.ann.post(RUNS, json={"definition": "ask"})
        assert next(told).data["by_role"] == {"approver": 1}


def test_streams_are_limited(scene: Scene) -> None:
    """More streams than a credential may have are refused until one is closed."""
    with scene.ann.stream("GET", f"{RUNS}/events") as one, scene.ann.stream("GET", f"{RUNS}/events") as two:
        assert (one.status_code, two.status_code) == (200, 200)
        refused = scene.ann.get(f"{RUNS}/events")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")

    def is_taken() -> bool:
        with scene.ann.stream("GET", f"{RUNS}/events") as again:
            return again.status_code == 200

    assert eventually(is_taken)


def test_a_result_is_waited_for(scene: Scene) -> None:
    """A request waits for the end of a run, or is told that it has not ended."""
    run = scene.ann.post(RUNS, json={"definition": "order", "input": {"sku": "lamp"}}).json()["id"]
    told = scene.ann.get(f"{RUNS}/{run}/result", params={"wait": 20}).json()
    assert (told["is_finished"], told["result"]) == (True, {"sku": "lamp", "parcel": 77})
    waiting = scene.ann.post(RUNS, json={"definition": "paid"}).json()["id"]
    early = scene.ann.get(f"{RUNS}/{waiting}/result", params={"wait": 0.05})
    assert (early.status_code, early.json()["is_finished"]) == (202, False)


def test_slow_and_large_bodies_are_cut_off(scene: Scene) -> None:
    """A body that does not come, that says it is too large, or that grows too large, is refused; the server goes on."""
    secret = scene.ann.headers["authorization"].encode()
    head = (
        b"POST /api/v1/executions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: "
        + secret
        + b"\r\n"
    )
    slow = spoken(scene.address, head + b"content-length: 100\r\n\r\n{")
    assert slow.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in slow
    told = spoken(scene.address, head + b"content-length: 99999999\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 413")
    chunk = b"1000\r\n" + b"a" * 4096 + b"\r\n"
    grown = spoken(scene.address, head + b"transfer-encoding: chunked\r\n\r\n", chunk, chunk, chunk)
    assert grown.startswith(b"HTTP/1.1 413")
    both = spoken(scene.address, head + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
    assert both.startswith(b"HTTP/1.1 4")
    split = spoken(
        scene.address, b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-request-id: a\r\n b: c\r\nconnection: close\r\n\r\n"
    )
    assert b"b: c" not in split
    assert scene.ann.get("/healthz").status_code == 200
    looked = scene.ann.head("/healthz")
    assert (looked.status_code, looked.content) == (200, b"")


def test_too_many_requests_are_refused(live: Live) -> None:
    """A credential has so many requests at once; then it waits as long as it is told. Addresses that guess are slowed down too."""
    engine = live.engine()
    registered(engine)
    options = HttpOptions(burst=3, requests_per_second=0.01, failures_burst=2, failures_per_second=0.01)
    with served(engine, options) as address:
        ann, bob = (httpx.Client(base_url=address, headers=key(engine, ACME, who)) for who in ("ann", "bob"))
        with ann, bob:
            assert [ann.get("/api/v1/me").status_code for _ in range(4)] == [200, 200, 200, 429]
            assert int(ann.get("/api/v1/me").headers["retry-after"]) > 1
            assert bob.get("/api/v1/me").status_code == 200
        guesses = [
            httpx.get(f"{address}/api/v1/me", headers={"authorization": f"Bearer sf_{each}_x"}) for each in range(4)
        ]
        assert [each.status_code for each in guesses] == [401, 401, 429, 429]


def test_without_security_only_this_machine_comes_in(live: Live) -> None:
    """In `insecure_dev` whoever is on this machine may do everything; a name or a page of elsewhere may nothing, and no other address is served."""
    engine = live.engine()
    registered(engine)
    with served(engine, insecure_dev=True) as address:
        assert httpx.get(f"{address}/api/v1/me").json()["id"] == "developer"
        for headers in (
            {"host": "evil.test"},
            {"origin": "https://evil.test"},
            {"host": "evil.test:80", "origin": "http://evil.test:80"},
            {"sec-fetch-site": "cross-site"},
        ):
            assert httpx.get(f"{address}/api/v1/me", headers=headers).status_code == 401
        assert httpx.get(f"{address}/api/v1/me", headers={"authorization": "Bearer sf_no_no"}).status_code == 401
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ConfigurationError, match="insecure_dev accepts every client"):
            configuration(engine, host=host, insecure_dev=True)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4


def test_it_is_mounted_into_another_application(live: Live) -> None:
    """Mounted into an application of FastAPI, its addresses begin there, those of the application stay as they are, and what the engine refuses there is answered alike."""
    engine = live.engine()
    registered(engine)
    app = FastAPI()

    @app.get("/hello")
    def hello() -> str:
        return "hello"

    @app.get("/ui/status/{run}")
    def status(run: str) -> str:
        return engine.run(run).describe().status

    app.add_exception_handler(StandfastError, answer_error)
    app.mount("/standfast", create_app(engine))
    with serving(app) as address, httpx.Client(base_url=address, headers=key(engine)) as ann:
        assert ann.get("/hello").json() == "hello"
        own = ann.get("/ui/status/0193a2b4-0000-7000-8000-000000000001")
        assert (own.status_code, own.json()["code"], bool(own.json()["remedy"])) == (404, "not_found", True)
        wrong = ann.get("/ui/status/x")
        assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_payload")
        assert wrong.headers["content-type"] == "application/problem+json"
        run = ann.post(f"/standfast{RUNS}", json={"definition": "order"})
        assert run.status_code == 201
        assert ann.get(f"/standfast{RUNS}/{run.json()['id']}").status_code == 200
        missing = ann.get("/standfast/ui/workflows/0193a2b4-0000-7000-8000-000000000001")
        assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")
        assert ann.get("/standfast/nowhere").json()["code"] == "no_route"
