"""Databases that are read-only, full, locked, gone, foreign or too new: a clear error, nothing lost, and work goes on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import psycopg
import pytest

from standfast import (
    Engine,
    Reply,
    Saga,
    SchemaMismatchError,
    StandfastError,
    StoppedError,
    StoreError,
    StoreUnavailableError,
)
from standfast.graph.compiler import graph_data
from standfast.store.sqlite.store import SQLiteStore
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.inside import service_of, store_of
from support.samples import Add, Counter, Do, Ledger, Order, OrderState, Puppet, Shop, act
from support.samples import Place as PlaceOrder
from support.schemas import NEWEST, set_schema
from support.waiting import comes_to_an_end, eventually, together

IMPATIENT = msgspec.structs.replace(QUICK, patience=timedelta(milliseconds=200))


@contextmanager
def pragma(engine: Engine, setting: str, back: str) -> Iterator[None]:
    """A setting of the one connection that writes to a file, for as long as the block lasts."""
    connection = store_of(engine)._database._writer  # type: ignore[attr-defined]
    with store_of(engine)._database._lock:  # type: ignore[attr-defined]
        connection.execute(f"pragma {setting}")
    try:
        yield
    finally:
        with store_of(engine)._database._lock:  # type: ignore[attr-defined]
            connection.execute(f"pragma {back}")


@contextmanager
def trigger(url: str, code: str) -> Iterator[None]:
    """A server that answers every commit with an error code, for as long as the block lasts."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"create trigger fault before insert on standfast.events execute function standfast.refuse('{code}', 'no')"
        )
        try:
            yield
        finally:
            connection.execute("drop trigger fault on standfast.events")


def spoilt(live: Live, engine: Engine, fault: str) -> object:
    """The engine's database with a fault, as a context."""
    if live.url.startswith("sqlite"):
        small = "max_page_count = 1"
        return {
            "read-only": pragma(engine, "query_only = on", "query_only = off"),
            "full": pragma(engine, small, "max_page_count = 1000000"),
        }[fault]
    return trigger(live.url, {"read-only": "25006", "full": "53100"}[fault])


@pytest.mark.row("D-021")
@pytest.mark.parametrize("fault", ["read-only", "full"])
def test_a_database_that_takes_no_writes_is_waited_for_and_then_told(live: Live, fault: str) -> None:
    """After its patience every caller gets a retryable error with a reason; nothing was written; afterwards all is well."""
    engine = live.engine(IMPATIENT).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-0", "before"))
    fill = "x" * 20_000  # More than fits on the pages that the file has.
    with spoilt(live, engine, fault):  # type: ignore[attr-defined]
        replies = [engine.futures.deciders.execute(Puppet, Do(f"p-{number}", fill)) for number in range(5)]
        errors = [reply.exception(timeout=30) for reply in replies]
    assert {type(error) for error in errors} == {StoreUnavailableError}
    assert {error.code for error in errors if isinstance(error, StandfastError)} == {"store_unavailable"}
    assert all(isinstance(error, StandfastError) and error.retryable for error in errors)
    assert "send it again with the same command id" in str(errors[0])
    eventually(lambda: engine.futures.deciders.execute(Puppet, Do("p-9", "after")).exception(timeout=30) is None)
    assert sorted(head.key for head in engine.instances.list()) == ["p-0", "p-9"]


@pytest.mark.parametrize("fault", ["read-only", "full"])
def test_health_tells_of_a_database_that_answers_and_takes_nothing(live: Live, fault: str) -> None:
    """While every caller is turned away an engine is not well, also between two of them; it is as soon as something is written."""
    engine = live.engine(msgspec.structs.replace(IMPATIENT, unhealthy_after=timedelta(seconds=1))).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-0", "before"))
    fill = "x" * 20_000

    def told() -> bool:
        assert engine.futures.deciders.execute(Puppet, Do("p-1", fill)).exception(timeout=30) is not None
        return any("has committed nothing for" in each for each in engine.health().problems)

    with spoilt(live, engine, fault):  # type: ignore[attr-defined]
        eventually(told)
    eventually(lambda: engine.futures.deciders.execute(Puppet, Do("p-1", "after")).exception(timeout=30) is None)
    assert engine.health().is_healthy


