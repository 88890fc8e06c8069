"""What the decisions of several people come to.

Yes, no and neither in the words of a definition: whoever approves need not know whether that is `confirmed` or `approved`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

from standfast.graph.model import HumanOp, Node
from standfast.graph.values.approver_rules import VOTES, Agree, Vote
from standfast.machine.model.commands.run_commands import AnswerStep
from standfast.machine.model.state import Data
from standfast.machine.model.task_state import Question

Verdict = Literal["for", "against"]

ALL_ABSTAINED = "all_abstained"
OUT_OF_REACH = "out_of_reach"


def verdict(votes: Sequence[tuple[int, Vote | None]], agree: Agree, least: int) -> Verdict | None:
    """What is agreed, or None while that depends on those who have not voted; each vote comes with its weight.

    An abstention is an answer, and neither for nor against. One vote against is enough where all have to agree; elsewhere the question
    is lost as soon as those who are left cannot win it any more.
    """
    given = [vote for _, vote in votes]
    if agree == "all":
        if "against" in given:
            return "against"
        if None in given:
            return None
        return "for" if "for" in given else "against"
    needed = least if agree in {"n", "weight"} else 1
    reached = sum(weight if agree == "weight" else 1 for weight, vote in votes if vote == "for")
    open_ = sum(weight if agree == "weight" else 1 for weight, vote in votes if vote is None)
    if reached >= needed:
        return "for"
    return "against" if reached + open_ < needed else None


def reason_against(votes: Sequence[tuple[int, Vote | None]]) -> str:
    """Why a question is lost, where that is not because somebody was against it."""
    given = {vote for _, vote in votes if vote is not None}
    if "against" in given:
        return ""
    return ALL_ABSTAINED if given == {"abstained"} else OUT_OF_REACH


def votes_of(op: HumanOp, question: Question) -> Iterator[tuple[int, Vote | None]]:
    """What those who are asked have said so far, with their weights."""
    for _, seat in question.counted:
        yield seat.person.weight, None if seat.given is None else vote_of(op, seat.given.outcome)


def vote_of(op: HumanOp, outcome: str) -> Vote | None:
    """What an outcome counts as; None if it ends the question by itself."""
    return next((vote for vote in VOTES if op.outcome_for(vote) == outcome), None)


def is_within_reach(op: HumanOp, question: Question) -> bool:
    """Whether those can agree who are asked and can decide. Where all have to who could decide when they were asked, a place that is lost has to be taken."""
    if not question.lost:
        return not is_beyond_reach(op, question)
    votes = [
        (seat.person.weight, None if seat.given is None else vote_of(op, seat.given.outcome))
        for place, seat in question.counted
        if place not in question.lost
    ]
    is_extra = any(seat.is_extra and seat.is_free and place not in question.lost for place, seat in question.asked)
    return is_extra or (question.agree != "all" and verdict(votes, question.agree, question.least) != "against")


def is_beyond_reach(op: HumanOp, question: Question) -> bool:
    """Whether those who are asked cannot agree any more, whatever they say."""
    return verdict([*votes_of(op, question)], question.agree, question.least) == "against"


_WORDS = "words"
_TOLD: dict[Vote, str] = {"for": "a yes", "against": "a no", "abstained": "an abstention"}


def outcome_of(node: Node, command: AnswerStep) -> str:
    """What a step is answered by; empty if it has no word for the vote."""
    if command.vote is None:
        return command.outcome
    return node.op.outcome_for(command.vote) if isinstance(node.op, HumanOp) else ""


def answer_in_words(command: AnswerStep) -> str:
    """The answer as whoever gave it is told of it."""
    return repr(command.outcome) if command.vote is None else _TOLD[command.vote]


def kept_words(op: HumanOp) -> Data:
    """What has to be remembered of a question so that a vote that comes again is known: nothing where its words are the usual ones."""
    words = _words(op)
    return {} if words == _USUAL else {_WORDS: words}


def repeated_outcome(kept: Data, command: AnswerStep) -> str:
    """What an answer to a question means that was answered before."""
    if command.vote is None:
        return command.outcome
    return cast("dict[Vote, str]", kept.get(_WORDS, _USUAL))[command.vote]


def _words(op: HumanOp) -> dict[Vote, str]:
    return {vote: op.outcome_for(vote) for vote in VOTES}


_USUAL = _words(HumanOp())
