"""What the nodes of a patch can be left by."""

from __future__ import annotations

from collections.abc import Collection

from standfast.features.documents.body import format as b
from standfast.features.documents.contract.parts import BLOCKED, BRANCH, OK, REJECTED


def outcomes_of(node: b.PatchNode) -> tuple[str, ...]:
    """The words, the usual one first."""
    match node:
        case b.ParallelSplitNode():
            return (BRANCH, "error")
        case b.ConditionNode(expression=expression):
            return (OK,) if expression is None else ("true", "false", "error")
        case b.RuleNode():
            words = [each.outcome for each in node.rules if each.effect == "outcome" and each.outcome]
            return tuple(dict.fromkeys((OK, BLOCKED, "error", *words)))
        case _:
            usual = {b.ApprovalNode: "approved", b.WaitEventNode: "event"}.get(type(node), OK)
            return (usual, *_others(node))


def _others(node: b.PatchNode) -> tuple[str, ...]:
    """What it is left by where something is not as usual."""
    match node:
        case b.ApprovalNode():
            return ("rejected", "error", *_timeout(node.timeout))
        case b.WaitEventNode() | b.CallNode():
            return ("error", *_timeout(node.timeout))
        case b.ActionNode():
            return ("denied", "error")
        case b.ParallelJoinNode():
            given = {"none": node.accept, "abort": node.abort}
            return tuple(word for word, condition in given.items() if condition is not None)
        case b.WaitTimerNode(until=None) | b.NotificationNode(waits=False):
            return ()
        case _:
            return ("error",)


def _timeout(time: str | None) -> tuple[str, ...]:
    return () if time is None else ("timeout",)


def main_outcome(node: b.PatchNode | None) -> str:
    """What an edge is for that does not say; None stands for the way into a slot."""
    return OK if node is None else outcomes_of(node)[0]


def required_outcomes(node: b.PatchNode) -> tuple[str, ...]:
    """What a way must lead on from, because nothing else says what follows."""
    match node:
        case b.ConditionNode():
            return ()
        case b.ParallelJoinNode():
            return outcomes_of(node)
        case b.RuleNode():
            return tuple(each for each in outcomes_of(node) if each not in {BLOCKED, "error"})
        case _:
            return (main_outcome(node),)


def spelt_out(node: b.PatchNode, said: Collection[str]) -> tuple[str, ...] | None:
    """What an edge for any outcome stands for where others name these; None if that is just any.

    A refusal leaves the slot all the same, and of what a wait is left by only an event brings something.
    """
    if not isinstance(node, b.ApprovalNode | b.RuleNode | b.WaitEventNode):
        return None
    return tuple(word for word in outcomes_of(node) if word not in said and word != refusal_of(node))


def refusal_of(node: b.PatchNode) -> str:
    """What a node is left by that refuses the document; empty if it cannot. Where no edge leads on from it, the document leaves the slot refused."""
    match node:
        case b.ApprovalNode():
            return REJECTED
        case b.RuleNode():
            return BLOCKED if any(each.effect in {"block", "require_field"} for each in node.rules) else ""
        case _:
            return ""
