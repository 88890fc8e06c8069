"""The compiled graph: immutable data that every front end compiles to and that determines a run.

Durations are integer milliseconds and shares integer percents. The canonical form therefore has no fractions, and equal
graphs have equal hashes on every machine.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from standfast.graph.document_spec import DocumentSpec
from standfast.graph.nodes import (
    ActionOp,
    CallOp,
    ConditionOp,
    EndOp,
    GateOp,
    HumanOp,
    JoinOp,
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
from standfast.graph.nodes.compute import FALSE, TRUE
from standfast.graph.nodes.event_wait import Awaited, Need
from standfast.graph.nodes.gate import AGAIN, DENIED, PASS, REJECT
from standfast.graph.nodes.human import ABSTAINED, CONFIRMED, REJECTED, WITHDRAWN, OnReject
from standfast.graph.nodes.kind import ERROR, OK, TIMEOUT, Execution, Plain, Stored
from standfast.graph.nodes.lifecycle import AMEND, AMENDED
from standfast.graph.nodes.parallel import BRANCH, Losers, OnEmpty
from standfast.graph.nodes.rule import BLOCKED, DocumentRule
from standfast.graph.values.handler_calls import HandlerCall, RetryRule
from standfast.graph.values.task_times import Rung, TaskTimes
from standfast.kernel.actor import Needed

__all__ = [
    "ABSTAINED",
    "AGAIN",
    "AMEND",
    "AMENDED",
    "ANY_OUTCOME",
    "BLOCKED",
    "BRANCH",
    "CONFIRMED",
    "DENIED",
    "ERROR",
    "FALSE",
    "IR_VERSION",
    "LOOPING",
    "OK",
    "PASS",
    "REJECT",
    "REJECTED",
    "TIMEOUT",
    "TRUE",
    "WITHDRAWN",
    "ActionOp",
    "Awaited",
    "CallOp",
    "ConditionOp",
    "DocumentRule",
    "DocumentSpec",
    "Edge",
    "EndOp",
    "EventTrigger",
    "Execution",
    "GateOp",
    "Graph",
    "HandlerCall",
    "HumanOp",
    "JoinOp",
    "Kind",
    "Losers",
    "Need",
    "NoReturnOp",
    "Node",
    "NotificationOp",
    "OnEmpty",
    "OnReject",
    "Op",
    "Plain",
    "Policies",
    "PolicyGateOp",
    "ProxyOp",
    "RestOp",
    "RetryRule",
    "Rights",
    "RuleOp",
    "Rung",
    "SavePointOp",
    "ScriptOp",
    "SplitOp",
    "StartOp",
    "StateOp",
    "Stored",
    "TaskOp",
    "TaskTimes",
    "WaitEventOp",
    "WaitEventsOp",
    "WaitTimerOp",
]

IR_VERSION = 1
"""Raised when the meaning of compiled graphs changes."""

Kind = Literal["saga", "process", "rules", "envelope"]
KINDS: tuple[str, ...] = get_args(Kind)
"""What lists of workflows show; instances of deciders are none."""
LOOPING: frozenset[Kind] = frozenset({"process", "rules"})
"""Kinds of workflows that may contain loops."""

ANY_OUTCOME = "*"
"""On an edge: matches every outcome."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A node of the graph."""

    id: str
    op: Op
    compensation: HandlerCall | None = None
    """Compensation of the node."""
    compensation_name: str = ""
    compensation_priority: int | None = None
    """None means that of the node."""
    compensation_metadata: dict[str, Plain] | None = None
    """None means that of the node."""
    priority: int = 0
    timeout_ms: int | None = None
    """How long a waiting node waits before its outcome is `timeout`."""
    capability: Needed = ""
    """Capability required to answer the node."""
    run_as: str = ""
    region: str = ""
    metadata: dict[str, Plain] = {}

    @property
    def execution(self) -> Execution:
        """Where the node's work is executed."""
        return self.op.execution


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An edge between two nodes."""

    source: str
    target: str
    on: str = OK
    """The outcome that selects the edge. `*` matches any."""
    when: Stored | None = None
    """Stored condition."""
    capability: str = ""
    """Capability that the actor of the command needs to take this edge."""
    priority: int = 0
    """Lower is tried first."""
    rework: bool = False
    """Leads back. Cycle checks ignore such edges."""
    assign: dict[str, Stored] = {}
    """Stored expressions to assign, by name."""

    @property
    def id(self) -> str:
        """Identifies the edge in messages and as the last ordering criterion.

        Edges with different conditions are distinguished by priority.
        """
        name = f"{self.source}-[{self.on}]->{self.target}"
        return f"{name}#{self.priority}" if self.priority else name


class Policies(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Policies where no edge decides."""

    on_failure: Literal["compensate", "dlq", "pause"] = "compensate"
    on_cancel: Literal["compensate", "none"] = "compensate"
    on_reject: OnReject = "abort"
    on_no_edge: Literal["complete", "pause", "fail"] = "complete"
    deadline_ms: int | None = None
    """Time limit of the whole run."""
    on_deadline: str = ""
    """Node at which the run continues after the deadline, unless it waits at a node with a `timeout` edge. Empty
    cancels the run."""
    stop_grace_ms: int = 30_000
    """How long a cancellation waits for handlers that were asked to stop."""
    chain_limit: int | None = None
    """Maximum number of automatic steps in a row before the run waits for an operator. None means no limit."""
    max_visits: int = 1000
    """Maximum number of visits of a token to one node before the run waits for an operator."""
    max_tokens: int | None = None
    """Maximum number of concurrent tokens. A split beyond it fails. None means no limit."""
    max_bytes: int | None = None
    """Maximum size of a token's data and of a document. None means the engine's limit."""


