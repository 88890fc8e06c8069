"""The databases that tests are given: fresh, prepared, and of any server."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from devserver.postgres import temporary_server
from support import databases
from support.databases import VARIABLE, Databases, any_server

LOOK = """
select (select count(*) from standfast.absences), (select count(*) from standfast.events),
    (select string_agg(sequencename || ':' || coalesce(last_value, 0), ',' order by sequencename) from pg_sequences)
"""


@pytest.mark.parametrize("attempt", [1, 2])
def test_each_test_has_a_database_of_its_own(postgres_dsn: str, attempt: int) -> None:
    """What one test writes is not there for the next."""
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("create table marks ()")


def test_a_database_goes_although_it_is_in_use(postgres_server: Databases) -> None:
    """A connection that a test forgot does not keep its database."""
    with postgres_server.prepared() as dsn:
        connection = psycopg.connect(dsn)
        connection.execute("create table marks ()")
        connection.commit()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("select 1")
    connection.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(dsn)


@pytest.fixture
def server_of_new_databases(postgres_server: Databases) -> Iterator[Databases]:
    """The server without the databases that others gave back: one of those may have been cleaned so often that another one is made."""
    aside = postgres_server._clean[:]
    postgres_server._clean.clear()
    yield postgres_server
    postgres_server._clean += aside


def test_a_database_is_used_again_once_it_is_like_new(server_of_new_databases: Databases) -> None:
    """What a test wrote is gone from the database that the next one gets, numbers begin anew, and nobody is left in it."""
    postgres_server = server_of_new_databases
    with postgres_server.prepared() as dsn:
        forgotten = psycopg.connect(dsn)
        with psycopg.connect(dsn) as connection:
            before = connection.execute(LOOK).fetchone()
            connection.execute(
                "insert into standfast.absences (tenant, principal, reason, begins_at) values ('a', 'b', '', now())"
            )
            connection.execute("select nextval(c.oid) from pg_class c where relkind = 'S'")
    with pytest.raises(psycopg.OperationalError):
        forgotten.execute("select 1")
    forgotten.close()
    with postgres_server.prepared() as again:
        assert again == dsn
        with psycopg.connect(again) as connection:
            assert connection.execute(LOOK).fetchone() == before


@pytest.mark.parametrize(
    "change",
    [
        "create table public.marks ()",
        "alter table standfast.events add column mark int",
        "create function public.mark() returns int language sql as 'select 1'",
        "alter table standfast.events disable row level security",
        "grant select on standfast.events to public",
        "update standfast.meta set value = 'other' where name = 'identity'",
    ],
)
def test_a_database_that_was_changed_is_not_used_again(postgres_server: Databases, change: str) -> None:
    """The next test gets a database in which everything is as the template has it."""
    with postgres_server.prepared() as dsn, psycopg.connect(dsn) as connection:
        connection.execute(change)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(dsn)


def test_another_server_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """STANDFAST_TEST_DSN leads the tests to another server, and they leave nothing there."""
    monkeypatch.setattr(databases, "prepare_template", mark_template)
    with temporary_server() as other:
        monkeypatch.setenv(VARIABLE, other.dsn())
        with any_server() as named, named.with_template(), named.prepared() as dsn, named.empty() as empty:
            assert f":{other.port}/" in dsn
            assert (count_marks(dsn), count_marks(empty)) == (1, 0)
        with psycopg.connect(other.dsn()) as connection:
            assert connection.execute("select count(*) from pg_database").fetchone() == (3,)


def mark_template(dsn: str) -> None:
    """Leave a table by which a clone of the template is recognized."""
    with psycopg.connect(dsn) as connection:
        connection.execute("create table marks ()")


def count_marks(dsn: str) -> int:
    """How many tables `marks` the database has."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select count(*) from pg_tables where tablename = 'marks'").fetchone()
    assert row is not None
    return int(row[0])
