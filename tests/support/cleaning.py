"""Making a test's database like new. Emptying a copy of the template takes a tenth of the time of making another one."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from support.warmth import WARMTH

MOST_BYTES = 64_000_000
"""A server that has written more since a database was made: cleaning is no longer worth it, what was deleted still lies in its files."""

_TABLES = "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'standfast' order by 1"

_SHAPE = """
select string_agg(part, ' ') from (
    select concat_ws(':', count(*), sum(oid::int8), sum(xmin::text::int8)) from pg_namespace where nspname !~ '^pg_(toast_)?temp_'
    union all select concat_ws(':', count(*), sum(oid::int8), sum(xmin::text::int8)) from pg_class where oid >= 16384
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_attribute where attrelid >= 16384
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_attrdef
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_constraint where oid >= 16384
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_trigger
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_policy
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_proc where oid >= 16384
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_type where oid >= 16384
    union all select concat_ws(':', count(*), sum(xmin::text::int8)) from pg_default_acl
    union all select count(*)::text from pg_statistic where starelid >= 16384
    union all select count(*)::text from pg_db_role_setting where setdatabase = (select oid from pg_database where datname = current_database())
) as parts (part)
"""
"""Changes with whatever is made, altered or dropped: every version of a row of the catalogue has a transaction of its own."""

_WRITTEN = "select (pg_current_wal_insert_lsn() - '0/0')::int8"
_COUNTERS = "delete from standfast.meta where name like 'counter:%'"
"""What engines have counted; everything else that a database knows about itself is its own."""
_SEQUENCES = "select setval(c.oid, s.seqstart, false) from pg_sequence s join pg_class c on c.oid = s.seqrelid"
_OTHERS = """
select coalesce(bool_and(pg_terminate_backend(pid, 5000)), true)
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and pid <> all (%s)
"""


class Cleaner:
    """Knows how the template looks, and makes copies of it look so again."""

    def __init__(self, template: str) -> None:
        with psycopg.connect(template, autocommit=True) as connection:
            tables = [str(row[0]) for row in connection.execute(_TABLES).fetchall()]
            self._kept = [each for each in tables if _text(connection, f"select exists (select from {each})") == "True"]
            emptied = [each for each in tables if each not in self._kept]
            self._look = self._look_of(connection)
        deletes = "; ".join(f"delete from {each}" for each in emptied)
        self._empty = f"begin; set local session_replication_role = replica; {deletes}; commit"
        self._lines: dict[str, psycopg.Connection] = {}
        """To databases that were clean before: on a connection that has done it once, cleaning takes a third of the time."""
        self._written: dict[str, int] = {}
        """What the server had written when a database was clean for the first time."""

    def clean(self, dsn: str) -> bool:
        """Empty a database; False if only another copy would be like new."""
        try:
            if not self._is_clean(dsn):
                self.forget(dsn)
                return False
        except (
            psycopg.Error
        ):  # Somebody who may not do so, a server that is gone, a database that a test has locked or broken.
            self.forget(dsn)
            return False
        return True

    def hang_up(self, dsn: str) -> None:
        """Leave nobody connected."""
        WARMTH.forget(str(conninfo_to_dict(dsn)["dbname"]))
        line = self._lines.pop(dsn, None)
        if line is not None:
            line.close()

    def forget(self, dsn: str) -> None:
        """The database goes."""
        self.hang_up(dsn)
        self._written.pop(dsn, None)

    def _is_clean(self, dsn: str) -> bool:
        connection = self._line(dsn)
        if _text(connection, _OTHERS, WARMTH.sessions(connection.info.dbname)) != "True":
            return False
        connection.execute(_COUNTERS)
        written = int(_text(connection, _WRITTEN))
        if written - self._written.setdefault(dsn, written) > MOST_BYTES or self._look_of(connection) != self._look:
            return False
        connection.execute(self._empty)
        connection.execute(_SEQUENCES)
        return True

    def _line(self, dsn: str) -> psycopg.Connection:
        """The connection to a database, made anew if a test has had the server hang up on everybody."""
        line = self._lines.get(dsn)
        if line is not None:
            try:
                line.execute("select")
            except psycopg.OperationalError:
                line.close()
            else:
                return line
        line = self._lines[dsn] = psycopg.connect(dsn, autocommit=True, application_name="cleaner")
        return line

    def _look_of(self, connection: psycopg.Connection) -> list[str]:
        kept = [
            _text(connection, f"select string_agg(t::text, chr(10) order by t::text) from {each} t")
            for each in self._kept
        ]
        return [_text(connection, _SHAPE), *kept]


def _text(connection: psycopg.Connection, question: str, *values: object) -> str:
    row = connection.execute(question, values or None).fetchone()
    return str(row[0]) if row is not None else ""
