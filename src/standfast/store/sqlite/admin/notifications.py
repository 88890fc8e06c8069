"""In-app notifications, stored in the file."""

from __future__ import annotations

import json
from datetime import datetime

import msgspec

from standfast.store.ports.notifications import NewNotification, Reader, Recipient, StoredNotification
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import text


class _Sql(msgspec.Struct, frozen=True):
    add: str
    page: str
    unread_page: str
    count_unread: str
    mark_read: str
    mark_read_by: str
    mark_all_read: str
    mark_all_read_by: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "notifications.sql")


class SQLiteNotifications:
    """The notification lists of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, notification: NewNotification, now: datetime) -> bool:
        """Store a notification once."""
        told = msgspec.structs.replace(notification, instance=str(notification.instance))
        *values, kept_out = msgspec.structs.astuple(told)
        with self._database.writing() as connection:
            return connection.execute(_sql.add, (*values, json.dumps(kept_out), text(now))).rowcount == 1

    def page(
        self, tenant: str, of: Recipient, *, who: Reader, unread: bool, before: int, limit: int, partition: str = ""
    ) -> list[StoredNotification]:
        """Return a page of a list, newest first."""
        statement = _sql.unread_page if unread else _sql.page
        with self._database.reading() as connection:
            values = (who.name, tenant, partition, *of, before, *_hidden(who), limit)
            found = connection.execute(statement, values).fetchall()
        return [_notification(row) for row in found]

    def count_unread(self, tenant: str, of: Recipient, *, who: Reader, partition: str = "") -> int:
        """Return the number of unread items."""
        with self._database.reading() as connection:
            values = (who.name, tenant, partition, *of, *_hidden(who))
            return int(connection.execute(_sql.count_unread, values).fetchone()[0])

    def mark_read(
        self, tenant: str, of: Recipient, number: int, now: datetime, *, who: Reader, partition: str = ""
    ) -> bool:
        """Mark an item as read."""
        with self._database.writing() as connection:
            if of.kind == "user":
                done = connection.execute(_sql.mark_read, (text(now), tenant, partition, *of, number))
            else:
                values = (who.name, text(now), tenant, partition, *of, number, json.dumps(who.names))
                done = connection.execute(_sql.mark_read_by, values)
            return done.rowcount == 1

    def mark_all_read(self, tenant: str, of: Recipient, now: datetime, *, who: Reader, partition: str = "") -> int:
        """Mark all items as read."""
        with self._database.writing() as connection:
            if of.kind == "user":
                return connection.execute(_sql.mark_all_read, (text(now), tenant, partition, *of)).rowcount
            values = (who.name, text(now), tenant, partition, *of, json.dumps(who.names))
            return connection.execute(_sql.mark_all_read_by, values).rowcount


def _hidden(who: Reader) -> tuple[str, ...]:
    """Return the values that hide items from the reader: exclusions, and the reader's other lists."""
    return json.dumps(who.names), who.name, json.dumps(who.roles)


def _notification(row: rows.Row) -> StoredNotification:
    return StoredNotification(
        id=row[0],
        tenant=row[1],
        key=row[2],
        kind=row[3],
        recipient=row[4],
        instance=rows.instance_id(row[5]),
        step=row[6],
        subject=row[7],
        body=row[8],
        partition=row[9],
        occasion=row[10],
        kept_out=tuple(json.loads(row[11])),
        created_at=rows.instant(row[12]),
        read_at=rows.instant_or_none(row[13]),
    )
