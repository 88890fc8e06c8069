"""What the engine shows of questions to people: in lists, and with all that was said and decided."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from standfast.features.runs.views import HumanTask, task_fields
from standfast.kernel.actor import Actor
from standfast.kernel.row_kinds.steps import StoredTask
from standfast.kernel.row_kinds.tasks import StoredComment, StoredDecision, StoredPerson
from standfast.store.ports.tasks import ListedDecision, ListedTask
from standfast.store.records.instances import InstanceHeader


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one of many questions."""

    task: str
    """Its id."""
    status: Literal["decided", "refused"]
    code: str
    """Why it was refused, as a stable word; empty if it was not."""
    detail: str
    """The same as a sentence."""


class TaskPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who was asked."""

    kind: str
    """`user` or `role`."""
    name: str
    why: str
    """Why it is them, in words."""
    stands_for: str
    weight: int
    stage: int
    is_open: bool
    """Whether a decision is still wanted from them."""
    decided: str
    asked_at: datetime


class TaskDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What one of those who are asked has decided."""

    sequence: int
    decision: str
    decided_by: str
    on_behalf_of: str
    """For whom they decided; empty if for themselves."""
    comment: str
    data: object
    document_version: str
    """The version of the document that was decided on; empty if the question is about none."""
    is_withdrawn: bool
    is_applied: bool
    """Whether the answer of the question rests on it. An approval that was voided counts for nothing."""
    applied: bool | None
    """Of an approval of a document: true once a gate has used it, false once it is void; null while neither has happened."""
    decided_at: datetime


class TaskComment(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said about a question."""

    sequence: int
    actor: str
    on_behalf_of: str
    """For whom they said it; empty if for themselves."""
    text: str
    is_question: bool
    """Whether somebody asks back."""
    written_at: datetime


class TaskDetails(HumanTask, frozen=True, kw_only=True):
    """A question with all that belongs to it."""

    outcomes: list[str]
    """What can be decided."""
    form: dict[str, object] | None
    """What is asked for with the answer; None if nothing is."""
    people: list[TaskPerson]
    """All who were ever asked."""
    decisions: list[TaskDecision]
    comments: list[TaskComment]
    resolution: list[object]
    """How those were found who are asked: each part of the question, and what came of it; empty if the definition names them."""


class DecidedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that somebody has given, with its question."""

    task: HumanTask
    decision: TaskDecision


class TaskCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many open questions wait for somebody."""

    own: int
    """Those that ask them by name, or that were delegated to them."""
    by_role: dict[str, int]
    """Those that ask a role of theirs, by role; roles that no question asks are left out."""
    overdue: int
    """How many of all these, each counted once, should have been answered by now."""
    is_exact: bool = True
    """Whether they are those of `list(mine=True)`. Beyond a thousand, questions are counted that four eyes keep the actor from."""


def listed_task(listed: ListedTask, actor: Actor) -> HumanTask:
    """A question in a list, as somebody may see it."""
    told = task_fields(listed.task, actor, definition=listed.definition, key=listed.key)
    told["asked_at"], told["stands_for"] = listed.asked_at, listed.stands_for
    return HumanTask(**told)  # type: ignore[arg-type]


def task_details(
    task: StoredTask,
    header: InstanceHeader,
    actor: Actor,
    *,
    outcomes: list[str],
    form: dict[str, object] | None,
    people: list[TaskPerson],
    decisions: list[TaskDecision],
    comments: list[TaskComment],
) -> TaskDetails:
    """A question with all that belongs to it."""
    resolution = [] if task.resolution is None else msgspec.json.decode(task.resolution, type=list[object])
    return TaskDetails(
        **task_fields(task, actor, definition=header.definition, key=header.key),  # type: ignore[arg-type]
        outcomes=outcomes,
        form=form,
        people=people,
        decisions=decisions,
        comments=comments,
        resolution=resolution,
    )


def decided_task(listed: ListedDecision, actor: Actor) -> DecidedTask:
    """A decision that somebody has given, as they may see it."""
    return DecidedTask(task=listed_task(listed.task, actor), decision=task_decision(listed.decision))


def task_person(person: StoredPerson) -> TaskPerson:
    """Somebody who was asked."""
    return TaskPerson(
        kind=person.kind,
        name=person.name,
        why=person.via,
        stands_for=person.stands_for,
        weight=person.weight,
        stage=person.stage,
        is_open=person.is_open,
        decided=person.decided,
        asked_at=person.opened_at,
    )


def task_decision(decision: StoredDecision) -> TaskDecision:
    """What somebody has decided."""
    return TaskDecision(
        sequence=decision.sequence,
        decision=decision.outcome,
        decided_by=decision.actor,
        on_behalf_of=decision.on_behalf_of,
        comment=decision.comment,
        data=None if decision.data is None else msgspec.json.decode(decision.data),
        document_version=decision.document_version or "",
        is_withdrawn=decision.is_withdrawn,
        is_applied=decision.is_applied and decision.applied is not False,
        applied=decision.applied,
        decided_at=decision.decided_at,
    )


def task_comment(comment: StoredComment) -> TaskComment:
    """What somebody said."""
    return TaskComment(
        sequence=comment.sequence,
        actor=comment.actor,
        on_behalf_of=comment.on_behalf_of,
        text=comment.text,
        is_question=comment.is_question,
        written_at=comment.written_at,
    )
