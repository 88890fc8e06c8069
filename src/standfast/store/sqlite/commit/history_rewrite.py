"""Rewrites rows from a history, and redacts histories."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from standfast.kernel.ids import InstanceId, id_text
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.store import Rewritten
from standfast.store.records.instances import InstanceHeader
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.records import deleting


class _Sql(msgspec.Struct, frozen=True):
    allow: str
    disallow: str
    forget_snapshot: str
    begin_redaction: str
    end_redaction: str
    rewrite_event: str
    notices: str
    rewrite_notice: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "rewriting.sql")


@contextmanager
def emptied(connection: sqlite3.Connection, header: InstanceHeader, kinds: Sequence[RowKind[Record]]) -> Iterator[str]:
    """Delete an instance's rows of these kinds and its snapshot.

    Triggers allow it inside the block. Yields the instance's name.
    """
    name = str(header.id)
    connection.execute(_sql.allow, (name,))
    for kind in kinds:
        connection.execute(deleting(kind), (name,))
    connection.execute(_sql.forget_snapshot, (name,))
    yield name
    connection.execute(_sql.disallow, (name,))


def redact(
    connection: sqlite3.Connection, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]
) -> None:
    """Replace the content of events, and the texts of notifications."""
    name = id_text(instance)
    connection.execute(_sql.begin_redaction, (name,))
    connection.executemany(_sql.rewrite_event, [(each.data, each.comment, name, each.sequence) for each in events])
    for number, *texts in connection.execute(_sql.notices, (name,)).fetchall():
        if (told := [retold(each) for each in texts]) != texts:
            connection.execute(_sql.rewrite_notice, (*told, number))
    connection.execute(_sql.end_redaction, (name,))
