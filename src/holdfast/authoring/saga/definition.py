"""A finished saga: its graph, the handlers that were given as functions, and its steps in the saga's own words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Generic, Literal, TypeVar

import msgspec

from holdfast.authoring.saga.options import Function
from holdfast.machine.graphs.graph import (
    BRANCH,
    CONFIRMED,
    FALSE,
    OK,
    TRUE,
    Call,
    Condition,
    Edge,
    End,
    Graph,
    Human,
    Join,
    Node,
    NoReturn,
    Op,
    Plain,
    SavePoint,
    Split,
    Task,
    WaitEvent,
    WaitTimer,
)

StepType = Literal[
    "task",
    "parallel",
    "fork",
    "join",
    "save_point",
    "point_of_no_return",
    "condition",
    "human",
    "wait",
    "wait_for",
    "call",
    "for_each",
    "end",
]

I = TypeVar("I")  # noqa: E741 - the input
R = TypeVar("R")

IMPLICIT_JOIN = "#join"
"""What the name of a join ends with that the builder added behind `parallel` or `for_each`."""

CONDITION_ENTRY = "cond#"
"""What the virtual entry of a condition begins with, by which a join names a branch that parts."""

_ONWARDS = frozenset({OK, TRUE, CONFIRMED})
"""Outcomes by which a step goes on as it should."""


class StepDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A step as its author sees it."""

    name: str
    type: StepType
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


class SagaDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A finished saga."""

    graph: Graph
    handlers: dict[str, Function]
    """Handlers that were given as functions, by name; registered with the saga."""
    steps: dict[str, StepDefinition]

    @property
    def name(self) -> str:
        """The saga's name."""
        return self.graph.name

    @property
    def version(self) -> str:
        """The saga's version."""
        return self.graph.version

    @property
    def id(self) -> str:
        """Name and version, as in `order-v1`."""
        return f"{self.graph.name}-v{self.graph.version}"

    @property
    def is_dlq_enabled(self) -> bool:
        """Whether failed steps wait for an operator instead of being rolled back."""
        return self.graph.policies.on_failure == "dlq"

    def typed(self, input: type[I], result: type[R]) -> TypedSaga[I, R]:  # noqa: A002 - the word that everybody uses for it
        """The same saga with the types of what it takes and comes to: dataclasses, Structs, typed dicts or plain types.

        What is started with another input is refused, and a run gives its result as such a value.
        """
        return TypedSaga(definition=self, input=input, result=result)


class TypedSaga(msgspec.Struct, Generic[I, R], frozen=True, kw_only=True):
    """A finished saga whose author said what it takes and what it comes to, so that runs of it have a type."""

    definition: SagaDefinition
    input: type[I]
    """What it is started with."""
    result: type[R]
    """What its result is given as: of the data, the fields that this has."""

    @property
    def name(self) -> str:
        """The saga's name."""
        return self.definition.name

    @property
    def version(self) -> str:
        """The saga's version."""
        return self.definition.version

    @property
    def id(self) -> str:
        """Name and version, as in `order-v1`."""
        return self.definition.id


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


def _describe(graph: Graph, node: Node, out: Mapping[str, list[Edge]], type_: StepType) -> StepDefinition:
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
        case Task(work=work):
            return msgspec.structs.replace(
                base, handler=work.handler, max_retries=work.retry.max_calls, no_idempotent=work.once
            )
        case Condition(expression=expression):
            return msgspec.structs.replace(base, condition=str(expression["source"]))
        case Join(split=split, strategy=strategy, losers=losers):
            starts = [edge.target for edge in out[split] if edge.on == BRANCH]
            awaited = tuple(_awaited(graph, start, node.id, out) for start in starts)
            return msgspec.structs.replace(base, join_strategy=strategy, losers=losers, wait_for=awaited)
        case _:
            return base


_TYPES: dict[type[Op], StepType] = {
    Task: "task",
    Condition: "condition",
    Split: "fork",
    Join: "join",
    SavePoint: "save_point",
    NoReturn: "point_of_no_return",
    Human: "human",
    WaitTimer: "wait",
    WaitEvent: "wait_for",
    Call: "call",
    End: "end",
}


def _type(node: Node, *, is_parallel: bool) -> StepType:
    if isinstance(node.op, Split) and node.op.items is not None:
        return "for_each"
    return "parallel" if is_parallel else _TYPES[type(node.op)]


def _awaited(graph: Graph, start: str, join: str, out: Mapping[str, list[Edge]]) -> str:
    """What a join waits for in a branch: its last step, or if there is a condition in it, that condition's virtual entry."""
    name = start
    while not isinstance(graph.nodes[name].op, Condition):
        following = [edge.target for edge in out[name] if edge.on in _ONWARDS or edge.on == BRANCH]
        if join in following or not following:
            return name
        name = following[0]
    return f"{CONDITION_ENTRY}{name}"
