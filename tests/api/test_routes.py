"""What the routes do: one API seen from two sides, on both stores."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from api.world import ACME, Client, World, problem
from app.processes.acting import INPUT
from standfast import Saga

RUNS = "/api/v1/executions"


def started(client: Client, definition: str, **more: Any) -> str:
    """A run that was started over HTTP."""
    answer = client.post(RUNS, {"definition": definition, **more})
    assert answer.status_code == 201, answer.text
    identity: str = answer.json()["id"]
    assert answer.headers["location"] == f"{RUNS}/{identity}"
    return identity


def is_done(answer: httpx.Response) -> bool:
    """Whether it was done, with nothing to tell."""
    assert answer.status_code == 204, answer.text
    return answer.content == b""


def all_of(client: Client, path: str, **query: Any) -> list[Any]:
    """Everything in a list, a page of one at a time; no page has more."""
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(path, params={**query, "limit": 1, "cursor": cursor}).json()
        assert len(page["items"]) <= 1, page
        found += page["items"]
        cursor = page["next"]
        assert len(found) < 200
    return found


@pytest.mark.row("G-10", "R-006", "R-071")
def test_a_run_from_start_to_end(world: World) -> None:
    """A run is started, found, looked at from all sides, and tells what it came to; its history has the caller and his trace."""
    client = world.client()
    parent = "00-" + "12" * 16 + "-" + "34" * 8 + "-01"
    answer = client.post(
        RUNS, {"definition": "order", "input": {"sku": "lamp"}, "key": "o-1"}, headers={"traceparent": parent}
    )
    run = answer.json()["id"]
    assert answer.headers["traceparent"].split("-")[1] == "12" * 16
    waiting = client.get(f"{RUNS}/{run}/result")
    assert (waiting.status_code, waiting.json()["is_finished"]) == (202, False)
    world.engine.drain()
    told = client.get(f"{RUNS}/{run}/result").json()
    assert (told["status"], told["result"]) == ("completed", {"sku": "lamp", "parcel": 77})
    history = client.get(f"{RUNS}/{run}/history").json()
    assert (history[0]["actor"], history[0]["trace"].split("-")[1]) == ("ann", "12" * 16)
    rest = client.get(f"{RUNS}/{run}/history", params={"after": history[0]["sequence"], "limit": 1}).json()
    assert rest == history[1:2]
    assert client.get(f"{RUNS}/{run}/trace").json() == client.get(f"{RUNS}/{run}/steps").json() != []
    assert client.get(f"{RUNS}/{run}/verification").json()["differences"] == []
    assert "mermaid" in client.get(f"{RUNS}/{run}/diagram").json()["format"]
    assert client.get(f"{RUNS}/{run}/why").json()["status"] == "completed"
    found = client.get(
        RUNS, params={"key": "o-1", "definition": "order", "status": "completed", "active": "false"}
    ).json()
    assert [each["id"] for each in found["items"]] == [run]
    assert client.get(RUNS, params={"key": "o-1", "active": "true"}).json()["items"] == []


def test_a_run_has_a_tag(world: World) -> None:
    """What has not changed is not sent again; what has, has another tag."""
    client = world.client()
    run = started(client, "paid")
    first = client.get(f"{RUNS}/{run}")
    tag = {"if-none-match": first.headers["etag"]}
    same = client.get(f"{RUNS}/{run}", headers=tag)
    assert (same.status_code, same.content) == (304, b"")
    pause = client.post("/api/v1/pauses", {"definition": first.json()["definition"], "reason": "tags"}).json()
    held = client.get(f"{RUNS}/{run}", headers=tag)  # Nothing has happened to the run, and another thing is shown.
    assert (held.status_code, held.json()["version"]) == (200, first.json()["version"])
    assert client.post(f"/api/v1/pauses/{pause['id']}/resume").status_code == 200
    assert is_done(client.post(f"{RUNS}/{run}/signal", {"name": "paid", "payload": {"amount": 1}}))
    assert client.get(f"{RUNS}/{run}", headers=tag).status_code == 200


@pytest.mark.row("G-25")
def test_a_repeated_start_is_one_run(world: World) -> None:
    """The same Idempotency-Key gives the same run, with 200 instead of 201; with another input it is refused."""
    client = world.client()
    key = {"idempotency-key": "again-1"}
    first, again = (client.post(RUNS, {"definition": "order", "input": {"a": 1}}, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code, first.json()) == (201, 200, again.json())
    other = client.post(RUNS, {"definition": "order", "input": {"a": 2}}, headers=key)
    assert (other.status_code, problem(other)["code"]) == (409, "reused_id")
    signal = {"idempotency-key": "signal-1"}
    run = started(client, "paid")
    for _ in range(2):
        assert is_done(client.post(f"{RUNS}/{run}/signal", {"name": "other"}, headers=signal))
    kinds = [each["event_type"] for each in client.get(f"{RUNS}/{run}/history").json()]
    assert kinds.count("signal_received") == 1


@pytest.mark.row("R-067", "R-068", "R-069", "R-070", "R-136", "G-26")
def test_a_run_is_paused_and_resumed(world: World) -> None:
    """Pause, status, resume-options and resume are where the specification has them, and tell what it wants; twice is a conflict."""
    client = world.client()
    run = started(client, "paid")
    assert client.get(f"{RUNS}/{run}/status").json()["paused_at"] is None
    assert is_done(client.post(f"{RUNS}/{run}/pause", {"reason": "the supplier is closed"}))
    status = client.get(f"{RUNS}/{run}/status").json()
    assert (status["status"], status["paused_reason"], status["paused_by"]) == ("paused", "requested", "ann")
    assert status["paused_step_id"] == status["next_step_id"] == "wait"
    assert status["paused_at"] is not None
    assert {"resume", "signal"} <= {each["action"] for each in client.get(f"{RUNS}/{run}/resume-options").json()}
    again = client.post(f"{RUNS}/{run}/pause", {})
    assert (again.status_code, problem(again)["code"]) == (409, "already_paused")
    assert run in [each["id"] for each in all_of(client, f"{RUNS}/paused")]
    assert run in [each["id"] for each in all_of(client, f"{RUNS}/paused", next_step="wait")]
    assert client.get(f"{RUNS}/paused?next_step=else").json()["items"] == []
    assert is_done(client.post(f"{RUNS}/{run}/resume", {"reason": "open again", "metadata": {"supplier": "open"}}))
    assert client.get(f"{RUNS}/{run}").json()["resume_data"] == {"supplier": "open"}
    late = client.post(f"{RUNS}/{run}/resume", {})
    assert (late.status_code, problem(late)["code"]) == (409, "not_paused")
    requests = client.get(f"{RUNS}/{run}/resume-requests").json()
    assert sorted(bool(each["error_message"]) for each in requests) == [False, True]


@pytest.mark.row("F-175", "C-10")
def test_runs_are_stopped(world: World) -> None:
    """Cancel and abort tell how a run ended; what has ended cannot be ended again."""
    client = world.client()
    for how, status in (("cancel", "cancelled"), ("abort", "aborted")):
        run = started(client, "paid")
        told = client.post(f"{RUNS}/{run}/{how}", {"reason": "ordered twice"})
        assert (told.status_code, told.json()) == (200, {"id": run, "status": status, "is_finished": True})
        again = client.post(f"{RUNS}/{run}/{how}", {})
        assert (again.status_code, problem(again)["code"]) == (409, "already_terminal")


@pytest.mark.row("G-27", "G-11")
def test_runs_are_repaired(world: World) -> None:
    """What gave up is listed, grouped by cause, and put back; steps are skipped and completed by hand, data changed, runs forked."""
    client = world.client(actor="op")
    runs = [started(client, "fragile") for _ in range(3)]
    world.engine.drain()
    groups = client.get("/api/v1/dead-letters/groups").json()
    mine = next(each for each in groups["items"] if each["definition"] == "fragile")
    assert (mine["count"] >= 3, groups["is_complete"]) == (True, True)
    letters = {each["instance"]: each["id"] for each in all_of(client, "/api/v1/dead-letters", definition="fragile")}
    assert is_done(client.post(f"/api/v1/dead-letters/{letters[runs[0]]}/requeue", {"input": {"printer": 2}}))
    kept = client.ask("POST", f"/api/v1/dead-letters/{letters[runs[1]]}/discard")
    assert (kept.status_code, problem(kept)["code"]) == (409, "conflict")
    assert client.get(f"/api/v1/dead-letters/{letters[runs[1]]}").json()["source"] == "step"
    why = {"reason": "the printer was replaced"}
    assert is_done(client.post(f"{RUNS}/{runs[1]}/steps/1/skip", why))
    assert is_done(client.post(f"{RUNS}/{runs[2]}/steps/1/complete", {**why, "output": {"page": 1}}))
    assert client.get(f"{RUNS}/{runs[2]}/result").json()["result"] == {"page": 1}
    nameless = client.post(f"{RUNS}/{runs[2]}/steps/first/skip", why)
    assert nameless.status_code == 404
    waiting = started(client, "paid", input={"a": 1})
    assert is_done(client.post(f"{RUNS}/{waiting}/data", {**why, "patch": {"b": 2}}))
    assert client.get(f"{RUNS}/{waiting}").json()["context"] == {"a": 1, "b": 2}
    at = client.get(f"{RUNS}/{waiting}/history").json()[-1]["sequence"]
    assert client.get(f"{RUNS}/{waiting}/fork-preview", params={"at": at}).json()["problem"] == ""
    forked = client.post(f"{RUNS}/{waiting}/fork", {**why, "at": at})
    assert forked.status_code == 201
    assert UUID(forked.json()["id"]) != UUID(waiting)
    failed = client.post(f"{RUNS}/{waiting}/fail", why)
    assert failed.json()["is_finished"]


@pytest.mark.row("P-150", "P-151", "P-152", "P-153", "P-154", "P-155", "P-156", "P-157")
@pytest.mark.row("C-10")
def test_a_process_as_its_specification_has_it(world: World) -> None:
    """Start with the input as the body, look, advance, cancel, at the addresses and with the statuses and codes that are named."""
    client = world.client(actor="cat", roles=("approver",))
    key = {"idempotency-key": "p-1"}
    first = client.post("/ui/workflows/orders.approval/start", INPUT, headers=key)
    again = client.post("/ui/workflows/orders.approval/start", INPUT, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert (first.json()["current_step"], first.json()["status"]) == ("review", "active")
    process = first.json()["id"]
    where = f"/ui/workflows/{process}"
    shown = client.get(where)
    assert shown.json()["instance"]["subject_id"] == "cat"
    assert {each["event"] for each in shown.json()["choices"]} >= {"approved", "rejected"}
    stranger, tag = world.client(actor="eve", capabilities=("process:use",)), {"if-none-match": shown.headers["etag"]}
    assert [each.get(where, headers=tag).status_code for each in (client, stranger)] == [304, 200]
    listed = client.get("/ui/workflows", params={"status": "active"}).json()
    assert (process in [each["id"] for each in listed["items"]], listed["total"] >= 1) == (True, True)
    for body, code, status in (
        ({"event": "nonsense"}, "INVALID_TRANSITION", 422),
        ({"event": "nonsense", "input": None}, "INVALID_TRANSITION", 422),
        ({}, "VALIDATION_ERROR", 400),
        ({"event": "approved", "input": {"_hidden": 1}}, "VALIDATION_ERROR", 422),
    ):
        refused = client.post(f"{where}/advance", body)
        assert (refused.status_code, problem(refused)["code"]) == (status, code), refused.text
    unknown = client.post("/ui/workflows/orders.aproval/start", {})
    assert (unknown.status_code, problem(unknown)["message"]) == (404, "no workflow 'orders.aproval'")
    stale = client.post(f"{where}/advance", {"event": "approved"}, headers={"if-match": '"v99"'})
    assert (stale.status_code, problem(stale)["code"]) == (412, "VERSION_CONFLICT")
    assert problem(stale)["message"] == "it has version 1 by now, not 99; look at it again"
    barred = stranger.post(f"{where}/advance", {"event": "approved"})
    assert (barred.status_code, problem(barred)["code"]) == (403, "FORBIDDEN")
    moved = client.post(f"{where}/advance", {"event": "rejected"}, headers={"if-match": shown.headers["etag"]})
    assert (moved.status_code, moved.json()["status"], moved.json()["outcome"]) == (200, "completed", "rejected")
    over = client.post(f"{where}/advance", {"event": "approved"})
    assert (over.status_code, problem(over)["code"]) == (409, "WORKFLOW_NOT_ACTIVE")
    assert [each["event"] for each in client.get(f"{where}/events").json()][:1] == ["step_entered"]
    second = client.post("/ui/workflows/orders.approval/start", {**INPUT, "tenant_id": "rival"}).json()
    assert (second["tenant_id"], second["state"]["tenant_id"]) == (ACME, "rival")
    cancelled = client.post(f"/ui/workflows/{second['id']}/cancel", {"reason": "ordered twice"})
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    missing = client.get("/ui/workflows/0193a2b4-0000-7000-8000-000000000001")
    assert (missing.status_code, problem(missing)["code"]) == (404, "NOT_FOUND")


@pytest.mark.row("G-12")
def test_people_decide(world: World) -> None:
    """An inbox is listed and counted, a question is claimed, commented on and decided; what was decided is listed."""
    client = world.client(actor="boss", capabilities=("task:use",), roles=("approver",))
    run = started(world.client(), "ask")
    world.engine.drain()
    task = f"{run}:1"
    assert task in [each["step_id"] for each in all_of(client, "/api/v1/tasks")]
    assert client.get("/api/v1/tasks/counts").json()["by_role"]["approver"] >= 1
    assert client.get(f"/api/v1/tasks/{task}").json()["outcomes"]
    assert problem(client.get("/api/v1/tasks", params={"mine": "false"}))["status"] == 403
    assert is_done(client.post(f"/api/v1/tasks/{task}/claim"))
    assert is_done(client.post(f"/api/v1/tasks/{task}/comments", {"text": "see page 3"}))
    wrong = client.post(f"/api/v1/tasks/{task}/decide", {"decision": "maybe"})
    assert (wrong.status_code, problem(wrong)["code"]) == (422, "unknown_outcome")
    assert is_done(client.post(f"/api/v1/tasks/{task}/approve", {"comment": "fine"}))
    late = client.post(f"/api/v1/tasks/{task}/reject", {})
    assert late.status_code == 409
    assert [each["task"]["step_id"] for each in all_of(client, "/api/v1/tasks/decided")] == [task]


def test_a_question_that_ends_its_run_is_pulled_back_by_who_may_cancel(world: World) -> None:
    """The one who has started the run needs the permission `execution:cancel` for that, as to cancel it."""
    world.engine.register(Saga("asking").human("h", role="boss").build())
    clerk = world.client(actor="carl", capabilities=("execution:start", "execution:read", "task:use"))
    mighty = world.client(actor="carl", capabilities=("execution:*", "task:use"))
    run = started(clerk, "asking")
    world.engine.drain()
    refused = clerk.post(f"/api/v1/tasks/{run}:1/withdraw", {"reason": "x"})
    assert (refused.status_code, "execution:cancel" in problem(refused)["detail"]) == (403, True)
    assert clerk.get(f"{RUNS}/{run}").json()["status"] == "running"
    assert is_done(mighty.post(f"/api/v1/tasks/{run}:1/withdraw", {"reason": "x"}))
    assert mighty.get(f"{RUNS}/{run}").json()["status"] == "aborted"


def test_the_world_tells_and_is_told(world: World) -> None:
    """Events are published once for each id and listed; what is paused is listed, looked at and let go."""
    client = world.client()
    bodies = [
        {"event": "stock.arrived", "key": str(number), "event_id": f"e-{number}", "ttl_seconds": 60}
        for number in range(3)
    ]
    for body in bodies * 2:
        assert client.post("/api/v1/events", body).status_code == 201
    assert sorted(each["key"] for each in all_of(client, "/api/v1/events", event="stock.arrived")) == ["0", "1", "2"]
    assert client.get("/api/v1/events/e-1").json()["publisher"] == "ann"
    pause = client.post("/api/v1/pauses", {"definition": "order", "reason": "moving"})
    assert pause.status_code == 201
    assert pause.json()["id"] in [each["id"] for each in all_of(client, "/api/v1/pauses")]
    assert client.post(f"/api/v1/pauses/{pause.json()['id']}/resume", {"reason": "moved"}).json()["ended_by"] == "ann"
    assert pause.json()["id"] in [each["id"] for each in all_of(client, "/api/v1/pauses", with_ended="true")]
    assert all_of(client, "/api/v1/notifications") == []
    assert client.get("/api/v1/notifications/unread-count").json() == {"count": 0}


def test_people_are_looked_after(world: World) -> None:
    """The directory and approval chains are changed and listed; every change is on record."""
    client, base = world.client(), "/api/v1/directory"
    for person in ("a-1", "a-2", "a-3"):
        assert (
            client.ask("PUT", f"{base}/people/{person}", json={"name": person.upper()}).json()["name"] == person.upper()
        )
    assert [each["id"] for each in all_of(client, f"{base}/people")] == ["a-1", "a-2", "a-3"]
    assert is_done(client.ask("PUT", f"{base}/people/a-1/roles/finance", json={}))
    assert client.get(f"{base}/people/a-1/roles").json() == ["finance"]
    assert [each["id"] for each in all_of(client, f"{base}/roles/finance/holders")] == ["a-1"]
    assert client.ask("DELETE", f"{base}/people/a-1/roles/finance").json() == {"was": True}
    made = client.post(f"{base}/delegations", {"giver": "a-1", "to": "a-2"})
    assert made.status_code == 201
    assert client.ask("DELETE", f"{base}/delegations/{made.json()['id']}").json() == {"was": True}
    circle = client.post(f"{base}/delegations", {"giver": "a-1", "to": "a-1"})
    assert (circle.status_code, problem(circle)["code"]) == (422, "delegation_to_self")
    assert is_done(client.ask("POST", f"{base}/people/a-3/deactivate"))
    assert client.get(f"{base}/people/a-3").json()["is_active"] is False
    assert len(all_of(client, f"{base}/changes")) >= 6
    stages = [{"asks": ["manager"]}, {"asks": ["role:finance"]}]
    assert client.post("/api/v1/chains", {"name": "expenses", "stages": stages}).json()["version"] == 1
    assert [each["name"] for each in all_of(client, "/api/v1/chains")] == ["expenses"]
    assert [each["version"] for each in all_of(client, "/api/v1/chains/expenses/versions")] == [1]


@pytest.mark.row("E-851")
def test_definitions_are_looked_at_and_published(world: World) -> None:
    """A definition is read as data, changed, validated with every finding, and published for the tenant alone."""
    client = world.client()
    points = client.get("/api/v1/definitions/paid/pause-points", params={"trigger": "wait"}).json()
    assert [(each["step_id"], each["resumption_behavior"]) for each in points] == [("wait", "continue")]
    strange = client.get("/api/v1/definitions/paid/pause-points", params={"trigger": "timer"})
    assert (strange.status_code, problem(strange)["code"]) == (400, "bad_query")
    source = client.get("/api/v1/definitions/paid/source").json()
    mine = {**source, "name": "paid-later"}
    assert client.post("/api/v1/definitions/validate", mine).json()["is_valid"] is True
    broken = client.post("/api/v1/definitions/validate", {**mine, "nodes": {}}).json()
    assert (broken["is_valid"], bool(broken["findings"])) == (False, True)
    refused = client.post("/api/v1/definitions", {**mine, "nodes": {}})
    assert (refused.status_code, bool(problem(refused)["errors"])) == (422, True)
    assert client.post("/api/v1/definitions", mine).json()["tenant"] == ACME
    assert client.get("/api/v1/definitions/paid-later").json()["published_by"] == "ann"
    assert "paid-later" in [each["name"] for each in all_of(client, "/api/v1/definitions")]
    assert "flowchart" in client.get("/api/v1/definitions/paid-later/diagram").json()["source"]
    started(client, "paid-later")


@pytest.mark.row("G-15")
def test_the_platform_is_watched(world: World) -> None:
    """Its own tenant sees workers, queues, health and metrics; readiness follows maintenance; labels are bounded."""
    root, nobody = world.client(tenant="default", actor="root"), world.bearer()
    assert (nobody.get("/healthz").json(), nobody.get("/readyz").json()) == ({"status": "ok"}, {"status": "ok"})
    assert root.get("/api/v1/health").json()["is_healthy"] is True
    assert root.get("/api/v1/queues").json()["inbox_depth"] == 0
    assert is_done(root.post("/api/v1/maintenance", {"mode": "refuse"}))
    assert nobody.get("/readyz").status_code == 503
    refused = root.post(RUNS, {"definition": "order"})
    assert (refused.status_code, problem(refused)["code"], refused.headers["retry-after"]) == (503, "stopped", "1")
    assert is_done(root.post("/api/v1/maintenance", {"mode": "none"}))
    assert nobody.get("/readyz").status_code == 200
    for number in range(300):
        nobody.get(f"/api/v1/executions/{number}")
    text = root.get("/metrics").text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert 'standfast_http_requests_total{method="GET",route="/api/v1/executions/{id}",status="4xx"}' in text
    assert {"standfast_healthy 1", "standfast_inbox_depth 0"} <= set(lines)
    assert len(lines) < 2000
    assert nobody.get("/metrics").status_code == 401


def test_every_answer_has_the_headers_of_security(world: World) -> None:
    """Whatever is answered, and to whom, is not sniffed, framed, cached or referred to."""
    answers = [world.bearer().get(path) for path in ("/healthz", "/nowhere", RUNS)]
    answers += [world.client().get(RUNS), world.client().ask("BREW", RUNS)]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert len(answer.headers["traceparent"]) == 55


def test_what_can_be_looked_at_has_a_head(world: World) -> None:
    """A head has the headers of the whole and no body; a stream, which has no end, has none."""
    client = world.client()
    whole, head = client.get(RUNS), client.ask("HEAD", RUNS)
    assert (head.status_code, head.headers["content-length"], head.content) == (
        200,
        whole.headers["content-length"],
        b"",
    )
    stream = client.ask("HEAD", f"{RUNS}/events")
    assert (stream.status_code, stream.headers["allow"]) == (405, "GET")