class Rights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Capabilities for actions on a whole run."""

    start: Needed = ""
    """Capability to start a run. Empty requires none. For a called workflow the starter of the caller needs it."""
    cancel: Needed = ""
    """Capability to cancel or abort a run. Empty means that to start one."""
    replaceable: bool = False
    """Whether a tenant may replace this shared definition by its own of the same name, with the same capabilities."""


class EventTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A published event that starts a run. Its expressions read the event's content and correlation key."""

    event: str
    key: Stored | None = None
    """Stored expression for the business key of the run. None means no key."""
    when: Stored | None = None
    """Stored condition on events. None matches all."""
    input: dict[str, Stored] | None = None
    """Stored expressions for the run's data by name. None takes the event's content."""


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A complete workflow."""

    kind: Kind
    name: str
    version: str
    entry: str
    nodes: dict[str, Node]
    edges: tuple[Edge, ...]
    policies: Policies = Policies()
    rights: Rights = Rights()
    triggers: tuple[EventTrigger, ...] = ()
    """Events that start runs, in addition to explicit starts."""
    document: DocumentSpec | None = None
    """The documents that it manages, one per run."""
    title: str | msgspec.UnsetType = msgspec.UNSET
    """Display title. No run depends on it, so it is not part of the hash. It is stored only if present."""
    ir_version: int = IR_VERSION
    hash: str = ""
    """Hash over everything else in canonical form."""

    @property
    def called(self) -> str:
        """Display name: the title, or else the name."""
        return self.title or self.name

    @property
    def handlers(self) -> frozenset[str]:
        """Names of the handlers of its steps and compensations."""
        works = [node.op.call for node in self.nodes.values() if node.op.call is not None]
        works += [node.compensation for node in self.nodes.values() if node.compensation is not None]
        return frozenset(work.handler for work in works)

    @property
    def channels(self) -> frozenset[str]:
        """Names of the channels of its notifications."""
        return frozenset(
            each
            for node in self.nodes.values()
            if isinstance(node.op, HumanOp | NotificationOp)
            for each in node.op.channels
        )
