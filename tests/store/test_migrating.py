"""Bringing a database to the schema of this code: forward only, by one process at a time, each step whole or not at all."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

from standfast import Saga, SagaDefinition
from standfast.errors import SchemaMismatchError, StandfastError
from standfast.store.opening import open_store
from standfast.store.postgres import store as postgres_store
from standfast.store.postgres.admin import workers as postgres_workers
from standfast.store.postgres.admin.schema import PostgresSchema
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.sql.migrations import Migratable, Migration, bring_up, read_migrations
from standfast.store.sqlite import store as sqlite_store
from standfast.store.sqlite.admin import workers as sqlite_workers
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.store import SQLiteSchema
from standfast.testing import ManualEngine
from support.databases import Databases
from support.desks import Desk
from support.rows import (
    born,
    by_id,
)
from support.waiting import together

DRIVERS = ["standfast.store.sqlite", "standfast.store.postgres"]
NEWEST = read_migrations(DRIVERS[0])[-1].number


class Empty(Protocol):
    """A database to which nothing was done yet."""

    url: str

    def schema(self) -> AbstractContextManager[Migratable]:
        """The database as something that can be brought forward."""
        ...

    def execute(self, statement: str) -> list[Any]:
        """Plain SQL."""
        ...

    def pretend(self, version: int) -> None:
        """Make the database say that it is at another version."""
        ...


class EmptyFile:
    """An SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = f"sqlite:///{path}"

    @contextmanager
    def schema(self) -> Iterator[Migratable]:
        """The file."""
        database = Database(str(self._path), patience=60)
        yield SQLiteSchema(database)
        database.close()

    def execute(self, statement: str) -> list[Any]:
        """Plain SQL."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            return connection.execute(statement.replace("standfast.", "")).fetchall()

    def pretend(self, version: int) -> None:
        """The version is in the header of the file."""
        self.execute(f"pragma user_version = {version}")


class EmptyDatabase:
    """A Postgres database."""

    def __init__(self, dsn: str) -> None:
        self.url = dsn

    @contextmanager
    def schema(self) -> Iterator[Migratable]:
        """The database."""
        line = ReconnectingConnection(self.url)
        yield PostgresSchema(line)
        line.close()

    def execute(self, statement: str) -> list[Any]:
        """Plain SQL."""
        with psycopg.connect(self.url) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def pretend(self, version: int) -> None:
        """The versions are rows of a table."""
        self.execute("delete from standfast.migrations")
        if version:
            self.execute(f"insert into standfast.migrations (number, name) values ({version}, 'future')")


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    """An empty database of each kind in turn."""
    if request.param == "sqlite":
        yield EmptyFile(tmp_path / "store.db")
        return
    databases: Databases = request.getfixturevalue("postgres_server")
    with databases.empty() as dsn:
        yield EmptyDatabase(dsn)


def works(url: str) -> bool:
    """Whether a store can be opened there and used."""
    store = open_store(url)
    desk = Desk(store)
    head = desk.born(born())
    found = desk.reader.load(by_id(head.id)) is not None
    store.close()
    return found


@pytest.mark.row("EH-16")
def test_an_empty_database_is_brought_to_the_newest_schema(empty: Empty) -> None:
    """Opening makes the tables, and opening again finds them."""
    assert works(empty.url)
    with empty.schema() as schema:
        assert schema.version() == NEWEST
    assert works(empty.url)
    assert empty.execute("select count(*) from standfast.instances")[0][0] == 2


@pytest.mark.parametrize("driver", DRIVERS)
def test_migrations_are_numbered_without_gaps(driver: str) -> None:
    """The files count from one; each begins with a comment that says why it is there and what it locks."""
    migrations = read_migrations(driver)
    assert [each.number for each in migrations] == list(range(1, len(migrations) + 1))
    assert all(each.sql.startswith("-- ") for each in migrations)


def test_the_drivers_go_together() -> None:
    """Both drivers have the same steps under the same names, so that one version means one schema."""
    first, second = ([(each.number, each.name) for each in read_migrations(driver)] for driver in DRIVERS)
    assert first == second


def test_many_open_a_fresh_database_at_once(empty: Empty) -> None:
    """Of four that find it empty one makes the tables, and all can use it."""
    together(*[lambda: works(empty.url)] * 4)
    assert empty.execute("select count(*) from standfast.instances")[0][0] == 4


OPENER = "import sys; from standfast.store.opening import open_store; print(flush=True); input(); open_store(sys.argv[1]).close()"


def test_processes_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    """The same with four processes on an SQLite file, which lock one another out by the file alone."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    openers = [subprocess.Popen([sys.executable, "-c", OPENER, url], text=True, **pipes) for _ in range(4)]
    for each in openers:
        assert each.stdout is not None
        each.stdout.readline()
    for each in openers:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    told = [each.communicate() for each in openers]
    assert [each.returncode for each in openers] == [0] * 4, told
    assert works(url)


def test_databases_of_a_cluster_do_not_meet(postgres_server: Databases) -> None:
    """Two databases of one cluster are brought forward at the same time, share its roles, and nothing else."""
    with postgres_server.empty() as first, postgres_server.empty() as second:
        together(lambda: works(first), lambda: works(second))
        for dsn in (first, second):
            assert EmptyDatabase(dsn).execute("select count(*) from standfast.instances") == [(1,)]


