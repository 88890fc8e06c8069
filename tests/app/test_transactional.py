"""Transactional handlers: what they write is there exactly once, whoever else is at work, and they cannot stop the engine."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
import psycopg
import pytest

from standfast import (
    ConfigurationError,
    Decision,
    EffectContext,
    Engine,
    Moment,
    Rejection,
    RetryPolicy,
    Saga,
    Settings,
    StepContext,
)
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.common.telemetry import CommandRefused, EffectEnded, WorkLost
from standfast.kernel.program import Program
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.store.records.instances import Loaded, Wanted
from standfast.store.sqlite.store import SQLiteStore
from standfast.testing import ManualEngine
from support.engines import AT_ONCE, QUICK, Live, Place
from support.inside import connections_of, store_of
from support.samples import Act, Add, Answer, Counter, Do, Doll, Noted, Notes, Puppet
from support.waiting import LONG_SECONDS, arrives, comes_to_an_end, eventually

ONCE = RetryPolicy(max_attempts=1)
on_sqlite = pytest.mark.parametrize("live", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("live", ["postgres"], indirect=True)


def transactional(**options: Any) -> Puppet:
    """A puppet whose effects run inside the commit that records them."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what.startswith("done"):
            return decision
        return decision.with_effect(Act(command.what), transactional=True, **options)

    return Puppet(choose)


def prepared(store: Store, *names: str) -> None:
    """Tables of the user's own."""
    with store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        for name in names or ("ledger",):
            connection.execute(f"create table {name} (what text)")


def written(store: Store) -> list[str]:
    """What handlers wrote into the ledger."""
    with store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        return [row[0] for row in connection.execute("select what from ledger order by what").fetchall()]


def write(context: EffectContext, what: str) -> None:
    """Write into the ledger."""
    connection: Any = context.connection
    connection.execute(f"insert into ledger values ('{what}')")


# -- Workers that have lost their work.


class Zombie:
    """A worker that has claimed an effect and stands still while another one takes it over."""

    def __init__(self, place: Place, register: Callable[[ManualEngine, str], object]) -> None:
        prepared(place.store)
        self.place = place
        self.engine, self.heir = place.engine(), place.engine()
        register(self.engine, "zombie")
        register(self.heir, "heir")

    def claim(self, handler: str) -> None:
        """Take the effect in hand."""
        self.engine.runtime.heartbeat.step()
        intake = self.engine.runtime.intake
        (self.effect,) = intake.claim([Wanted(handler, 1)], 1)
        assert intake.is_wanted(self.effect)

    def lose(self) -> None:
        """Be silent for so long that the heir does the work."""
        self.heir.advance(minutes=5)

    def wake(self) -> None:
        """Go on where it stood still."""
        assert self.engine.runtime.worker.reserve(self.effect.handler)
        self.engine.runtime.worker.run_here(self.effect)
        self.engine.runtime.intake.chores.run()


@pytest.mark.parametrize("answers", [True, False])
def test_a_worker_that_lost_its_claim_does_not_call_the_handler(place: Place, *, answers: bool) -> None:
    """Whoever wakes up when another worker has done the work calls nothing and writes nothing, and says that it was lost."""
    calls: list[str] = []
    told: list[object] = []

    def register(engine: ManualEngine, name: str) -> None:
        def handle(context: EffectContext, effect: Act) -> Do | None:
            calls.append(name)
            write(context, name)
            return Do("p-1", "done") if answers else None

        engine.register(transactional(), handle)

    zombie = Zombie(place, register)
    zombie.engine.listen(told.append)
    zombie.engine.deciders.execute(Puppet, Do("p-1", "x"))
    zombie.claim("puppet")
    zombie.lose()
    zombie.wake()
    assert (calls, written(place.store)) == (["heir"], ["heir"])
    assert [type(each) for each in told if isinstance(each, WorkLost)] == [WorkLost]
    assert place.engine().register(transactional()).dead_letters.list() == []


def test_a_transactional_step_of_a_lost_worker_writes_nothing(place: Place) -> None:
    """The same for a step of a saga: the ledger has the row of the worker that completed it, and that one alone."""

    def register(engine: ManualEngine, name: str) -> None:
        def book(ctx: StepContext) -> dict[str, str]:
            connection: Any = ctx.connection
            connection.execute(f"insert into ledger values ('{name}')")
            return {"by": name}

        engine.handle("book", book).register(Saga("booking").step("book", "book", transactional=True).build())

    zombie = Zombie(place, register)
    instance = zombie.engine.start("booking").id
    zombie.claim("book")
    zombie.lose()
    zombie.wake()
    assert written(place.store) == ["heir"]
    assert zombie.heir.run(instance).result() == {"by": "heir"}


