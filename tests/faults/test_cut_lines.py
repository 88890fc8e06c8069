"""Connections that are cut at rest, and databases that are away for a while: operators' calls and submitted commands wait as others do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import msgspec
import psycopg
import pytest

from standfast import EffectContext, Engine, Fail, Reply, StoreUnavailableError
from support.engines import QUICK, Live
from support.inside import store_of
from support.proxy import Link, Mode, Proxy, proxied
from support.samples import Do, Puppet, act, note
from support.waiting import eventually

IMPATIENT = msgspec.structs.replace(QUICK, patience=timedelta(milliseconds=200))
ACCEPTED = b"insert into standfast.inbox"


def broken(context: EffectContext, effect: object) -> None:
    """A handler that gives up at once."""
    raise Fail("no")


CALLS: dict[str, Callable[[Engine, int], Reply[object]]] = {
    "submit": lambda engine, letter: engine.futures.deciders.submit(Puppet, Do("p-9", "done")),  # type: ignore[dict-item,return-value]
    "requeue": lambda engine, letter: engine.futures.dead_letters.requeue(letter),  # type: ignore[dict-item,return-value]
    "discard": lambda engine, letter: engine.futures.dead_letters.discard(letter),  # type: ignore[dict-item,return-value]
    "backlog": lambda engine, letter: engine.futures.admin.backlog(),  # type: ignore[dict-item,return-value]
    "workers": lambda engine, letter: engine.futures.admin.workers(),  # type: ignore[dict-item,return-value]
    "inbox_depth": lambda engine, letter: engine.futures.admin.inbox_depth(),  # type: ignore[dict-item,return-value]
    "messages": lambda engine, letter: engine.futures.inbox.list(),  # type: ignore[dict-item,return-value]
    "projections": lambda engine, letter: engine.futures.projections.list(),  # type: ignore[dict-item,return-value]
    "maintain": lambda engine, letter: engine.futures.admin.resume_processing(),  # type: ignore[dict-item,return-value]
    "missing_handlers": lambda engine, letter: engine.futures.admin.missing_handlers(),  # type: ignore[dict-item,return-value]
}


def cut_all(dsn: str) -> None:
    """Have the server hang up on everybody, and wait until it has."""
    with psycopg.connect(dsn, autocommit=True) as killer:
        others = "datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        pids = [pid for (pid,) in killer.execute(f"select pid from pg_stat_activity where {others}")]
        killer.execute("select pg_terminate_backend(pid) from unnest(%s::int4[]) as p (pid)", [pids])
        left = "select 1 from pg_stat_activity where pid = any (%s::int4[])"
        eventually(lambda: killer.execute(left, [pids]).fetchone() is None)


@pytest.mark.parametrize("name", CALLS)
def test_a_line_that_was_cut_at_rest_is_not_noticed(
    postgres_dsn: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is up: whatever is asked for next is answered, without the caller's doing, and done once."""
    monkeypatch.setattr("standfast.store.postgres.connection.connection._REST_SECONDS", 0.0)
    live = Live(postgres_dsn)
    engine = live.engine().register(Puppet(act), broken).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    engine.admin.inbox_depth()  # So that the line is there to be cut.
    cut_all(postgres_dsn)
    CALLS[name](engine, letter.id).result(timeout=30)
    if name == "submit":
        eventually(lambda: engine.admin.inbox_depth() == 0)
        assert engine.deciders.state(Puppet, "p-9") == ("done",)
    live.close()


@contextmanager
def full(live: Live, engine: Engine) -> Iterator[None]:
    """A database that takes no commands into its inbox for as long as the block lasts."""
    if live.url.startswith("sqlite"):
        writer, lock = store_of(engine)._database._writer, store_of(engine)._database._lock  # type: ignore[attr-defined]
        with lock:
            writer.execute("pragma query_only = on")
        try:
            yield
        finally:
            with lock:
                writer.execute("pragma query_only = off")
        return
    with psycopg.connect(live.url, autocommit=True) as connection:
        connection.execute(
            "create trigger fault before insert on standfast.inbox execute function standfast.refuse('53100', 'no')"
        )
        try:
            yield
        finally:
            connection.execute("drop trigger fault on standfast.inbox")


@pytest.mark.parametrize("command_id", ["", "c-1"])
def test_a_submitted_command_waits_for_the_database(
    live: Live, command_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Within the patience of its caller it is accepted, once, with or without an id."""
    engine = live.engine().register(Puppet(note))
    with full(live, engine):
        reply = engine.futures.deciders.submit(Puppet, Do("p-1", "x"), command_id=command_id)
        eventually(lambda: "database_unavailable" in caplog.text)
        assert not reply.done()
    reply.result(timeout=30)
    engine.start_worker()
    eventually(lambda: engine.admin.inbox_depth() == 0)
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_a_submitted_command_does_not_wait_for_ever(live: Live) -> None:
    """After its patience the caller is told, and nothing was accepted."""
    engine = live.engine(IMPATIENT).register(Puppet(note))
    with full(live, engine):
        error = engine.futures.deciders.submit(Puppet, Do("p-1", "x")).exception(timeout=30)
    assert isinstance(error, StoreUnavailableError)
    assert not error.may_be_done
    assert engine.admin.inbox_depth() == 0


def test_nobody_waits_for_the_database_of_a_stopped_engine(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """Who waits when the engine stops is told, however patient, and the stop does not wait for him."""
    patient = msgspec.structs.replace(QUICK, patience=timedelta(minutes=10))
    engine = live.engine(patient).register(Puppet(note))
    with full(live, engine):
        reply = engine.futures.deciders.submit(Puppet, Do("p-1", "x"))
        eventually(lambda: "database_unavailable" in caplog.text)
        stopping = threading.Thread(target=engine.service.stop, args=(20.0,))
        stopping.start()
        assert isinstance(reply.exception(timeout=30), StoreUnavailableError)
        stopping.join(30)
    assert not stopping.is_alive()


@pytest.fixture
def proxy(postgres_dsn: str) -> Iterator[Proxy]:
    """A proxy in front of a database of the test's own."""
    with proxied(postgres_dsn) as proxy:
        yield proxy


@pytest.mark.parametrize("mode", ["after", "half"])
@pytest.mark.parametrize("command_id", ["", "c-1"])
def test_a_command_whose_acceptance_is_unknown_is_not_accepted_twice(
    proxy: Proxy, postgres_dsn: str, mode: Mode, command_id: str
) -> None:
    """Without an id its caller is told that nobody knows; with one it is sent again, and counts once."""
    live = Live(proxy.url)
    engine = live.engine().register(Puppet(note))
    engine.futures.deciders.submit(Puppet, Do("p-1", "first")).result(timeout=30)

    def accepting(link: Link, _data: bytes) -> bool:
        return ACCEPTED in link.said

    proxy.cut(accepting, mode)
    error = engine.futures.deciders.submit(Puppet, Do("p-1", "x"), command_id=command_id).exception(timeout=30)
    assert proxy.cuts == 1
    if command_id:
        assert error is None
    else:
        assert isinstance(error, StoreUnavailableError)
        assert error.may_be_done
        assert "Whether the command was accepted is unknown" in str(error)
    engine.start_worker()
    eventually(lambda: engine.admin.inbox_depth() == 0)
    assert engine.deciders.state(Puppet, "p-1") == ("first", "x")
    live.url = postgres_dsn
    live.close()
