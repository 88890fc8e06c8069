"""Taking away what Standfast has made in a database: all of it and nothing else, or nothing at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli.calling import Standfast
from standfast import ConfigurationError, RejectedError, Saga
from standfast.cli.exit_codes import Exit
from standfast.store.opening import open_store, remove_schema
from standfast.testing import ManualEngine
from support.databases import Databases

OWN = """
create table customers (id integer primary key, name text not null);
create index customers_by_name on customers (name);
create table orders (id integer primary key, customer integer references customers (id));
create view known as select name from customers;
insert into customers values (1, 'ann'), (2, 'bob');
insert into orders values (7, 1);
"""
_SCHEMA = (
    "select n.nspname, c.relname, c.relkind::text, coalesce(pg_get_viewdef(c.oid), '') from pg_class c "
    "join pg_namespace n on n.oid = c.relnamespace where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"
)
_MORE = (
    "select 'schema', nspname, '', '' from pg_namespace where nspname !~ '^pg_'"
    " union all select 'function', n.nspname, p.proname, '' from pg_proc p join pg_namespace n on n.oid = p.pronamespace "
    "where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"
    " union all select 'default', defaclobjtype::text, '', '' from pg_default_acl"
    " union all select 'policy', polname, '', '' from pg_policy union all select 'trigger', tgname, '', '' from pg_trigger where not tgisinternal"
)


class Host:
    """A database with tables of somebody else in it."""

    def __init__(self, url: str) -> None:
        self.url = url
        for statement in OWN.strip().split(";"):
            if statement.strip():
                self.ask(statement)

    def ask(self, statement: str) -> list[Any]:
        """Plain SQL by a connection of one's own."""
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file, file:
                return file.execute(statement.replace("standfast.", "")).fetchall()
        with psycopg.connect(self.url) as server:
            found = server.execute(statement.encode())
            return found.fetchall() if found.description else []

    def look(self) -> list[Any]:
        """All that there is: what was made, and the rows of the host."""
        if self.url.startswith(
            "sqlite"
        ):  # What begins so is SQLite's own: its table of counters is made once and stays.
            made = self.ask("select type, name, tbl_name, sql from sqlite_master where name not like 'sqlite_%'")
            made += self.ask("pragma user_version")
        else:
            made = [*self.ask(_SCHEMA), *self.ask(_MORE)]
        rows = [self.ask(f"select * from {each}") for each in ("customers", "orders", "known")]
        return [*sorted(map(str, made)), *rows]


@pytest.fixture(params=["sqlite", "postgres"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """Such a database of each kind in turn."""
    if request.param == "sqlite":
        yield Host(f"sqlite:///{tmp_path / 'shop.db'}")
        return
    databases: Databases = request.getfixturevalue("postgres_server")
    with databases.empty() as dsn:
        yield Host(dsn)


def refused(url: str, **options: bool) -> str:
    """How a removal is refused: the code, and what is said."""
    with pytest.raises(RejectedError) as raised:
        remove_schema(url, **options)
    return f"{raised.value.reason}: {raised.value}"


@pytest.mark.row("R-133")
def test_what_was_made_is_taken_away_and_nothing_else(host: Host) -> None:
    """The database looks as it did before the first start, rows of the host included; a refusal, for whatever reason, changes nothing."""
    before = host.look()
    standfast = Standfast(host.url)
    assert remove_schema(host.url).tables == 0
    assert host.look() == before
    engine = ManualEngine(host.url).register(Saga("ask").human("approve").build())
    run = engine.start("ask")
    engine.drain()
    assert run.describe().status == "running"
    installed = host.look()
    assert len(installed) > len(before) + 50

    assert "--yes" in standfast("drop", code=Exit.WRONG).stderr
    assert refused(host.url, with_unfinished=True).startswith("still_working: 1 workers ")
    engine.stop()
    assert "--with-unfinished" in standfast("drop", "--yes", code=Exit.REFUSED).stderr
    assert refused(host.url).startswith("unfinished: 1 instances in ")
    key = "text" if host.url.startswith("sqlite") else "uuid"
    telling = "create trigger telling after insert on customers begin insert into meta values (new.name, ''); end"
    of_sqlite = [("telling", telling, "drop trigger telling")] if key == "text" else []
    for name, made, gone in (
        *of_sqlite,
        ("seen", "create view seen as select id from standfast.instances", "drop view seen"),
        ("bills", f"create table bills (run {key} references standfast.instances (id))", "drop table bills"),
    ):
        host.ask(made)
        told = refused(host.url, with_unfinished=True)
        assert told.startswith("depended_on: ")
        assert name in told
        host.ask(gone)
    assert host.look() == installed

    told = standfast("drop", "--yes", "--with-unfinished").stdout
    assert told.startswith("dropped ")
    assert " with 1 instances from " in told
    assert host.look() == before
    assert "has no tables of Standfast" in standfast("drop", host.url, "--yes").stdout
    open_store(host.url).close()
    assert remove_schema(host.url).tables > 40
    assert host.look() == before


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    """Another sort of database, and a file that is not there, which is not made either."""
    with pytest.raises(ConfigurationError, match="not a database Standfast knows"):
        remove_schema("mysql://shop")
    missing = tmp_path / "none.db"
    assert "none.db" in Standfast(f"sqlite:///{missing}")("drop", "--yes", code=Exit.NOT_FOUND).stderr
    assert not missing.exists()
