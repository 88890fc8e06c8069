"""When the server fails: each fault has a stable code, worth trying again, and the connection comes back by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import msgspec
import psycopg
import pytest

from devserver.postgres import Server, temporary_server
from standfast.errors import (
    ConfigurationError,
    HeldError,
    PayloadError,
    SchemaMismatchError,
    StandfastError,
    StoreError,
    StoreUnavailableError,
)
from standfast.store.opening import open_store
from standfast.store.ports.store import LostRaceError
from standfast.store.postgres.connection import connection as connections
from standfast.store.records.instances import Address, InstanceChange, InstanceQuery
from support.desks import Desk
from support.rows import (
    NOW,
    born,
    by_id,
    moved,
)
from support.waiting import eventually, together


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A cluster of the tests' own, on which nothing was done before and which may be stopped."""
    with temporary_server() as server:
        yield server


@pytest.fixture
def desk(postgres_dsn: str) -> Iterator[Desk]:
    """A desk on Postgres."""
    store = open_store(postgres_dsn)
    yield Desk(store)
    store.close()


def test_a_fresh_cluster_takes_several_databases_at_once(own_server: Server) -> None:
    """The roles belong to the cluster: whoever makes them first, all databases are ready in the end."""
    urls = [own_server.create_database(f"at_once_{number}") for number in range(4)]
    together(*(partial(works, url) for url in urls))
    for url in urls:
        open_store(url, may_migrate=False).close()


def works(url: str) -> None:
    """Open the store there, whatever it takes."""
    open_store(url).close()


def outage(action: Callable[[], object]) -> StoreUnavailableError:
    """The error of an action that finds the server away."""
    with pytest.raises(StoreUnavailableError) as caught:
        action()
    assert (caught.value.code, caught.value.retryable) == ("store_unavailable", True)
    return caught.value


def test_a_server_that_goes_and_comes_back(own_server: Server) -> None:
    """While it is away every part says so; when it is back every part goes on, without being told."""
    store = open_store(own_server.create_database("comes_back"))
    pool = store._opened.pool  # type: ignore[attr-defined]
    assert pool.reconnect_timeout == pool.timeout  # Whoever comes later begins anew, however long the server was away.
    pool.timeout = 0.2  # Readers wait for a connection; the test does not want to.
    desk = Desk(store)
    head = desk.born(born())
    assert len(desk.reader.instances(InstanceQuery())) == 1
    own_server.stop("immediate")
    outage(lambda: desk.commit(moved(head)))
    outage(lambda: desk.commit(moved(head)))
    outage(lambda: desk.loaded(head.id))
    outage(lambda: desk.reader.instances(InstanceQuery()))
    outage(store.now)
    own_server.start()
    pool.timeout = 30
    desk.commit(moved(head))
    assert desk.loaded(head.id).header.version == 2
    assert len(desk.reader.instances(InstanceQuery())) == 1
    store.close()


def end_other_sessions(dsn: str) -> None:
    """End every other connection to the database, as an administrator or a failing network would, and wait until they are gone."""
    with closing(psycopg.connect(dsn, autocommit=True)) as admin:
        admin.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )


def interrupted(dsn: str, desk: Desk, first: InstanceChange, *more: InstanceChange) -> None:
    """A transaction whose connection is ended after the first write."""
    with desk.writer.unit() as unit:
        unit.write([first], NOW)
        end_other_sessions(dsn)
        if more:
            unit.write(more, NOW)


def test_a_connection_that_ends_in_a_transaction(postgres_dsn: str, desk: Desk) -> None:
    """What the transaction had written is undone, the error tells of an outage, and the next one connects again."""
    lost, kept = born(), born()
    with pytest.raises(StoreUnavailableError):
        interrupted(postgres_dsn, desk, lost, born())
    desk.commit(kept)
    found = desk.writer.load([by_id(lost.header.id), by_id(kept.header.id)])
    assert [each is not None for each in found] == [False, True]


