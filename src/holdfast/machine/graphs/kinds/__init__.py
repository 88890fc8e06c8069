"""The kinds of nodes as a graph has them, a module for each; what a run does with them is in `runs.nodes`, under the same names."""

from __future__ import annotations

from typing import TypeAlias

from holdfast.machine.graphs.kinds.call import Call
from holdfast.machine.graphs.kinds.condition import Condition
from holdfast.machine.graphs.kinds.end import End
from holdfast.machine.graphs.kinds.events import WaitEvents
from holdfast.machine.graphs.kinds.human import Human
from holdfast.machine.graphs.kinds.join import Join
from holdfast.machine.graphs.kinds.marker import NoReturn, SavePoint
from holdfast.machine.graphs.kinds.notice import Notice
from holdfast.machine.graphs.kinds.split import Split
from holdfast.machine.graphs.kinds.task import Task
from holdfast.machine.graphs.kinds.wait import WaitEvent, WaitTimer

__all__ = [
    "Call",
    "Condition",
    "End",
    "Human",
    "Join",
    "NoReturn",
    "Notice",
    "Op",
    "SavePoint",
    "Split",
    "Task",
    "WaitEvent",
    "WaitEvents",
    "WaitTimer",
]

Op: TypeAlias = (
    Task
    | Condition
    | Split
    | Join
    | SavePoint
    | NoReturn
    | Human
    | WaitTimer
    | WaitEvent
    | WaitEvents
    | Call
    | Notice
    | End
)
