"""The events by which somebody can leave the step that a process is at, and why not by others: judged as an advance would be."""

from __future__ import annotations

from holdfast.app.process_views import ProcessChoice
from holdfast.errors import ExpressionError
from holdfast.kernel.actor import Actor
from holdfast.kernel.moment import Moment
from holdfast.machine.graphs.graph import Edge, Human
from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs.candidates import claim_refusal, decision_by, question_of, separation_refusal
from holdfast.machine.runs.namespaces import Asked, namespaces_of
from holdfast.machine.runs.state import ROOT, State, Step


def choices_of(routes: GraphIndex, state: State, step: Step, moment: Moment, *, lapsed: str) -> list[ProcessChoice]:
    """The events of an open step, for the actor of a moment, who is one of those who are asked; a claim of whoever has lapsed does not count."""
    node, actor = routes.node(step.node), moment.actor
    assert isinstance(node.op, Human)
    labels = node.metadata.get("labels")
    names = labels if isinstance(labels, dict) else {}
    asked = namespaces_of(routes.graph.kind).values(Asked(moment, state, node.id, state.tokens[ROOT].data))
    kept_out = _kept_out(routes, state, step, actor, lapsed=lapsed)
    choices = []
    for event in node.op.outcomes:
        why = kept_out or _why_closed(routes, routes.ways(node.id, event), actor, asked)
        label = names.get(event)
        told = label if isinstance(label, str) and label else event
        choices.append(ProcessChoice(event=event, label=told, is_allowed=not why, why_not=why))
    return choices


def _kept_out(routes: GraphIndex, state: State, step: Step, actor: Actor, *, lapsed: str) -> str:
    """Why an actor who is asked cannot decide, whatever the event: they have done so, somebody else has claimed it, or it takes another person."""
    question = question_of(routes, state, step)
    given = decision_by(question, actor)
    if given is not None:
        return f"{given.actor!r} has decided it by {given.outcome!r}; withdraw that decision first"
    barred = claim_refusal(question, step.node, actor, lapsed=lapsed)
    barred = barred or separation_refusal(routes, state, step, actor)
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
