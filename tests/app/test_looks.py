"""What callers see fits together, page by page, and can be seen just when something is wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from standfast import (
    Decider,
    Decision,
    EffectContext,
    Engine,
    Moment,
    ReplayError,
    Saga,
    Settings,
    StepContext,
    task,
)
from standfast.kernel.ids import InstanceId
from standfast.store.postgres.reads.reads import PostgresReader
from standfast.store.sqlite.reads.reads import SQLiteReader
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.samples import Act, Add, Added, Answer, Counter, Do, Ledger, Puppet, act

LOOKS = 30
SECOND = timedelta(seconds=1)


@contextmanager
def busy(*writers: Any) -> Iterator[None]:
    """Others commit for as long as the block lasts."""
    ending = threading.Event()

    def write(writer: Any) -> None:
        while not ending.is_set():
            writer()

    threads = [threading.Thread(target=write, args=[each]) for each in writers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()


@pytest.mark.row("D-101")
def test_an_instance_is_seen_at_one_moment(live: Live) -> None:
    """While others commit without a pause, version, state and history of every look are of the same moment."""
    engines = [live.engine().register(Counter()) for _ in range(2)]
    engines[0].deciders.execute(Counter, Add("c-1"))

    def write(engine: Engine) -> None:
        for reply in [engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(20)]:
            reply.result()

    with busy(*(lambda engine=engine: write(engine) for engine in engines)):
        for _ in range(LOOKS):
            seen = engines[0].deciders.get(Counter, "c-1")
            assert seen.version == seen.state == len(seen.history) == seen.history[-1].sequence


def test_a_decider_is_verified_at_one_moment(live: Live) -> None:
    """Its row, its snapshot and its history are compared as of one commit, however many others come meanwhile."""
    engine = live.engine(msgspec.structs.replace(QUICK, snapshot_events=3)).register(Counter())
    engine.deciders.execute(Counter, Add("c-1"))

    def write() -> None:
        for reply in [engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(20)]:
            reply.result()

    with busy(write):
        for _ in range(LOOKS):
            assert engine.deciders.verify(Counter, "c-1").differences == []


@pytest.mark.parametrize("snapshot_events", [2, 100])
def test_a_history_is_verified_in_one_reading(
    place: Place, monkeypatch: pytest.MonkeyPatch, snapshot_events: int
) -> None:
    """Each event is read once to be folded, and once more only where a snapshot stands between it and the state."""
    engine = place.engine(Settings(snapshot_events=snapshot_events)).register(Counter())
    for _ in range(5):
        engine.deciders.execute(Counter, Add("c-1"))
    read: list[int] = []
    for reader in (PostgresReader, SQLiteReader):

        def counted(self: Any, address: Any, *, whole: bool = False, load: Any = reader.load) -> Any:
            found = load(self, address, whole=whole)
            read.append(len(found.events))
            return found

        monkeypatch.setattr(reader, "load", counted)
    assert engine.deciders.verify(Counter, "c-1").is_sound
    assert sum(read) == (5 + 1 if snapshot_events == 2 else 5)


@pytest.mark.row("D-101")
def test_a_workflow_is_seen_at_one_moment(live: Live) -> None:
    """A step that is completed has left nothing in hand, and the list agrees with itself, whatever is going on."""
    engine = live.engine().register(Saga("quick").step("a", _work).step("b", _work).build()).start_worker()
    running: list[InstanceId] = [engine.start("quick").id]

    def write() -> None:
        running.append(engine.start("quick").id)
        engine.run(running[-1]).result()

    with busy(write, write):
        for _ in range(LOOKS):
            instance = running[-1]
            assert engine.instances.verify(instance).differences == []
            steps = engine.run(instance).steps()
            assert all(each.retry_count == 1 for each in steps if each.status in {"running", "completed"})


def _work(ctx: StepContext) -> dict[str, int]:
    return {ctx.step: 1}


# -- histories that cannot be folded


class Fragile(Decider[int, Add, Added, None]):
    """Its evolve fails on the third event."""

    type = "counter"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Added) -> int:
        if state == 2:
            raise ValueError("three is too much")
        return state + event.by

    def decide(self, state: int, command: Add, moment: Moment) -> Answer:
        return Decision.event(Added(command.by))


def test_a_history_is_read_without_folding_it(place: Place) -> None:
    """Just when `evolve` fails, somebody has to look at the events."""
    engine = place.engine().register(Counter())
    for _ in range(4):
        engine.deciders.execute(Counter, Add("c-1"))
    place.must_fold = False
    fragile = place.engine().register(Fragile())
    with pytest.raises(ReplayError):
        fragile.deciders.state(Fragile, "c-1")
    assert [each.event for each in fragile.deciders.history(Fragile, "c-1")] == [Added(1)] * 4
    page = fragile.deciders.history(Fragile, "c-1", after=1, limit=2)
    assert [each.sequence for each in page] == [2, 3]


# -- pages of a history


class Trial:
    """A handler that fails for a while."""

    def __init__(self, failures: int) -> None:
        self._left = failures

    def __call__(self, ctx: StepContext) -> dict[str, int]:
        self._left -= 1
        if self._left >= 0:
            raise ValueError("not yet")
        return {ctx.step: ctx.attempt}


def eventful(engine: ManualEngine) -> list[InstanceId]:
    """Runs with retries, branches, questions, rollbacks, dead letters and a cancellation of one that waits for an operator."""
    rolled = Saga("rolled").step("a", "a").on_failure("undo a", "undo a", max_retries=3)
    branches = rolled.parallel("both", task("b", "b"), task("c", "c"))
    engine.register(branches.step("bad", "bad", max_retries=2).build())
    engine.register(Saga("asking").human("ask").step("d", "d").build())
    engine.register(Saga("dead", dlq=True).parallel("many", task("e", "e", max_retries=1), task("f", "f")).build())
    for name, failures in {"a": 0, "undo a": 1, "b": 1, "c": 0, "bad": 99, "d": 2, "e": 3, "f": 0}.items():
        engine.handle(name, Trial(failures))
    instances = [engine.start(name).id for name in ("rolled", "asking", "dead", "dead")]
    engine.advance(hours=1)
    (asked,) = engine.tasks.list()
    engine.acting("ann").tasks.decide(asked.step_id, "confirmed")
    engine.advance(hours=1)
    letters = engine.dead_letters.list(source="step")
    engine.dead_letters.requeue(letters[0].id)
    engine.futures.run(instances[3]).cancel("enough")
    engine.advance(hours=1)
    return instances


def test_a_page_of_a_history_reads_like_the_whole(place: Place) -> None:
    """Wherever a page begins and however long it is, its entries are those of the whole history."""
    engine = place.engine()
    seen: set[str] = set()
    for instance in eventful(engine):
        whole = engine.run(instance).history()
        seen |= {each.event_type for each in whole}
        for after in range(len(whole) + 1):
            assert engine.run(instance).history(after=after) == whole[after:]
            assert engine.run(instance).history(after=after, limit=3) == whole[after : after + 3]
    assert {"step_retry", "compensation_retry", "step_withdrawn", "cancellation_started", "step_requeued"} <= seen


def test_a_page_of_a_long_history_costs_no_more_than_of_a_short_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies far before a page is not read."""
    engine = place.engine()
    saga = Saga("long")
    for number in range(120):
        saga = saga.step(f"s{number}", _work)
    engine.register(saga.build())
    instance = engine.start("long").id
    engine.drain()
    read: list[int] = []
    original = PostgresReader.events if place.url.startswith("postgresql") else SQLiteReader.events

    def counted(self: Any, asked: InstanceId, *, after: int = 0, limit: int | None = None) -> Any:
        found = original(self, asked, after=after, limit=limit)
        read.append(len(found))
        return found

    for reader in (PostgresReader, SQLiteReader):
        monkeypatch.setattr(reader, "events", counted)
    (entry,) = engine.run(instance).history(after=200, limit=1)
    assert entry.sequence == 201
    assert sum(read) <= 101


