"""The kinds of nodes as a graph has them, a module for each; what a run does with them is in `runs.nodes`, under the same names."""

from __future__ import annotations

from typing import TypeAlias

from holdfast.machine.graphs.kinds.action import Action
from holdfast.machine.graphs.kinds.call import Call
from holdfast.machine.graphs.kinds.condition import Condition
from holdfast.machine.graphs.kinds.end import End
from holdfast.machine.graphs.kinds.events import WaitEvents
from holdfast.machine.graphs.kinds.gate import Gate, PolicyGate
from holdfast.machine.graphs.kinds.human import Human
from holdfast.machine.graphs.kinds.join import Join
from holdfast.machine.graphs.kinds.marker import NoReturn, SavePoint
from holdfast.machine.graphs.kinds.notice import Notice
from holdfast.machine.graphs.kinds.proxy import Proxy
from holdfast.machine.graphs.kinds.rule import Rule
from holdfast.machine.graphs.kinds.script import Script
from holdfast.machine.graphs.kinds.split import Split
from holdfast.machine.graphs.kinds.state import Rest, Start, State
from holdfast.machine.graphs.kinds.task import Task
from holdfast.machine.graphs.kinds.wait import WaitEvent, WaitTimer

__all__ = [
    "Action",
    "Call",
    "Condition",
    "End",
    "Gate",
    "Human",
    "Join",
    "NoReturn",
    "Notice",
    "Op",
    "PolicyGate",
    "Proxy",
    "Rest",
    "Rule",
    "SavePoint",
    "Script",
    "Split",
    "Start",
    "State",
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
    | Start
    | State
    | Rest
    | Gate
    | PolicyGate
    | Proxy
    | Action
    | Script
    | Rule
)
