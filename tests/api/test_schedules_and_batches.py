"""Schedules, batches and files of workflows over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import httpx
import msgspec
import pytest

from api.world import ACME, NORTH, SOUTH, Client, World, problem, registered
from standfast import Saga
from standfast.graph.compiler import graph_data
from standfast.graph.definition import Definition
from standfast.http.openapi import document_of
from standfast.http.routes import ROUTES
from standfast.http.routes.workflows.definitions import publish_definition, publish_file
from standfast.testing import ManualEngine
from support.envelopes import invoice

CRON = {"workflow": "order", "cron": "0 * * * *"}
YAML = {"content-type": "application/yaml"}
FILE = """
domain: holidays
workflows:
  - id: holidays.request
    version: {version}
    steps:
      - {{id: asked, type: approval, assignee: {{role: {role}}}}}
      - {{id: over, type: terminal}}
    transitions:
      - {{from: asked, event: approved, to: over}}
      - {{from: asked, event: rejected, to: over}}
"""


@pytest.fixture
def own() -> Iterator[World]:
    """A world of the test's own, on the store in memory."""
    engine = ManualEngine()
    registered(engine)
    world = World(engine)
    yield world
    world.close()
    engine.stop()


@pytest.mark.row("G-18")
def test_a_schedule_is_put_looked_at_changed_and_deleted(own: World) -> None:
    """A schedule is there after its PUT, starts runs, tells its revision by ETag, and is changed only by who has seen it."""
    client = own.client()
    unmade = client.ask("PUT", "/api/v1/schedules/s", json=CRON, headers={"if-match": "*"})
    assert (unmade.status_code, problem(unmade)["code"]) == (412, "changed_meanwhile")
    made = client.ask("PUT", "/api/v1/schedules/s", json=CRON, headers={"if-match": '"v0"'})
    tag = {"if-none-match": made.headers["etag"]}
    assert (made.status_code, made.headers["etag"][:4], made.json()["status"]) == (200, '"v1.', "active")
    assert client.get("/api/v1/schedules/s", headers=tag).status_code == 304
    own.engine.advance(timedelta(hours=2))
    fires = client.get("/api/v1/schedules/s/fires?limit=1").json()
    assert [each["status"] for each in fires["items"]] == ["completed"]
    more = client.get(f"/api/v1/schedules/s/fires?cursor={fires['next']}").json()
    assert [each["number"] for each in more["items"]] == [1]
    stale = client.ask("PUT", "/api/v1/schedules/s", json={**CRON, "note": "x"}, headers={"if-match": '"v9"'})
    assert (stale.status_code, problem(stale)["code"]) == (412, "changed_meanwhile")
    moved = client.get("/api/v1/schedules/s", headers=tag).json()
    assert (moved["revision"], moved["next_at"] > made.json()["next_at"]) == (1, True)
    assert client.get("/api/v1/schedules/s/times?limit=2").json()["times"][1].startswith("2030-01-01T16:00")
    assert client.post("/api/v1/schedules/s/pause", {"reason": "r"}).json()["pause_reason"] == "r"
    key = {"idempotency-key": "k"}
    fired = [client.post("/api/v1/schedules/s/trigger", headers=key).json()["run"] for _ in range(2)]
    assert fired[0] == fired[1]
    assert client.post("/api/v1/schedules/s/resume").json()["status"] == "active"
    period = {"start": "2029-12-31T00:00:00Z", "end": "2029-12-31T02:00:00Z"}
    assert len(client.post("/api/v1/schedules/s/backfill", period).json()["backfills"]) == 1
    assert client.ask("POST", "/api/v1/schedules/s/stop-backfills").json()["backfills"] == []
    assert [each["id"] for each in client.get("/api/v1/schedules?workflow=order").json()["items"]] == ["s"]
    again = client.ask("PUT", "/api/v1/schedules/s", json={**CRON, "note": "x"}, headers={"if-match": "*"})
    assert (again.status_code, again.json()["revision"]) == (200, 2)
    assert client.ask("DELETE", "/api/v1/schedules/s", headers={"if-match": '"v2"'}).status_code == 204
    assert client.get("/api/v1/schedules/s").status_code == 404


