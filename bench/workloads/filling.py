"""A database that has stood for a while: one process is run to its end by the engine, and its rows are there again and again.

Every table that holds rows of it gets them under other ids, so that what is there is what the engine would have written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from bench.rounds import Round

PEOPLE = 500
"""Those who have started them."""

_TABLES = """
select table_name, string_agg(column_name, ',' order by ordinal_position)
from information_schema.columns join pg_class on relname = table_name and relnamespace = 'standfast'::regnamespace
where table_schema = 'standfast' and relkind in ('r', 'p') and not relispartition and is_identity = 'NO'
group by table_name
"""


class _Words(NamedTuple):
    """How a database says it."""

    identity: str
    template: str
    many: str


_POSTGRES = _Words(
    "(lpad(to_hex($2::bigint - g), 12, '0') || '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid",
    "$1",
    "generate_series(1::bigint, $3::bigint) as g",
)
_SQLITE = _Words(
    "printf('%08x-%04x-7%03x-8%03x-%012x', (:born - g) >> 16, (:born - g) & 65535, g % 4096, g * 31 % 4096, g)",
    ":template",
    "n",
)


def fill(this: Round, template: UUID, count: int) -> None:
    """So many finished instances more, all of them a little older than the one that they are made from."""
    born = template.int >> 80
    if this.is_postgres:
        with psycopg.connect(this.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            for table, columns in connection.execute(_TABLES).fetchall():
                statement = _copying(f"standfast.{table}", columns.split(","), _POSTGRES)
                if statement:
                    connection.execute(statement, [template, born, count])
            connection.execute("vacuum (analyze)")
        return
    file = sqlite3.connect(this.path, isolation_level=None)
    names = [row[0] for row in file.execute("select name from sqlite_master where type = 'table'")]
    values = {"template": str(template), "born": born, "count": count}
    file.execute("begin")
    for table in names:
        columns = [row[1] for row in file.execute(f"pragma table_info({table})") if not _is_counted(row)]
        statement = _copying(table, columns, _SQLITE)
        if statement:
            with_ = "with recursive n (g) as (select 1 union all select g + 1 from n where g < :count) "
            file.execute(with_ + statement, values)
    file.execute("commit")
    file.execute("analyze")
    file.execute("pragma wal_checkpoint(truncate)")
    file.close()


def _is_counted(row: Sequence[Any]) -> bool:
    """Whether a column of SQLite counts by itself."""
    return row[2].lower() == "integer" and row[5] == 1 and row[1] in {"id", "position"}


def _copying(table: str, columns: list[str], words: _Words) -> str:
    """The statement that copies the rows of an instance; empty for a table that has none."""
    own = "id" if table.endswith("instances") else "instance"
    if own not in columns or table.endswith(("receipts", "effects", "timers", "inbox", "retention")):
        return ""
    values = [_value(table, name, own, words.identity) for name in columns]
    return (
        f"insert into {table} ({', '.join(columns)}) "
        f"select {', '.join(values)} from {table} as t cross join {words.many} where t.{own} = {words.template}"
    )


def _value(table: str, name: str, own: str, identity: str) -> str:
    if name == own:
        return identity
    if table.endswith("instances") and name == "key":
        return "'done-' || g"
    if table.endswith("documents") and name == "id":
        return "'done-' || g"
    if table.endswith("instances") and name == "started_by":
        return f"'user-' || (g % {PEOPLE})"
    return f"t.{name}"
