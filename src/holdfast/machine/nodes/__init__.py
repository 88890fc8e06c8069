"""The kinds of nodes, a module for each. Every one says: entered when, may do, left when, on compensation."""

from __future__ import annotations

from holdfast.machine.graph import (
    Call,
    Condition,
    End,
    Human,
    Join,
    Node,
    NoReturn,
    Op,
    SavePoint,
    Split,
    Task,
    WaitEvent,
    WaitTimer,
)
from holdfast.machine.nodes import call, condition, end, human, join, marker, split, task, wait
from holdfast.machine.turn import NodeKind

_KINDS: dict[type[Op], NodeKind] = {
    Task: task.TaskKind(),
    Condition: condition.ConditionKind(),
    Split: split.SplitKind(),
    Join: join.JoinKind(),
    SavePoint: marker.MarkerKind(),
    NoReturn: marker.MarkerKind(),
    Human: human.HumanKind(),
    WaitTimer: wait.WaitTimerKind(),
    WaitEvent: wait.WaitEventKind(),
    Call: call.CallKind(),
    End: end.EndKind(),
}


def kind_of(node: Node) -> NodeKind:
    """What a node does."""
    return _KINDS[type(node.op)]
