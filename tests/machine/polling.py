"""A question to people, the slow and obvious way, written from docs/how-to/ask-people.md: who has a place, what was said, what it comes to.

It knows nothing of runs: the reference asks it who may decide, and tells it what happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from standfast.graph import model as g
from standfast.graph.values.approver_rules import Ask, Stage
from standfast.kernel.actor import SYSTEM, Actor
from standfast.machine.model.engine_tasks import Person

Data = dict[str, object]
Votes = list[tuple[int, str | None]]
"""What each has said, `for`, `against` or `abstained`, and what that weighs."""


def person(actor: Actor) -> str:
    """For whom somebody acts."""
    return actor.on_behalf_of or actor.id


def may_all(actor: Actor) -> bool:
    """Whether somebody decides for all."""
    return actor.kind == "system" or "*" in actor.capabilities


def is_agreed(votes: Votes, agree: str, least: int) -> bool:
    """Whether those who are for it are enough."""
    words = [word for _, word in votes]
    match agree:
        case "all":
            return "for" in words and "against" not in words and None not in words
        case "weight":
            return sum(weight for weight, word in votes if word == "for") >= least
        case _:
            return words.count("for") >= (least if agree == "n" else 1)


def verdict(votes: Votes, agree: str, least: int) -> str:
    """`for` if it is agreed, `against` if it cannot be any more whatever the others say, empty if that depends on them."""
    if is_agreed(votes, agree, least):
        return "for"
    best: Votes = [(weight, word or "for") for weight, word in votes]
    return "" if is_agreed(best, agree, least) else "against"


@dataclass(eq=False)
class Vote:
    """A decision of one person."""

    outcome: str
    actor: str
    on_behalf_of: str
    comment: str
    data: object
    at: datetime
    who: Actor = SYSTEM
    stage: int = 0
    is_withdrawn: bool = False
    is_applied: bool = False

    @property
    def told(self) -> Data:
        """What the steps behind find of it."""
        return {
            "status": self.outcome,
            "decided_by": self.actor,
            "decided_at": self.at.isoformat(),
            "on_behalf_of": self.on_behalf_of,
            "comment": self.comment,
            "data": self.data,
        }


@dataclass(eq=False)
class Seat:
    """A place among those who are asked."""

    who: str
    """The id of a user, or `role:<name>`."""
    weight: int = 1
    stands_for: str = ""
    stage: int = 0
    is_extra: bool = False
    """Whether they are asked because the others were silent."""
    is_over: bool = False
    """Whether nobody is asked here any more."""
    is_lost: bool = False
    """Whether it was found that nobody can decide from here."""
    hands: tuple[str, ...] = ()
    """Those who have handed it on."""
    lent: tuple[str, ...] = ()
    """Those who have done so in the place of one of them."""
    vote: Vote | None = None
    decided: str = ""
    """As it is shown."""

    def is_for(self, actor: Actor) -> bool:
        """Whether somebody can decide from it."""
        role = self.who.removeprefix("role:")
        return self.who == person(actor) if role == self.who else actor.kind == "system" or role in actor.roles

    @property
    def principal(self) -> tuple[bool, str]:
        """Whose place it is."""
        return _is_role(self), self.stands_for or self.who.removeprefix("role:")

    @property
    def givers(self) -> set[str]:
        """Those who decide by what is decided from it."""
        return {self.stands_for, *self.hands, *self.lent} - {""}

    @property
    def decider(self) -> str:
        """Whose decision it holds."""
        if self.vote is None:
            return ""
        return self.vote.on_behalf_of or self.vote.actor if self.who.startswith("role:") else self.who


@dataclass
class Ending:
    """What a decision comes to."""

    outcome: str = ""
    """Empty if the question goes on."""
    reason: str = ""
    is_stage_over: bool = False
    is_alone: bool = False
    """Whether nobody else has a say, so that it is the answer."""


@dataclass(eq=False)
class Poll:
    """One question."""

    op: g.HumanOp
    seats: list[Seat] = field(default_factory=list)
    votes: list[Vote] = field(default_factory=list)
    agree: str = "any"
    least: int = 0
    stages: Sequence[Stage] = ()
    stage: int = 0
    claimed_by: str = ""
    claimed_for_them_by: str = ""
    """Who has done so in the place of that one."""
    is_looking: bool = False
    is_in_trouble: bool = False
    """Whether nobody can decide it."""
    missing: int = 0
    """How many places wait for people to be found, where all have to agree."""
    status: str = "open"
    came_to: str | None = None
    closed_by: tuple[str, str] = ("", "")
    """Who has closed it, and what they said."""
    due: datetime | None = None

    @property
    def asked(self) -> list[Seat]:
        """The places that count."""
        return [seat for seat in self.seats if not seat.is_over]

    @property
    def free(self) -> list[Seat]:
        """Those from which nobody has decided yet."""
        return [seat for seat in self.asked if seat.vote is None]

    @property
    def is_open_to_all(self) -> bool:
        """Whether anybody may answer."""
        is_named = self.op.role or self.op.asks or self.op.chain
        return not is_named and all(seat.is_extra for seat in self.seats)

    @property
    def approval(self) -> str:
        """The outcome that counts for it."""
        op = self.op
        return op.approves or next((each for each in op.outcomes if each not in {op.rejects, op.abstains}), g.CONFIRMED)

    def word(self, outcome: str) -> str | None:
        """What an outcome counts as; None if it ends the question by itself."""
        return {self.approval: "for", self.op.rejects: "against", self.op.abstains: "abstained"}.get(outcome)

    # Who

    def seat_of(self, actor: Actor) -> Seat | None:
        """The place of somebody: his own one before that of a role."""
        found = [seat for seat in self.free if seat.is_for(actor)]
        return next(iter(sorted(found, key=lambda seat: seat.who.startswith("role:"))), None)

    def vote_of(self, actor: Actor) -> Vote | None:
        """What somebody has decided among those who are asked now."""
        return next((seat.vote for seat in self.asked if seat.decider == person(actor)), None)

    def standing_vote(self, actor: Actor) -> Vote | None:
        """What stands of somebody: who has no place now may have decided in an earlier stage."""
        before = self._own_votes(actor)
        last = before[-1] if before and self.seat_of(actor) is None else None
        return self.vote_of(actor) or last

    def known_vote(self, actor: Actor, named: str) -> Vote | None:
        """What stands of somebody in the stage that they name; where they name none, in any that they have decided."""
        own = self._own_votes(actor)
        in_named = [vote for vote in own if self.label(vote.stage) == named]
        if named and self.label(self.stage) != named:
            return in_named[-1] if in_named else None
        if self.vote_of(actor) is not None:
            return self.vote_of(actor)
        if self.seat_of(actor) is not None:
            own = [vote for vote in (in_named if named else own) if 0 < vote.stage < self.stage]
        elif named:
            own = []
        return own[-1] if own else None

    def _own_votes(self, actor: Actor) -> list[Vote]:
        mine = [vote for vote in self.votes if vote.actor == actor.id and not vote.is_withdrawn]
        return [vote for vote in mine if actor.on_behalf_of in {"", vote.on_behalf_of}]

    def label(self, stage: int) -> str:
        """How a stage is shown."""
        return (self.stages[stage - 1].name or f"{stage} of {len(self.stages)}") if stage else ""

    def keeps_out(self, actor: Actor) -> str:
        """Why somebody is none of those who can decide; empty if he is."""
        if self.vote_of(actor) or self._own_votes(actor):
            return ""
        return self.unasked(actor)

    def unasked(self, actor: Actor) -> str:
        """Why somebody is none of those who are asked now; empty if he is."""
        if may_all(actor) or self.is_open_to_all:
            return ""
        if self.is_looking:
            return "not_asked_yet"
        if self.seat_of(actor) is not None:
            return ""
        return "already_decided" if any(seat.is_for(actor) and _is_role(seat) for seat in self.asked) else "not_allowed"

    def is_claimed_from(self, actor: Actor) -> bool:
        """Whether another one has it for himself."""
        return bool(self.claimed_by) and self.claimed_by != person(actor) and not may_all(actor)

    # What it comes to

    def ending(self, actor: Actor, outcome: str) -> Ending:
        """What a decision would come to."""
        seat, op = self.seat_of(actor), self.op
        counted = [each for each in self.asked if not each.is_extra]
        was_lost = self.is_beyond_reach()
        is_enough = not self.missing and (not counted or (len(counted) == 1 and not was_lost))
        is_only_one = not self.stages and is_enough and outcome != op.abstains
        if seat is None or is_only_one:
            if outcome == op.abstains:
                return Ending(op.rejects, "all_abstained", is_alone=True)
            return Ending(outcome, is_alone=True)
        word = self.word(outcome)
        if word is None:
            return Ending(outcome)
        votes: Votes = [(each.weight, word if each is seat else self._said(each)) for each in counted]
        votes += [(1, None)] * self.missing
        came_to = verdict(votes, self.agree, self.least)
        if was_lost and word != "against":
            came_to = ""
        if seat.is_extra:
            votes, came_to = [(1, word)], "" if word == "abstained" else word
        if came_to == "for" and self.stage < len(self.stages):
            return Ending(is_stage_over=True)
        if came_to == "against":
            return Ending(op.rejects, _why({word for _, word in votes if word}))
        return Ending(self.approval if came_to else "")

    def _said(self, seat: Seat) -> str | None:
        return None if seat.vote is None else self.word(seat.vote.outcome)

    # What happens

    def places(self, people: list[Seat]) -> list[Seat]:
        """Those of these people who are asked: one for each principal, the principal rather than a stand-in, nobody from two places."""
        decided = [seat for seat in self.asked if seat.vote is not None]
        principals: list[Seat] = []
        for each in people:
            same = next((seat for seat in principals if seat.principal == each.principal), None)
            if same is None and each.principal not in [seat.principal for seat in decided if not seat.is_extra]:
                principals.append(each)
            elif same is not None and same.stands_for and not each.stands_for:
                principals[principals.index(same)] = each
        themselves = [seat.who for seat in principals if not _is_role(seat) and not seat.stands_for]
        used = {
            name for seat in decided if seat.vote for name in (seat.vote.actor, seat.vote.on_behalf_of, seat.decider)
        }
        asked: list[Seat] = []
        for each in principals:
            others = [seat.who for seat in asked if not _is_role(seat)]
            is_used = each.who in others or each.stands_for in others or {each.who, each.stands_for} & (used - {""})
            if _is_role(each) or not (is_used or (each.stands_for and each.who in themselves)):
                asked.append(each)
        self.missing = len(principals) - len(asked) if self.agree == "all" else 0
        return asked

    def put(self, people: Iterable[Seat]) -> None:
        """These are asked, and nobody else any more who has not decided."""
        for seat in self.free:
            seat.is_over, seat.is_lost = not seat.is_extra, False
        self.seats += people
        self.is_looking, self.claimed_by = False, ""

    def record(self, seat: Seat | None, vote: Vote) -> None:
        """Somebody has decided."""
        vote.stage = self.stage
        self.votes.append(vote)
        if seat is not None:
            seat.vote, seat.decided, self.claimed_by = vote, vote.outcome, ""

    def seat_decided_by(self, actor: Actor) -> Seat | None:
        """The place from which somebody has decided among those who are asked now."""
        return next((seat for seat in self.asked if seat.decider == person(actor)), None)

    def withdraw(self, actor: Actor) -> bool:
        """Somebody takes a decision back."""
        seat = self.seat_decided_by(actor)
        if seat is None or seat.vote is None:
            return False
        seat.vote.is_withdrawn = True
        seat.vote, seat.decided = None, ""
        return True

    def hand(self, seat: Seat | None, heir: Seat) -> None:
        """Somebody else is asked; in the place of somebody if there is one."""
        if seat is not None:
            seat.is_over, self.claimed_by, heir.is_extra = True, "", seat.is_extra
        elif self.missing:
            self.missing -= 1
        heir.stage = self.stage
        self.seats.append(heir)
        self.is_in_trouble = self.is_in_trouble and not (self.missing == 0 and self.is_within_reach())

    def is_within_reach(self) -> bool:
        """Whether those can agree who are asked and not lost; where all have to, nobody is left out."""
        able = [seat for seat in self.asked if not seat.is_lost]
        if len(able) == len(self.asked):
            return not self.is_beyond_reach()
        votes: Votes = [(seat.weight, self._said(seat)) for seat in able if not seat.is_extra]
        is_extra = any(seat.is_extra and seat.vote is None for seat in able)
        return is_extra or (self.agree != "all" and verdict(votes, self.agree, self.least) != "against")

    def is_beyond_reach(self) -> bool:
        """Whether those who are asked cannot agree any more."""
        votes: Votes = [(seat.weight, self._said(seat)) for seat in self.asked if not seat.is_extra]
        return verdict(votes, self.agree, self.least) == "against"

    def end_stage(self) -> None:
        """A stage has agreed, and nobody of it is asked any more."""
        self.claimed_by = ""
        for seat in self.seats:
            seat.is_over = True

    def go_to_stage(self, number: int) -> None:
        """Another stage is asked."""
        self.stage = number
        self.agree, self.least = self.stages[number - 1].agree, self.stages[number - 1].least

    def close(self, status: str, outcome: str, by: tuple[str, str] = ("", "")) -> None:
        """It has come to something."""
        if self.came_to is None:
            self.status, self.came_to, self.closed_by, self.is_in_trouble = status, outcome, by, False


def begun(op: g.HumanOp) -> Poll:
    """A question that is put."""
    agree = op.agree or ("all" if len(op.asks) > 1 and any(ask.by != "role" for ask in op.asks) else "any")
    return Poll(op, agree=agree, least=op.least)


def seat_for(ask: Ask) -> Seat:
    """The place of whom a definition names."""
    return Seat(f"role:{ask.of}" if ask.by == "role" else ask.of, ask.weight)


def seat_found(found: Person) -> Seat:
    """The place of somebody who was found."""
    return Seat(f"role:{found.name}" if found.kind == "role" else found.name, found.weight, found.for_)


def _is_role(seat: Seat) -> bool:
    return seat.who.startswith("role:")


def _why(words: set[str]) -> str:
    """Why it is lost, where nobody was against it."""
    if "against" in words:
        return ""
    return "all_abstained" if words == {"abstained"} else "out_of_reach"
