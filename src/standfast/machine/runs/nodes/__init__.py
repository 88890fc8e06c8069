"""The kinds of nodes, a module for each. Every one says: entered when, may do, left when, on compensation."""

from __future__ import annotations

from standfast.machine.graphs.graph import (
    ActionOp,
    CallOp,
    ConditionOp,
    EndOp,
    GateOp,
    HumanOp,
    JoinOp,
    Node,
    NoReturnOp,
    NotificationOp,
    Op,
    PolicyGateOp,
    ProxyOp,
    RestOp,
    RuleOp,
    SavePointOp,
    ScriptOp,
    SplitOp,
    StartOp,
    StateOp,
    TaskOp,
    WaitEventOp,
    WaitEventsOp,
    WaitTimerOp,
)
from standfast.machine.runs.nodes.action import ActionKind
from standfast.machine.runs.nodes.call import CallKind
from standfast.machine.runs.nodes.condition import ConditionKind
from standfast.machine.runs.nodes.end import EndKind
from standfast.machine.runs.nodes.events import WaitEventsKind
from standfast.machine.runs.nodes.gate import GateKind, PolicyGateKind
from standfast.machine.runs.nodes.human import HumanKind
from standfast.machine.runs.nodes.join import JoinKind
from standfast.machine.runs.nodes.marker import MarkerKind
from standfast.machine.runs.nodes.notice import NoticeKind
from standfast.machine.runs.nodes.proxy import ProxyKind
from standfast.machine.runs.nodes.rule import RuleKind
from standfast.machine.runs.nodes.script import ScriptKind
from standfast.machine.runs.nodes.split import SplitKind
from standfast.machine.runs.nodes.state import RestKind, StartKind, StateKind
from standfast.machine.runs.nodes.task import TaskKind
from standfast.machine.runs.nodes.wait import WaitEventKind, WaitTimerKind
from standfast.machine.runs.turn import NodeKind

_KINDS: dict[type[Op], NodeKind] = {
    TaskOp: TaskKind(),
    ConditionOp: ConditionKind(),
    SplitOp: SplitKind(),
    JoinOp: JoinKind(),
    SavePointOp: MarkerKind(),
    NoReturnOp: MarkerKind(),
    HumanOp: HumanKind(),
    WaitTimerOp: WaitTimerKind(),
    WaitEventOp: WaitEventKind(),
    WaitEventsOp: WaitEventsKind(),
    CallOp: CallKind(),
    NotificationOp: NoticeKind(),
    EndOp: EndKind(),
    StartOp: StartKind(),
    StateOp: StateKind(),
    RestOp: RestKind(),
    GateOp: GateKind(),
    PolicyGateOp: PolicyGateKind(),
    ProxyOp: ProxyKind(),
    ActionOp: ActionKind(),
    ScriptOp: ScriptKind(),
    RuleOp: RuleKind(),
}


def kind_of(node: Node) -> NodeKind:
    """What a node does."""
    return _KINDS[type(node.op)]
