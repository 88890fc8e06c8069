"""Where a question to people stands: who is asked, and what they have said. A part of the state of a run.

A question whose people its definition names is not kept at all until something happens to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from standfast.graph.model import HumanOp
from standfast.graph.values.approver_rules import ROLE, Agree, Ask, Stage
from standfast.kernel.codec.message_types import LONGEST_NAME
from standfast.machine.model.engine_tasks import Person

MISSING = "missing"
"""Under which name it is kept of a part of a question who was named there and cannot act."""


class TaskVote(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, gc=False):
    """A decision of one of those who are asked."""

    sequence: int
    """Counts the decisions on the question, those that were withdrawn included."""
    outcome: str
    actor: str
    at: str
    on_behalf_of: str = ""
    comment: str = ""
    data: object = None
    is_filled: bool = False
    """Whether a form has filled something in."""
    before: object = None
    """What came with the decision then."""
    document_version: str = ""
    guards: list[str] | None = None
    """The guards that the decider had of those on the ways of this outcome; None if nobody asked for them."""
    stage: int = 0
    """The stage of an approval chain that it was given in; 0 if there is no chain."""


class Seat(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A place among those who are asked: one decision can be given from it."""

    person: Person
    given: TaskVote | None = None
    is_out: bool = False
    """Whether nobody is asked here any more: handed on, left out, or the stage is over."""
    is_extra: bool = False
    """Whether they are asked because the others did not answer: nobody waits for them, and what they say counts for all."""
    hands: list[str] = []
    """Those who have handed it on, the first one first."""
    lent: dict[str, str] = {}
    """Who has handed it on in the place of another, by the name of that one: they have to stand in for them as long as it is to be decided from."""

    @property
    def is_free(self) -> bool:
        """Whether a decision is still wanted from it."""
        return self.given is None and not self.is_out

    @property
    def decider(self) -> str:
        """For whom its decision counts."""
        if self.given is None:
            return ""
        is_user = self.person.kind == "user"
        return self.person.name if is_user else self.given.on_behalf_of or self.given.actor