@pytest.mark.parametrize("fault", ["read-only", "full"])
def test_a_short_spell_of_trouble_is_not_noticed(live: Live, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits long enough is answered when the database takes writes again, once."""
    engine = live.engine().register(Puppet())
    engine.deciders.execute(Puppet, Do("p-0", "before"))
    with spoilt(live, engine, fault):  # type: ignore[attr-defined]
        replies = [engine.futures.deciders.execute(Puppet, Do(f"p-{number % 2}", "x" * 20_000)) for number in range(6)]
        eventually(lambda: "database_unavailable" in caplog.text)
        assert not any(reply.done() for reply in replies)
    for reply in replies:
        reply.result(timeout=30)
    states = [engine.deciders.state(Puppet, f"p-{number}") for number in (0, 1)]
    assert [len(state) for state in states] == [4, 3]


@contextmanager
def locked(live: Live) -> Iterator[None]:
    """Another process holds the database's write lock, or the rows of all instances."""
    if live.url.startswith("sqlite"):
        with closing(sqlite3.connect(live.url.removeprefix("sqlite:///"), isolation_level=None)) as file:
            file.execute("begin immediate")
            yield
            file.execute("rollback")
        return
    with psycopg.connect(live.url) as connection:
        connection.execute("lock table standfast.instances in exclusive mode")
        yield


def test_a_locked_database_is_waited_for(live: Live) -> None:
    """Nobody hears of a lock: the commands wait for their turn, and readers do not wait at all."""
    engine = live.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-1"))
    with locked(live):
        replies = [engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(5)]
        assert engine.futures.deciders.state(Counter, "c-1").result(timeout=30) == 1
        assert not any(reply.done() for reply in replies)
    for reply in replies:
        reply.result(timeout=30)
    assert engine.deciders.state(Counter, "c-1") == 6


def test_whoever_only_looks_waits_for_nobody_who_writes(live: Live) -> None:
    """While another process holds the write lock a database is opened and looked at all the same: that is when somebody looks."""
    live.engine().register(Counter()).deciders.execute(Counter, Add("c-1"))
    with locked(live):
        looker = live.engine().register(Counter())
        assert looker.deciders.state(Counter, "c-1") == 1
        assert looker.admin.workers() == []
        looker.stop()


@pytest.mark.parametrize("is_busy", [False, True])
def test_an_engine_stops_although_others_hold_the_database(live: Live, *, is_busy: bool) -> None:
    """It waits no longer than it was told to, plus a moment: the end of its lease says goodbye for it."""
    engine = live.engine().register(Puppet(act), lambda context, effect: Do("p-1", "done")).start_worker()
    engine.deciders.execute(Puppet, Do("p-0", "done"))
    with locked(live):
        replies = [engine.futures.deciders.execute(Puppet, Do("p-1", "x"))] if is_busy else []
        comes_to_an_end(lambda: engine.stop(timedelta(milliseconds=200)))
    for reply in replies:
        reply.exception(timeout=30)
    heir = live.engine().register(Puppet(), lambda context, effect: None).start_worker()
    eventually(lambda: len(heir.admin.workers()) == 1)
    eventually(lambda: not heir.admin.backlog())
    assert heir.deciders.state(Puppet, "p-0") == ("done",)
    assert heir.dead_letters.list() == []


def test_database_is_locked_never_reaches_a_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Threads and processes that write to one file at once all succeed, and not even the committer notices."""
    url = f"sqlite:///{tmp_path / 'busy.db'}"
    live = Live(url)
    engines = [live.engine().register(Counter()) for _ in range(3)]

    def hammer(engine: Engine) -> None:
        for _ in range(15):
            engine.futures.deciders.execute(Counter, Add("c-1")).result(timeout=60)
            engine.futures.deciders.submit(Counter, Add("c-2")).result(timeout=60)
            assert engine.futures.deciders.state(Counter, "c-1").result(timeout=60) > 0

    together(*[partial(hammer, engine) for engine in engines])
    assert engines[0].deciders.state(Counter, "c-1") == 45
    assert engines[0].admin.inbox_depth() == 45
    assert "database_unavailable" not in caplog.text
    live.close()


def test_nothing_is_acknowledged_that_goes_into_a_file_without_a_name(tmp_path: Path) -> None:
    """A file that is moved, removed or replaced under a running engine takes no commands and answers no questions; put back, it goes on."""
    path, elsewhere = tmp_path / "here.db", tmp_path / "elsewhere.db"
    SQLiteStore(str(elsewhere), codec="json").close()
    with Engine(f"sqlite:///{path}", settings=IMPATIENT).register(Counter()) as engine:
        engine.deciders.execute(Counter, Add("c-1"))
        moved = path.rename(tmp_path / "moved.db")
        for replacement in (None, elsewhere):
            if replacement is not None:
                replacement.rename(path)
            with pytest.raises(StoreUnavailableError, match="moved or removed, or another one is in its place"):
                engine.deciders.execute(Counter, Add("c-1"))
            with pytest.raises(StoreUnavailableError, match="moved or removed"):
                engine.deciders.state(Counter, "c-1")
        moved.rename(path)
        eventually(lambda: engine.futures.deciders.execute(Counter, Add("c-1")).exception(timeout=30) is None)
        assert engine.deciders.state(Counter, "c-1") == 2


def test_a_file_that_stays_locked_is_an_error_in_our_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all patience the error has a code and names the cause; it is not SQLite's own sentence."""
    live = Live(f"sqlite:///{tmp_path / 'locked.db'}")
    store = SQLiteStore(str(tmp_path / "locked.db"), codec="json", patience=0.05)
    engine = Engine(store=store, settings=IMPATIENT).register(Counter())
    with locked(live):
        error = engine.futures.deciders.execute(Counter, Add("c-1")).exception(timeout=30)
    assert isinstance(error, StoreUnavailableError)
    assert "another process holds its write lock" in str(error)
    assert "database is locked" not in str(error)
    engine.stop()
    store.close()


def test_work_goes_on_by_itself_after_trouble(live: Live) -> None:
    """A worker meets a database that takes no writes: no loop dies, no effect is lost, and none is left behind."""
    ledger = Ledger()
    engine = live.engine().register(Puppet(act), lambda context, effect: ledger.add(effect)).start_worker()
    for number in range(3):
        engine.deciders.execute(Puppet, Do(f"p-{number}", f"{number}"))
    eventually(lambda: not engine.admin.backlog())
    with spoilt(live, engine, "full"):  # type: ignore[attr-defined]
        replies = [engine.futures.deciders.execute(Puppet, Do(f"q-{number}", "x" * 20_000)) for number in range(3)]
        assert not any(reply.done() for reply in replies)
    for reply in replies:
        reply.result(timeout=30)
    eventually(lambda: not engine.admin.backlog())
    assert len(ledger.entries) == 6
    assert engine.health().is_healthy


def test_a_newer_schema_is_refused(live: Live) -> None:
    """Code that is older than the tables does not touch them, and says what to do."""
    live.engine().stop()
    live.must_fold = False
    set_schema(live.url, 999)
    with pytest.raises(SchemaMismatchError, match="is at schema 999, which is newer than this code") as caught:
        Engine(live.url)
    assert (caught.value.code, caught.value.retryable) == ("schema_mismatch", False)


def test_a_schema_that_becomes_newer_stops_a_process_that_runs(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """It refuses commands, takes no work, and says so in health and log; another process of the same code would not cure it."""
    ledger = Ledger()
    engine = live.engine().register(Puppet(act), lambda context, effect: ledger.add(effect)).start_worker()
    engine.deciders.execute(Puppet, Do("p-0", "before"))
    eventually(lambda: len(ledger.entries) == 1)
    set_schema(live.url, 999)
    eventually(lambda: not engine.health().is_healthy)
    health = engine.health()
    assert health.problems == [
        f"schema: the database is at schema 999, which is newer than this code ({NEWEST}); upgrade Standfast in this process"
    ]
    assert not health.needs_restart
    with pytest.raises(StoppedError, match="upgrade Standfast in this process"):
        engine.deciders.execute(Puppet, Do("p-1", "during"))
    with pytest.raises(StoppedError, match="upgrade Standfast in this process"):
        engine.definitions.publish(graph_data(Saga("late").step("a", "a").build().graph))
    assert "schema_newer schema=999" in caplog.text
    set_schema(live.url, 0)
    eventually(lambda: engine.health().is_healthy)
    engine.deciders.execute(Puppet, Do("p-1", "after"))
    eventually(lambda: len(ledger.entries) == 2)


def test_work_that_is_due_under_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    """A process whose code is older begins nothing: neither a call nor a timer."""
    url, called = f"sqlite:///{tmp_path / 'due.db'}", list[str]()
    engine = ManualEngine(url).register(Saga("late").wait("w", 60).step("a", lambda: called.append("a")).build())
    engine.start("late")
    engine.drain()
    set_schema(url, 999)
    engine.advance(minutes=5)
    assert called == []
    set_schema(url, 0)
    engine.advance(minutes=5)
    assert called == ["a"]
    engine.stop()


def test_an_empty_database_is_refused_when_nobody_may_migrate(tmp_path: Path) -> None:
    """With `migrate=False` missing tables are an error that names the command."""
    with pytest.raises(SchemaMismatchError, match="run `standfast migrate"):
        Engine(f"sqlite:///{tmp_path / 'empty.db'}", migrate=False)


def test_tables_that_vanish_are_named(postgres_dsn: str) -> None:
    """A table that is gone is an error with a code of its own; when it is back, the engine works again."""
    live = Live(postgres_dsn)
    engine = live.engine().register(Order()).register(Counter())
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("alter table standfast.timers rename to gone")
    error = engine.futures.deciders.execute(Order, PlaceOrder("o-1", 5)).exception(timeout=30)
    assert isinstance(error, SchemaMismatchError)
    assert 'relation "standfast.timers" does not exist' in str(error)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("alter table standfast.gone rename to timers")
    eventually(lambda: engine.futures.deciders.execute(Counter, Add("c-1")).exception(timeout=30) is None)
    assert engine.deciders.state(Counter, "c-1") == 1
    live.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////no/such/folder/x.db", "cannot be created"),
        ("postgresql://user:hunter2@127.0.0.1:1/nothing", "cannot be used now"),
        ("postgresql://user:hunter2@no-such-host.invalid/nothing", "cannot be used now"),
    ],
)
def test_a_database_that_is_not_there_is_an_error_without_secrets(url: str, said: str) -> None:
    """Opening fails with a code, and the message does not repeat the password."""
    with pytest.raises(StandfastError, match=said) as caught:
        Engine(url)
    assert caught.value.code in {"store_unavailable", "bad_configuration"}
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    """Something else in the file's place is an error, and the file is not changed."""
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader, this is not a database. " * 100)
    before = file.read_bytes()
    with pytest.raises(StoreError, match="damaged") as caught:
        Engine(f"sqlite:///{file}")
    assert caught.value.code == "corrupt_history"
    assert file.read_bytes() == before


