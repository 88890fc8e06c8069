"""The kinds of nodes as a graph has them, a module for each; what a run does with them is in `runs.nodes`, under the same names."""

from __future__ import annotations

from typing import TypeAlias

from standfast.machine.graphs.kinds.action import ActionOp
from standfast.machine.graphs.kinds.call import CallOp
from standfast.machine.graphs.kinds.condition import ConditionOp
from standfast.machine.graphs.kinds.end import EndOp
from standfast.machine.graphs.kinds.events import WaitEventsOp
from standfast.machine.graphs.kinds.gate import GateOp, PolicyGateOp
from standfast.machine.graphs.kinds.human import HumanOp
from standfast.machine.graphs.kinds.join import JoinOp
from standfast.machine.graphs.kinds.marker import NoReturnOp, SavePointOp
from standfast.machine.graphs.kinds.notice import NotificationOp
from standfast.machine.graphs.kinds.proxy import ProxyOp
from standfast.machine.graphs.kinds.rule import RuleOp
from standfast.machine.graphs.kinds.script import ScriptOp
from standfast.machine.graphs.kinds.split import SplitOp
from standfast.machine.graphs.kinds.state import RestOp, StartOp, StateOp
from standfast.machine.graphs.kinds.task import TaskOp
from standfast.machine.graphs.kinds.wait import WaitEventOp, WaitTimerOp

__all__ = [
    "ActionOp",
    "CallOp",
    "ConditionOp",
    "EndOp",
    "GateOp",
    "HumanOp",
    "JoinOp",
    "NoReturnOp",
    "NotificationOp",
    "Op",
    "PolicyGateOp",
    "ProxyOp",
    "RestOp",
    "RuleOp",
    "SavePointOp",
    "ScriptOp",
    "SplitOp",
    "StartOp",
    "StateOp",
    "TaskOp",
    "WaitEventOp",
    "WaitEventsOp",
    "WaitTimerOp",
]

Op: TypeAlias = (
    TaskOp
    | ConditionOp
    | SplitOp
    | JoinOp
    | SavePointOp
    | NoReturnOp
    | HumanOp
    | WaitTimerOp
    | WaitEventOp
    | WaitEventsOp
    | CallOp
    | NotificationOp
    | EndOp
    | StartOp
    | StateOp
    | RestOp
    | GateOp
    | PolicyGateOp
    | ProxyOp
    | ActionOp
    | ScriptOp
    | RuleOp
)
