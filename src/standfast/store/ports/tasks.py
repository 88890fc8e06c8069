"""What is asked of a database about questions to people: lists of them, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import StoredTask, TaskPlace
from standfast.kernel.row_kinds.tasks import PersonKind, StoredDecision


class AssigneeRecord(NamedTuple):
    """Somebody as rows of people name them."""

    kind: PersonKind
    name: str
    is_for_another: bool = False
    """In lists: only where they are asked in the place of somebody else."""


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which open questions are wanted; empty means all."""

    people: tuple[AssigneeRecord, ...] | None = None
    """In whose inboxes they are; None means anybody's."""
    definition: str = ""
    key: str = ""
    requester: str = ""
    due_before: datetime | None = None
    after: TaskPlace | None = None
    """The place that the page begins after."""
    limit: int = 100


class ListedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A question in a list."""

    task: StoredTask
    definition: str
    key: str
    asked_at: datetime
    """When those were asked whose list it is; when the question was, if it is nobody's."""
    stands_for: str = ""
    """Whom they stand in for; empty if they are asked themselves."""

    @property
    def place(self) -> TaskPlace:
        """Give it as `after` for the page that follows this question."""
        return TaskPlace(self.asked_at, self.task.instance, self.task.number)


class DecisionPlace(NamedTuple):
    """Where a decision stands in the list of those that somebody has given."""

    decided_at: datetime
    instance: InstanceId
    number: int
    sequence: int


class ListedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that somebody has given, with its question."""

    decision: StoredDecision
    task: ListedTask


class TaskCount(NamedTuple):
    """How many open questions are in an inbox."""

    kind: str
    name: str
    tasks: int


class Tasks(Protocol):
    """The questions to people, of one tenant."""

    def open_tasks(self, query: TaskQuery) -> list[ListedTask]:
        """A page of the questions that nobody has answered, in the order of asking; each once, however often somebody is asked."""
        ...

    def decisions_by(self, actor: str, *, after: DecisionPlace | None = None, limit: int = 100) -> list[ListedDecision]:
        """A page of the decisions that somebody has given and not withdrawn, newest first."""
        ...

    def count_tasks(self, people: Sequence[AssigneeRecord]) -> list[TaskCount]:
        """How many questions wait in each of these inboxes; those in which none does are left out."""
        ...

    def count_overdue(self, people: Sequence[AssigneeRecord], now: datetime) -> int:
        """How many questions in these inboxes, each once, should have been answered by now."""
        ...
