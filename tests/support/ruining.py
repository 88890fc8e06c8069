"""Damage that no engine does: rows of a database changed with SQL while its guards are switched off."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from standfast.graph.compiler import graph_bytes, graph_hash, read_graph
from standfast.graph.model import Graph
from standfast.store.ports.store import Store


class Ruin:
    """A database that somebody with all rights has got at."""

    def __init__(self, store: Store) -> None:
        self._writer = store.line().writer()
        self._is_file = not store.url.startswith("postgresql")

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection in a transaction in which no guard looks."""
        with self._writer.unit() as unit, unit.lend() as lent:
            connection: Any = lent
            if not isinstance(connection, sqlite3.Connection):
                connection.execute("set local session_replication_role = replica")
                yield connection
                return
            guards = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
            for name, _ in guards:
                connection.execute(f"drop trigger {name}")
            yield connection
            for _, sql in guards:
                connection.execute(sql)

    def run(self, statement: str, *values: object) -> None:
        """A statement; `{}` stands before the name of a table, `?` for a value."""
        with self.connection() as connection:
            connection.execute(self._sql(statement), values)

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a question finds."""
        with self.connection() as connection:
            return [tuple(row) for row in connection.execute(self._sql(statement), values).fetchall()]

    def copy(self, table: str, where: str, *values: object, **changed: object) -> None:
        """Rows once more, with these values in some of the columns."""
        names = self.columns(table)
        told = ", ".join("?" if name in changed else name for name in names)
        given = [changed[name] for name in names if name in changed]
        self.run(
            f"insert into {{0}}{table} ({', '.join(names)}) select {told} from {{0}}{table} where {where}",
            *given,
            *values,
        )

    def event(self, instance: str, type_: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """The last event of a type, with other data."""
        where = "where instance = ? and type = ?"
        found = self.rows(f"select sequence, data from {{}}events {where} order by sequence", instance, type_)
        sequence, data = found[-1]
        new = msgspec.json.encode(change(msgspec.json.decode(bytes(data))))
        self.run("update {}events set data = ? where instance = ? and sequence = ?", new, instance, sequence)

    def workflow(self, name: str, change: Callable[[Graph], Graph]) -> None:
        """A published workflow that is another one, with a hash that fits."""
        ((data,),) = self.rows("select compiled from {}definitions where name = ?", name)
        new = change(read_graph(bytes(data)))
        new = msgspec.structs.replace(new, hash=graph_hash(new))
        statement = "update {}definitions set compiled = ?, hash = ? where name = ?"
        self.run(statement, graph_bytes(new), new.hash, name)

    def columns(self, table: str) -> list[str]:
        """The names of the columns of a table."""
        if self._is_file:
            return [row[1] for row in self.rows(f"pragma table_info({table})")]
        asked = "select column_name from information_schema.columns where table_schema = 'standfast' and table_name = ? order by 1"
        return [row[0] for row in self.rows(asked, table)]

    def _sql(self, statement: str) -> str:
        if self._is_file:
            return statement.format("")
        return statement.format("standfast.").replace("?", "%s")
