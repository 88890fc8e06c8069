"""Resume requests, stored in the file."""

from __future__ import annotations

import json
from datetime import datetime
from uuid import UUID

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.store.ports.maintenance import LatePause, PausedQuery, ResumeRequestRecord
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import (
    Row,
    instance_id,
    instant,
    instant_or_none,
    text,
    text_or_none,
)


class _Sql(msgspec.Struct, frozen=True):
    record: str
    refuse: str
    open_requests: str
    decided: str
    late: str
    paused: str
    paused_for: str
    paused_before: str
    resume_requests: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "resuming.sql")


class SQLiteResumes:
    """The requests of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, request: ResumeRequestRecord) -> bool:
        """Store a request."""
        values = msgspec.structs.asdict(request) | {
            "id": str(request.id),
            "instance": str(request.instance),
            "requested_at": text(request.requested_at),
        }
        with self._database.writing() as connection:
            return connection.execute(_sql.record, values).rowcount == 1

    def refuse(self, request: UUID, *, instance: InstanceId, error: str) -> None:
        """Store why a request cannot be executed."""
        with self._database.writing() as connection:
            connection.execute(_sql.refuse, (error, str(instance), str(request)))

    def open(self, *, limit: int) -> list[ResumeRequestRecord]:
        """Return requests that were not executed."""
        with self._database.reading() as connection:
            return [_request(row) for row in connection.execute(_sql.open_requests, (limit,))]

    def decided(self, *, limit: int) -> list[LatePause]:
        """Return paused instances whose task is decided."""
        with self._database.reading() as connection:
            return [_late(row) for row in connection.execute(_sql.decided, (limit,))]

    def late(self, *, kind: str, before: datetime, limit: int) -> list[LatePause]:
        """Return instances that were paused long ago."""
        with self._database.reading() as connection:
            return [_late(row) for row in connection.execute(_sql.late, (text(before), kind, limit))]


class SQLitePausedInstances:
    """The paused instances of one tenant."""

    _database: Database
    _tenant: str
    _partition: str

    def paused(self, query: PausedQuery) -> list[InstanceId]:
        """Return a page of paused instances, the most recently paused first."""
        values = {
            "tenant": self._tenant,
            "partition": self._partition,
            "definition": query.definition,
            "kinds": json.dumps(query.kinds) if query.kinds else None,
            "reason": query.reason,
            "next_step": query.next_step,
            "since": text_or_none(query.since),
            "before": text_or_none(query.before),
            "resumable": query.resumable,
            "late_kind": None if query.late is None else query.late[0],
            "late_before": None if query.late is None else text(query.late[1]),
            "after": None if query.after is None else text(query.after[0]),
            "after_id": None if query.after is None else str(query.after[1]),
            "limit": query.limit,
        }
        statement = _sql.paused_before if query.next_step else _sql.paused_for if query.reason else _sql.paused
        with self._database.reading() as connection:
            found = connection.execute(statement, values).fetchall()
        return [instance_id(row[0]) for row in found]

    def resume_requests(self, instance: InstanceId) -> list[ResumeRequestRecord]:
        """Return all resume requests of an instance, in order."""
        with self._database.reading() as connection:
            found = connection.execute(
                _sql.resume_requests,
                {"instance": str(instance), "tenant": self._tenant, "partition": self._partition},
            ).fetchall()
        return [_request(row) for row in found]


def _request(row: Row) -> ResumeRequestRecord:
    (
        identity,
        instance,
        tenant,
        by,
        by_id,
        data,
        reason,
        requester,
        requested_at,
        outcome,
        executed_at,
        error,
        for_,
        context,
        about,
    ) = row
    return ResumeRequestRecord(
        id=UUID(identity),
        instance=instance_id(instance),
        tenant=tenant,
        triggered_by=by,
        triggered_by_id=by_id,
        trigger_data=data,
        reason=reason,
        requested_by=requester,
        requested_at=instant(requested_at),
        outcome=outcome,
        executed_at=instant_or_none(executed_at),
        error_message=error,
        on_behalf_of=for_,
        context=context,
        about=about,
    )


def _late(row: Row) -> LatePause:
    return LatePause(row[0], instance_id(row[1]))
