"""Projections: read models that are fed with every event, once and in order, and that can never harm a workflow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import pytest

from holdfast import ConfigurationError, NotFoundError
from holdfast.kernel.history import StoredEvent
from holdfast.store.port import Store
from support.engines import Live, Place
from support.inside import store_of
from support.samples import Add, Counter, Order, Shop
from support.samples import Place as PlaceOrder
from support.waiting import eventually, together


class Totals:
    """A read model in the same database: how many events there are of each type."""

    name = "totals"

    def __init__(self) -> None:
        self.is_broken = False

    def apply(self, events: Sequence[StoredEvent], connection: object) -> None:
        for event in events:
            connection.execute(f"insert into totals values ('{event.type}', {event.position})")  # type: ignore[attr-defined]
        if self.is_broken:
            raise ValueError("broken after its writes")

    def clear(self, connection: object) -> None:
        connection.execute("delete from totals")  # type: ignore[attr-defined]


def prepared(store: Store) -> Totals:
    """The read model with its table."""
    with store.writer().unit() as unit, unit.lend() as connection:
        connection.execute("create table totals (type text, position bigint)")  # type: ignore[attr-defined]
    return Totals()


def read(store: Store) -> list[tuple[str, int]]:
    """The read model's rows, in the order of the events."""
    with store.writer().unit() as unit, unit.lend() as connection:
        rows = connection.execute("select type, position from totals order by position").fetchall()  # type: ignore[attr-defined]
    return [(row[0], row[1]) for row in rows]


@pytest.mark.row("D-093")
def test_a_projection_sees_every_event_once_and_in_order(place: Place) -> None:
    """The model and its checkpoint are one commit, so feeding it in pieces and by several engines adds up."""
    totals = prepared(place.store)
    for _ in range(3):
        engine = place.engine().register(Counter()).project(totals)
        for number in range(3):
            engine.execute(Counter, Add(f"c-{number}")).result()
        engine.drain()
    rows = read(place.store)
    assert [row[0] for row in rows] == ["Added"] * 9
    assert len({row[1] for row in rows}) == 9


@pytest.mark.row("D-093")
def test_a_failing_projection_harms_nobody(place: Place) -> None:
    """Workflows and other projections go on; nothing of the failed stretch stays; afterwards nothing is missing."""
    totals, other = prepared(place.store), Seen()
    totals.is_broken = True
    engine = place.engine().register(Order(), Shop()).project(totals).project(other)
    engine.execute(Order, PlaceOrder("o-1", 5)).result()
    engine.drain()
    assert engine.load_state(Order, "o-1").result().status == "shipped"
    assert other.types == ["Placed", "Paid", "$timer_cancelled", "Shipped"]
    assert read(place.store) == []
    totals.is_broken = False
    later = place.engine().register(Order()).project(totals)
    later.drain()
    assert [row[0] for row in read(place.store)] == ["Placed", "Paid", "$timer_cancelled", "Shipped"]


class Seen:
    """A read model in memory."""

    name = "seen"

    def __init__(self) -> None:
        self.types: list[str] = []

    def apply(self, events: Sequence[StoredEvent], connection: object) -> None:
        self.types += [event.type for event in events]

    def clear(self, connection: object) -> None:
        self.types.clear()


@pytest.mark.row("D-093")
def test_a_rebuild_gives_the_same_model(place: Place) -> None:
    """A projection that forgets everything and reads all events again comes to the same rows."""
    totals = prepared(place.store)
    engine = place.engine().register(Counter()).project(totals)
    for number in range(5):
        engine.execute(Counter, Add(f"c-{number}")).result()
    engine.drain()
    before = read(place.store)
    engine.rebuild("totals").result()
    assert read(place.store) == []
    engine.drain()
    assert read(place.store) == before
    with pytest.raises(NotFoundError, match="projection"):
        engine.rebuild("nothing").result()


@pytest.mark.row("D-093")
def test_two_processes_feed_one_projection_without_doubling(live: Live) -> None:
    """Whoever moves the checkpoint applies the events; while many write, none is skipped and none is seen twice."""
    engines = [live.engine().register(Counter()) for _ in range(2)]
    totals = prepared(store_of(engines[0]))
    for engine in engines:
        engine.project(totals).start_worker()

    def write(number: int) -> None:
        for step in range(15):
            engines[number % 2].execute(Counter, Add(f"c-{number}-{step % 3}")).result()

    together(*[partial(write, number) for number in range(4)])
    eventually(lambda: len(read(store_of(engines[0]))) >= 60)
    rows = read(store_of(engines[0]))
    assert len(rows) == len(set(rows)) == 60


@pytest.mark.row("D-040")
def test_a_reader_never_skips_an_event_that_commits_late(live: Live) -> None:
    """A transaction that began early and commits late is not overtaken: the feed waits for it."""
    engine = live.engine().register(Counter())
    engine.execute(Counter, Add("c-0")).result()
    feed, writer = store_of(engine).feed(), store_of(engine).writer()
    inside, gate = threading.Event(), threading.Event()

    def linger() -> None:
        with writer.unit() as unit:
            with unit.lend() as connection:
                connection.execute("create table if not exists lingering (x int)")  # type: ignore[attr-defined]
            inside.set()
            gate.wait(20)

    thread = threading.Thread(target=linger)
    thread.start()
    assert inside.wait(20)
    pending = engine.execute(Counter, Add("c-1"))
    before = {event.position for event in feed.read(after=0, limit=100)}
    gate.set()
    thread.join()
    pending.result(timeout=20)
    eventually(lambda: len(feed.read(after=0, limit=100)) == 2)
    after = {event.position for event in feed.read(after=0, limit=100)}
    assert before <= after
    assert all(position > max(before, default=0) for position in after - before)


def test_a_projection_has_a_name_of_its_own(place: Place) -> None:
    """Two projections under one name would share a checkpoint."""
    engine = place.engine().project(Seen())
    with pytest.raises(ConfigurationError, match="already a projection 'seen'"):
        engine.project(Seen())