def test_a_gap_in_a_history_is_noticed(place: Place) -> None:
    """An instance whose events do not follow one another is not decided on; others are."""
    engine = place.engine().register(Counter())
    for key in ("c-1", "c-1", "c-1", "c-2"):
        engine.deciders.execute(Counter, Add(key))
    remove_event(place, engine.deciders.get(Counter, "c-1").id)
    place.must_fold = False
    other = place.engine().register(Counter())
    calls: list[Callable[[], Reply[None] | Reply[int]]] = [
        lambda: other.futures.deciders.execute(Counter, Add("c-1")),
        lambda: other.futures.deciders.state(Counter, "c-1"),
    ]
    for call in calls:
        error = call().exception()
        assert isinstance(error, StandfastError)
        assert error.code == "corrupt_history"
        assert "event 2 is missing" in str(error)
    other.deciders.execute(Counter, Add("c-2"))
    assert other.deciders.state(Counter, "c-2") == 2


def remove_event(place: Place, identity: object) -> None:
    """Do by hand what the guards of the database forbid."""
    with place.store.writer().unit() as unit, unit.lend() as connection:
        run = connection.execute  # type: ignore[attr-defined]
        if place.url.startswith("sqlite"):
            for (name,) in run(
                "select name from sqlite_master where type = 'trigger' and tbl_name = 'events'"
            ).fetchall():
                run(f"drop trigger {name}")
            run(f"delete from events where instance = '{identity}' and sequence = 2")
        else:
            run("alter table standfast.events disable trigger all")
            run(f"delete from standfast.events where instance = '{identity}' and sequence = 2")
            run("alter table standfast.events enable trigger all")


