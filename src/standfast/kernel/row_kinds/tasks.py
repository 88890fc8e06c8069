"""The rows of a question to people: who was asked and why, what each of them decided, and what was said about it.

They stay when the question is closed, so that it can always be told how it came to its answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

PersonKind = Literal["user", "role"]


class PersonAsked(Record, frozen=True, kw_only=True, gc=False):
    """Somebody is asked: one user, or whoever has a role."""

    number: int
    """Number of the step that waits."""
    place: int
    """Counts those who are asked."""
    kind: PersonKind = "user"
    name: str
    via: str = ""
    """Why it is them, in words."""
    stands_for: str = ""
    """Whom they stand in for; empty if they are asked themselves."""
    weight: int = 1
    stage: int = 0
    """The stage of an approval chain, counted from one; 0 if there is no chain."""
    is_open: bool = True
    """Whether a decision is still wanted from them."""
    decided: str = ""
    """What they decided; empty if they did not, or took it back."""


class PersonMoved(Record, frozen=True, kw_only=True, gc=False):
    """Somebody has decided, has taken that back, or is not asked any more."""

    number: int
    place: int
    is_open: bool
    decided: str | None = None


class StoredPerson(PersonAsked, frozen=True, kw_only=True, gc=False):
    """Somebody who was asked, as it is read."""

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
    """Somebody has decided."""

    number: int
    sequence: int
    """Counts the decisions on a question."""
    actor: str
    on_behalf_of: str = ""
    outcome: str
    comment: str = ""
    data: bytes | None = None
    document_version: str | None = None
    """The version of the document that was decided on."""
    is_withdrawn: bool = False
    is_applied: bool = False
    """Whether the answer of the question rests on it."""
    applied: bool | None = None
    """Of an approval of a document: whether a gate has used it up; False if it never will, because the document changed. None is neither."""


class DecisionMoved(Record, frozen=True, kw_only=True, gc=False):
    """A decision was taken back, or the answer rests on it now."""

    number: int
    sequence: int
    is_withdrawn: bool | None = None
    is_applied: bool | None = None
    applied: bool | None = None


class StoredDecision(DecisionGiven, frozen=True, kw_only=True, gc=False):
    """A decision, as it is read."""

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
    """Somebody said something about a question."""

    number: int
    sequence: int
    actor: str
    on_behalf_of: str = ""
    """For whom they said it; empty if for themselves."""
    text: str
    is_question: bool = False
    """Whether somebody asks back."""


class StoredComment(CommentMade, frozen=True, kw_only=True, gc=False):
    """What was said, as it is read."""

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
