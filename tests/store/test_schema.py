"""The committed picture of the schema: it is what the migrations come to, and it says all that there is."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from standfast.store.opening import open_store
from support.databases import Databases
from support.repository import ROOT, load_script

schema = load_script("schema")

STALE = "stale: run `python3 dev.py schema`"


def committed(driver: str) -> str:
    """The picture of a driver's schema."""
    return (ROOT / "src" / "standfast" / "store" / driver / "schema.sql").read_text(encoding="utf-8")


@pytest.fixture
def empty_dsn(postgres_server: Databases) -> Iterator[str]:
    """An empty database on Postgres."""
    with postgres_server.empty() as dsn:
        yield dsn


def test_the_picture_of_sqlite_is_what_its_migrations_come_to(tmp_path: Path) -> None:
    """A file that ran all migrations holds what `schema.sql` says."""
    path = tmp_path / "standfast.db"
    open_store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        assert schema.sqlite_schema(connection) == committed("sqlite"), STALE


def test_every_column_is_on_the_page_of_tables(tmp_path: Path, empty_dsn: str) -> None:
    """Of both stores; what only one of them has is told above the tables."""
    page = (ROOT / "docs/reference/tables.md").read_text(encoding="utf-8")
    told = {
        (part.partition("\n")[0], column)
        for part in page.split("\n## ")[1:]
        for column in re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
    }
    for url in (f"sqlite:///{tmp_path / 'standfast.db'}", empty_dsn):
        open_store(url).close()
    with psycopg.connect(empty_dsn) as server:
        columns = "select table_name, column_name from information_schema.columns where table_schema = 'standfast'"
        parts = "select inhrelid::regclass::text from pg_inherits"
        ours = {
            (table, column)
            for table, column in server.execute(columns)
            if f"standfast.{table}" not in {each for (each,) in server.execute(parts)}
        }
    assert ours == told
    with closing(sqlite3.connect(tmp_path / "standfast.db")) as file:
        tables = [name for (name,) in file.execute("select name from sqlite_master where type in ('table', 'view')")]
        theirs = {(table, row[1]) for table in tables for row in file.execute(f"pragma table_info({table})")}
    alone = {
        ("retention", "instance"),
        ("redaction", "instance"),
        ("sqlite_sequence", "name"),
        ("sqlite_sequence", "seq"),
    }
    assert theirs - told == alone
    assert {table for table, _ in told - theirs} == {"migrations"}


def test_the_picture_of_sqlite_says_all() -> None:
    """A file that is made from it alone has the same picture."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(committed("sqlite"))
        assert schema.sqlite_schema(connection) == committed("sqlite")


@pytest.mark.row("R-028")
def test_the_picture_of_postgres_is_what_its_migrations_come_to(empty_dsn: str) -> None:
    """A database that ran all migrations, none of which a real server refuses, holds what `schema.sql` says."""
    open_store(empty_dsn).close()
    with psycopg.connect(empty_dsn) as connection:
        assert schema.postgres_schema(connection) == committed("postgres"), STALE


def test_the_picture_of_postgres_says_all(postgres_server: Databases, empty_dsn: str) -> None:
    """A database that is made from it alone, walls and rights included, has the same picture; the roles belong to the server."""
    with postgres_server.empty() as other:
        open_store(other).close()
    with psycopg.connect(empty_dsn) as connection:
        connection.execute(committed("postgres").encode())
        assert schema.postgres_schema(connection) == committed("postgres")


@pytest.mark.row("R-018", "R-019", "R-020", "R-129")
@pytest.mark.parametrize("driver", ["sqlite", "postgres"])
def test_pauses_are_indexed_and_cost_old_rows_nothing(driver: str) -> None:
    """By their instant, the last one first, by their reason and by the next step; a row that knows nothing of pauses is whole without one."""
    told = " ".join(committed(driver).lower().split())
    assert "instances_by_pause on " in told
    assert "(tenant, paused_at desc, id desc) where" in told
    assert "(tenant, reason, paused_at desc, id desc) where" in told
    assert "(tenant, next_step, paused_at desc, id desc) where" in told
    for name in ("paused_at ", "next_step "):
        assert "not null" not in told.split(name, 1)[1].split(",", 1)[0]