def test_an_engine_that_stops_in_an_outage_answers_everybody(live: Live) -> None:
    """Callers that wait for the database are told when the engine gives up, and the stop does not hang."""
    engine = live.engine().register(Counter()).start_worker()
    engine.deciders.execute(Counter, Add("c-1"))
    with spoilt(live, engine, "read-only"):  # type: ignore[attr-defined]
        reply = engine.futures.deciders.execute(Counter, Add("c-1"))
        stopping = threading.Thread(target=service_of(engine).stop, args=(20.0,))
        stopping.start()
        error = reply.exception(timeout=30)
        stopping.join(30)
    assert not stopping.is_alive()
    assert isinstance(error, StoreUnavailableError)


def test_a_whole_order_survives_a_server_that_hangs_up(postgres_dsn: str) -> None:
    """Every backend is terminated again and again while orders run: all of them end, none twice."""
    live = Live(postgres_dsn)
    shop = Shop()
    engine = live.engine().register(Order(), shop).start_worker()
    replies = []
    with psycopg.connect(postgres_dsn, autocommit=True) as killer:
        for number in range(30):
            replies.append(engine.futures.deciders.execute(Order, PlaceOrder(f"o-{number}", number)))
            if number % 3 == 0:
                killer.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )
    for reply in replies:
        reply.result(timeout=60)
    states = eventually(lambda: shipped(engine, 30), within=60)
    assert states == [OrderState("shipped", number) for number in range(30)]
    assert engine.dead_letters.list() == []
    live.close()


def shipped(engine: Engine, count: int) -> list[OrderState] | None:
    """The states of the orders, once all of them have ended."""
    replies = [engine.futures.deciders.state(Order, f"o-{number}") for number in range(count)]
    if any(reply.exception(timeout=30) for reply in replies):
        return None
    states = [reply.result() for reply in replies]
    return states if all(state.status == "shipped" for state in states) else None
