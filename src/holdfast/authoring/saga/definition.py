"""A finished saga: its graph, the handlers that were given as functions, and its steps in the saga's own words."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.authoring.saga.options import Function
from holdfast.machine.graph import (
    Call,
    Condition,
    End,
    Graph,
    Human,
    Join,
    Node,
    NoReturn,
    Plain,
    SavePoint,
    Split,
    Task,
    WaitEvent,
    WaitTimer,
)

StepType = Literal["task", "parallel", "fork", "join", "save_point", "condition", "human", "wait", "call", "for_each"]


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


def describe(graph: Graph) -> dict[str, StepDefinition]:
    """The steps of a graph in the saga's own words."""
    return {node.id: _describe(graph, node) for node in graph.nodes.values()}


def _describe(graph: Graph, node: Node) -> StepDefinition:
    out = [edge for edge in graph.edges if edge.source == node.id]
    base = StepDefinition(
        name=node.id,
        type=_type(graph, node),
        on_failure=node.compensation_name,
        next=tuple(edge.target for edge in out if edge.on not in {"false", "branch"}),
        otherwise=next((edge.target for edge in out if edge.on == "false"), ""),
        parallel=tuple(edge.target for edge in out if edge.on == "branch"),
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
        case Join(strategy=strategy):
            return msgspec.structs.replace(base, join_strategy=strategy, wait_for=_wait_for(graph, node))
        case _:
            return base


def _type(graph: Graph, node: Node) -> StepType:
    match node.op:
        case Task():
            return "task"
        case Condition():
            return "condition"
        case Split(items=items):
            if items is not None:
                return "for_each"
            return "parallel" if f"{node.id}#join" in graph.nodes else "fork"
        case Join():
            return "join"
        case SavePoint() | NoReturn() | End():
            return "save_point"
        case Human():
            return "human"
        case WaitTimer() | WaitEvent():
            return "wait"
        case Call():
            return "call"


def _wait_for(graph: Graph, join: Node) -> tuple[str, ...]:
    """What a join waits for: the last step of each branch, or for a branch with a condition that condition's virtual entry."""
    assert isinstance(join.op, Join)
    starts = [edge.target for edge in graph.edges if edge.source == join.op.split and edge.on == "branch"]
    return tuple(_awaited(graph, start, join.id) for start in starts)


def _awaited(graph: Graph, start: str, join: str) -> str:
    name = start
    while not isinstance(graph.nodes[name].op, Condition):
        following = [edge.target for edge in graph.edges if edge.source == name]
        if join in following or not following:
            return name
        name = following[0]
    return f"cond#{name}"
