"""Where runs of a definition come to rest, what lets them go on there and how: told by the graph, which is what a run does, so that no table can say otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, cast, get_args

import msgspec

from standfast.errors import PayloadError
from standfast.graph.model import ANY_OUTCOME, ERROR, Graph, HumanOp, Node, TaskOp
from standfast.machine.model.queries.resume_points import step_name
from standfast.machine.model.rows.process_rows import step_named
from standfast.machine.nodes import kind_of

PauseTrigger = Literal["approval", "wait", "manual"]
"""What a run rests for: the decision of people, an event, a time or another workflow, or an operator."""
ResumptionBehavior = Literal["continue", "branch_on_decision", "repeat"]
"""How it goes on: with what follows, with what the decision leads to, or with the same step again."""

TRIGGERS: Final = cast("tuple[PauseTrigger, ...]", get_args(PauseTrigger))

_TRIGGERS: Final[dict[str, PauseTrigger]] = {
    "human": "approval",
    "event": "wait",
    "timer": "wait",
    "child": "wait",
    "state": "manual",
    "rest": "manual",
}
"""By what an open step waits for; a document that rests waits for whoever acts on it."""


class PausePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A step at which a run rests, or may have to."""

    step_id: str
    pause_trigger: PauseTrigger
    """What it rests for there: `approval`, `wait`, or `manual`, which is an operator, once the step has given up."""
    resumption_behavior: ResumptionBehavior
    """How it goes on: `continue`, `branch_on_decision`, or `repeat`."""
    leads_to: dict[str, list[str]]
    """The steps that follow, by the outcome that leads to them; one that is not named ends the run, or what its definition says of it happens."""


def pause_points(graph: Graph, trigger: object = "") -> list[PausePoint]:
    """The steps at which runs of a graph rest, each once, in the order of the graph; of one trigger, if one is named."""
    if trigger != "" and trigger not in TRIGGERS:
        raise PayloadError(f"a run is paused for one of {', '.join(TRIGGERS)}, not {trigger!r}")
    found: dict[str, PausePoint] = {}
    for each in _points(graph):
        if (
            each.step_id not in found or found[each.step_id].pause_trigger == "manual"
        ):  # What a step is comes before its work.
            found[each.step_id] = each
    return [each for each in found.values() if trigger in {"", each.pause_trigger}]


def _points(graph: Graph) -> Iterator[PausePoint]:
    for node in graph.nodes.values():
        trigger = _trigger(graph, node)
        if trigger is not None:
            yield PausePoint(
                step_id=_shown(graph, node.id),
                pause_trigger=trigger,
                resumption_behavior=_behavior(node),
                leads_to=_ways(graph, node.id),
            )


def _trigger(graph: Graph, node: Node) -> PauseTrigger | None:
    if isinstance(node.op, TaskOp):
        return "manual" if _waits_for_operator(graph, node) else None
    return _TRIGGERS.get(kind_of(node).wait_kind)


def _waits_for_operator(graph: Graph, node: Node) -> bool:
    """Whether a run stands still when the step has given up: nothing is undone, and no way leads on from the failure."""
    ways = {edge.on for edge in graph.edges if edge.source == node.id}
    return graph.policies.on_failure != "compensate" and not ways & {ERROR, ANY_OUTCOME}


def _behavior(node: Node) -> ResumptionBehavior:
    if isinstance(node.op, TaskOp):
        return "repeat"
    is_decided = isinstance(node.op, HumanOp) or kind_of(node).wait_kind in {"state", "rest"}
    return "branch_on_decision" if is_decided else "continue"


def _ways(graph: Graph, node: str) -> dict[str, list[str]]:
    ways: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.source == node:
            ways.setdefault(edge.on, []).append(_shown(graph, edge.target))
    return {on: list(dict.fromkeys(steps)) for on, steps in ways.items()}


def _shown(graph: Graph, node: str) -> str:
    """The step of the definition that a node is, or is a part of."""
    return step_name(node) if graph.kind == "rules" else step_named(graph, node)
