"""The kinds of nodes, a module for each. Every one says: entered when, may do, left when, on compensation."""

from __future__ import annotations

from standfast.graph.model import (
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
from standfast.machine.flow.decision_builder import NodeKind
from standfast.machine.nodes.action import ActionKind
from standfast.machine.nodes.call import CallKind
from standfast.machine.nodes.compute import ConditionKind, ScriptKind
from standfast.machine.nodes.end import EndKind
from standfast.machine.nodes.event_wait import WaitEventsKind
from standfast.machine.nodes.gate import GateKind, PolicyGateKind
from standfast.machine.nodes.human import HumanKind
from standfast.machine.nodes.lifecycle import ProxyKind, RestKind, StartKind, StateKind
from standfast.machine.nodes.marker import MarkerKind
from standfast.machine.nodes.notification import NoticeKind
from standfast.machine.nodes.parallel import JoinKind, SplitKind
from standfast.machine.nodes.rule import RuleKind
from standfast.machine.nodes.task import TaskKind
from standfast.machine.nodes.wait import WaitEventKind, WaitTimerKind

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
