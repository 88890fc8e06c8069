"""Emptying rows that are then written again from the history."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from holdfast.kernel.rows import Record, RowKind
from holdfast.store.shapes import Header
from holdfast.store.sqlite.records import deleting
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    allow: str
    disallow: str
    forget_snapshot: str


_sql = read_statements(_Sql, __package__, "rewriting.sql")


@contextmanager
def emptied(connection: sqlite3.Connection, header: Header, kinds: Sequence[RowKind[Record]]) -> Iterator[str]:
    """Empty the rows of an instance, of these kinds, and its snapshot; in the block the guards let it. The instance's name."""
    name = str(header.id)
    connection.execute(_sql.allow, (name,))
    for kind in kinds:
        connection.execute(deleting(kind), (name,))
    connection.execute(_sql.forget_snapshot, (name,))
    yield name
    connection.execute(_sql.disallow, (name,))
