"""The events by which somebody can leave the step that a process is at, and why not by others: judged as an advance would be."""

from __future__ import annotations

from standfast.errors import ExpressionError
from standfast.features.processes.views import ProcessChoice
from standfast.graph.index import GraphIndex
from standfast.graph.model import Edge, HumanOp
from standfast.kernel.actor import Actor
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.queries.eligibility import decision_by, question_of
from standfast.machine.model.queries.expression_scope import ScopeQuery, namespaces_of
from standfast.machine.model.state import ROOT, StepState
from standfast.machine.tasks.entitlement import apart_refusal, unclaimed_refusal


def choices_of(turn: DecisionBuilder, step: StepState) -> list[ProcessChoice]:
    """The events of an open step, for the actor of a moment, who is one of those who are asked."""
    routes, state, moment = turn.routes, turn.state, turn.moment
    node, actor = routes.node(step.node), moment.actor
    assert isinstance(node.op, HumanOp)
    labels = node.metadata.get("labels")
    names = labels if isinstance(labels, dict) else {}
    asked = namespaces_of(routes.graph.kind).values(ScopeQuery(moment, state, node.id, state.tokens[ROOT].data))
    kept_out = _kept_out(turn, step)
    choices = []
    for event in node.op.outcomes:
        why = kept_out or _why_closed(routes, routes.ways(node.id, event), actor, asked)
        label = names.get(event)
        told = label if isinstance(label, str) and label else event
        choices.append(ProcessChoice(event=event, label=told, is_allowed=not why, why_not=why))
    return choices


def _kept_out(turn: DecisionBuilder, step: StepState) -> str:
    """Why an actor who is asked cannot decide, whatever the event: they have done so, somebody else has claimed it, or it takes another person."""
    given = decision_by(question_of(turn.routes, turn.state, step), turn.moment.actor)
    if given is not None:
        return f"{given.actor!r} has decided it by {given.outcome!r}; withdraw that decision first"
    barred = unclaimed_refusal(turn, step) or apart_refusal(turn, step)
    return "" if barred is None else barred.message


def _why_closed(routes: GraphIndex, ways: tuple[Edge, ...], actor: Actor, asked: dict[str, object]) -> str:
    """Why none of these ways is open; empty if one is, or may be with the right input."""
    open_ways = [each for each in ways if _may_hold(routes, each, asked)]
    if not open_ways:
        return "its conditions do not hold"
    if any(actor.may(each.capability) for each in open_ways):
        return ""
    return f"it needs the capability {open_ways[0].capability!r}"


def _may_hold(routes: GraphIndex, way: Edge, asked: dict[str, object]) -> bool:
    guard = routes.guard(way)
    if guard is None or any(name.split(".")[0] == "input" for name in guard.variables):
        return True
    try:
        return guard.holds(asked)
    except ExpressionError:
        return False
