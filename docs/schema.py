"""Writes `schema.sql` of both drivers: what their migrations come to, read from the catalogue of a database that ran them.

    python3 dev.py schema    write them; starts a Postgres server for as long as that takes

Whoever changes a migration reads in the difference of these files what it does; a test says when one of them is stale.
"""
# ruff: noqa: INP001, T201, S608 - a script that prints, and asks the catalogue with its own text.

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

STORE = ROOT / "src" / "standfast" / "store"
NOTICE = "-- What the migrations come to. Written by docs/schema.py: run `python3 dev.py schema` instead of editing."

Connection = psycopg.Connection[tuple[str, ...]]

_OURS = "c.relnamespace = 'standfast'::regnamespace and c.relname !~ '_\\d{4}_\\d{2}$'"
"""The partitions of months come and go."""

_COLUMNS = """
select format('    %s %s%s%s%s', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
    case when a.attnotnull then ' not null' else '' end, ' default ' || pg_get_expr(d.adbin, d.adrelid),
    case a.attidentity when 'a' then ' generated always as identity' else '' end)
from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_CONSTRAINTS = """
select format('    constraint %s %s', quote_ident(conname), pg_get_constraintdef(oid)) from pg_constraint
where conrelid = $1::regclass and conparentid = 0 and contype in ('p', 'u', 'c', 'f', 'x') order by contype desc, conname
"""
_TABLES = f"""
select c.oid::regclass::text, coalesce(' partition by ' || pg_get_partkeydef(c.oid), ''),
    coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '')
from pg_class c where {_OURS} and c.relkind in ('r', 'p') and not c.relispartition order by c.relname
"""
_PARTITIONS = f"""
select format('create table %s partition of %s %s%s;', c.oid::regclass, i.inhparent::regclass, pg_get_expr(c.relpartbound, c.oid),
    ' with (' || array_to_string(c.reloptions, ', ') || ')')
from pg_class c join pg_inherits i on i.inhrelid = c.oid where {_OURS} and c.relispartition and c.relkind = 'r' order by c.relname
"""
_VIEWS = f"""
select format(
    E'-- %s (%s)\\ncreate view %s%s as\\n%s', c.oid::regclass,
    (
        select string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
    ),
    c.oid::regclass, ' with (' || array_to_string(c.reloptions, ', ') || ')', pg_get_viewdef(c.oid, true)
)
from pg_class c where {_OURS} and c.relkind = 'v' order by c.relname
"""
_FUNCTIONS = """
select pg_get_functiondef(p.oid) || ';' from pg_proc p where p.pronamespace = 'standfast'::regnamespace order by p.proname
"""
_INDEXES = f"""
select replace(pg_get_indexdef(x.indexrelid), ' ON ONLY ', ' ON ') || ';' from pg_index x join pg_class c on c.oid = x.indrelid
where {_OURS} and not c.relispartition and not exists (select 1 from pg_constraint k where k.conindid = x.indexrelid)
order by x.indexrelid::regclass::text
"""
_TRIGGERS = f"""
select pg_get_triggerdef(t.oid) || ';' from pg_trigger t join pg_class c on c.oid = t.tgrelid
where {_OURS} and not t.tgisinternal and not c.relispartition order by c.relname, t.tgname
"""
_WALLS = f"""
select format('alter table %s enable row level security%s;', c.oid::regclass,
    case when c.relforcerowsecurity then ', force row level security' else '' end)
from pg_class c where {_OURS} and c.relrowsecurity order by c.relname
"""
_POLICIES = """
select format('create policy %s on %s.%s as %s for %s to %s%s%s;', quote_ident(policyname), schemaname, tablename, lower(permissive),
    lower(cmd), array_to_string(roles, ', '), ' using (' || qual || ')', ' with check (' || with_check || ')')
from pg_policies where schemaname = 'standfast' order by tablename, policyname
"""
_GRANTS = f"""
select format('grant %s on %s %s to %s;', string_agg(lower(g.privilege_type), ', ' order by g.privilege_type), g.kind, g.name,
    case g.grantee when 0 then 'public' else g.grantee::regrole::text end)
from (
    select 'schema' as kind, n.nspname::text as name, n.nspowner as owner, (aclexplode(n.nspacl)).* from pg_namespace n
    where n.nspname = 'standfast'
    union all
    select case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass::text, c.relowner, (aclexplode(c.relacl)).*
    from pg_class c where {_OURS} and c.relkind in ('r', 'p', 'v', 'S')
    union all
    select 'function', p.oid::regprocedure::text, p.proowner, (aclexplode(p.proacl)).* from pg_proc p
    where p.pronamespace = 'standfast'::regnamespace
) as g where g.grantee <> g.owner group by g.kind, g.name, g.grantee order by g.kind, g.name, g.grantee::regrole::text
"""
_REVOKES = """
select format('revoke all on function %s from public;', p.oid::regprocedure) from pg_proc p
where p.pronamespace = 'standfast'::regnamespace and p.proacl is not null
    and not exists (select 1 from aclexplode(p.proacl) a where a.grantee = 0) order by 1
"""


def sqlite_schema(connection: sqlite3.Connection) -> str:
    """What a file holds, as statements that make another one like it."""
    found = connection.execute(
        "select sql from sqlite_master where sql is not null and name not like 'sqlite_%' "
        "order by case type when 'table' then 0 when 'index' then 1 else 2 end, name"
    )
    return "\n\n".join([NOTICE, *(f"{row[0]};" for row in found)]) + "\n"


def postgres_schema(connection: Connection) -> str:
    """What a database holds for us, as statements that make another one like it. The two roles belong to the server."""
    # Names are written with their schema, whoever looks.
    connection.execute("set search_path = pg_catalog")
    return "\n\n".join([NOTICE, *_blocks(connection)]) + "\n"


def _blocks(connection: Connection) -> Iterator[str]:
    yield "create schema standfast;"
    for name, partitioned, options in _ask(connection, _TABLES):
        inside = ",\n".join(row[0] for part in (_COLUMNS, _CONSTRAINTS) for row in _ask(connection, part, name))
        yield f"create table {name} (\n{inside}\n){partitioned}{options};"
    for query in (_PARTITIONS, _INDEXES, _WALLS, _POLICIES):
        yield "\n".join(row[0] for row in _ask(connection, query))
    yield from (row[0] for row in _ask(connection, _FUNCTIONS))
    yield from (row[0] for row in _ask(connection, _VIEWS))
    for query in (_TRIGGERS, _REVOKES, _GRANTS):
        yield "\n".join(row[0] for row in _ask(connection, query))


def _ask(connection: Connection, query: str, *values: str) -> list[tuple[str, ...]]:
    with psycopg.RawCursor(connection) as cursor:
        return cursor.execute(query.encode(), values).fetchall()


def main() -> None:
    """Migrate two empty databases and write down what they hold."""
    from devserver.postgres import create_database, temporary_server
    from standfast.store.opening import open_store

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.db"
        open_store(f"sqlite:///{path}").close()
        with closing(sqlite3.connect(path)) as file:
            _write("sqlite", sqlite_schema(file))
    with temporary_server() as server:
        dsn = create_database(server.dsn(), "standfast_schema")
        open_store(dsn).close()
        with psycopg.connect(dsn) as connection:
            _write("postgres", postgres_schema(connection))


def _write(driver: str, text: str) -> None:
    path = STORE / driver / "schema.sql"
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