# -- lists


def test_pages_of_a_list_are_full_until_the_last(place: Place) -> None:
    """Whatever is asked for, a page has as many items as it may, and the last one says that it is the last."""
    saga = Saga("waiting").step("work", "work").build()
    engine = place.engine().register(saga).register(Counter())
    for number in range(5):
        engine.start("waiting")
        engine.deciders.execute(Counter, Add(f"c-{number}"))
        place.clock.move(SECOND)
    worker = place.engine().handle("work", _work)
    assert worker.execute_next()
    new = [engine.start("waiting").id]
    place.clock.move(SECOND)
    new.append(engine.start("waiting").id)
    pages = [engine.runs.list(status="pending", limit=3)]
    while pages[-1].next is not None:
        pages.append(engine.runs.list(status="pending", limit=3, cursor=pages[-1].next))
    assert [len(page.items) for page in pages] == [3, 3]
    assert {each.status for page in pages for each in page.items} == {"pending"}
    assert [each.id for each in pages[0].items[:2]] == new[::-1]
    done = engine.runs.list(status=("completed", "running"), limit=3)
    assert ([each.status for each in done.items], done.next) == (["completed"], None)


def test_instances_of_deciders_are_in_no_list_of_workflows(place: Place) -> None:
    """Also where the decider is not registered: what an instance is, its row says."""
    place.engine().register(Counter()).deciders.execute(Counter, Add("c-1"))
    other = place.engine().register(Saga("waiting").step("work", "work").build())
    instance = other.start("waiting").id
    assert [each.id for each in other.runs.list().items] == [instance]
    assert [each.id for each in other.runs.list(status="running").items] == []
    everything = other.instances.list()
    assert sorted((each.kind, each.definition) for each in everything) == [("decider", "counter"), ("saga", "waiting")]


def test_what_a_worker_has_in_hand_is_running(place: Place) -> None:
    """Not pending, in the list as in the instance itself, from the moment it is claimed."""
    engine = place.engine().register(Saga("waiting").step("work", "work").build())
    instance = engine.start("waiting").id
    seen = Ledger()

    def look(ctx: StepContext) -> None:
        for word in ("pending", "running"):
            page = engine.runs.list(status=word)
            seen.add((word, tuple(each.status for each in page.items)))
        seen.add(engine.run(instance).describe().status)

    place.engine().handle("work", look).drain()
    assert seen.entries == [("pending", ()), ("running", ("running",)), "running"]


# -- what a handler knows


def test_a_handler_knows_the_business_key(place: Place) -> None:
    """Of a decider's instance as of a workflow's; empty where there is none; also when another process has the effect."""
    seen = Ledger()

    def handle(context: EffectContext, effect: Act) -> None:
        seen.add(context.key)

    engine = place.engine().register(Puppet(act), handle)
    engine.handle("work", lambda ctx: seen.add(ctx.key)).register(Saga("s").step("work", "work").build())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.start("s", key="o-1")
    engine.start("s")
    engine.drain()
    assert sorted(map(str, seen.entries)) == ["", "o-1", "p-1"]
    engine.start("s", key="o-2")
    place.engine().handle("work", lambda ctx: seen.add(f"elsewhere {ctx.key}")).drain()
    assert seen.entries[-1] == "elsewhere o-2"
