"""Resume requests, stored in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int8

from standfast.kernel.ids import InstanceId
from standfast.store.ports.maintenance import LatePause, PausedQuery, ResumeRequestRecord
from standfast.store.postgres.connection.connection import ReconnectingConnection
from standfast.store.postgres.connection.packing import Texts
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_numbered


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


_sql = read_numbered(_Sql, "standfast.store.postgres", "resuming.sql")


class PostgresResumes:
    """The requests of all tenants."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

    def record(self, request: ResumeRequestRecord) -> bool:
        """Store a request."""
        values = [
            request.id, request.instance, request.tenant, request.triggered_by, request.triggered_by_id, request.trigger_data,
            request.reason, request.requested_by, request.outcome, request.requested_at, request.error_message,
            request.on_behalf_of,
            request.context,
            request.about,
        ]  # fmt: skip
        with self._line.use() as connection:
            return connection.execute(_sql.record, values).rowcount == 1

    def refuse(self, request: UUID, *, instance: InstanceId, error: str) -> None:
        """Store why a request cannot be executed."""
        with self._line.use() as connection:
            connection.execute(_sql.refuse, [error, instance, request])

    def open(self, *, limit: int) -> list[ResumeRequestRecord]:
        """Return requests that were not executed."""
        return [_request(row) for row in self._all(_sql.open_requests, [Int8(limit)])]

    def decided(self, *, limit: int) -> list[LatePause]:
        """Return paused instances whose task is decided."""
        return [_late(row) for row in self._all(_sql.decided, [Int8(limit)])]

    def late(self, *, kind: str, before: datetime, limit: int) -> list[LatePause]:
        """Return instances that were paused long ago."""
        return [_late(row) for row in self._all(_sql.late, [before, kind, Int8(limit)])]

    def _all(self, statement: str, values: Sequence[object]) -> list[Row]:
        with self._line.use() as connection:
            return cast("list[Row]", connection.execute(statement, values, binary=True).fetchall())


class PostgresPausedInstances:
    """The paused instances of one tenant."""

    _tenant: str
    _partition: str

    def paused(self, query: PausedQuery) -> list[InstanceId]:
        """Return a page of paused instances, the most recently paused first."""
        paused_at, identity = query.after or (None, None)
        late_kind, late_before = query.late or (None, None)
        values: list[object] = [
            self._tenant, query.definition, Texts(query.kinds), query.since, query.before, paused_at, identity, query.resumable,
            Int8(query.limit), late_kind, late_before, self._partition,
        ]  # fmt: skip
        if query.next_step:
            found = self._all(_sql.paused_before, [*values, query.next_step, query.reason])
        elif query.reason:
            found = self._all(_sql.paused_for, [*values, query.reason])
        else:
            found = self._all(_sql.paused, values)
        return [InstanceId(cast("UUID", row[0])) for row in found]

    def resume_requests(self, instance: InstanceId) -> list[ResumeRequestRecord]:
        """Return all resume requests of an instance, in order."""
        return [_request(row) for row in self._all(_sql.resume_requests, [instance, self._tenant, self._partition])]

    def _all(self, statement: str, values: Sequence[object]) -> list[Row]:
        raise NotImplementedError


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
        id=identity,
        instance=InstanceId(instance),
        tenant=tenant,
        triggered_by=by,
        triggered_by_id=by_id,
        trigger_data=data,
        reason=reason,
        requested_by=requester,
        requested_at=requested_at,
        outcome=outcome,
        executed_at=executed_at,
        error_message=error,
        on_behalf_of=for_,
        context=context,
        about=about,
    )


def _late(row: Row) -> LatePause:
    return LatePause(row[0], InstanceId(row[1]))