def test_a_schedule_creates_documents(own: World) -> None:
    """A type of documents is scheduled by its name; what has no meaning for it is refused, and each fire names what it created."""
    own.engine.register(Definition(graph=invoice()))
    client, given = own.client(), {"workflow": "invoice", "input": {"vendor": "acme", "total": 5}, "cron": "0 * * * *"}
    for odd in ({"overlap": "skip"}, {"version": "1"}, {"document_id": "'x' +"}):
        refused = client.ask("PUT", "/api/v1/schedules/d", json={**given, **odd})
        assert (refused.status_code, problem(refused)["code"]) == (422, "invalid_schedule"), odd
    made = client.ask("PUT", "/api/v1/schedules/d", json={**given, "document_id": "'R-{number}'"}).json()
    assert (made["is_document"], made["overlap"]) == (True, "allow_all")
    own.engine.advance(timedelta(hours=1))
    (fire,) = client.get("/api/v1/schedules/d/fires").json()["items"]
    assert (fire["status"], fire["document"]) == ("created", "R-1")
    assert client.get("/api/v1/documents/invoice/R-1").json()["instance"] == fire["run"]


WAITING = {"workflow": "held", "every_seconds": 3600}
KEEPS = ("schedule:manage", "execution:start")


@pytest.mark.parametrize("door", ["trigger by another policy", "trigger by its policy", "put"])
def test_to_have_a_schedule_cancel_takes_the_permission_to_cancel(own: World, door: str) -> None:
    """Who may not cancel a run has no schedule do it, by whatever call; with the permission it is done, and asked for each time."""
    own.engine.register(Saga("held").wait_for("w", "w").build())
    keeper, boss = (
        own.client(capabilities=KEEPS, actor="tom"),
        own.client(capabilities=(*KEEPS, "execution:cancel"), actor="berta"),
    )
    policy = {"overlap": "cancel_running"} if door == "trigger by its policy" else {}
    assert boss.ask("PUT", "/api/v1/schedules/s", json={**WAITING, **policy}).status_code == 200
    boss.post("/api/v1/schedules/s/trigger")
    own.engine.drain()
    [run] = own.calls(ACME).runs.list().items

    def opened(client: Client) -> httpx.Response:
        match door:
            case "put":
                return client.ask("PUT", "/api/v1/schedules/s", json={**WAITING, "overlap": "cancel_running"})
            case "trigger by its policy":
                return client.post("/api/v1/schedules/s/trigger")
            case _:
                return client.post("/api/v1/schedules/s/trigger", {"overlap": "cancel_running"})

    refused = opened(keeper)
    own.engine.advance(timedelta(minutes=1))
    assert (refused.status_code, "execution:cancel" in problem(refused)["detail"]) == (403, True)
    assert own.calls(ACME).run(run.id).describe().status == "running"
    assert opened(boss).status_code == 200
    own.engine.advance(timedelta(hours=1))
    assert own.calls(ACME).run(run.id).describe().status == "cancelled"


def test_a_schedule_is_triggered_by_a_policy_that_cancels_nothing(own: World) -> None:
    """That takes no permission to cancel, nor one to look at the schedule."""
    own.engine.register(Saga("held").wait_for("w", "w").build())
    own.client(capabilities=(*KEEPS, "execution:cancel")).ask("PUT", "/api/v1/schedules/s", json=WAITING)
    keeper = own.client(capabilities=KEEPS, actor="tom")
    assert [keeper.post("/api/v1/schedules/s/trigger").json()["status"] for _ in range(2)] == ["starting", "skipped"]


def test_partitions_have_schedules_and_batches_of_their_own(own: World) -> None:
    """Who is bound to a part of the tenant has schedules and batches there, and those of another part look as if they were not there."""
    north, south = own.client(actor="nora", partition=NORTH), own.client(actor="sue", partition=SOUTH)
    assert north.ask("PUT", "/api/v1/schedules/s", json=CRON).json()["partition"] == NORTH
    batch = north.post("/api/v1/batches", {"verb": "start", "definition": "order", "inputs": [{}]}).json()
    for path in ("schedules/s", "schedules/s/fires", f"batches/{batch['id']}", f"batches/{batch['id']}/items"):
        assert north.get(f"/api/v1/{path}").status_code == 200
        assert south.get(f"/api/v1/{path}").status_code == 404
    assert south.get("/api/v1/schedules").json()["items"] == south.get("/api/v1/batches").json()["items"] == []
    assert south.ask("PUT", "/api/v1/schedules/s", json=CRON).json()["partition"] == SOUTH