def test_a_newer_schema_is_refused(empty: Empty) -> None:
    """A database that newer code has changed is left alone; the message says what to do, and without the password."""
    open_store(empty.url).close()
    empty.pretend(NEWEST + 1)
    with pytest.raises(SchemaMismatchError, match=r"is newer than this code \(\d+\): upgrade Standfast") as caught:
        open_store(empty.url)
    assert (caught.value.code, caught.value.retryable) == ("schema_mismatch", False)


def test_an_old_schema_is_refused_without_leave(empty: Empty) -> None:
    """Whoever may not migrate is told the command that does, and nothing is changed."""
    for _ in range(2):
        with pytest.raises(
            SchemaMismatchError, match=r"is at schema 0 and this code needs \d+: run `standfast migrate` on it"
        ):
            open_store(empty.url, may_migrate=False)
    assert works(empty.url)
    open_store(empty.url, may_migrate=False).close()


GOOD = Migration(1, "good", "create table good (a int);\n")


def steps(*more: str) -> list[Migration]:
    """A good first migration, and a second one with these statements."""
    return [GOOD, Migration(2, "second", "".join(f"{each};\n" for each in more))]


def test_a_failing_migration_leaves_nothing(empty: Empty) -> None:
    """What a step did before it failed is undone with its number; the steps before it stand; repaired, it goes on."""
    half_bad = steps("create table half (a int)", "insert into nowhere values (1)")
    with empty.schema() as schema:
        with pytest.raises(StandfastError):
            bring_up(schema, half_bad, may_migrate=True)
        assert schema.version() == 1
    assert empty.execute("select count(*) from good")[0][0] == 0
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        empty.execute("select count(*) from half")
    with empty.schema() as schema:
        bring_up(schema, steps("create table half (a int)"), may_migrate=True)
        assert schema.version() == 2


def test_only_what_is_missing_is_applied(empty: Empty) -> None:
    """A step that was applied is not applied again."""
    with empty.schema() as schema:
        bring_up(schema, [GOOD], may_migrate=True)
        bring_up(schema, steps("insert into good values (1)"), may_migrate=True)
        bring_up(schema, steps("insert into good values (1)"), may_migrate=True)
    assert empty.execute("select count(*) from good")[0][0] == 1


@pytest.mark.row("R-097", "R-129", "EH-16")
def test_rows_outlive_a_migration(empty: Empty) -> None:
    """A database of an older version is brought forward with what it holds; a new column that may be empty is, in old rows."""
    with empty.schema() as schema:
        bring_up(schema, [GOOD], may_migrate=True)
        empty.execute("insert into good values (7)")
        bring_up(schema, steps("alter table good add column paused_at text"), may_migrate=True)
    assert [tuple(row) for row in empty.execute("select a, paused_at from good")] == [(7, None)]


@pytest.mark.row("EO-41")
def test_an_open_run_goes_on_after_a_migration(empty: Empty, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was waiting when the schema moved on is there afterwards, as it was, and ends; the older code opens it no more."""
    saga = Saga("order").wait_for("rest", "go").build()
    with begun(empty.url, saga) as engine:
        run = engine.start("order")
        engine.drain()
    add = f"alter table {'standfast.' if empty.url.startswith('postgres') else ''}instances add column colour text;\n"
    with monkeypatch.context() as newer:
        for module in (sqlite_store, sqlite_workers, postgres_store, postgres_workers):
            newer.setattr(
                module, "read_migrations", lambda name: (*read_migrations(name), Migration(NEWEST + 1, "next", add))
            )
        with begun(empty.url, saga) as engine:
            engine.run(run.id).signal("go")
            engine.drain()
            assert engine.run(run.id).describe().status == "completed"
            assert engine.instances.verify(run.id).is_sound
    with pytest.raises(SchemaMismatchError):
        open_store(empty.url)


@contextmanager
def begun(url: str, saga: SagaDefinition) -> Iterator[ManualEngine]:
    """An engine for a while."""
    store = open_store(url)
    engine = ManualEngine(store=store).register(saga)
    yield engine
    engine.stop()
    store.close()


def test_steps_are_applied_once_by_any_number_of_processes(empty: Empty) -> None:
    """Whoever comes second finds the work done."""

    def migrate() -> None:
        with empty.schema() as schema:
            bring_up(schema, steps("insert into good values (1)"), may_migrate=True)

    attempts: list[Callable[[], None]] = [migrate] * 4
    together(*attempts)
    assert empty.execute("select count(*) from good")[0][0] == 1


def test_a_restored_database_goes_on_counting(postgres_server: Databases) -> None:
    """Positions come after all that are stored, also where the cluster counts its transactions anew."""
    with postgres_server.prepared() as dsn:
        open_store(dsn).close()
        old = open_store(dsn)
        Desk(old).born(born())
        old.close()
        with psycopg.connect(dsn) as connection:
            connection.execute("set session_replication_role = replica")
            connection.execute("update standfast.events set position = (1000000000::bigint << 20) + 1")
        store = open_store(dsn)
        desk = Desk(store)
        desk.born(born())
        positions = [event.position for event in desk.feed.read(after=0, limit=9)]
        assert len(positions) == 2
        assert positions[0] < positions[1]
        store.close()
