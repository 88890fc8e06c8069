"""The compiled graph: frozen data that every front end compiles to and that holds all a run depends on.

Durations are whole milliseconds and shares whole percents, so that the canonical form has no fractions and the same graph has the same
hash on every machine.
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
"""Kinds of workflows that may go in circles."""

ANY_OUTCOME = "*"
"""On an edge: whatever the node was left by."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One place in the graph."""

    id: str
    op: Op
    compensation: HandlerCall | None = None
    """Undoes what the node did."""
    compensation_name: str = ""
    compensation_priority: int | None = None
    """None means that of the node."""
    compensation_metadata: dict[str, Plain] | None = None
    """None means that of the node."""
    priority: int = 0
    timeout_ms: int | None = None
    """How long a waiting node waits before it is left by `timeout`."""
    capability: Needed = ""
    """What an actor must be allowed to do to answer the node."""
    run_as: str = ""
    region: str = ""
    metadata: dict[str, Plain] = {}

    @property
    def execution(self) -> Execution:
        """Where the node's work is done."""
        return self.op.execution


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A way from one node to another."""

    source: str
    target: str
    on: str = OK
    """The outcome that leads this way; `*` for any."""
    when: Stored | None = None
    """Stored condition that must hold."""
    capability: str = ""
    """What the actor whose command brings the token here must be allowed to do for this way to be open."""
    priority: int = 0
    """Lower is tried first."""
    rework: bool = False
    """Leads back; graph checks run without such edges."""
    assign: dict[str, Stored] = {}
    """Stored mapping expressions for names of the data."""

    @property
    def id(self) -> str:
        """Names the edge, in messages and as the last resort of an order; of several that differ in what they ask, each by its priority."""
        name = f"{self.source}-[{self.on}]->{self.target}"
        return f"{name}#{self.priority}" if self.priority else name


class Policies(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happens when no edge says it."""

    on_failure: Literal["compensate", "dlq", "pause"] = "compensate"
    on_cancel: Literal["compensate", "none"] = "compensate"
    on_reject: OnReject = "abort"
    on_no_edge: Literal["complete", "pause", "fail"] = "complete"
    deadline_ms: int | None = None
    """How long the whole run may take."""
    on_deadline: str = ""
    """The node that the run goes to then, unless it waits at one that is left by `timeout`; empty means that it is cancelled."""
    stop_grace_ms: int = 30_000
    """How long a cancellation waits for handlers that were told to stop."""
    chain_limit: int | None = None
    """Automatic steps in a row, since the last word from outside, before the run waits for an operator; None means no limit."""
    max_visits: int = 1000
    """How often a token may enter one node before the run waits for an operator."""
    max_tokens: int | None = None
    """Tokens that a run may have at the same time: a split into more of them has failed. None means any number."""
    max_bytes: int | None = None
    """How large the data of a token, and the content of a document, may be; None means as large as the engine takes it."""


class Rights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an actor must be allowed to do to act on a whole run."""

    start: Needed = ""
    """The capability to start one; empty means that none is needed. If a workflow calls this one, its starter is asked for it."""
    cancel: Needed = ""
    """The capability to cancel or abort one; empty means the same as to start one."""
    replaceable: bool = False
    """Whether a tenant may publish a definition of its own under the name, if all tenants share this one. It must ask for the same capabilities."""


class EventTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A published event that starts a run. Its expressions read what the event brings, and the key that it was published for."""

    event: str
    key: Stored | None = None
    """Stored expression that gives the business key of the run; None means that it has none."""
    when: Stored | None = None
    """Stored condition for events that count; None means all of them."""
    input: dict[str, Stored] | None = None
    """Stored expressions for the names of the run's data; None means what the event brings."""


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A whole workflow."""

    kind: Kind
    name: str
    version: str
    entry: str
    nodes: dict[str, Node]
    edges: tuple[Edge, ...]
    policies: Policies = Policies()
    rights: Rights = Rights()
    triggers: tuple[EventTrigger, ...] = ()
    """What starts runs, besides those who ask for one."""
    document: DocumentSpec | None = None
    """The documents that it manages, of which every run is one."""
    title: str | msgspec.UnsetType = msgspec.UNSET
    """What people read; no run depends on it, so that the hash does not have it. It is stored only where there is one."""
    ir_version: int = IR_VERSION
    hash: str = ""
    """Over everything else, in canonical form."""

    @property
    def called(self) -> str:
        """What people read: its title, or else its name."""
        return self.title or self.name

    @property
    def handlers(self) -> frozenset[str]:
        """Names of the handlers that its steps and compensations call."""
        works = [node.op.call for node in self.nodes.values() if node.op.call is not None]
        works += [node.compensation for node in self.nodes.values() if node.compensation is not None]
        return frozenset(work.handler for work in works)

    @property
    def channels(self) -> frozenset[str]:
        """Names of the channels that people are told by."""
        return frozenset(
            each
            for node in self.nodes.values()
            if isinstance(node.op, HumanOp | NotificationOp)
            for each in node.op.channels
        )
