"""The kinds of nodes, a module for each. Every one says: entered when, may do, left when, on compensation."""

from __future__ import annotations

from standfast.machine.graphs.graph import (
    Action,
    Call,
    Condition,
    End,
    Gate,
    Human,
    Join,
    Node,
    NoReturn,
    Notice,
    Op,
    PolicyGate,
    Proxy,
    Rest,
    Rule,
    SavePoint,
    Script,
    Split,
    Start,
    State,
    Task,
    WaitEvent,
    WaitEvents,
    WaitTimer,
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
    Task: TaskKind(),
    Condition: ConditionKind(),
    Split: SplitKind(),
    Join: JoinKind(),
    SavePoint: MarkerKind(),
    NoReturn: MarkerKind(),
    Human: HumanKind(),
    WaitTimer: WaitTimerKind(),
    WaitEvent: WaitEventKind(),
    WaitEvents: WaitEventsKind(),
    Call: CallKind(),
    Notice: NoticeKind(),
    End: EndKind(),
    Start: StartKind(),
    State: StateKind(),
    Rest: RestKind(),
    Gate: GateKind(),
    PolicyGate: PolicyGateKind(),
    Proxy: ProxyKind(),
    Action: ActionKind(),
    Script: ScriptKind(),
    Rule: RuleKind(),
}


def kind_of(node: Node) -> NodeKind:
    """What a node does."""
    return _KINDS[type(node.op)]