def test_a_step_that_is_not_transactional_is_told_so(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asks for the connection without `transactional=True` is told what is missing, once, and where: another call would not help."""
    calls: list[int] = []

    def book(ctx: StepContext) -> None:
        calls.append(ctx.attempt)
        ctx.connection.execute("insert into ledger values ('x')")

    engine = place.engine().register(Saga("booking").step("book", book).build())
    run = engine.start("booking")
    engine.drain()
    assert (run.describe().status, calls) == ("failed", [1])
    assert "say transactional=True of its step" in run.describe().error
    assert "ctx.connection.execute(" in caplog.text


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_transactional_step_of_an_aborted_saga_writes_nothing(place: Place) -> None:
    """The saga was aborted inside the handler: what that wrote is undone, and its call counts."""
    prepared(place.store)
    engine = place.engine()

    def book(ctx: StepContext) -> None:
        connection: Any = ctx.connection
        connection.execute("insert into ledger values ('late')")
        place.engine().run(ctx.instance).abort("now")

    engine.register(Saga("booking").step("book", book, transactional=True).build())
    instance = engine.start("booking").id
    engine.drain()
    (found,) = engine.run(instance).steps()
    assert (written(place.store), engine.run(instance).describe().status) == ([], "aborted")
    assert (found.status, found.retry_count, engine.admin.backlog()) == ("skipped", 1, [])


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_claim_that_is_lost_during_the_call_undoes_it(place: Place, *, answers: bool) -> None:
    """A worker that falls silent inside the handler wakes up to find its writes undone; those of its heir stand."""

    def register(engine: ManualEngine, name: str) -> None:
        def handle(context: EffectContext, effect: Act) -> Do | None:
            write(context, name)
            if name == "zombie":
                zombie.lose()
            return Do("p-1", "done") if answers else None

        engine.register(transactional(), handle)

    zombie = Zombie(place, register)
    zombie.engine.deciders.execute(Puppet, Do("p-1", "x"))
    zombie.claim("puppet")
    zombie.wake()
    assert written(place.store) == ["heir"]
    assert zombie.engine.deciders.state(Puppet, "p-1") == (("x", "done") if answers else ("x",))


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_whoever_lost_its_claim_hears_that_and_not_that_it_is_refused(place: Place) -> None:
    """What the heir did makes the answer of the other one impossible: that is no failure of the call."""
    told: list[object] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what in state:
            return Rejection(code="twice", message="it is done")
        decision = Decision.event(Noted(command.what))
        return decision if command.what == "done" else decision.with_effect(Act("x"), transactional=True)

    def register(engine: ManualEngine, name: str) -> None:
        def handle(context: EffectContext, effect: Act) -> Do:
            if name == "zombie":
                zombie.lose()
            return Do("p-1", "done")

        engine.register(Puppet(choose), handle)

    zombie = Zombie(place, register)
    zombie.engine.listen(told.append)
    zombie.engine.deciders.execute(Puppet, Do("p-1", "x"))
    zombie.claim("puppet")
    zombie.wake()
    assert [type(each) for each in told if isinstance(each, WorkLost | CommandRefused)] == [WorkLost]


# -- What others do at the same time.


@on_postgres
def test_the_victim_of_a_deadlock_is_called_again_without_losing_an_attempt(live: Live) -> None:
    """Two handlers that lock one another's rows both come to their end, each in its first attempt."""
    engine = live.engine()
    prepared(engine.service.store, "one", "two")
    met = threading.Barrier(2)
    attempts: list[int] = []
    is_first = {"one": True, "two": True}

    def handle(context: EffectContext, effect: Act) -> Do:
        attempts.append(context.attempt)
        connection: Any = context.connection
        own, other = effect.what, "two" if effect.what == "one" else "one"
        connection.execute(f"lock table {own}")
        if is_first[own]:
            is_first[own] = False
            met.wait(LONG_SECONDS)
        connection.execute(f"lock table {other}")
        return Do(f"p-{own}", "done")

    engine.register(transactional(), handle, retry=ONCE).start_worker()
    for name in ("one", "two"):
        engine.deciders.execute(Puppet, Do(f"p-{name}", name))
    for name in ("one", "two"):
        eventually(lambda name=name: engine.deciders.state(Puppet, f"p-{name}") == (name, "done"))  # type: ignore[misc]
    assert (len(attempts), set(attempts)) == (3, {1})
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("state", ["40P01", "40001"])
def test_a_call_that_is_undone_again_and_again_fails_in_the_end(place: Place, state: str) -> None:
    """Deadlocks and serialization failures, also when other code wraps them, are bounded: then the attempt counts, with a reason."""
    calls = []

    def handle(context: EffectContext, effect: Act) -> None:
        calls.append(context.attempt)
        connection: Any = context.connection
        try:
            connection.execute(f"do $$ begin raise exception 'unlucky' using errcode = '{state}'; end $$")
        except Exception as error:
            raise RuntimeError("wrapped") from error

    engine = place.engine(Settings(retry=ONCE)).register(transactional(), handle)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.reason, letter.attempts, calls) == ("conflict", 1, [1] * 8)
    assert "undone 8 times in a row" in letter.error


@pytest.mark.parametrize("moves", [False, True])
def test_a_transactional_step_ends_on_what_is_remembered(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, moves: bool
) -> None:
    """No history is read for it, unless somebody else has moved the instance: then what is there counts."""
    saga = Saga("two").step("a", _posted, transactional=True).step("b", _posted, transactional=True).build()
    engine, other = place.engine().register(saga), place.engine().register(saga)
    run = engine.start("two")
    if moves:
        other.run(run.id).signal("early", {"n": 1})
    read: list[int] = []
    of = CachedInstance.of

    def counted(loaded: Loaded, program: Program) -> CachedInstance:
        read.append(loaded.header.version)
        return of(loaded, program)

    monkeypatch.setattr(CachedInstance, "of", counted)
    engine.runtime.heartbeat.step()
    assert engine.runtime.execute_next() == 1
    monkeypatch.undo()
    assert len(read) == moves
    engine.drain()
    assert (run.describe().status, run.verify().differences) == ("completed", [])


def _posted(context: StepContext) -> dict[str, object]:
    assert context.connection is not None
    return {}


@pytest.mark.parametrize("settings", [QUICK, msgspec.structs.replace(QUICK, committers=3)], ids=["usual", "several"])
def test_the_next_command_knows_what_a_transactional_handler_did(live: Live, settings: Settings) -> None:
    """A commit that no committer made is not a surprise to them: the next command of the instance is decided once."""
    decided: list[str] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decided.append(command.what)
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act("x"), transactional=True) if command.what == "x" else decision

    engine = live.engine(settings).register(Puppet(choose), lambda context, effect: Do("p-1", "done")).start_worker()
    ended = threading.Event()
    engine.listen(lambda happening: ended.set() if isinstance(happening, EffectEnded) else None)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(ended)
    engine.deciders.execute(Puppet, Do("p-1", "next"))
    assert decided == ["x", "done", "next"]


