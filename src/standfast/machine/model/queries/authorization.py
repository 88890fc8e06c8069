"""Who may do what to a run: pure questions about an actor, answered from what the graph demands and what the actor brings along."""

from __future__ import annotations

import msgspec

from standfast.graph.index import GraphIndex
from standfast.graph.model import OK, Graph, HumanOp, Node
from standfast.kernel.actor import Actor, Needed, RequestContext, needed_words
from standfast.kernel.decision import Rejection
from standfast.machine.model.queries.eligibility import candidate_refusal
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState, StepState

READ, PAUSE, RESUME = "execution:read", "execution:pause", "execution:resume"
CANCEL = "execution:cancel"
"""What front ends ask of whoever cancels a run, besides what its graph demands."""
OVERRIDE, REPAIR = "execution:override", "execution:repair"
"""What operators need, whatever the graph demands; the engine itself, and a library's calls without an actor, may do everything."""


def read_refusal(actor: Actor, started_by: str = "", *, what: str = "look at workflows") -> Rejection | None:
    """Why an actor may not look at runs, or at the one that somebody has started: everybody may look at his own."""
    is_own = bool(started_by) and started_by in {actor.id, actor.on_behalf_of}
    return None if is_own else _without(actor, READ, what)


def start_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not start a run."""
    return _without(actor, graph.rights.start, f"start {graph.name!r}")


def stop_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not cancel or abort a run."""
    return _without(actor, graph.rights.cancel or graph.rights.start, f"stop {graph.name!r}")


def ending_refusal(graph: Graph, actor: Actor, request: RequestContext) -> Rejection | None:
    """Why an actor may not end a run by another act than cancelling it. It takes what cancelling takes, at a front end that asks for permissions as well."""
    what = f"take this back, which ends {graph.name!r} because no way leads on from it"
    barred = _without(actor, graph.rights.cancel or graph.rights.start, what)
    barred = barred or (_without(actor, CANCEL, what) if request.needs else None)
    if barred is None:
        return None
    told = f"{barred.message}; have the question decided, or the run cancelled by somebody who may"
    return msgspec.structs.replace(barred, message=told)


def pause_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not pause a run."""
    return _without(actor, PAUSE, f"pause {graph.name!r}")


def resume_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not let a run go on."""
    return _without(actor, RESUME, f"resume {graph.name!r}")


def override_refusal(graph: Graph, actor: Actor) -> Rejection | None:
    """Why an actor may not go past what others are to say: a question, or an event that a process waits for."""
    return _without(actor, OVERRIDE, f"override what {graph.name!r} waits for")


def answer_refusal(routes: GraphIndex, state: RunState, step: StepState, actor: Actor) -> Rejection | None:
    """Why an actor may not answer an open step: it needs the node's capability, and has to be one of those who are asked."""
    node = routes.node(step.node)
    barred = candidate_refusal(routes, state, step, actor) if isinstance(node.op, HumanOp) else None
    return barred or capability_refusal(node, actor)


def capability_refusal(node: Node, actor: Actor) -> Rejection | None:
    """Why an actor may not answer a node, whoever is asked there."""
    return _without(actor, node.capability, f"answer {node.id!r}")


def task_refusal(actor: Actor, capability: str, what: str) -> Rejection | None:
    """Why an actor may not change who is asked, or whether anybody is."""
    return _without(actor, capability, what)


def signal_refusal(routes: GraphIndex, name: str, actor: Actor) -> Rejection | None:
    """Why an actor may not send a signal that is kept: any node that waits for one of this name may come to take it.

    When it does, nobody asks any more who sent it. So he must be allowed to take every way that may be taken then.
    """
    for node in routes.waiting_for(name):
        barred = capability_refusal(routes.node(node), actor)
        for edge in routes.ways(node, OK):
            barred = barred or _without(actor, edge.capability, f"send {name!r} before {node!r} waits for it")
        if barred is not None:
            return barred
    return None


def repair_refusal(actor: Actor) -> Rejection | None:
    """Why an actor may not repair a run."""
    return _without(actor, REPAIR, "repair a workflow")


def requeue_refusal(graph: Graph, actor: Actor, *, is_changed: bool) -> Rejection | None:
    """Why an actor may not have a step tried again that gave up. That is how a process is resumed, unless the step is given other data."""
    barred = repair_refusal(actor)
    if barred is None or graph.kind != "process" or is_changed:
        return barred
    return resume_refusal(graph, actor)


def _without(actor: Actor, capability: Needed, what: str) -> Rejection | None:
    if not capability or actor.may(capability):
        return None
    return refused(Refusal.NOT_ALLOWED, f"{actor.id!r} may not {what}: that needs {needed_words(capability)}")
