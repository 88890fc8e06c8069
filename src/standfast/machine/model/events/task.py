"""What can happen to a question while it is open: who is asked, and what they do with it."""

from __future__ import annotations

from typing import TypeAlias

from standfast.graph.values.approver_rules import Ask, Stage
from standfast.kernel.codec.message_types import message
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.events.base import Data, Happening


@message(name="people_sought")
class PeopleSought(Happening, frozen=True, kw_only=True):
    """The engine is sent to find those who are to be asked."""

    step: int
    asks: list[Ask]
    why: list[Data] = []  # noqa: RUF012 - every struct gets one of its own
    """What the rules of the question came to, which nobody has to look for."""


@message(name="chain_found")
class ChainFound(Happening, frozen=True, kw_only=True):
    """The approval chain of a question is known: its stages are asked one after the other."""

    step: int
    stages: list[Stage]
    version: str = ""
    why: list[Data] = []  # noqa: RUF012 - every struct gets one of its own


@message(name="people_asked")
class PeopleAsked(Happening, frozen=True, kw_only=True):
    """These people are asked, and nobody else any more who has not decided."""

    step: int
    people: list[Person] = []  # noqa: RUF012 - every struct gets one of its own
    left_out: list[int] = []  # noqa: RUF012 - every struct gets one of its own
    """Which of them may not decide, by their places in the list, counted from zero."""
    why: list[Data] = []  # noqa: RUF012 - every struct gets one of its own
    """For each part of the question: what was asked, and what came of it."""
    trouble: str = ""
    """Why they cannot decide it, or why nobody was found; empty if they can."""
    missing: int = 0
    """How many parts of a question that takes all of them found nobody: it is not decided before as many others were added."""
    stays: bool = False
    """Whether those are still asked who were: it was only found out that they cannot decide."""
    lost: list[int] = []  # noqa: RUF012 - every struct gets one of its own
    """Places of those who were asked and cannot decide, counted from one."""
    out: list[int] = []  # noqa: RUF012 - every struct gets one of its own
    """Places of those whom the definition names and who may not decide, counted from one: they are not asked."""


@message(name="task_decided")
class TaskDecided(Happening, frozen=True, kw_only=True):
    """One of several who are asked has decided."""

    step: int
    seat: int
    """Place among those who are asked, counted from one."""
    outcome: str
    actor: str
    at: str
    on_behalf_of: str = ""
    comment: str = ""
    data: object = None
    """What came with the decision, and what its form fills in."""
    is_filled: bool = False
    """Whether the form has filled something in."""
    given: object = None
    """What came with the decision then."""
    document_version: str = ""
    """The version of the document that was decided on; empty if the question is about none."""
    guards: list[str] | None = None
    """The guards that the decider had of those on the ways of this outcome; None if the ways have none, and in older histories."""


@message(name="task_decision_withdrawn")
class DecisionWithdrawn(Happening, frozen=True, kw_only=True):
    """Somebody has taken a decision back."""

    step: int
    seat: int
    actor: str
    reason: str = ""
    on_behalf_of: str = ""


@message(name="task_stage_passed")
class StagePassed(Happening, frozen=True, kw_only=True):
    """A stage of an approval chain has agreed, and the next one is asked."""

    step: int
    stage: int
    """The one that has agreed, counted from one."""


@message(name="task_claimed")
class TaskClaimed(Happening, frozen=True, kw_only=True):
    """One of those who are asked has taken the question for himself."""

    step: int
    by: str
    role: str = ""
    """The role of the directory by which they are asked; empty if by name, or if their request says the role."""
    stand_in: str = ""
    """Who has claimed it in their place by a delegation of the directory; empty if they did themselves."""


@message(name="task_released")
class TaskReleased(Happening, frozen=True, kw_only=True):
    """The question is given back to all who are asked."""

    step: int


class _Handed(Happening, frozen=True, kw_only=True):
    """Somebody else is asked."""

    step: int
    person: Person
    seat: int = 0
    """Whose place they take, counted from one; 0 if nobody's."""
    by: str = ""
    """Who has handed it on, or has ordered it."""
    reason: str = ""


@message(name="task_delegated")
class TaskDelegated(_Handed, frozen=True, kw_only=True):
    """One of those who are asked lets another decide in his place."""

    stand_in: str = ""
    """Who has done that in the place of `by`, by a delegation of the directory; empty if they did it themselves."""


@message(name="task_reassigned")
class TaskReassigned(_Handed, frozen=True, kw_only=True):
    """Somebody else is asked instead."""


@message(name="task_approver_added")
class ApproverAdded(_Handed, frozen=True, kw_only=True):
    """Somebody else is asked as well."""


@message(name="task_commented")
class TaskCommented(Happening, frozen=True, kw_only=True):
    """Somebody said something about a question, or asked back."""

    step: int
    text: str
    by: str
    on_behalf_of: str = ""
    """For whom they said it; empty if for themselves."""
    is_question: bool = False

    @property
    def speaker(self) -> str:
        """Whose word it is."""
        return self.on_behalf_of or self.by


Handed: TypeAlias = TaskDelegated | TaskReassigned | ApproverAdded
TaskEvent: TypeAlias = (
    PeopleSought
    | ChainFound
    | PeopleAsked
    | TaskDecided
    | DecisionWithdrawn
    | StagePassed
    | TaskClaimed
    | TaskReleased
    | Handed
    | TaskCommented
)