def test_a_connection_that_ends_before_the_commit(postgres_dsn: str, desk: Desk) -> None:
    """A transaction whose end never arrived is an outage, not a success."""
    lost = born()
    with pytest.raises(StoreUnavailableError):
        interrupted(postgres_dsn, desk, lost)
    assert desk.writer.load([by_id(lost.header.id)]) == [None]


@pytest.mark.parametrize("rest", [float("inf"), 0.0])
def test_an_idle_connection_that_ends(
    postgres_dsn: str, desk: Desk, monkeypatch: pytest.MonkeyPatch, rest: float
) -> None:
    """One that was ended while nobody used it is noticed with its next use, which fails; where it has rested, before that, and nobody hears of it."""
    monkeypatch.setattr(connections, "_REST_SECONDS", rest)
    desk.born(born())
    end_other_sessions(postgres_dsn)
    change = born()

    def commit() -> bool:
        try:
            desk.commit(change)
        except StoreUnavailableError:
            return False
        return True

    if rest:
        assert not commit()
    assert commit()
    assert len(desk.reader.instances(InstanceQuery())) == 2


def read_only(dsn: str, setting: str) -> None:
    """Make the database read-only for new connections, or not."""
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    with closing(psycopg.connect(dsn, autocommit=True, options="-c default_transaction_read_only=off")) as admin:
        admin.execute(f"alter database {name} set default_transaction_read_only = {setting}")


def test_a_read_only_server_is_unavailable(postgres_dsn: str, desk: Desk) -> None:
    """A server that takes no writes counts as gone, for old connections and new ones, until it takes them again."""
    head = desk.born(born())
    read_only(postgres_dsn, "on")
    desk.run("set default_transaction_read_only = on")
    assert "read-only" in str(outage(lambda: desk.commit(moved(head))))
    assert "read-only" in str(outage(lambda: desk.commit(moved(head))))
    outage(lambda: open_store(postgres_dsn))
    read_only(postgres_dsn, "off")
    desk.commit(moved(head))
    assert desk.loaded(head.id).header.version == 2


def test_a_lock_that_another_one_has_is_no_outage(desk: Desk) -> None:
    """Whoever waits too long for another transaction gives up with an error that is worth trying again, and says what is the matter."""
    head = desk.born(born())
    other = desk.another()
    desk.run("set lock_timeout = '20ms'")
    with other.writer.unit() as unit:
        unit.load([by_id(head.id)])
        with pytest.raises(HeldError, match="another transaction holds") as held:
            desk.commit(moved(head))
        assert held.value.retryable
    desk.commit(moved(head))


def test_the_last_of_two_that_wait_loses(postgres_dsn: str, desk: Desk) -> None:
    """A commit that waits for another one of the same instance finds itself overtaken when it gets its turn."""
    head = desk.born(born())
    other = desk.another()

    def first() -> None:
        with other.writer.unit() as unit:
            unit.load([by_id(head.id)])
            eventually(lambda: waiting(postgres_dsn))
            unit.write([moved(head)], NOW)

    def second() -> None:
        eventually(lambda: locked(postgres_dsn, head.id))
        with pytest.raises(LostRaceError):
            desk.commit(moved(head, events=2))

    together(first, second)
    assert desk.loaded(head.id).header.version == 2