@on_postgres
def test_nobody_waits_for_a_transactional_handler(live: Live) -> None:
    """While it runs, other commands of its instance are carried out; its result is decided on what they have made of it."""
    gate, inside = threading.Event(), threading.Event()

    def handle(context: EffectContext, effect: Act) -> Do:
        write(context, effect.what)
        inside.set()
        arrives(gate)
        return Do("p-1", "done")

    engine = live.engine().register(transactional(), handle)
    prepared(engine.service.store)
    engine.start_worker().deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.futures.deciders.execute(Puppet, Do("p-1", "done meanwhile")).result(LONG_SECONDS)
    gate.set()
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done meanwhile", "done"))
    assert written(engine.service.store) == ["x"]


# -- Connections that are lent.


def with_block(connection: Any) -> None:
    """What many write from habit."""
    with connection:
        connection.execute("insert into ledger values ('inside')")


WAYS: dict[str, Callable[[Any], object]] = {
    "commit": lambda connection: connection.commit(),
    "rollback": lambda connection: connection.rollback(),
    "with": with_block,
}
SQLITE_WAYS: dict[str, Callable[[Any], object]] = {
    "close": lambda connection: connection.close(),
    "commit as text": lambda connection: connection.execute("commit"),
    "end as text": lambda connection: connection.execute("/* and */ END TRANSACTION"),
    "rollback as text": lambda connection: connection.execute("rollback"),
    "begin as text": lambda connection: connection.execute("begin"),
    "script": lambda connection: connection.executescript("select 1"),
    "isolation level": lambda connection: setattr(connection, "isolation_level", None),
    "authorizer": lambda connection: connection.set_authorizer(None),
    "progress handler": lambda connection: connection.set_progress_handler(None, 0),
}


def ending(place: Place, way: Callable[[Any], object]) -> tuple[ManualEngine, list[int]]:
    """An engine whose handler ended, or tried to end, its transaction after a write; and the attempts that were made."""
    attempts = []

    def handle(context: EffectContext, effect: Act) -> Do:
        attempts.append(context.attempt)
        write(context, "before")
        if effect.what == "x":
            way(context.connection)
        write(context, "after")
        return Do("p-1", "done")

    prepared(place.store)
    engine = place.engine(Settings(retry=AT_ONCE)).register(transactional(), handle)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    return engine, attempts


@pytest.mark.parametrize("way", WAYS)
def test_the_usual_ways_to_end_a_transaction_are_refused(place: Place, way: str) -> None:
    """`commit()`, `rollback()` and `with connection:` raise in the handler; nothing of the call is stored, and the engine works on."""
    engine, attempts = ending(place, WAYS[way])
    (letter,) = engine.dead_letters.list()
    assert (letter.attempts, attempts, written(place.store)) == (3, [1, 2, 3], [])
    engine.deciders.execute(Puppet, Do("p-1", "y"))
    engine.drain()
    assert (engine.deciders.state(Puppet, "p-1"), written(place.store)) == (
        ("x", "y", "done"),
        ["after", "before"],
    )


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way", SQLITE_WAYS)
def test_sqlite_lets_nobody_end_a_lent_transaction(place: Place, way: str) -> None:
    """Whatever the way, the handler hears why it is refused, nothing of the call is stored, and the engine keeps its writer."""
    engine, _ = ending(place, SQLITE_WAYS[way])
    (letter,) = engine.dead_letters.list()
    assert (letter.reason, letter.attempts, written(place.store)) == ("bad_configuration", 3, [])
    assert "do not commit, roll back or close it" in letter.error
    engine.deciders.execute(Puppet, Do("p-1", "y"))
    engine.drain()
    assert (engine.deciders.state(Puppet, "p-1"), written(place.store)) == (
        ("x", "y", "done"),
        ["after", "before"],
    )


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("statement", ["commit", "rollback", "commit; begin", "commit and chain"])
def test_postgres_finds_out_that_a_lent_transaction_has_ended(place: Place, statement: str) -> None:
    """What a handler commits with a statement cannot be undone: so it is not called again, and the letter says what happened."""
    engine, attempts = ending(place, lambda connection: connection.execute(statement, prepare=False))
    (letter,) = engine.dead_letters.list()
    assert (letter.attempts, attempts) == (1, [1])
    assert "ended its transaction" in letter.error
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_handler_that_commits_and_fails_is_not_called_again(place: Place) -> None:
    """Its writes are stored, so another call would repeat them."""

    def end(connection: Any) -> None:
        connection.execute("commit")
        raise ValueError("and then this")

    engine, attempts = ending(place, end)
    assert (attempts, written(place.store)) == ([1], ["before"])
    assert "ended its transaction" in engine.dead_letters.list()[0].error


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_failed_statement_cannot_be_overlooked(place: Place) -> None:
    """After a statement that failed Postgres takes no other: a handler that goes on has failed, and is told why."""

    def handle(context: EffectContext, effect: Act) -> Do:
        connection: Any = context.connection
        write(context, "lost")
        with contextlib.suppress(psycopg.Error):
            connection.execute("select 1 / 0")
        return Do("p-1", "done")

    prepared(place.store)
    engine = place.engine(Settings(retry=ONCE)).register(transactional(), handle)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert "a statement failed and the call went on" in engine.dead_letters.list()[0].error
    assert written(place.store) == []


def begun_copy(connection: Any, kept: contextlib.ExitStack) -> None:
    """Rows could be written now."""
    kept.enter_context(connection.cursor().copy("copy ledger from stdin"))