@pytest.mark.row("EO-32")
def test_a_batch_is_begun_followed_and_cancelled(own: World) -> None:
    """A batch is accepted, tells what became of each item, and is the same for the same key."""
    client = own.client()
    runs = [str(own.calls(ACME).start("paid").id) for _ in range(3)]
    own.engine.drain()
    body = {"verb": "cancel", "runs": runs, "per_second": 2}
    made = [client.post("/api/v1/batches", body, headers={"idempotency-key": "once"}) for _ in range(2)]
    assert [each.status_code for each in made] == [202, 202]
    assert made[0].json()["id"] == made[1].json()["id"]
    own.engine.drain()
    where = made[0].headers["location"]
    items = client.get(f"{where}/items?limit=2").json()
    assert [each["status"] for each in items["items"]] == ["done", "done"]
    assert client.post(f"{where}/cancel", {"reason": "stop"}).json()["counts"]["dropped"] == 1
    assert [each["run"] for each in client.get(f"{where}/items?status=dropped").json()["items"]] == [runs[2]]
    for wrong in ({"verb": "odd"}, {"verb": "cancel", "runs": ["x"]}, {"verb": "cancel", "more": 1}):
        assert problem(client.post("/api/v1/batches", wrong))["code"] == "malformed"
    assert problem(client.post("/api/v1/batches", {"verb": "cancel"}))["code"] == "bad_payload"


def test_a_file_is_published_as_a_whole_or_not_at_all(own: World) -> None:
    """YAML and JSON are taken; each workflow is told of; another content under a published version is refused with its place, and nothing is stored."""
    client, address = own.client(), "/api/v1/definitions/files"
    first, second = FILE.format(version=1, role="manager"), FILE.format(version=1, role="boss")
    told = client.ask("POST", f"{address}?check=true", content=first, headers=YAML)
    assert (told.status_code, told.json()["workflows"][0]["what"]) == (200, "new")
    assert client.get("/api/v1/definitions/holidays.request").status_code == 404
    made = client.ask("POST", address, content=first, headers=YAML)
    assert (made.status_code, made.json()["is_published"]) == (201, True)
    again = client.ask("POST", address, content=first, headers=YAML).json()
    assert again["workflows"][0]["what"] == "unchanged"
    refused = client.ask("POST", address, content=second, headers=YAML)
    assert (refused.status_code, problem(refused)["errors"][0]["code"]) == (422, "already_published")
    changes = client.ask("POST", f"{address}/diff", content=second, headers=YAML).json()
    assert [(each["name"], each["change"]) for each in changes["changes"]] == [("asked", "changed")]
    assert own.client(tenant="rival", actor="eve").get("/api/v1/definitions/holidays.request").status_code == 404


def test_a_workflow_is_tried_out_before_and_after_it_is_published(own: World) -> None:
    """The way of a run, from a file and from what is published, with what is supposed; a misspelt name, and another tenant's workflow, are refused."""
    client, base = own.client(), "/api/v1/definitions"
    text = FILE.format(version=1, role="manager")
    first = client.ask("POST", f"{base}/files/dry-run", json={"text": text})
    assert (first.status_code, first.json()["ends"], first.json()["status"]) == (200, "ended", "completed")
    client.ask("POST", f"{base}/files", content=text, headers=YAML)
    address = f"{base}/holidays.request/dry-run"
    second = client.ask("POST", address, json={"decisions": {"asked": ["rejected"]}, "input": {"days": 3}}).json()
    asked = second["trail"][0]
    assert (asked["node"], asked["outcome"], asked["is_assumed"]) == ("asked", "rejected", False)
    client.ask("POST", f"{base}/files", content=FILE.format(version=2, role="boss"), headers=YAML)
    older, newer = (client.ask("POST", address, json={"version": each}).json() for each in ("1", ""))
    assert [each["trail"][0]["note"] for each in (older, newer)] == ["asks role:manager", "asks role:boss"]
    saga = Saga("s").step("do", "work").human("ask", role="r").wait_for("paid", "payment", timeout=60).build()
    given: dict[str, object] = {"text": json.dumps(graph_data(saga.graph)), "workflow": "s"}
    all_said = {**given, "answers": {"work": 7}, "forms": {"ask": {"n": 1}}, "events": {"payment": 8}}
    data = client.ask("POST", f"{base}/files/dry-run", json=all_said).json()["data"]
    assert (data["do"], data["ask"]["data"], data["paid"]) == (7, {"n": 1}, 8)
    for badly in ({"failing": ["work"]}, {"unanswered": ["payment"]}):
        assert client.ask("POST", f"{base}/files/dry-run", json=given | badly).json()["status"] == "failed"
    assert client.ask("POST", f"{base}/files/dry-run", json={**given, "workflow": "t"}).status_code == 404
    wrong = client.ask("POST", address, json={"decisions": {"askd": "rejected"}})
    assert (wrong.status_code, "did you mean 'asked'?" in problem(wrong)["detail"]) == (422, True)
    assert client.ask("POST", address, json={"text": "x"}).status_code == 400
    assert own.client(tenant="rival", actor="eve").ask("POST", address, json={}).status_code == 404
    assert client.get("/api/v1/executions").json()["items"] == []


