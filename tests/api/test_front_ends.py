"""What a program that shows runs to people can rely on: the same words everywhere, and all that a page shows without a request for each line."""

from __future__ import annotations

import pytest

from api.world import ACME, BODY, INVOICE, RIVAL, World, contract
from app.processes.acting import INPUT
from standfast.features.processes import calls as processes

RUNS = "/api/v1/executions"


def of_every_kind(world: World) -> list[str]:
    """Runs that stand in different ways: dead, pending, waiting, asking, a process, completed, paused."""
    calls = world.calls()
    dead, waiting, asking, done = (calls.start(each).id for each in ("fragile", "paid", "ask", "order"))
    process = calls.processes.start("orders.approval", INPUT).id
    paused = calls.start("paid")
    world.engine.drain()
    paused.pause("to look at it")
    pending = calls.start("order", delay=3600).id
    return [str(each) for each in (dead, waiting, asking, done, process, paused.id, pending)]


def test_a_run_is_called_the_same_wherever_it_is_told(world: World) -> None:
    """Alone, in short, in a list, with its result, with why it does not move and as it was at its last event, a run has one status."""
    client = world.client()
    runs = of_every_kind(world)
    listed = {each["id"]: each["status"] for each in client.get(RUNS, params={"limit": 1000}).json()["items"]}
    seen = set()
    for run in runs:
        whole = client.get(f"{RUNS}/{run}").json()
        told = [client.get(f"{RUNS}/{run}/{part}").json()["status"] for part in ("status", "why", "result")]
        past = client.get(f"{RUNS}/{run}/state", params={"at": whole["version"]}).json()["status"]
        assert {whole["status"], listed[run], *told, past} == {whole["status"]}, (whole, told, past)
        seen.add(whole["status"])
    assert {"dlq", "pending", "completed", "paused", "active"} <= seen


def test_a_run_that_waits_was_running_then_too(world: World) -> None:
    """What a run was called at an event of its history is what it was called when that was its last one."""
    client, calls = world.client(), world.calls()
    run = calls.start("paid")
    world.engine.drain()
    path = f"{RUNS}/{run.id}"
    before = client.get(path).json()
    run.signal("paid", {"amount": 7})
    world.engine.drain()
    assert client.get(path).json()["version"] > before["version"]
    past = client.get(f"{path}/state", params={"at": before["version"]}).json()
    assert (past["status"], before["status"]) == ("running", "running")


@pytest.mark.row("G-10")
def test_a_list_of_runs_tells_what_a_line_of_it_shows(world: World) -> None:
    """Of which kind a run is, whose part it is of, who started it and how far it is, is told in lists as it is told of one run: no page asks for each line again."""
    client = world.client()
    process = world.calls(partition="north", actor="bob").processes.start("orders.approval", INPUT).id
    saga = world.calls(actor="carol").start("paid").id
    world.engine.drain()
    listed = {each["id"]: each for each in client.get(RUNS, params={"limit": 1000}).json()["items"]}
    for run, kind, partition, started_by in ((process, "process", "north", "bob"), (saga, "saga", "", "carol")):
        whole, line = client.get(f"{RUNS}/{run}").json(), listed[str(run)]
        assert (line["kind"], line["partition"], line["started_by"]) == (kind, partition, started_by)
        assert {name: whole[name] for name in line if name in whole} == {n: v for n, v in line.items() if n in whole}
        assert set(line) - set(whole) == set()


@pytest.mark.row("P-124")
def test_a_list_of_processes_says_whether_its_total_is_exact(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the number that is counted to, a page tells that number and that there are more."""
    for _ in range(3):
        world.calls(actor="carol").processes.start("orders.approval", INPUT)
    for most, told in ((2, (2, False)), (3, (3, True))):
        monkeypatch.setattr(processes, "MOST_COUNTED", most)
        page = world.client().get("/ui/workflows", params={"limit": 1, "subject_id": "carol"}).json()
        assert (page["total"], page["is_total_exact"]) == told


@pytest.mark.row("G-15", "G-11")
def test_how_much_gave_up_is_told_without_reading_it(world: World) -> None:
    """Queues and metrics tell how many dead letters there are now, of all tenants; what was dealt with counts no more."""
    root = world.client(tenant="default", actor="root")

    def told() -> tuple[int, float]:
        lines = dict(each.rsplit(" ", 1) for each in root.get("/metrics").text.splitlines() if each[0] != "#")
        queues = root.get("/api/v1/queues").json()
        return sum(each["count"] for each in queues["given_up"]), float(lines["standfast_dead_letters"])

    before = told()
    for tenant in (ACME, RIVAL):
        world.calls(tenant).start("fragile")
    world.engine.drain()
    assert told() == (before[0] + 2, before[1] + 2)
    letter = world.calls(RIVAL).dead_letters.list()[0]
    assert letter.instance is not None
    world.calls(RIVAL).run(letter.instance).abort("not worth it")
    assert told() == (before[0] + 1, before[1] + 1)


def test_nothing_is_under_way_for_a_document_that_has_ended(world: World) -> None:
    """One that was cancelled, or that another has taken the place of, while somebody was asked about it is at no place any more, alone and in lists."""
    tenant = "over"
    calls, client = world.calls(tenant), world.client(tenant=tenant)
    calls.contracts.publish(contract("invoice"))
    calls.bodies.publish(calls.bodies.save(BODY).id)
    for name in ("gone", "cancelled"):
        calls.documents.create("invoice", INVOICE, id=name)
        asked = calls.documents.transition("invoice", name, "submit")
        assert (asked.is_resting, len(asked.places)) == (False, 1)
    calls.documents.amend("invoice", "gone", {"grand_total": 41_000}, new_id="instead")
    calls.documents.transition("invoice", "cancelled", "cancel")
    world.engine.drain()
    listed = {each["id"]: each for each in client.get("/api/v1/documents/invoice").json()["items"]}
    for name in ("gone", "cancelled"):
        whole = client.get(f"/api/v1/documents/invoice/{name}").json()
        assert (whole["places"], whole["is_resting"], whole["window"]) == ([], True, "locked"), whole
        assert listed[name]["is_resting"] is True
    assert listed["instead"]["is_resting"] is False


@pytest.mark.row("E-781", "G-15")
def test_how_long_work_waits_is_told(world: World) -> None:
    """Of each queue it is told how much waits, how much of it is in hand, and since when the oldest waits; the same as figures for alarms."""
    root = world.client(tenant="default", actor="root")
    world.engine.drain()
    world.calls().start("order")

    def told() -> tuple[list[object], dict[str, float]]:
        items = root.get("/api/v1/queues").json()["items"]
        figures = (each.rsplit(" ", 1) for each in root.get("/metrics").text.splitlines() if each[0] != "#")
        known = {name: float(value) for name, value in figures if name.startswith("standfast_backlog")}
        return [each for each in items if each["kind"] == "effect"], known

    (waiting,), figures = told()
    since = world.engine.service.shared.clock.now().isoformat().replace("+00:00", "Z")
    assert waiting == {
        "kind": "effect", "name": "_ship", "count": 1, "taken": 0, "abandoned": 0, "waits_since": since,
    }  # fmt: skip
    assert figures['standfast_backlog{kind="effect"}'] == 1
    assert figures['standfast_backlog_abandoned{kind="effect"}'] == 0
    assert figures['standfast_backlog_seconds{kind="effect"}'] == 0
    world.engine.drain()
    assert told()[0] == []
