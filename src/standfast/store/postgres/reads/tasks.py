"""Lists and counts of human tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from psycopg.types.numeric import Int4, Int8

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import TASKS, TaskPlace
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS
from standfast.store.ports.tasks import (
    AssigneeRecord,
    DecisionPlace,
    ListedDecision,
    ListedTask,
    TaskCount,
    TaskQuery,
)
from standfast.store.postgres.connection.packing import Texts
from standfast.store.postgres.connection.records import reading
from standfast.store.postgres.connection.session import Row
from standfast.store.sql.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    open_tasks: str
    overdue_tasks: str
    open_tasks_of_definition: str
    open_tasks_by_key: str
    open_tasks_of_requester: str
    open_tasks_of_people: str
    decisions_by: str
    count_tasks: str
    count_overdue: str


_sql = read_statements(_Sql, "standfast.store.postgres", "tasks.sql")

_FIRST = TaskPlace(datetime(1, 1, 1, tzinfo=UTC), InstanceId(UUID(int=0)), 0)
_END = DecisionPlace(datetime(9999, 12, 31, tzinfo=UTC), InstanceId(UUID(int=2**128 - 1)), 0, 0)
_TASK, _DECISION = len(TASKS.columns), len(TASK_DECISIONS.columns)


class PostgresTaskReads:
    """Reads human tasks of one tenant. Subclasses provide the connection."""

    _tenant: str
    _partition: str

    def open_tasks(self, query: TaskQuery) -> list[ListedTask]:
        """Return a page of open tasks."""
        opened_at, instance, number = query.after or _FIRST
        filters = [self._tenant, query.definition, query.key, query.requester, query.due_before]
        values: list[object] = [*filters, opened_at, instance, Int4(number), Int8(query.limit), self._partition]
        if query.people is None:
            return [*map(_listed, self._all(_listing(query), values))]
        values += [*_packed(query.people), _joined(query.people), [each.is_for_another for each in query.people]]
        return [*map(_listed, self._all(_sql.open_tasks_of_people, values))]

    def decisions_by(self, actor: str, *, after: DecisionPlace | None = None, limit: int = 100) -> list[ListedDecision]:
        """Return a page of a person's decisions."""
        decided_at, instance, number, sequence = after or _END
        place = [decided_at, instance, Int4(number), Int4(sequence)]
        found = self._all(_sql.decisions_by, [self._tenant, actor, *place, Int8(limit), self._partition])
        return [ListedDecision(decision=_decision(row[:_DECISION]), task=_listed(row[_DECISION:])) for row in found]

    def count_tasks(self, people: Sequence[AssigneeRecord]) -> list[TaskCount]:
        """Return the number of tasks in each of these inboxes."""
        values = [self._tenant, *_packed(people), self._partition]
        return [TaskCount(*row) for row in self._all(_sql.count_tasks, values)]

    def count_overdue(self, people: Sequence[AssigneeRecord], now: datetime) -> int:
        """Return the number of overdue tasks in these inboxes."""
        values = [self._tenant, now, *_packed(people), _joined(people), self._partition]
        ((count,),) = self._all(_sql.count_overdue, values)
        return int(count)

    def _all(self, statement: str, values: Sequence[object]) -> list[Row]:
        raise NotImplementedError


def _listing(query: TaskQuery) -> str:
    """Return the statement with the most selective index."""
    if query.key:
        return _sql.open_tasks_by_key
    if query.requester:
        return _sql.open_tasks_of_requester
    if query.definition:
        return _sql.open_tasks_of_definition
    return _sql.open_tasks if query.due_before is None else _sql.overdue_tasks


_decision = reading(TASK_DECISIONS)


def _listed(row: Row) -> ListedTask:
    definition, key, asked_at, stands_for = row[_TASK:]
    return ListedTask(
        task=reading(TASKS)(row[:_TASK]), definition=definition, key=key, asked_at=asked_at, stands_for=stands_for
    )


def _packed(people: Sequence[AssigneeRecord]) -> list[Texts]:
    return [Texts([each.kind for each in people]), Texts([each.name for each in people])]


def _joined(people: Sequence[AssigneeRecord]) -> Texts:
    return Texts([f"{each.kind}:{each.name}" for each in people])
