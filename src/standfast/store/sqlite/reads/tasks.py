"""Lists and counts of human tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec

from standfast.kernel.row_kinds.steps import TASKS
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS
from standfast.store.ports.tasks import (
    AssigneeRecord,
    DecisionPlace,
    ListedDecision,
    ListedTask,
    TaskCount,
    TaskQuery,
)
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.records import reading
from standfast.store.sqlite.connection.session import Row, instant, text, text_or_none


class _Sql(msgspec.Struct, frozen=True):
    open_tasks: str
    overdue_tasks: str
    open_tasks_of_definition: str
    open_tasks_by_key: str
    open_tasks_of_requester: str
    open_tasks_of_person: str
    decisions_by: str
    count_tasks: str
    count_overdue: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "tasks.sql")

_END = ("9999-12-31", "g", 0, 0)
"""Greater than every decision."""
_TASK, _DECISION = len(TASKS.columns), len(TASK_DECISIONS.columns)


class SQLiteTaskReads:
    """Reads human tasks of one tenant. Subclasses provide the connection."""

    _tenant: str
    _partition: str

    def open_tasks(self, query: TaskQuery) -> list[ListedTask]:
        """Return a page of open tasks."""
        at, instance, number = ("", "", 0) if query.after is None else query.after
        values = {
            "tenant": self._tenant,
            "partition": self._partition,
            "definition": query.definition,
            "key": query.key,
            "requester": query.requester,
            "due_before": text_or_none(query.due_before),
            "at": at if isinstance(at, str) else text(at),
            "instance": str(instance),
            "number": number,
            "limit": query.limit,
        }
        if query.people is None:
            return [*map(_listed, self._all(_listing(query), values))]
        values["people"] = json.dumps([*map(_joined, query.people)])
        pages = [
            [*map(_listed, self._all(_sql.open_tasks_of_person, {**values, **person._asdict()}))]
            for person in query.people
        ]
        return pages[0] if len(pages) == 1 else sorted(chain(*pages), key=_place)[: query.limit]

    def decisions_by(self, actor: str, *, after: DecisionPlace | None = None, limit: int = 100) -> list[ListedDecision]:
        """Return a page of a person's decisions."""
        place = _END if after is None else (text(after.decided_at), str(after.instance), after.number, after.sequence)
        values = dict(zip(("at", "instance", "number", "sequence"), place, strict=True))
        found = self._all(_sql.decisions_by, {**values, **self._whose, "actor": actor, "limit": limit})
        return [ListedDecision(decision=_decision(row[:_DECISION]), task=_listed(row[_DECISION:])) for row in found]

    def count_tasks(self, people: Sequence[AssigneeRecord]) -> list[TaskCount]:
        """Return the number of tasks in each of these inboxes."""
        return [TaskCount(*row) for row in self._all(_sql.count_tasks, {**self._whose, "people": json.dumps(people)})]

    def count_overdue(self, people: Sequence[AssigneeRecord], now: datetime) -> int:
        """Return the number of overdue tasks in these inboxes."""
        asked = {"people": json.dumps(people), "names": json.dumps([*map(_joined, people)])}
        ((count,),) = self._all(_sql.count_overdue, {**self._whose, "now": text(now), **asked})
        return int(count)

    @property
    def _whose(self) -> dict[str, Any]:
        raise NotImplementedError

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[Row]:
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


_decision, _task = reading(TASK_DECISIONS), reading(TASKS)


def _listed(row: Row) -> ListedTask:
    definition, key, asked_at, stands_for = row[_TASK:]
    return ListedTask(
        task=_task(row),
        definition=definition,
        key=key,
        asked_at=instant(asked_at),
        stands_for=stands_for,
    )


def _place(listed: ListedTask) -> tuple[datetime, int, int]:
    return listed.asked_at, listed.task.instance.int, listed.task.number


def _joined(person: AssigneeRecord) -> str:
    return f"{person.kind}:{person.name}"