def waiting(dsn: str) -> bool:
    """Whether some connection to the database waits for a lock."""
    with closing(psycopg.connect(dsn)) as admin:
        row = admin.execute(
            "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        ).fetchone()
    return row is not None


def locked(dsn: str, instance: object) -> bool:
    """Whether some transaction holds the row of an instance."""
    with closing(psycopg.connect(dsn)) as admin:
        row = admin.execute(
            "select 1 from standfast.instances where id = %s for update skip locked", [instance]
        ).fetchone()
    return row is None


CODES: list[tuple[str, type[Exception]]] = [
    ("53100", StoreUnavailableError),  # disk full
    ("53200", StoreUnavailableError),  # out of memory
    ("53300", StoreUnavailableError),  # too many connections
    ("57014", StoreUnavailableError),  # statement timeout
    ("57P01", StoreUnavailableError),  # the administrator ends the server
    ("57P03", StoreUnavailableError),  # the server starts
    ("58030", StoreUnavailableError),  # the disk fails
    ("08006", StoreUnavailableError),  # the connection fails
    ("25006", StoreUnavailableError),  # read-only
    ("55P03", HeldError),  # somebody else has the lock
    ("40001", LostRaceError),  # serialization
    ("40P01", LostRaceError),  # deadlock
    ("23505", LostRaceError),  # a unique key
    ("HF001", LostRaceError),  # the gate of a commit
    ("42P01", SchemaMismatchError),  # a table is missing
    ("42703", SchemaMismatchError),  # a column is missing
    ("42501", ConfigurationError),  # a right is missing
    ("22021", PayloadError),  # a character that text cannot hold
    ("22003", PayloadError),  # a number out of range
    ("23514", StoreError),  # a check
    ("P0001", StoreError),  # anything else
]


@pytest.mark.parametrize(("state", "expected"), CODES)
def test_every_fault_has_a_class(desk: Desk, state: str, expected: type[Exception]) -> None:
    """What the server says by code becomes the error that callers act on; the connection serves on afterwards."""
    with pytest.raises(expected) as caught:
        desk.run(f"do $$ begin raise exception 'trouble' using errcode = '{state}'; end $$")
    assert type(caught.value) is expected
    assert "trouble" in str(caught.value)
    if isinstance(caught.value, StandfastError):
        assert caught.value.retryable == (expected in {StoreUnavailableError, HeldError})
    desk.born(born())


def test_a_number_that_does_not_fit_is_refused(desk: Desk) -> None:
    """A version beyond its column is an error of ours, and nothing is written."""
    change = born()
    change.events = [msgspec.structs.replace(event, version=10**6) for event in change.events]
    with pytest.raises(StandfastError):
        desk.commit(change)
    assert desk.reader.instances(InstanceQuery()) == []


def test_nobody_connects_again_once_a_store_is_closed(postgres_dsn: str) -> None:
    """A thread that outlives its engine is told so; a connection that it made would stay open for ever."""
    store = open_store(postgres_dsn)
    writer, where = store.writer(), [Address(tenant="default", definition="order", key="o-1")]
    assert writer.load(where) == [None]
    store.close()
    for each in (writer, store.writer()):
        with pytest.raises(StoreUnavailableError, match="was stopped"):
            each.load(where)
    with psycopg.connect(
        postgres_dsn, autocommit=True
    ) as witness:  # A transaction would see what it saw first for ever.
        count = (
            "select count(*) from pg_stat_activity "
            "where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"
        )
        eventually(lambda: witness.execute(count).fetchone() == (0,))


def test_a_share_of_a_store_lets_go_of_its_own_connections(postgres_dsn: str) -> None:
    """Closed, it can be used no more, and the store can; a store that is closed takes all its shares along."""
    where = [Address(tenant="default", definition="order", key="o-1")]
    store = open_store(postgres_dsn)
    first, second = store.share(), store.share()
    writers = {each: each.writer() for each in (store, first, second)}
    assert [writer.load(where) for writer in writers.values()] == [[None]] * 3
    first.close()
    assert (writers[store].load(where), writers[second].load(where)) == ([None], [None])
    store.close()
    for each in (writers[first], writers[second], second.writer(), store.share().writer()):
        with pytest.raises(StoreUnavailableError, match="was stopped"):
            each.load(where)


def test_a_reader_takes_another_connection_when_its_own_was_ended(postgres_dsn: str, desk: Desk) -> None:
    """Nobody who reads is told of connections that were ended while they lay idle."""
    desk.commit(born())
    assert len(desk.reader.instances(InstanceQuery())) == 1
    end_other_sessions(postgres_dsn)
    assert len(desk.reader.instances(InstanceQuery())) == 1
