"""In-app notifications, stored in Postgres."""

from __future__ import annotations

import json
from datetime import datetime
from typing import cast

import msgspec
from psycopg.types.numeric import Int4, Int8

from standfast.store.ports.notifications import NewNotification, Reader, Recipient, StoredNotification
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    add: str
    page: str
    unread_page: str
    count_unread: str
    mark_read: str
    mark_read_by: str
    mark_all_read: str
    mark_all_read_by: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "notifications.sql")
_COLUMNS = (
    "id",
    "tenant",
    "key",
    "kind",
    "recipient",
    "instance",
    "step",
    "subject",
    "body",
    "partition",
    "occasion",
    "kept_out",
    "created_at",
    "read_at",
)


class PostgresNotifications:
    """The notification lists of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def add(self, notification: NewNotification, now: datetime) -> bool:
        """Store a notification once."""
        told = msgspec.structs.replace(notification, step=Int4(notification.step))
        *values, kept_out = msgspec.structs.astuple(told)
        with self._line.use() as connection:
            return connection.execute(_sql.add, [*values, json.dumps(kept_out), now]).rowcount == 1

    def page(
        self, tenant: str, of: Recipient, *, who: Reader, unread: bool, before: int, limit: int, partition: str = ""
    ) -> list[StoredNotification]:
        """Return a page of a list, newest first."""
        statement = _sql.unread_page if unread else _sql.page
        with self._line.use() as connection:
            values = [who.name, tenant, partition, *of, Int8(before), *_hidden(who), Int8(limit)]
            found = connection.execute(statement, values).fetchall()
        return [_notification(cast("rows.Row", row)) for row in found]

    def count_unread(self, tenant: str, of: Recipient, *, who: Reader, partition: str = "") -> int:
        """Return the number of unread items."""
        values = [who.name, tenant, partition, *of, *_hidden(who)]
        with self._line.use() as connection:
            row = connection.execute(_sql.count_unread, values).fetchone()
        return int(cast("rows.Row", row)[0])

    def mark_read(
        self, tenant: str, of: Recipient, number: int, now: datetime, *, who: Reader, partition: str = ""
    ) -> bool:
        """Mark an item as read."""
        with self._line.use() as connection:
            if of.kind == "user":
                done = connection.execute(_sql.mark_read, [now, tenant, partition, *of, Int8(number)])
            else:
                values = [who.name, now, tenant, partition, *of, Int8(number), who.names]
                done = connection.execute(_sql.mark_read_by, values)
            return done.rowcount == 1

    def mark_all_read(self, tenant: str, of: Recipient, now: datetime, *, who: Reader, partition: str = "") -> int:
        """Mark all items as read."""
        with self._line.use() as connection:
            if of.kind == "user":
                return connection.execute(_sql.mark_all_read, [now, tenant, partition, *of]).rowcount
            values = [who.name, now, tenant, partition, *of, who.names]
            return connection.execute(_sql.mark_all_read_by, values).rowcount


def _hidden(who: Reader) -> tuple[list[str], str, list[str]]:
    """Return the values that hide items from the reader: exclusions, and the reader's other lists."""
    return who.names, who.name, list(who.roles)


def _notification(row: rows.Row) -> StoredNotification:
    found = dict(zip(_COLUMNS, row, strict=True))
    return StoredNotification(**{**found, "kept_out": tuple(json.loads(cast("str", found["kept_out"])))})
