"""What is in the database after a command, seen from outside of the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import cast

import psycopg
import pytest

from standfast import Engine
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.store.records.instances import InstanceQuery
from support.engines import QUICK, Live, Place
from support.inside import connections_of
from support.samples import Add, Cancel, Counter, Do, Order, Placed, Puppet, Shop
from support.samples import Place as PlaceOrder
from support.waiting import eventually, together

Rows = list[tuple[object, ...]]


def asking(live: Live) -> Callable[[str], Rows]:
    """Questions in SQL to the database of an engine, by a connection of one's own; `{}` stands for the schema."""

    def ask(question: str) -> Rows:
        if live.url.startswith("sqlite"):
            with closing(sqlite3.connect(live.url.removeprefix("sqlite:///"))) as file:
                return cast("Rows", file.execute(question.format("")).fetchall())
        with psycopg.connect(live.url) as server:
            return cast("Rows", server.execute(question.format("standfast.")).fetchall())

    return ask


@pytest.mark.row("D-037", "D-114")
def test_the_store_is_all_that_an_engine_knows_of_a_database(place: Place) -> None:
    """The same engine runs on SQLite, in memory too, and on Postgres, through one port."""
    parts = [name for name in vars(Store) if not name.startswith("_")]
    assert not [name for name in parts if not hasattr(place.store, name)]
    engine = place.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 1


def test_engines_on_one_store_leave_nothing_behind(live: Live) -> None:
    """An engine that is stopped lets go of its connections, also where the store is its caller's, who goes on using it."""
    store, counts = open_store(live.url), list[int]()
    for _ in range(4):
        with Engine(store=store, settings=QUICK).register(Order(), Shop()) as engine:
            engine.deciders.execute(Order, PlaceOrder("o-1", 5))
            eventually(lambda engine=engine: engine.deciders.state(Order, "o-1").status == "shipped")  # type: ignore[misc]
        counts.append(_connections(live, store))
    assert counts[-1] <= counts[0] + 2
    assert [each.key for each in store.reader("default").instances(InstanceQuery())] == ["o-1"]
    store.close()


def _connections(live: Live, store: Store) -> int:
    if live.url.startswith("sqlite"):
        return connections_of(store)
    with psycopg.connect(live.url) as server:
        return len(server.execute("select from pg_stat_activity where datname = current_database()").fetchall())


@pytest.mark.row("D-038")
def test_an_instance_is_one_row_with_an_end(live: Live) -> None:
    """There is one row for each type and key, and it shows when the instance ended."""
    engine, ask = live.engine().register(Order()), asking(live)
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    assert ask("select definition, key, ended_at from {}instances") == [("order", "o-1", None)]
    engine.deciders.execute(Order, Cancel("o-1"))
    assert ask("select count(*) from {}instances where ended_at is not null") == [(1,)]


@pytest.mark.row("D-039", "C-36")
@pytest.mark.parametrize("statement", ["update {}events set type = 'x'", "delete from {}events"])
def test_events_can_neither_be_changed_nor_deleted(live: Live, statement: str) -> None:
    """The database itself keeps the history append-only."""
    engine, ask = live.engine().register(Counter()), asking(live)
    for _ in range(3):
        engine.deciders.execute(Counter, Add("c-1"))
    with pytest.raises((sqlite3.Error, psycopg.Error), match="append-only"):
        ask(statement)
    assert ask("select sequence from {}events order by sequence") == [(1,), (2,), (3,)]


@pytest.mark.row("D-040", "D-046")
@pytest.mark.row("G-23")
def test_all_events_have_places_in_one_order(place: Place) -> None:
    """Positions grow strictly over all instances; deciding needs only the sequence of one instance."""
    engine = place.engine().register(Counter())
    for number in (1, 2, 1, 2):
        engine.deciders.execute(Counter, Add(f"c-{number}"))
    read = place.store.feed().read(after=0, limit=10)
    assert [event.sequence for event in read] == [1, 1, 2, 2]
    positions = [event.position for event in read]
    assert positions == sorted(set(positions))


@pytest.mark.row("D-041", "D-042", "D-044")
def test_effects_and_timers_wait_in_tables_of_their_own(live: Live) -> None:
    """Immediate work and later commands are kept apart."""
    engine, ask = live.engine().register(Order()), asking(live)
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    assert ask("select handler, type, attempts from {}effects") == [("order", "Charge", 0)]
    assert ask("select definition, key, type from {}timers") == [("order", "payment", "TimeOut")]


@pytest.mark.row("D-043")
def test_observations_have_a_table_that_stays_empty_by_default(live: Live) -> None:
    """Nothing is observed unless it is asked for."""
    engine, ask = live.engine().register(Counter()), asking(live)
    engine.deciders.execute(Counter, Add("c-1"))
    assert ask("select input, at from {}observations") == []


@pytest.mark.row("D-045")
def test_the_order_of_events_is_the_order_of_commits(live: Live) -> None:
    """Whatever races, reading the events of an instance gives the order in which they were committed."""
    engines = [live.engine().register(Puppet()) for _ in range(2)]

    def notes(number: int) -> Callable[[], None]:
        def write() -> None:
            for step in range(10):
                engines[number].deciders.execute(Puppet, Do("p-1", f"{number}.{step}"))

        return write

    together(notes(0), notes(1))
    history = engines[0].deciders.history(Puppet, "p-1")
    assert [each.sequence for each in history] == list(range(1, 21))
    assert [each.position for each in history] == sorted(each.position for each in history)
    for number in (0, 1):
        own = [each.event.what for each in history if each.event.what.startswith(f"{number}.")]  # type: ignore[attr-defined]
        assert own == [f"{number}.{step}" for step in range(10)]


@pytest.mark.row("D-047")
def test_an_event_knows_its_time_its_name_and_its_content(place: Place) -> None:
    """Each stored event carries when it was committed, what it is called, what it says, and who caused it."""
    engine = place.engine().register(Order())
    engine.as_tenant("default", actor="ann").deciders.execute(Order, PlaceOrder("o-1", 5), comment="by phone")
    (first,) = engine.deciders.history(Order, "o-1")
    assert (first.at, first.type, first.event) == (place.clock.now(), "Placed", Placed(5))
    assert (first.actor, first.comment, bool(first.cause)) == ("ann", "by phone", True)
