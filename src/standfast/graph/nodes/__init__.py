"""The kinds of nodes in a graph, a module for each subject. `machine/nodes` executes them, under the same names."""

from __future__ import annotations

from typing import TypeAlias

from standfast.graph.nodes.action import ActionOp
from standfast.graph.nodes.call import CallOp
from standfast.graph.nodes.compute import ConditionOp, ScriptOp
from standfast.graph.nodes.end import EndOp
from standfast.graph.nodes.event_wait import WaitEventsOp
from standfast.graph.nodes.gate import GateOp, PolicyGateOp
from standfast.graph.nodes.human import HumanOp
from standfast.graph.nodes.lifecycle import ProxyOp, RestOp, StartOp, StateOp
from standfast.graph.nodes.marker import NoReturnOp, SavePointOp
from standfast.graph.nodes.notification import NotificationOp
from standfast.graph.nodes.parallel import JoinOp, SplitOp
from standfast.graph.nodes.rule import RuleOp
from standfast.graph.nodes.task import TaskOp
from standfast.graph.nodes.wait import WaitEventOp, WaitTimerOp

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
