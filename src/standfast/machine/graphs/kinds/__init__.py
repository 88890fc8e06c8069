"""The kinds of nodes as a graph has them, a module for each; what a run does with them is in `runs.nodes`, under the same names."""

from __future__ import annotations

from typing import TypeAlias

from standfast.machine.graphs.kinds.action import Action
from standfast.machine.graphs.kinds.call import Call
from standfast.machine.graphs.kinds.condition import Condition
from standfast.machine.graphs.kinds.end import End
from standfast.machine.graphs.kinds.events import WaitEvents
from standfast.machine.graphs.kinds.gate import Gate, PolicyGate
from standfast.machine.graphs.kinds.human import Human
from standfast.machine.graphs.kinds.join import Join
from standfast.machine.graphs.kinds.marker import NoReturn, SavePoint
from standfast.machine.graphs.kinds.notice import Notice
from standfast.machine.graphs.kinds.proxy import Proxy
from standfast.machine.graphs.kinds.rule import Rule
from standfast.machine.graphs.kinds.script import Script
from standfast.machine.graphs.kinds.split import Split
from standfast.machine.graphs.kinds.state import Rest, Start, State
from standfast.machine.graphs.kinds.task import Task
from standfast.machine.graphs.kinds.wait import WaitEvent, WaitTimer

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
