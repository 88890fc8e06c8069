"""Yes, no and neither in the words of a definition: whoever approves need not know whether that is `confirmed` or `approved`."""

from __future__ import annotations

from typing import cast

from standfast.graph.model import HumanOp, Node
from standfast.graph.values.approver_rules import VOTES, Vote
from standfast.machine.model.commands.run_commands import AnswerStep
from standfast.machine.model.state import Data

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
