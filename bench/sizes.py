"""How many rows and bytes a document takes in the database, by table.

    python -m bench.sizes [documents, default 500]

Invoices by the contract that comes with Standfast, each with some 150 bytes of content, are made on a Postgres server of its own and on a file:
drafts, drafts that were edited ten times, and invoices that one person has approved and that were posted. Bytes are those of tables and
indexes after a vacuum, divided by the documents; a small database is a little too large, because its pages are not full.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg

from bench.databases import PostgresDatabases, SQLiteDatabases
from bench.rounds import Round
from bench.workloads.documents import BOSS, CLERK, GIVEN, by, opened, wait_until
from devserver.postgres import temporary_server
from standfast import Engine

EDITS = 10
_ROWS = "select relname, n_live_tup from pg_stat_user_tables where schemaname = 'standfast'"
_BYTES = "select sum(pg_total_relation_size(c.oid)) from pg_class c where c.relnamespace = 'standfast'::regnamespace and c.relkind = 'r'"


def draft(engine: Engine, name: str) -> None:
    """A draft as it was made."""
    engine.acting(by(CLERK)).documents.create("invoice", GIVEN, id=name)


def edited(engine: Engine, name: str) -> None:
    """A draft that was edited again and again."""
    draft(engine, name)
    for number in range(EDITS):
        engine.acting(by(CLERK)).documents.mutate("invoice", name, {"grand_total": number})


def approved(engine: Engine, name: str) -> None:
    """An invoice on its way to active."""
    draft(engine, name)
    run = engine.acting(by(CLERK)).documents.transition("invoice", name, "submit").instance
    (task,) = engine.run(run).tasks()
    engine.acting(by(BOSS)).tasks.decide(task, "approved", document_version=task.document_version)


def main(count: int) -> None:
    """Print what each kind takes on each store."""
    with temporary_server() as server:
        for databases in (PostgresDatabases(server.dsn()), SQLiteDatabases()):
            for make in (draft, edited, approved):
                with databases.fresh() as url:
                    _measure(Round(url=url, scale=1), make, count)


def _measure(this: Round, make: Callable[[Engine, str], None], count: int) -> None:
    with opened(this):
        before = _size(this)[1]
    with opened(this) as engine:
        for number in range(count):
            make(engine, f"d-{number}")
        wait_until(lambda: not engine.documents.list("invoice", status="submitted", limit=1).items)
    rows, size = _size(this)
    told = ", ".join(f"{name} {number / count:.3g}" for name, number in sorted(rows.items()) if number >= count)
    store = "postgres" if this.is_postgres else "sqlite"
    each = sum(rows.values()) / count
    print(f"{store}, {make.__name__}: {each:.1f} rows, {(size - before) / count:,.0f} bytes ({told})")


def _size(this: Round) -> tuple[dict[str, int], int]:
    """The rows of each table, and the bytes of all."""
    if this.is_postgres:
        with psycopg.connect(this.url, autocommit=True) as connection:
            connection.execute("vacuum (analyze)")
            connection.execute("select pg_stat_clear_snapshot()")
            found: dict[str, int] = {}
            for name, number in connection.execute(_ROWS).fetchall():
                base = name.split("_20", maxsplit=1)[0].removesuffix("_default")
                found[base] = found.get(base, 0) + number
            row = connection.execute(_BYTES).fetchone()
        assert row is not None
        return found, int(row[0])
    file = sqlite3.connect(this.path)
    file.execute("pragma wal_checkpoint(truncate)")
    file.execute("vacuum")
    names = [
        name
        for (name,) in file.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    ]
    found = {name: file.execute(f"select count(*) from {name}").fetchone()[0] for name in names}
    file.close()
    return found, Path(this.path).stat().st_size


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
