"""Port for lists and counts of human tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import StoredTask, TaskPlace
from standfast.kernel.row_kinds.tasks import PersonKind, StoredDecision


class AssigneeRecord(NamedTuple):
    """An approver as task rows name it."""

    kind: PersonKind
    name: str
    is_for_another: bool = False
    """In lists: only where the approver represents another person."""


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for open tasks. Empty fields match all."""

    people: tuple[AssigneeRecord, ...] | None = None
    """The inboxes to list. None matches all tasks."""
    definition: str = ""
    key: str = ""
    requester: str = ""
    due_before: datetime | None = None
    after: TaskPlace | None = None
    """The page begins after this position."""
    limit: int = 100


class ListedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a list."""

    task: StoredTask
    definition: str
    key: str
    asked_at: datetime
    """When the inbox's owner was asked. Without an inbox, when the task was opened."""
    stands_for: str = ""
    """The represented person. Empty if the approver is asked directly."""

    @property
    def place(self) -> TaskPlace:
        """Position of this task. Pass it as `after` to get the next page."""
        return TaskPlace(self.asked_at, self.task.instance, self.task.number)


class DecisionPlace(NamedTuple):
    """Position of a decision in the list of a person's decisions."""

    decided_at: datetime
    instance: InstanceId
    number: int
    sequence: int


class ListedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A person's decision, with its task."""

    decision: StoredDecision
    task: ListedTask


class TaskCount(NamedTuple):
    """Number of open tasks in an inbox."""

    kind: str
    name: str
    tasks: int


class Tasks(Protocol):
    """The human tasks of one tenant."""

    def open_tasks(self, query: TaskQuery) -> list[ListedTask]:
        """Return a page of open tasks in order of creation. A task occurs once, even if several inboxes contain it."""
        ...

    def decisions_by(self, actor: str, *, after: DecisionPlace | None = None, limit: int = 100) -> list[ListedDecision]:
        """Return a page of a person's decisions that are not withdrawn, newest first."""
        ...

    def count_tasks(self, people: Sequence[AssigneeRecord]) -> list[TaskCount]:
        """Return the number of tasks in each of these inboxes, without empty ones."""
        ...

    def count_overdue(self, people: Sequence[AssigneeRecord], now: datetime) -> int:
        """Return the number of distinct overdue tasks in these inboxes."""
        ...
