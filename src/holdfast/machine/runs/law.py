"""Who may do what to a run: pure questions about an actor, answered from what the graph demands and what the actor brings along."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.actor import Actor
from holdfast.kernel.decision import Rejection
from holdfast.machine.graphs.graph import OK, Graph, Human, Node
from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs.errands import Person
from holdfast.machine.runs.refusals import Refusal, refused

_EVERYTHING = "*"

PAUSE, RESUME, OVERRIDE, REPAIR = "execution:pause", "execution:resume", "execution:override", "execution:repair"
"""What operators need, whatever the graph demands; the engine itself, and a library's calls without an actor, may do everything."""


def start_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not start a run."""
    return _without(actor, graph.rights.start, f"start {graph.name!r}")


def stop_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not cancel or abort a run."""
    return _without(actor, graph.rights.cancel or graph.rights.start, f"stop {graph.name!r}")


def pause_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not pause a run."""
    return _without(actor, PAUSE, f"pause {graph.name!r}")


def resume_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not let a run go on."""
    return _without(actor, RESUME, f"resume {graph.name!r}")


def override_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not go past a question that others were asked."""
    return _without(actor, OVERRIDE, f"override an open question of {graph.name!r}")


def answer_refusal(node: Node, actor: Actor, added: Sequence[Person] = ()) -> Rejection | None:
    """Why an actor may not answer a node: it needs the node's capability, and has to be one of those who are asked, or were added to them."""
    role = node.op.role if isinstance(node.op, Human) else ""
    roles = frozenset((role, *(each.name for each in added if each.kind == "role")))
    is_added = any(each.kind == "user" and each.name == actor.id for each in added)
    if role and not is_added and not actor.is_one_of(roles) and not actor.may(_EVERYTHING):
        return refused(
            Refusal.NOT_ALLOWED, f"{actor.id!r} may not answer {node.id!r}: it asks those with the role {role!r}"
        )
    return _without(actor, node.capability, f"answer {node.id!r}")


def signal_refusal(routes: GraphIndex, name: str, actor: Actor) -> Rejection | None:
    """Why an actor may not send a signal that is kept: any node that waits for one of this name may come to take it.

    When it does, nobody asks any more who sent it. So he must be allowed to take every way that may be taken then.
    """
    for node in routes.waiting_for(name):
        barred = answer_refusal(routes.node(node), actor)
        for edge in routes.ways(node, OK):
            barred = barred or _without(actor, edge.capability, f"send {name!r} before {node!r} waits for it")
        if barred is not None:
            return barred
    return None


def repair_refusal(actor: Actor) -> Rejection | None:
    """Why an actor may not repair a run."""
    return _without(actor, REPAIR, "repair a workflow")


def _without(actor: Actor, capability: str, what: str) -> Rejection | None:
    if not capability or actor.may(capability):
        return None
    return refused(Refusal.NOT_ALLOWED, f"{actor.id!r} may not {what}: that needs the capability {capability!r}")
