"""The rows of a human task: its approvers with the reasons for asking them, their decisions, and the comments.

They are kept after the task is closed, so that its answer stays explainable.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

PersonKind = Literal["user", "role"]


class PersonAsked(Record, frozen=True, kw_only=True, gc=False):
    """An approver is asked: one user, or the holders of a role."""

    number: int
    """Number of the waiting step."""
    place: int
    """Index of the approver."""
    kind: PersonKind = "user"
    name: str
    via: str = ""
    """Reason why this approver is asked."""
    stands_for: str = ""
    """The represented person. Empty if the approver is asked directly."""
    weight: int = 1
    stage: int = 0
    """Stage of an approval chain, from 1. 0 without a chain."""
    is_open: bool = True
    """Whether a decision is still required from the approver."""
    decided: str = ""
    """The approver's decision. Empty if there is none or it was withdrawn."""


class PersonMoved(Record, frozen=True, kw_only=True, gc=False):
    """An approver has decided, has withdrawn a decision, or is no longer asked."""

    number: int
    place: int
    is_open: bool
    decided: str | None = None


class StoredPerson(PersonAsked, frozen=True, kw_only=True, gc=False):
    """An approver as it is read."""

    instance: InstanceId
    opened_at: datetime


TASK_PEOPLE = declare(
    RowKind(
        name="person",
        table="task_people",
        row=PersonAsked,
        change=PersonMoved,
        stored=StoredPerson,
        key=("number", "place"),
        of_instance=("partition",),
    )
)


class DecisionGiven(Record, frozen=True, kw_only=True, gc=False):
    """A decision was made."""

    number: int
    sequence: int
    """Number of the decision within the task."""
    actor: str
    on_behalf_of: str = ""
    outcome: str
    comment: str = ""
    data: bytes | None = None
    document_version: str | None = None
    """The version of the document that was decided on."""
    is_withdrawn: bool = False
    is_applied: bool = False
    """Whether the task's answer is based on it."""
    applied: bool | None = None
    """For an approval of a document: whether a gate has used it. False if it no longer can, because the document
    changed. None if it is unused."""


class DecisionMoved(Record, frozen=True, kw_only=True, gc=False):
    """A decision was withdrawn, or the task's answer is now based on it."""

    number: int
    sequence: int
    is_withdrawn: bool | None = None
    is_applied: bool | None = None
    applied: bool | None = None


class StoredDecision(DecisionGiven, frozen=True, kw_only=True, gc=False):
    """A decision as it is read."""

    instance: InstanceId
    decided_at: datetime


TASK_DECISIONS = declare(
    RowKind(
        name="decision",
        table="task_decisions",
        row=DecisionGiven,
        change=DecisionMoved,
        stored=StoredDecision,
        key=("number", "sequence"),
        opened_at="decided_at",
        of_instance=("partition",),
    )
)


class CommentMade(Record, frozen=True, kw_only=True, gc=False):
    """A comment was made on a task."""

    number: int
    sequence: int
    actor: str
    on_behalf_of: str = ""
    """The represented person. Empty if the author acted for themselves."""
    text: str
    is_question: bool = False
    """Whether it is a request for information."""


class StoredComment(CommentMade, frozen=True, kw_only=True, gc=False):
    """A comment as it is read."""

    instance: InstanceId
    written_at: datetime


TASK_COMMENTS = declare(
    RowKind(
        name="comment",
        table="task_comments",
        row=CommentMade,
        stored=StoredComment,
        key=("number", "sequence"),
        opened_at="written_at",
    )
)
