"""A finished saga: a definition with its steps in the saga's own words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, get_args

import msgspec

from standfast.graph.definition import Definition
from standfast.graph.model import (
    BRANCH,
    CONFIRMED,
    FALSE,
    OK,
    TRUE,
    ConditionOp,
    Edge,
    Graph,
    JoinOp,
    Node,
    Op,
    Plain,
    SplitOp,
    TaskOp,
)

STEP_TYPES: Final = ("parallel", "for_each", *(kind.word for kind in get_args(Op)))
"""What steps are called in sagas: by the word of their kind; two ways to write a fork have one of their own."""

IMPLICIT_JOIN = "#join"
"""What the name of a join ends with that the builder added behind `parallel` or `for_each`."""

CONDITION_ENTRY = "cond#"
"""What the virtual entry of a condition begins with, by which a join names a branch that parts."""

_ONWARDS = frozenset({OK, TRUE, CONFIRMED})
"""Outcomes by which a step goes on as it should."""


class StepDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A step as its author sees it."""

    name: str
    type: str
    """One of `STEP_TYPES`."""
    handler: str = ""
    on_failure: str = ""
    """Name of the compensation."""
    max_retries: int = 0
    """Calls in all, the first one included."""
    no_idempotent: bool = False
    next: tuple[str, ...] = ()
    otherwise: str = ""
    """Where a condition leads that does not hold."""
    condition: str = ""
    """The expression as it was written."""
    parallel: tuple[str, ...] = ()
    """First steps of the branches."""
    wait_for: tuple[str, ...] = ()
    join_strategy: str = ""
    losers: str = ""
    """What a join does with the branches that it can do without."""
    priority: int = 0
    metadata: dict[str, Plain] = {}


class SagaDefinition(Definition, frozen=True, kw_only=True):
    """A finished saga."""

    steps: dict[str, StepDefinition]

    @property
    def is_dlq_enabled(self) -> bool:
        """Whether failed steps wait for an operator instead of being rolled back."""
        return self.graph.policies.on_failure == "dlq"


def describe(
    graph: Graph, parallels: Collection[str], awaited: Mapping[str, tuple[str, ...]]
) -> dict[str, StepDefinition]:
    """The steps of a graph in the saga's own words.

    `parallels` are the splits that were written as such, `awaited` the lists of joins that were given one.
    """
    out: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        out[edge.source].append(edge)
    described = {
        node.id: _describe(graph, node, out, _type(node, is_parallel=node.id in parallels))
        for node in graph.nodes.values()
    }
    named = {name: msgspec.structs.replace(described[name], wait_for=names) for name, names in awaited.items()}
    return described | named


def _describe(graph: Graph, node: Node, out: Mapping[str, list[Edge]], type_: str) -> StepDefinition:
    targets = [(edge.on, edge.target) for edge in out[node.id]]
    base = StepDefinition(
        name=node.id,
        type=type_,
        on_failure=node.compensation_name,
        next=tuple(target for on, target in targets if on in _ONWARDS),
        otherwise=next((target for on, target in targets if on == FALSE), ""),
        parallel=tuple(target for on, target in targets if on == BRANCH),
        priority=node.priority,
        metadata=node.metadata,
    )
    match node.op:
        case TaskOp(work=work):
            return msgspec.structs.replace(
                base, handler=work.handler, max_retries=work.retry.max_calls, no_idempotent=work.once
            )
        case ConditionOp(expression=expression):
            return msgspec.structs.replace(base, condition=str(expression["source"]))
        case JoinOp(split=split, strategy=strategy, losers=losers):
            starts = [edge.target for edge in out[split] if edge.on == BRANCH]
            awaited = tuple(_awaited(graph, start, node.id, out) for start in starts)
            return msgspec.structs.replace(base, join_strategy=strategy, losers=losers, wait_for=awaited)
        case _:
            return base


def _type(node: Node, *, is_parallel: bool) -> str:
    if isinstance(node.op, SplitOp) and node.op.items is not None:
        return "for_each"
    return "parallel" if is_parallel else node.op.word


def _awaited(graph: Graph, start: str, join: str, out: Mapping[str, list[Edge]]) -> str:
    """What a join waits for in a branch: its last step, or if there is a condition in it, that condition's virtual entry."""
    name = start
    while not isinstance(graph.nodes[name].op, ConditionOp):
        following = [edge.target for edge in out[name] if edge.on in _ONWARDS or edge.on == BRANCH]
        if join in following or not following:
            return name
        name = following[0]
    return f"{CONDITION_ENTRY}{name}"
