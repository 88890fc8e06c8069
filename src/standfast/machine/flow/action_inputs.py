"""What is given to those who carry out actions: handlers of the application, and the engine itself for other documents.

In whose name the steps of a document's workflow act, and what these may do when they act.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.graph.model import ActionOp, Node
from standfast.graph.nodes.action import TARGET
from standfast.kernel.actor import SYSTEM, Actor, late_text
from standfast.kernel.facts import SERVICES_FACT, PersonFact, RightsFact, person_fact, rights_fact
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.document_state import Intent
from standfast.machine.model.events import TransitionRequested
from standfast.machine.model.json_values import plain
from standfast.machine.model.queries.edit_windows import document_of
from standfast.machine.model.queries.expression_scope import ScopeQuery, namespaces_of
from standfast.machine.model.state import Data, Executed

AS_SYSTEM = "system"


class Present(NamedTuple):
    """Whoever a step acts as, with what they may do in this commit."""

    actor: Actor
    objection: str = ""
    """Why they may not act at all."""
    is_elsewhere: bool = False
    """Whether only a directory of the host can tell that they are active."""
    version: int = 0
    """The version of the directory by which this was judged; 0 if it was not asked."""


def acting(turn: DecisionBuilder, run_as: str) -> Actor:
    """As whom a step acts: whoever asked for the transition, the engine, or a service account, whose step its publishers have allowed."""
    if run_as == AS_SYSTEM:
        return SYSTEM
    if run_as:
        return Actor(id=run_as, kind="service", capabilities=frozenset({"*"}))
    intent = document_of(turn.state).intent
    return turn.moment.actor if intent is None else intent.actor


def principal(turn: DecisionBuilder, run_as: str) -> str:
    """On whose behalf a step acts: a lent name does so for whoever asked for the transition, and for whom they did."""
    cause = acting(turn, "")
    if cause.on_behalf_of or not run_as:
        return cause.on_behalf_of
    return "" if cause.kind == "system" else cause.id


def present(turn: DecisionBuilder, run_as: str) -> Present:
    """Returns as whom a step acts, with the rights of this commit. Rights that were lost since the transition was asked for do not count."""
    actor, intent = acting(turn, run_as), document_of(turn.state).intent
    if actor.kind == "system":
        return Present(actor)
    if run_as:
        return _account(turn, actor)
    if intent is None or _is_here(turn, intent, actor):
        return Present(actor)
    if not intent.asked:
        return _by_name(turn, actor)
    fact = turn.fact(rights_fact(intent.asked))
    assert isinstance(fact.value, RightsFact)
    found = fact.value
    if found.actor is None:
        return Present(actor, found.refusal, version=fact.version)
    now = replace(found.actor, on_behalf_of=intent.on_behalf_of)
    return Present(now, is_elsewhere=found.is_elsewhere, version=fact.version)


def _is_here(turn: DecisionBuilder, intent: Intent, asked: Actor) -> bool:
    """Whether whoever asked for the transition asks for it by this very command: their rights are those of this commit."""
    actor = turn.moment.actor
    if actor.id != intent.by or actor.kind != intent.kind:
        return False
    bare = replace(actor, key="", until=None) if actor.key or actor.until is not None else actor
    return asked == bare


def _by_name(turn: DecisionBuilder, actor: Actor) -> Present:
    """Somebody whose request was not kept: their rights are those of then, unless they are deactivated."""
    fact = turn.fact(person_fact(actor.id))
    assert isinstance(fact.value, PersonFact)
    told = "" if fact.value.is_active else f"{actor.id!r} is deactivated and cannot act; somebody else has to"
    return Present(actor, told, is_elsewhere=fact.value.is_elsewhere, version=fact.version)


def _account(turn: DecisionBuilder, actor: Actor) -> Present:
    """A service account acts unless it is deactivated, or the directory has service accounts and does not have this one."""
    fact = turn.fact(person_fact(actor.id))
    assert isinstance(fact.value, PersonFact)
    known = fact.value
    if not known.is_active:
        told = f"the service account {actor.id!r} is deactivated; activate it, or publish a body that names another"
        return Present(actor, told, version=fact.version)
    if known.is_kept and not known.is_known and turn.fact(SERVICES_FACT).value:
        told = f"the service account {actor.id!r} is not in the directory; put it there with kind `service`, or publish a body that names another"
        return Present(actor, told, version=fact.version)
    return Present(actor, version=fact.version)


def take_over(turn: DecisionBuilder) -> None:
    """Have the way of the document gone in the name of whoever acts now: they may do what was denied to whoever asked for it."""
    intent, actor = document_of(turn.state).intent, turn.moment.actor
    turn.emit(
        TransitionRequested(
            transition="" if intent is None else intent.transition,
            by=actor.id,
            kind=actor.kind,
            on_behalf_of=actor.on_behalf_of,
            roles=sorted(actor.roles),
            capabilities=sorted(actor.capabilities),
            asked=late_text(turn.moment.asked, actor.roles),
            reason="" if intent is None else intent.reason,
            again=True,
        )
    )


ID: Final = "id"
"""Where a step that was done to another document has told which one."""


def target_of(turn: DecisionBuilder, asked: Data, node: str) -> str:
    """The id of the other document that an action is done to; empty if it makes one. ExpressionError if it cannot be told."""
    expression = turn.routes.formula(node, TARGET)
    if expression is None:
        return ""
    given = expression.evaluate(asked)
    if not isinstance(given, str) or not given:
        raise _not_an_id(expression, given)
    return given


def _not_an_id(expression: Expression, given: object) -> ExpressionError:
    told = f"the target is the id of a document, a text, and not {given!r:.200}"
    return ExpressionError(told, reason=ExpressionErrorCode.MISSING_VALUE, source=expression.source)


def action_input(turn: DecisionBuilder, asked: Data, node: Node) -> Data:
    """What an action is carried out with; what cannot be told any more is null."""
    assert isinstance(node.op, ActionOp)
    payload = {name: plain(_value(each, asked)) for name, each in turn.routes.payload(node.id).items()}
    if not node.op.of:
        document = document_of(turn.state)
        return {"document": {**document.own(), "data": document.data}, "payload": payload}
    try:
        target = target_of(turn, asked, node.id)
    except ExpressionError:  # It could be told when the step began.
        target = ""
    return _elsewhere(turn, node, node.op.action, target=target, payload=payload)


def undo_input(turn: DecisionBuilder, node: Node, executed: Executed) -> Data:
    """What an action is taken back with: the same again, for the action that takes it back."""
    assert isinstance(node.op, ActionOp)
    asked = ScopeQuery(turn.moment, turn.state, node.id, executed.input or {})
    given = action_input(turn, namespaces_of(turn.routes.graph.kind).values(asked), node)
    if not node.op.of:
        return given
    done = executed.output if isinstance(executed.output, dict) else {}
    payload = given["payload"]
    assert isinstance(payload, dict)
    return _elsewhere(turn, node, node.op.undo, target=str(done.get(ID, "")), payload=payload)


def _elsewhere(turn: DecisionBuilder, node: Node, action: str, *, target: str, payload: Data) -> Data:
    assert isinstance(node.op, ActionOp)
    actor, document = acting(turn, node.run_as), document_of(turn.state)
    taken_back: Data = {"undo": node.op.undo} if node.op.undo and action == node.op.action else {}
    return {
        **taken_back,
        "type": node.op.of,
        "id": target,
        "action": action,
        "payload": payload,
        "is_new": node.op.target is None and action == node.op.action,
        "actor": {
            "id": actor.id,
            "kind": actor.kind,
            "roles": sorted(actor.roles),
            "capabilities": sorted(actor.capabilities),
            "on_behalf_of": principal(turn, node.run_as),
        },
        "asked": "" if node.run_as or document.intent is None else document.intent.asked,
        "reason": f"{document.type}/{document.id} at {node.id}",
        "origin": f"{document.type}/{document.id}",
        "depth": document.depth + 1,
    }


def _value(expression: Expression, asked: Data) -> object:
    try:
        return expression.evaluate(asked)
    except ExpressionError:
        return None
