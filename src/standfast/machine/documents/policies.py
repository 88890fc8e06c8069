"""Who may do what to a document, by the policies of its contract: one of those that name the action has to hold."""

from __future__ import annotations

from typing import Final, NamedTuple

from standfast.errors import ExpressionError
from standfast.graph.document_index import DocumentIndex
from standfast.graph.model import ActionOp, Node
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Rejection
from standfast.machine.flow.action_inputs import present
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.queries.edit_windows import index_of
from standfast.machine.model.queries.expression_scope import actor_names
from standfast.machine.model.rejections import Refusal, refused

Data = dict[str, object]

POLICY: Final = "policy"
"""The name under which a policy gate tells which policy has let something through."""


class Judgement(NamedTuple):
    """What policies say."""

    policy: str = ""
    """The one that allows it; empty if none has a say, or none does."""
    objection: str = ""
    """Why none of them does; empty if it is allowed."""


def judged(index: DocumentIndex, name: str, actor: Actor, asked: Data, *, is_lent: bool = False) -> Judgement:
    """Whether the policies let somebody do something.

    In a name that was lent to a step by its publishers nobody is asked for a role; the conditions hold for everybody. One that cannot be
    judged does not hold.
    """
    policies = index.policies(name)
    if not policies:
        return Judgement()
    notes = []
    for each in policies:
        if each.roles and not is_lent and not actor.is_one_of(frozenset(each.roles)):
            notes.append(f"{each.name!r} takes the role {' or '.join(each.roles)}")
            continue
        try:
            if each.when is None or index.rule(each.when).holds(asked):
                return Judgement(policy=each.name)
            notes.append(f"the condition of {each.name!r} does not hold")
        except ExpressionError as error:
            notes.append(f"the condition of {each.name!r} cannot be judged: {error}")
    return Judgement(objection="; ".join(notes))


def allowed(turn: DecisionBuilder, name: str, actor: Actor, *, is_lent: bool) -> tuple[Data | None, str]:
    """By which policy an actor may do something to the document, and why they may not."""
    index = index_of(turn.routes)
    action, judgement = index.actions[name], Judgement()
    if index.policies(name):
        judgement = judged(index, name, actor, asked_of(turn, name, actor), is_lent=is_lent)
    if actor.may(action.capability) and not judgement.objection:
        return {POLICY: judgement.policy} if judgement.policy else None, ""
    why = judgement.objection or f"that needs the capability {action.capability!r}"
    return None, f"{actor.id!r} may not do {name!r}: {why}"


def allowed_both(turn: DecisionBuilder, op: ActionOp, actor: Actor, *, is_lent: bool) -> tuple[Data | None, str]:
    """The same for what a step does and for what takes it back: undoing asks nobody, so that whoever may not undo a step does not do it either."""
    found, told = allowed(turn, op.action, actor, is_lent=is_lent)
    told = told or (undo_objection(turn, op.undo, actor, is_lent=is_lent) if op.undo else "")
    return (None, told) if told else (found, "")


def step_refusal(turn: DecisionBuilder, node: Node) -> Rejection | None:
    """Why whoever the step acts as may not do it in this commit. What a policy gate has judged before is judged again."""
    assert isinstance(node.op, ActionOp)
    now = present(turn, node.run_as)
    told = now.objection
    if not told and node.op.action in index_of(turn.routes).gated:
        _, told = allowed_both(turn, node.op, now.actor, is_lent=bool(node.run_as))
    return refused(Refusal.NOT_ALLOWED, told) if told else None


def is_denied(turn: DecisionBuilder, node: Node) -> bool:
    """Whether a step may not be done by whoever it acts as, and another person could ask for it."""
    return isinstance(node.op, ActionOp) and not node.op.of and not node.run_as and step_refusal(turn, node) is not None


def undo_objection(turn: DecisionBuilder, name: str, actor: Actor, *, is_lent: bool = False) -> str:
    """Why somebody may not do what takes a step back, by capability and role; conditions are about what the document is by then."""
    index = index_of(turn.routes)
    wanted = index.actions[name].capability
    wrong = "" if actor.may(wanted) else f"that needs the capability {wanted!r}"
    policies = [] if is_lent else index.policies(name)
    if policies and not any(not each.roles or actor.is_one_of(frozenset(each.roles)) for each in policies):
        wrong = "; ".join(f"{each.name!r} takes the role {' or '.join(each.roles)}" for each in policies)
    return f"{actor.id!r} may not do {name!r}, which takes it back: {wrong}" if wrong else ""


def policy_refusal(turn: DecisionBuilder, name: str, actor: Actor, *, content: Data | None = None) -> Rejection | None:
    """Why the policies do not let somebody do something to the document, or give it a content."""
    index = index_of(turn.routes)
    if not index.policies(name):
        return None
    judgement = judged(index, name, actor, asked_of(turn, name, actor, content=content))
    if not judgement.objection:
        return None
    told = f"{actor.id!r} may not do {name!r} by the policies of the contract: {judgement.objection}"
    return refused(Refusal.NOT_ALLOWED, told)


def asked_of(turn: DecisionBuilder, name: str, actor: Actor, *, content: Data | None = None) -> Data:
    """What the conditions of the policies about an action read: the document as it is, or as it would be with a content."""
    document, index = turn.state.document, index_of(turn.routes)
    turn.look(index.reads(each.when for each in index.policies(name)))
    known = {} if document is None else document.names() if content is None else document.own()
    return {
        "entity": {**(content or {}), **known},
        "actor": actor_names(actor),
        "org": turn.org,
        "now": turn.moment.now,
    }
