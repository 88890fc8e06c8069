"""Emptying rows that are then written again from the history."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.kernel.rows import Record, RowKind
from holdfast.store.postgres.connections import Connection
from holdfast.store.postgres.records import emptying
from holdfast.store.shapes import Header
from holdfast.store.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    allow: str
    forget_snapshot: str


_sql = read_numbered(_Sql, __package__, "rewriting.sql")


def empty(connection: Connection, header: Header, kinds: Sequence[RowKind[Record]]) -> None:
    """Empty the rows of an instance, of these kinds, and its snapshot; until the transaction ends the guards let it."""
    connection.execute(_sql.allow, [str(header.id)])
    for kind in kinds:
        connection.execute(emptying(kind), [header.id])
    connection.execute(_sql.forget_snapshot, [header.id])