def test_what_is_wrong_with_a_file_is_told_with_its_place(own: World) -> None:
    """Every finding has its line and column, whether it is asked for or met when publishing; another media type is refused with those that are taken."""
    client, address = own.client(), "/api/v1/definitions/files"
    broken = FILE.format(version=1, role="manager").replace("to: over", "to: nowhere")
    found = client.ask("POST", f"{address}/validate", content=broken, headers=YAML).json()
    assert found["is_valid"] is False
    assert {"10", "11"} <= {each["position"].split(":")[0] for each in found["findings"]}
    refused = client.ask("POST", address, content=broken, headers=YAML)
    assert (refused.status_code, problem(refused)["errors"]) == (422, found["findings"])
    valid = client.ask("POST", f"{address}/validate", content=FILE.format(version=1, role="m"), headers=YAML).json()
    assert (valid["is_valid"], valid["workflows"]) == (True, ["holidays.request-v1"])
    odd = client.ask("POST", address, content=broken, headers={"content-type": "text/html"})
    assert (odd.status_code, "application/yaml" in problem(odd)["detail"]) == (415, True)
    for content in (b"", b"\xff\xfe", b"a: " * 100_000, b"[" * 60, b"{}"):
        answer = client.ask("POST", address, content=content, headers=YAML)
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_definition"), content[:10]
    assert client.ask("POST", address, content=b"x" * 2_000_000, headers=YAML).status_code == 413


def test_a_version_of_the_tenant_is_archived_and_restored(own: World) -> None:
    """What is out of use starts nothing new; what all tenants share is not a tenant's to archive."""
    client, base = own.client(), "/api/v1/definitions"
    client.ask("POST", f"{base}/files", content=FILE.format(version=1, role="manager"), headers=YAML)
    name = f"{base}/holidays.request"
    assert client.post(f"{name}/archive", {"version": "1", "reason": "a wrong role"}).status_code == 204
    (told,) = client.get(f"{base}/archived").json()["items"]
    assert (told["name"], told["archived_why"]) == ("holidays.request", "a wrong role")
    start = {"definition": "holidays.request", "version": "1"}
    assert problem(client.post("/api/v1/executions", start))["code"] == "archived"
    assert client.post(f"{name}/restore", {"version": "1"}).status_code == 204
    assert client.post("/api/v1/executions", start).status_code == 201
    assert client.post(f"{base}/order/archive", {"version": "1"}).status_code == 404


def test_the_examples_of_the_document_can_be_published(own: World) -> None:
    """What the OpenAPI document shows as a definition and as a file is one."""
    document = msgspec.json.decode(document_of(ROUTES))
    for handler in (publish_definition, publish_file):
        route = next(each for each in ROUTES if each.handler is handler)
        body = document["paths"][route.path]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert own.client().post(route.path, body).status_code == 201


@pytest.mark.parametrize("pattern", ["^(?:^){4000000000}", "^(?:^){100000000}", "(x+x+)+(?=y)", "(.{1000}){1000}"])
def test_no_pattern_of_a_file_costs_much(own: World, pattern: str) -> None:
    """Whoever may only read definitions can try out a file with any pattern: it is refused at once, with its place, and so is publishing it."""
    form = {"type": "object", "properties": {"v": {"type": "string", "default": "x", "pattern": pattern}}}
    steps = [
        {"id": "ask", "type": "approval", "assignee": {"role": "x"}, "form": form},
        {"id": "end", "type": "terminal", "outcome": "ok"},
    ]
    transitions = [{"from": "ask", "event": "approved", "to": "end"}]
    text = json.dumps(
        {"domain": "d", "workflows": [{"id": "d.w", "version": "1", "steps": steps, "transitions": transitions}]}
    )
    client, address = own.client(), "/api/v1/definitions/files"
    for refused in (
        client.ask("POST", f"{address}/dry-run", json={"text": text}),
        client.ask("POST", address, content=text, headers=YAML),
    ):
        (error,) = problem(refused)["errors"]
        assert (refused.status_code, error["code"]) == (422, "form")
        assert error["position"] == f"1:{text.index(json.dumps(pattern)) + 1}"
