"""Processes that die while schedules start workflows and batches go on: each time is one run, and the end is always the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Saga
from standfast.graph.definition import Definition
from standfast.testing import CrashScenario, ManualEngine
from standfast.testing.manual import START
from support.crashing import NewStore, tried
from support.envelopes import invoice

HOUR = timedelta(hours=1)


def prepared(engine: ManualEngine) -> None:
    """A workflow that takes longer than the time between two starts, and one that does not."""
    engine.register(Saga("long").step("begin", lambda: None).wait("rest", 1.5 * HOUR).build())
    engine.register(Saga("short").step("write", lambda: None).build())

    def late() -> None:
        if engine.clock.now() < START + HOUR:
            raise ValueError("it is too early")

    engine.register(Saga("late", dlq=True).step("try", late, attempts=2).build())


def scheduled(engine: ManualEngine) -> None:
    """Three hours of a schedule whose runs overlap, one that was asked for, and a period."""
    engine.schedules.put("s", "long", every=HOUR, overlap="buffer_one", start_at=START + HOUR, end_at=START + 3 * HOUR)
    engine.schedules.put("p", "short", cron="0 0 * * *")
    engine.schedules.trigger("p", command_id="now")
    engine.drain()
    engine.schedules.backfill("p", START - timedelta(days=2), START, command_id="days")
    engine.advance(max(START + 7 * HOUR - engine.clock.now(), timedelta(0)))


def told(engine: ManualEngine) -> object:
    """What became of every time, and how many runs there are."""
    return (
        [(each.at, each.status) for each in engine.schedules.fires("s")],
        [(each.why, each.status) for each in engine.schedules.fires("p")],
        sorted((each.definition, each.status) for each in engine.runs.list().items),
    )


SCENARIO = CrashScenario(prepare=prepared, play=scheduled, outcome=told)


@pytest.mark.row("G-18", "E-765")
def test_a_process_that_dies_anywhere_starts_each_time_once(new_store: NewStore) -> None:
    """Wherever the process dies, a time leads to one run and to the same end."""
    assert tried(SCENARIO, new_store, on_server=29).points > 1


@pytest.mark.long
def test_a_process_that_dies_at_any_point_starts_each_time_once(new_store: NewStore) -> None:
    """The same at every point there is, and with a second crash while the first is recovered from."""
    assert tried(SCENARIO, new_store).points > 50
    assert tried(SCENARIO, new_store, again_after=5).points > 50


def begun(engine: ManualEngine) -> None:
    """Some are started by a batch, and what they did is undone by another one."""
    engine.start("late", key="late", idempotency_key="late")
    engine.batches.begin("start", inputs=[{}] * 2, definition="long", batch_id="start", follow=10 * HOUR)
    engine.drain()
    runs = [each.run for each in engine.batches.items("start") if each.run is not None]
    engine.batches.begin("cancel", runs[:1], batch_id="cancel", follow=HOUR)
    engine.advance(2 * HOUR)
    engine.batches.begin("requeue", definition="late", batch_id="requeue", follow=HOUR)
    engine.advance(timedelta(minutes=1))


def followed(engine: ManualEngine) -> object:
    """What became of each item, and how many runs there are."""
    items = {name: engine.batches.items(name) for name in ("start", "cancel", "requeue")}
    return (
        [(name, each.status, each.detail) for name, found in items.items() for each in found],
        [engine.batches.get(name).status for name in items],
        sorted((each.definition, each.status) for each in engine.runs.list().items),
    )


BATCHES = CrashScenario(prepare=prepared, play=begun, outcome=followed)


def test_a_process_that_dies_anywhere_does_each_item_once(new_store: NewStore) -> None:
    """Wherever the process dies, every start of a batch is one run, and what is told of each item is the same."""
    report = tried(BATCHES, new_store, on_server=13)
    assert report.points > 1
    told, statuses, runs = report.outcome[0]  # type: ignore[index]
    ends = [("start", "failed"), ("start", "done"), ("cancel", "done"), ("requeue", "done")]
    assert [each[:2] for each in told] == ends
    ended = [("late", "completed"), ("long", "cancelled"), ("long", "completed")]
    assert (statuses, runs) == (["completed"] * 3, ended)


def invoiced(engine: ManualEngine) -> None:
    """The document of a schedule."""
    engine.schedules.put("d", "invoice", {"vendor": "acme", "total": 500}, at=START + HOUR)
    engine.advance(max(START + HOUR - engine.clock.now(), timedelta(0)))


def created(engine: ManualEngine) -> object:
    """What became of every time, and which documents there are."""
    return (
        [(each.status, each.document) for each in engine.schedules.fires("d")],
        sorted((each.id, each.version) for each in engine.documents.list("invoice").items),
    )


DOCUMENTS = CrashScenario(
    prepare=lambda engine: engine.register(Definition(graph=invoice())), play=invoiced, outcome=created
)


def test_a_process_that_dies_anywhere_creates_each_document_once(new_store: NewStore) -> None:
    """Wherever the process dies, also between the document and the word that it is there, a time is one document, and is told as created."""
    report = tried(DOCUMENTS, new_store, on_server=4)
    assert report.points > 1
    made = "d-20300101T130000Z"
    assert report.outcome[0] == ([("created", made)], [(made, 1)])  # type: ignore[index]
