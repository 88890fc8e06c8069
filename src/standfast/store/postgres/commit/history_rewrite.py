"""Rewrites rows from a history, and redacts histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import msgspec
from psycopg.types.numeric import Int4, Int8

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.store import Rewritten
from standfast.store.postgres.connection.connection import Connection
from standfast.store.postgres.connection.records import emptying
from standfast.store.postgres.connection.session import Row
from standfast.store.records.instances import InstanceHeader
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    allow: str
    forget_snapshot: str
    begin_redaction: str
    rewrite_event: str
    notices: str
    rewrite_notice: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "rewriting.sql")


def empty(connection: Connection, header: InstanceHeader, kinds: Sequence[RowKind[Record]]) -> None:
    """Delete an instance's rows of these kinds and its snapshot. Triggers allow it until the end of the transaction."""
    connection.execute(_sql.allow, [str(header.id)])
    for kind in kinds:
        connection.execute(emptying(kind), [header.id])
    connection.execute(_sql.forget_snapshot, [header.id])


def redact(
    connection: Connection, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]
) -> None:
    """Replace the content of events, and the texts of notifications."""
    connection.execute(_sql.begin_redaction, [str(instance)])
    for each in events:
        connection.execute(_sql.rewrite_event, [each.data, each.comment, instance, Int4(each.sequence)])
    found = cast("list[Row]", connection.execute(_sql.notices, [instance]).fetchall())
    for number, *texts in found:
        if (told := [retold(each) for each in texts]) != texts:
            connection.execute(_sql.rewrite_notice, [*told, Int8(number)])
    connection.execute(_sql.begin_redaction, [""])