def begun_stream(connection: Any, kept: contextlib.ExitStack) -> None:
    """Most rows are still to come."""
    next(kept.enter_context(contextlib.closing(connection.cursor().stream("select generate_series(1, 10000)"))))


def sent_statement(connection: Any, _kept: contextlib.ExitStack) -> None:
    """Nobody has looked at what comes of it."""
    connection.pgconn.send_query(b"select 1")


def left_thread(connection: Any, kept: contextlib.ExitStack) -> None:
    """A thread goes on with the connection."""

    def go_on() -> None:
        with contextlib.suppress(psycopg.Error):
            connection.execute("select pg_sleep(50)")

    thread = threading.Thread(target=go_on)
    thread.start()
    kept.callback(thread.join, LONG_SECONDS)
    eventually(connection.lock.locked)


UNENDED = {"copy": begun_copy, "stream": begun_stream, "statement": sent_statement, "thread": left_thread}


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("unended", UNENDED)
def test_a_handler_cannot_leave_its_connection_in_the_middle_of_something(
    place: Place, unended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it keeps unended is hung up on: the call has failed with a reason, and its thread comes back."""
    if unended != "thread":  # Nobody is there who could let go of the connection.
        monkeypatch.setattr("standfast.store.postgres.connection.connection._CANCEL_SECONDS", 0.1)
    kept, attempts = contextlib.ExitStack(), list[int]()

    def handle(context: EffectContext, effect: Act) -> None:
        attempts.append(context.attempt)
        write(context, "before")
        if effect.what == "x":
            UNENDED[unended](context.connection, kept)

    prepared(place.store)
    engine = place.engine(Settings(retry=AT_ONCE)).register(transactional(), handle)
    for what in ("x", "y"):
        engine.deciders.execute(Puppet, Do("p-1", what))
        engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (attempts, written(place.store)) == ([1, 2, 3, 1], ["before"])
    assert "in the middle of" in letter.error
    with contextlib.suppress(psycopg.Error):
        kept.close()


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_what_a_handler_registers_for_its_rows_ends_with_the_call(place: Place) -> None:
    """Loaders and dumpers that it chose for the connection are not those of the next call."""
    seen = list[object]()

    def handle(context: EffectContext, effect: Act) -> None:
        connection: Any = context.connection
        seen.append(connection.execute("select 7::int8").fetchone()[0])
        connection.adapters.register_loader("int8", psycopg.types.string.TextLoader)
        seen.append(connection.execute("select 7::int8").fetchone()[0])

    engine = place.engine().register(transactional(), handle)
    for number in range(2):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
        engine.drain()
    assert seen == [7, "7", 7, "7"]


def test_savepoints_belong_to_the_handler(place: Place) -> None:
    """Inside the transaction a handler may set savepoints and roll back to them."""

    def handle(context: EffectContext, effect: Act) -> Do:
        connection: Any = context.connection
        write(context, "kept")
        connection.execute("savepoint mine")
        write(context, "dropped")
        connection.execute("rollback to savepoint mine")
        connection.execute("release savepoint mine")
        return Do("p-1", "done")

    prepared(place.store)
    engine = place.engine().register(transactional(), handle)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert (written(place.store), engine.deciders.state(Puppet, "p-1")) == (["kept"], ("x", "done"))


def test_a_handler_leaves_no_traces_on_the_connection(place: Place) -> None:
    """The form of rows that a handler chooses for the connection does not outlive its call."""

    def handle(context: EffectContext, effect: Act) -> Do:
        connection: Any = context.connection
        connection.row_factory = lambda *_: lambda *_: "nonsense"
        return Do("p-1", "done")

    engine = place.engine().register(transactional(), handle).register(Counter())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    place.engine().register(Counter()).deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Puppet, "p-1") == ("x", "done")


class Kept:
    """A transactional handler that keeps what it was lent."""

    def __init__(self) -> None:
        self.things: dict[str, Any] = {}

    def handle(self, context: EffectContext, effect: Act) -> None:
        connection: Any = context.connection
        unread = connection.execute("select 1 union select 2")
        unread.fetchone()
        connection.execute("create table if not exists blobs (what blob)")
        row = connection.execute("insert into blobs values (zeroblob(4))").lastrowid
        self.things |= {
            "connection": connection,
            "cursor": connection.cursor(),
            "unread": unread,
            "blob": connection.blobopen("blobs", "what", row),
            "execute": connection.execute,
            "interrupt": connection.interrupt,
        }


USES: dict[str, Callable[[dict[str, Any]], object]] = {
    "execute": lambda kept: kept["connection"].execute("insert into ledger values ('late')"),
    "method": lambda kept: kept["execute"]("rollback"),
    "another method": lambda kept: kept["interrupt"](),
    "cursor": lambda kept: kept["cursor"].execute("insert into ledger values ('late')"),
    "new cursor": lambda kept: kept["connection"].cursor(),
    "connection of a cursor": lambda kept: kept["cursor"].connection.execute("rollback"),
    "rest of the rows": lambda kept: kept["unread"].fetchone(),
    "blob": lambda kept: kept["blob"].write(b"late"),
    "commit": lambda kept: kept["connection"].commit(),
    "rollback": lambda kept: kept["connection"].rollback(),
    "close": lambda kept: kept["connection"].close(),
    "with": lambda kept: with_block(kept["connection"]),
    "state": lambda kept: kept["connection"].in_transaction,
    "plain commit": lambda kept: sqlite3.Connection.commit(kept["connection"]),
    "plain rollback": lambda kept: sqlite3.Connection.rollback(kept["connection"]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///{}/standfast.db"])
def test_what_a_handler_keeps_is_dead_when_its_call_has_ended(tmp_path: Path, url: str, use: str) -> None:
    """The transactions that follow on the writer are those of others: a connection, a cursor or a blob of the call is refused in them."""
    kept = Kept()
    store = open_store(url.format(tmp_path))
    engine = ManualEngine(store=store).register(transactional(), kept).register(Counter())
    prepared(store)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert engine.dead_letters.count() == 0
    with store.writer().unit() as unit:
        with pytest.raises((sqlite3.ProgrammingError, ConfigurationError)):
            USES[use](kept.things)
        unit.consume([])
    engine.deciders.execute(Counter, Add("c-1"))
    assert (written(store), engine.deciders.state(Counter, "c-1")) == ([], 1)
    engine.stop()
    store.close()


def test_a_lent_connection_is_one_that_users_know(tmp_path: Path) -> None:
    """Rows, factories, functions, cursors, temporary tables, blobs: what sqlite3 offers works for as long as the call lasts."""
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    prepared(store)

    class Loud(sqlite3.Cursor):
        def fetchone(self) -> Any:
            return str(super().fetchone()[0]).upper()

    with store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        assert isinstance(connection, sqlite3.Connection)
        connection.executemany("insert into ledger values (?)", [("a",), ("b",)])
        assert (connection.in_transaction, connection.total_changes >= 2, connection.isolation_level) == (
            True,
            True,
            None,
        )
        connection.row_factory = sqlite3.Row
        assert connection.execute("select what from ledger").fetchone()["what"] == "a"
        assert connection.cursor().execute("select what from ledger").connection is connection
        connection.row_factory = None
        connection.text_factory = bytes
        assert connection.execute("select what from ledger").fetchone() == (b"a",)
        connection.text_factory = str
        assert connection.cursor(Loud).execute("select what from ledger").fetchone() == "A"
        connection.create_function("twice", 1, lambda value: value * 2)
        connection.execute("create temp table scratch as select twice(what) as what from ledger")
        assert connection.execute("select what from scratch").fetchall() == [("aa",), ("bb",)]
        with pytest.raises(connection.OperationalError, match="no such table"):
            connection.execute("select 1 from nowhere")
    assert written(store) == ["a", "b"]
    store.close()


TRACES: dict[str, tuple[Callable[[Any], object], str]] = {
    "temporary table": (
        lambda connection: connection.execute("create temp table scratch (x)"),
        "select 1 from scratch",
    ),
    "temporary trigger": (
        lambda connection: connection.execute(
            "create temp trigger mine before insert on main.ledger begin select raise(abort, 'mine'); end"
        ),
        "drop trigger mine",
    ),
    "function": (lambda connection: connection.create_function("mine", 1, abs), "select mine(1)"),
    "another file": (lambda connection: connection.execute("attach ':memory:' as other"), "detach other"),
}


@pytest.mark.parametrize("trace", TRACES)
def test_what_a_handler_does_to_its_connection_ends_with_the_call(tmp_path: Path, trace: str) -> None:
    """Whatever sticks to a connection goes with it: the calls of others find nothing of it."""
    leave, find = TRACES[trace]
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    prepared(store)
    with store.writer().unit() as unit, unit.lend() as lent:
        leave(lent)
    with store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        with pytest.raises(sqlite3.OperationalError, match="no such"):
            connection.execute(find)
    assert written(store) == []
    store.close()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "setting",
    [
        "query_only = on",
        "locking_mode = exclusive",
        "user_version = 0",
        "synchronous = off",
        "wal_checkpoint",
        "optimize",
    ],
)
def test_a_handler_cannot_set_what_others_depend_on(place: Place, setting: str) -> None:
    """Settings of the connection and of the file are the engine's; the handler hears so, and everybody goes on writing."""
    engine, _ = ending(place, lambda connection: connection.execute(f"pragma {setting}"))
    (letter,) = engine.dead_letters.list()
    assert (letter.reason, written(place.store)) == ("bad_configuration", [])
    assert f"PRAGMA {setting.split(maxsplit=1)[0]}" in letter.error
    engine.deciders.execute(Puppet, Do("p-1", "y"))
    engine.drain()
    assert written(place.store) == ["after", "before"]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_handler_may_look_at_tables_and_settings(place: Place) -> None:
    """What only tells is no trouble, nor what ends with the transaction."""
    prepared(place.store)
    with place.store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        assert [row[1] for row in connection.execute("pragma table_info(ledger)")] == ["what"]
        assert connection.execute("select name from pragma_table_info('ledger')").fetchall() == [("what",)]
        assert connection.execute("pragma query_only").fetchone() == (0,)
        assert connection.execute("pragma foreign_key_check").fetchall() == []
        connection.execute("pragma defer_foreign_keys = on")


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_projection_cannot_end_its_transaction_either(place: Place) -> None:
    """What a projection writes and how far it has read are one transaction, also when it tries to commit."""

    class Hasty:
        name = "hasty"

        def apply(self, events: object, connection: Any) -> None:
            connection.execute("insert into ledger values ('seen')")
            connection.commit()

        def clear(self, connection: Any) -> None: ...

    prepared(place.store)
    engine = place.engine().register(Counter()).project(Hasty())
    engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    assert (written(place.store), place.store.feed().checkpoint("hasty")) == ([], 0)


# -- The only writer of a file.


CALLS: dict[str, Callable[[Engine], Any]] = {
    "execute": lambda engine: engine.futures.deciders.execute(Counter, Add("c-1")),
    "submit": lambda engine: engine.futures.deciders.submit(Counter, Add("c-1")),
    "start": lambda engine: engine.futures.start("idle"),
    "signal": lambda engine: engine.futures.run("01900000-0000-7000-8000-000000000000").signal("s"),
    "result": lambda engine: engine.futures.run("01900000-0000-7000-8000-000000000000").result(),
    "maintain": lambda engine: engine.futures.admin.pause_processing(),
    "discard": lambda engine: engine.futures.instances.delete(engine.deciders.get(Puppet, "p-1").id),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("call", CALLS)
@on_sqlite
def test_a_handler_that_would_wait_for_itself_hears_so_at_once(live: Live, call: str, *, is_async: bool) -> None:
    """While a handler has the file's only writer, calls that write are refused with the remedy, also from a thread it waits for."""
    heard: list[BaseException | None] = []

    def ask() -> None:
        heard.append(CALLS[call](engine).exception(LONG_SECONDS))

    def handle(context: EffectContext, effect: Act) -> Do:
        ask()
        return Do("p-1", "done")

    async def handle_async(context: EffectContext, effect: Act) -> Do:
        await asyncio.to_thread(ask)
        return Do("p-1", "done")

    engine = live.engine().register(transactional(), handle_async if is_async else handle)
    engine.register(Counter()).register(Saga("idle").wait("w", 3600).build()).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    (error,) = heard
    assert isinstance(error, ConfigurationError)
    assert "connection=context.connection" in str(error)


@pytest.mark.parametrize("is_async", [False, True])
def test_reading_inside_a_handler_goes_on(live: Live, *, is_async: bool) -> None:
    """Questions that need no writer are answered inside a handler, and a command may be submitted with its own connection."""
    seen: list[object] = []

    def handle(context: EffectContext, effect: Act) -> Do:
        seen.append(engine.futures.deciders.state(Puppet, "p-1").result(LONG_SECONDS))
        seen.append(engine.futures.definitions.get("idle").result(LONG_SECONDS).name)
        engine.futures.deciders.submit(Counter, Add("c-1"), connection=context.connection).result(LONG_SECONDS)
        return Do("p-1", "done")

    async def handle_async(context: EffectContext, effect: Act) -> Do:
        return handle(context, effect)

    engine = live.engine().register(transactional(), handle_async if is_async else handle)
    engine.register(Counter()).register(Saga("idle").wait("w", 3600).build()).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    assert seen == [("x",), "idle"]
    eventually(lambda: engine.instances.list() and engine.admin.inbox_depth() == 0)
    assert eventually(lambda: engine.futures.deciders.state(Counter, "c-1").exception() is None)


def test_reading_inside_a_handler_goes_on_in_memory() -> None:
    """In memory readers share the writer: the handler's own questions are answered on its own thread."""
    seen: list[object] = []

    def handle(context: EffectContext, effect: Act) -> Do:
        seen.append(engine.futures.deciders.state(Puppet, "p-1").result(LONG_SECONDS))
        seen.append(type(engine.futures.deciders.execute(Doll, Do("d-1", "y")).exception(LONG_SECONDS)))
        return Do("p-1", "done")

    with Engine("sqlite://", settings=QUICK) as engine:
        engine.register(transactional(), handle).register(Doll())
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    assert seen == [("x",), ConfigurationError]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_an_engine_without_threads_refuses_too(place: Place) -> None:
    """The same error where the handler's own thread would do the work; what a handler started remembers nothing afterwards."""
    heard: list[BaseException | None] = []

    def handle(context: EffectContext, effect: Act) -> Do:
        heard.append(engine.futures.deciders.execute(Doll, Do("d-1", "y")).exception())
        return Do("p-1", "done")

    engine = place.engine().register(transactional(), handle).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert [type(error) for error in heard] == [ConfigurationError]
    engine.deciders.execute(Doll, Do("d-1", "y"))
    assert engine.deciders.state(Doll, "d-1") == ("y",)


def hanging(limit: timedelta | None, engine: Engine) -> tuple[threading.Event, list[BaseException]]:
    """Let a handler hang inside its transaction; what lets it go, and what it meets when it goes on."""
    gate, inside = threading.Event(), threading.Event()
    met: list[BaseException] = []

    def hang(context: EffectContext, effect: Act) -> Do:
        write(context, "lost")
        inside.set()
        arrives(gate)
        try:
            write(context, "lost too")
        except BaseException as error:
            met.append(error)
            raise
        return Do("p-1", "done")

    engine.register(transactional(timeout=limit), hang, retry=ONCE).register(Doll())
    prepared(engine.service.store)
    engine.start_worker().deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    return gate, met


@on_sqlite
def test_a_handler_cannot_keep_the_writer_beyond_its_limit(live: Live) -> None:
    """At its limit the connection is taken from a handler that hangs: everybody else goes on, and what it wrote is undone."""
    engine = live.engine()
    gate, met = hanging(timedelta(milliseconds=150), engine)
    engine.futures.deciders.execute(Doll, Do("d-1", "meanwhile")).result(LONG_SECONDS)
    assert [each.attempts for each in eventually(engine.dead_letters.list)] == [1]
    gate.set()
    eventually(lambda: met)
    assert ([type(error) for error in met], written(engine.service.store)) == ([sqlite3.ProgrammingError], [])
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
    engine.futures.deciders.execute(Doll, Do("d-1", "afterwards")).result(LONG_SECONDS)
    with engine.service.store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        assert connection.execute("pragma synchronous").fetchone() == (2,)  # Of the new writer too.


def test_a_handler_without_a_limit_keeps_the_writer_no_longer_than_others_wait(tmp_path: Path) -> None:
    """Where nobody set a limit, the patience of those who wait for the file is one."""
    store = SQLiteStore(str(tmp_path / "store.db"), codec="json", patience=0.3)
    engine = Engine(store=store, settings=QUICK)
    gate, _ = hanging(None, engine)
    engine.futures.deciders.execute(Doll, Do("d-1", "meanwhile")).result(LONG_SECONDS)
    gate.set()
    (letter,) = eventually(engine.dead_letters.list)
    assert "held the file's only writer" in letter.error
    assert written(store) == []
    engine.stop()
    store.close()


@on_sqlite
def test_a_long_statement_is_interrupted_at_the_limit(live: Live) -> None:
    """A handler that is busy inside SQLite loses the writer as well."""

    def handle(context: EffectContext, effect: Act) -> None:
        connection: Any = context.connection
        endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
        connection.execute(endless).fetchone()

    engine = live.engine().register(transactional(timeout=timedelta(milliseconds=150)), handle, retry=ONCE)
    engine.register(Doll()).start_worker().deciders.execute(Puppet, Do("p-1", "x"))
    engine.futures.deciders.execute(Doll, Do("d-1", "meanwhile")).result(LONG_SECONDS)
    (letter,) = eventually(engine.dead_letters.list)
    assert (letter.source, letter.attempts) == ("effect", 1)
    assert "held the file's only writer for more than 0.15 s" in letter.error
    assert engine.deciders.state(Doll, "d-1") == ("meanwhile",)


# -- Calls that are given up while they hold something.


def is_free(store: Store) -> bool:
    """Whether somebody else can have the table that a handler has written to, soon."""
    if isinstance(store, SQLiteStore):
        prepared(store, "other")
    else:
        with store.writer().unit() as unit, unit.lend() as lent:
            connection: Any = lent
            connection.execute("set local lock_timeout = '10s'")
            connection.execute("lock table ledger")
    return True


SLOWLY: dict[str, Callable[[Any, threading.Event], object]] = {
    "outside": lambda _connection, gate: arrives(gate),
    "in a statement": lambda connection, _gate: connection.execute("select pg_sleep(50)"),
}


@on_postgres
@pytest.mark.parametrize("where", SLOWLY)
def test_a_call_that_is_written_off_holds_nothing(live: Live, where: str) -> None:
    """At its limit the connection is taken from a handler that hangs: the rows that it has locked are free, and nothing is stored."""
    gate, inside = threading.Event(), threading.Event()

    def hang(context: EffectContext, effect: Act) -> Do:
        write(context, "lost")
        inside.set()
        SLOWLY[where](context.connection, gate)
        return Do("p-1", "done")

    engine = live.engine().register(transactional(timeout=timedelta(milliseconds=150)), hang, retry=ONCE)
    prepared(engine.service.store)
    engine.start_worker().deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    (letter,) = eventually(engine.dead_letters.list)
    assert "no answer within 0.15 s" in letter.error
    assert is_free(engine.service.store)
    gate.set()
    eventually(lambda: not engine.runtime.worker._threads.lost)
    assert (written(engine.service.store), engine.deciders.state(Puppet, "p-1")) == ([], ("x",))


@on_postgres
def test_the_thread_of_a_call_that_was_written_off_can_be_used_again(live: Live) -> None:
    """Its next transactional call has a connection that works."""
    gate = threading.Event()

    def work(context: EffectContext, effect: Act) -> Do:
        write(context, effect.what)
        if effect.what == "hang":
            arrives(gate)
        return Do(f"p-{effect.what}", "done")

    settings = msgspec.structs.replace(QUICK, threads=1)
    engine = live.engine(settings).register(transactional(timeout=timedelta(seconds=1)), work, retry=ONCE)
    prepared(engine.service.store)
    engine.start_worker().deciders.execute(Puppet, Do("p-hang", "hang"))
    eventually(engine.dead_letters.list)
    gate.set()
    eventually(lambda: not engine.runtime.worker._threads.lost)
    for name in ("a", "b", "c"):
        engine.deciders.execute(Puppet, Do(f"p-{name}", name))
        eventually(lambda name=name: engine.deciders.state(Puppet, f"p-{name}") == (name, "done"))  # type: ignore[misc]
    assert written(engine.service.store) == ["a", "b", "c"]


@on_postgres
def test_a_call_that_nobody_wants_any_more_holds_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler without a limit whose effect was withdrawn, and that does not listen, loses its connection after a grace."""
    monkeypatch.setattr("standfast.engine.worker.worker._GRACE_SECONDS", 0.1)
    gate, inside = threading.Event(), threading.Event()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "stop":
            return Decision((Noted("stop"),), withdrawn_effects=(0,))
        return Decision.event(Noted(command.what)).with_effect(Act(command.what), transactional=True)

    def hang(context: EffectContext, effect: Act) -> None:
        write(context, "lost")
        inside.set()
        arrives(gate)

    engine = live.engine().register(Puppet(choose), hang)
    prepared(engine.service.store)
    engine.start_worker().deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.deciders.execute(Puppet, Do("p-1", "stop"))
    assert is_free(engine.service.store)
    gate.set()
    assert written(engine.service.store) == []


# -- The end of an engine.


def stop(engine: Engine) -> None:
    """Stop an engine that has little time for it."""
    comes_to_an_end(lambda: engine.stop(timedelta(milliseconds=200)))


def test_an_engine_stops_although_a_transactional_handler_hangs(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """It says which call it leaves behind, and what that had written or locked is free for others at once; its effect too."""
    engine = live.engine()
    gate, _ = hanging(None, engine)
    stop(engine)
    assert "'puppet'" in caplog.text
    assert "shutdown_timeout" in caplog.text
    heir = live.engine().register(transactional(), lambda context, effect: Do("p-1", "done")).start_worker()
    assert is_free(heir.service.store)
    eventually(lambda: heir.deciders.state(Puppet, "p-1") == ("x", "done"))
    gate.set()
    assert written(heir.service.store) == []


def test_an_engine_in_memory_stops_although_a_transactional_handler_hangs(caplog: pytest.LogCaptureFixture) -> None:
    """There is no other connection to what is in memory: it is left as it is, with a word about it."""
    engine = Engine("sqlite://", settings=QUICK)
    gate, _ = hanging(None, engine)
    stop(engine)
    assert "shutdown_timeout" in caplog.text
    assert "connection_left_open" in caplog.text
    gate.set()


def test_an_engine_stops_although_a_projection_hangs(live: Live) -> None:
    """Others can write at once; what the projection did is undone."""
    gate, inside = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def apply(self, events: object, connection: Any) -> None:
            inside.set()
            arrives(gate)

        def clear(self, connection: Any) -> None: ...

    engine = live.engine().register(Counter()).project(Slow()).start_worker()
    engine.deciders.execute(Counter, Add("c-1"))
    arrives(inside)
    stop(engine)
    heir = live.engine().register(Counter())
    heir.futures.deciders.execute(Counter, Add("c-1")).result(LONG_SECONDS)
    assert heir.deciders.state(Counter, "c-1") == 2
    gate.set()


# -- Calls that come back late.


def test_a_call_that_comes_back_late_leaves_no_connection_behind(live: Live) -> None:
    """A thread that was replaced goes home when its call ends, and what it wrote and read with serves the next one."""
    called: SimpleQueue[threading.Thread] = SimpleQueue()
    gate = threading.Semaphore(0)

    def handle(context: EffectContext, effect: Act) -> None:
        assert context.key
        called.put(threading.current_thread())
        if effect.what == "hang":
            gate.acquire(timeout=LONG_SECONDS)

    engine = live.engine(msgspec.structs.replace(QUICK, threads=1, cache_size=0))
    engine.register(transactional(timeout=timedelta(milliseconds=500)), handle, retry=ONCE).start_worker()
    counts = list[int]()
    for number in range(6):
        engine.deciders.execute(Puppet, Do(f"p-{number}-hang", "hang"))
        late = called.get(timeout=LONG_SECONDS)
        engine.deciders.execute(Puppet, Do(f"p-{number}-pass", "pass"))
        assert called.get(timeout=LONG_SECONDS) is not late
        gate.release()
        late.join(LONG_SECONDS)
        counts.append(connections_of(engine.service.store))
    assert counts[-1] <= counts[0] + 2


# -- Under whose name handlers write.

WALLED = """
create table shelf (tenant text not null default current_setting('standfast.tenant'), what text);
alter table shelf enable row level security;
create policy tenant on shelf to standfast_tenant using (tenant = current_setting('standfast.tenant', true));
grant select, insert on shelf to standfast_tenant;
insert into shelf values ('rival', 'secret');
"""


def walled(live: Live) -> None:
    """A table of the user's own with a wall between tenants."""
    with psycopg.connect(live.url, autocommit=True) as connection:
        connection.execute(WALLED)


def shelf(live: Live) -> list[tuple[str, str]]:
    """All that stands on the shelf, whoever put it there."""
    with psycopg.connect(live.url, autocommit=True) as connection:
        return connection.execute("select tenant, what from shelf order by tenant, what").fetchall()


@on_postgres
def test_a_handler_can_run_behind_the_wall_of_its_tenant(live: Live) -> None:
    """Under `handler_role` it sees and writes what its tenant may; the engine then commits with its own rights in the same transaction."""
    walled(live)
    seen: list[list[tuple[str]]] = []

    def handle(context: EffectContext, effect: Act) -> Do:
        connection: Any = context.connection
        connection.execute("insert into shelf (what) values (%s)", [effect.what])
        seen.append(connection.execute("select what from shelf").fetchall())
        return Do("p-1", "done")

    settings = msgspec.structs.replace(QUICK, handler_role="standfast_tenant")
    engine = live.engine(settings).register(transactional(), handle).start_worker()
    engine.as_tenant("o'hara").deciders.execute(Puppet, Do("p-1", "own"))
    eventually(lambda: engine.as_tenant("o'hara").deciders.state(Puppet, "p-1") == ("own", "done"))
    assert seen == [[("own",)]]
    assert shelf(live) == [("o'hara", "own"), ("rival", "secret")]


@on_postgres
def test_a_role_that_lacks_a_right_is_told_apart_from_a_handler_that_fails(live: Live) -> None:
    """The dead letter says which role lacks what, and what to do."""
    engine = live.engine(msgspec.structs.replace(QUICK, handler_role="standfast_tenant"))
    prepared(store_of(engine))
    engine.register(transactional(retry=ONCE), lambda context, _effect: write(context, "forbidden")).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "go"))
    eventually(lambda: len(engine.dead_letters.list()) == 1)
    (letter,) = engine.dead_letters.list()
    assert "the role 'standfast_tenant'" in letter.error
    assert "permission denied for table ledger" in letter.error


@on_postgres
def test_a_role_that_does_not_exist_is_named(live: Live) -> None:
    """A call under a role that nobody made fails with the name of the setting."""
    settings = msgspec.structs.replace(QUICK, handler_role="nobody_made_it")
    engine = live.engine(settings).register(transactional(retry=ONCE), lambda _context, _effect: None).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "go"))
    eventually(lambda: len(engine.dead_letters.list()) == 1)
    (letter,) = engine.dead_letters.list()
    assert "nobody_made_it" in letter.error
    assert "Settings.handler_role" in letter.error


@on_postgres
def test_without_a_role_a_handler_has_the_rights_of_the_engine(live: Live) -> None:
    """Whoever owns the tables and connects as their owner needs no grants."""
    engine = live.engine()
    prepared(store_of(engine))
    engine.register(transactional(), lambda context, _effect: write(context, "own")).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "go"))
    eventually(lambda: written(store_of(engine)) == ["own"])