class Question(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A question that is open."""

    seats: list[Seat] = []
    """All who were ever asked; the place of each is counted from one."""
    agree: Agree = "any"
    least: int = 0
    stage: int = 0
    """The stage of its chain that is asked, counted from one; 0 if there is no chain."""
    stages: list[Stage] = []
    chain_version: str = ""
    claimed_by: str = ""
    claimed_role: str = ""
    """The role of the directory by which that one was asked; empty if they are asked by name, or their request said the role."""
    claimed_stand_in: str = ""
    """Who has claimed it in their place, by a delegation that has to hold as long as the claim."""
    decisions: int = 0
    """How many were given so far, those that were withdrawn included."""
    comments: int = 0
    asked_back_by: str = ""
    """Who waits for an answer of the requester; empty if nobody does."""
    is_looking: bool = False
    """Whether the engine has been sent to find those who are to be asked."""
    trouble: str = ""
    """Why it cannot be decided by those who are asked; empty if it can."""
    missing: int = 0
    """How many places nobody was found for, where all have to agree: others have to be added first."""
    lost: list[int] = []
    """Places of those who cannot decide, as was found out last; counted from one. Somebody else has to take them, or the others decide without."""
    why: list[dict[str, object]] = []
    """How those were found whom it has asked so far; kept as long as more is to be told of that: while people are sought, and for a chain."""

    @property
    def asked(self) -> Iterator[tuple[int, Seat]]:
        """The seats that count, with their places."""
        return ((place, seat) for place, seat in enumerate(self.seats, 1) if not seat.is_out)

    @property
    def counted(self) -> Iterator[tuple[int, Seat]]:
        """Those of them whose agreement is needed."""
        return ((place, seat) for place, seat in self.asked if not seat.is_extra)

    def numbers_of(self, stage: str) -> list[int]:
        """Returns the numbers of the stages that are shown by this name."""
        return [number for number in range(1, len(self.stages) + 1) if stage_label(self.stages, number) == stage]

    @property
    def stage_asked(self) -> str:
        """The name of the stage that is asked; empty if there is no chain."""
        return stage_label(self.stages, self.stage) if self.stages else ""

    @property
    def answers(self) -> dict[str, object]:
        """What came with the decisions so far, by the name of each approver."""
        return by_approver((each.on_behalf_of or each.actor, each.data) for each in self.given)

    @property
    def given(self) -> list[TaskVote]:
        """All decisions that were not withdrawn, in their order."""
        return sorted((each.given for each in self.seats if each.given), key=lambda given: given.sequence)


def stage_label(stages: Sequence[Stage], number: int) -> str:
    """Returns the name of a stage of a chain, or its number if it has none."""
    return stages[number - 1].name or f"{number} of {len(stages)}"


def by_approver(given: Iterable[tuple[str, object]]) -> dict[str, object]:
    """What each approver has given, by name; what the same one gives later is laid over it."""
    told: dict[str, dict[str, object]] = {}
    for name, data in given:
        if isinstance(data, dict) and data:
            told[name] = {**told.get(name, {}), **data}
    return dict(told)


def newcomers(question: Question, people: Sequence[Person]) -> list[Person]:
    """Those of these people who are not asked yet."""
    known = {(seat.person.kind, seat.person.name) for _, seat in question.asked}
    return [each for each in people if (each.kind, each.name) not in known]


def places_of(question: Question, people: Sequence[Person]) -> tuple[list[Person], list[str]]:
    """The places of these people that are to be filled, and those whose places are lost because the one who would decide there decides from another.

    Each principal has one place, however they were found. Nobody has two, and people have their own rather than that of another.
    """
    settled = {_principal(seat.person) for _, seat in question.counted if seat.given}
    busy = {
        name
        for _, seat in question.asked
        if seat.given
        for name in (seat.given.actor, seat.given.on_behalf_of, seat.decider)
        if name
    }
    wanted: dict[tuple[str, str], Person] = {}
    for each in people:
        before = wanted.get(_principal(each))
        if _principal(each) not in settled and (before is None or (before.for_ and not each.for_)):
            wanted[_principal(each)] = each
    own = {each.name for each in wanted.values() if each.kind == "user" and not each.for_}
    asked, lost = list[Person](), list[str]()
    for each in wanted.values():
        if each.kind == "user" and ({each.name, each.for_} & busy or (each.for_ and each.name in own)):
            lost.append(each.for_ or each.name)
            continue
        asked.append(each)
        busy |= {each.name} if each.kind == "user" else set()
    return asked, lost


def _principal(person: Person) -> tuple[str, str]:
    return person.kind, person.for_ or person.name


def begun(op: HumanOp) -> Question:
    """A question that nothing has happened to yet."""
    seats = [Seat(person=person_of(ask)) for ask in op.all_asks] if op.is_settled else []
    return Question(seats=seats, agree=op.agreement, least=op.least)


def person_of(ask: Ask) -> Person:
    """Whom an ask names that names somebody."""
    if ask.by == ROLE:
        return Person(kind="role", name=ask.of, weight=ask.weight, via=f"role {ask.of}")
    return Person(name=ask.of, weight=ask.weight, via="named")


def person_named(text: str, *, via: str, weight: int = 1) -> Person:
    """A person as people write them: the id of a user, with or without `user:`, or `role:<name>`."""
    kind, colon, name = text.partition(":")
    if colon and kind == "role":
        return Person(kind="role", name=name, weight=weight, via=via)
    return Person(name=name if colon and kind == "user" else text, weight=weight, via=via)


def is_name(text: str) -> bool:
    """Whether somebody, or a role, can have such a name: people are found by it, so that databases have to keep it as a key."""
    return bool(text.strip()) and "\x00" not in text and len(text.encode("utf-8", "replace")) <= LONGEST_NAME


def shown(person: Person) -> str:
    """The same, written."""
    return f"role:{person.name}" if person.kind == "role" else person.name
