"""The compiled graph: frozen data that every front end compiles to and that holds all a run depends on.

Durations are whole milliseconds and shares whole percents, so that the canonical form has no fractions and the same graph has the same
hash on every machine.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, assert_never

import msgspec

IR_VERSION = 1
"""Raised when the meaning of compiled graphs changes."""

Kind = Literal["saga", "process", "rules", "envelope"]
Plain: TypeAlias = object
"""Data without fractions, as it can be hashed; the checks see to it."""

Losers = Literal["undo", "finish", "stop"]
"""What becomes of branches that a join can do without: what they did is undone; they go on to their ends; or they just stop."""

OnReject = Literal["abort", "fail"]
"""What follows a rejection that no edge leads on from: the run ends at once, or the step has failed."""

Execution = Literal["pure", "effect", "transactional", "wait"]
"""Inside the decision; by a handler outside of any transaction; by a handler inside the commit; by the world."""

OK, ERROR, TIMEOUT = "ok", "error", "timeout"
"""Outcomes that any kind of node may have."""
TRUE, FALSE = "true", "false"
CONFIRMED, REJECTED = "confirmed", "rejected"
BRANCH = "branch"
"""The label of the edges that a split sends tokens down."""


class Retry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often work is called, and how long to wait in between."""

    max_calls: int = 3
    """Calls in all, the first one included."""
    delay_ms: int = 0
    backoff: Literal["fixed", "linear", "exponential"] = "fixed"
    factor_percent: int = 200
    cap_ms: int = 300_000
    jitter_percent: int = 0


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a handler."""

    handler: str
    """Name under which a worker has it."""
    retry: Retry = Retry()
    once: bool = False
    """At most once: never called again, not even after a crash."""
    transactional: bool = False
    """Called inside the commit that records it."""
    timeout_ms: int | None = None
    start_after_ms: int = 0
    """How long the first call waits."""


class _Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op"):
    """What a node does."""


class Task(_Op, frozen=True, kw_only=True, tag="task"):
    """Calls a handler."""

    work: Work


class Condition(_Op, frozen=True, kw_only=True, tag="condition"):
    """Asks a question: left by `true` or `false`."""

    expression: dict[str, Plain]
    """The stored form of the expression."""


class Split(_Op, frozen=True, kw_only=True, tag="split"):
    """Sends a token down every branch; with `items`, one for each item of a list, all of them down the one branch."""

    items: dict[str, Plain] | None = None
    """Stored mapping expression that gives the list."""
    item: str = "item"
    """Name under which a branch finds its item."""
    limit: int | None = None
    """Branches that run at the same time; None means all."""


class Join(_Op, frozen=True, kw_only=True, tag="join"):
    """Waits for the branches of a split."""

    split: str
    """The split whose branches meet here."""
    strategy: Literal["all", "any", "count"] = "all"
    count: int = 0
    """How many branches are enough, for `count`."""
    losers: Losers = "undo"
    """What becomes of the branches that were not needed."""
    answer: str = ""
    """Name under which its answer leaves a branch that it lies in; empty means its own."""


class SavePoint(_Op, frozen=True, kw_only=True, tag="save_point"):
    """A boundary: a rollback after a failure does not go back beyond it."""


class NoReturn(_Op, frozen=True, kw_only=True, tag="no_return"):
    """A declared point of no return: nothing before it is ever undone, not even by a cancellation."""


class Human(_Op, frozen=True, kw_only=True, tag="human"):
    """Asks a person: left by `confirmed` or `rejected`."""

    subject: str = ""
    """The question, as its author wrote it; empty means the name of the node."""
    template: dict[str, Plain] | None = None
    """The stored form of the subject where it has holes, which are filled in from the data when the question is asked."""
    shows: dict[str, dict[str, Plain]] = {}
    """What the person sees of the data: stored mapping expressions, by the names under which their values are shown."""
    role: str = ""
    on_reject: OnReject | None = None
    """What follows a rejection that no edge leads on from; None means what the policies say."""


class WaitTimer(_Op, frozen=True, kw_only=True, tag="wait_timer"):
    """Waits for a time to go by."""

    duration_ms: int


class WaitEvent(_Op, frozen=True, kw_only=True, tag="wait_event"):
    """Waits for a signal."""

    signal: str


class Call(_Op, frozen=True, kw_only=True, tag="call"):
    """Starts another workflow and waits for its end."""

    definition: str
    version: str = ""


class End(_Op, frozen=True, kw_only=True, tag="end"):
    """The end of a token's way."""

    status: Literal["completed", "failed", "cancelled"] = "completed"


Op: TypeAlias = Task | Condition | Split | Join | SavePoint | NoReturn | Human | WaitTimer | WaitEvent | Call | End

ANSWERING: Final = (Task, Join, Human, WaitEvent, Call)
"""Kinds of nodes that give an answer. The others only lead a token on, and name nothing that comes out of a branch."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place in the graph."""

    id: str
    op: Op
    compensation: Work | None = None
    """Undoes what the node did."""
    compensation_name: str = ""
    compensation_priority: int | None = None
    """None means that of the node."""
    compensation_metadata: dict[str, Plain] | None = None
    """None means that of the node."""
    priority: int = 0
    timeout_ms: int | None = None
    """How long a waiting node waits before it is left by `timeout`."""
    capability: str = ""
    """What an actor must be allowed to do to act on the node."""
    run_as: str = ""
    region: str = ""
    metadata: dict[str, Plain] = {}

    @property
    def execution(self) -> Execution:
        """Where the node's work is done."""
        match self.op:
            case Task(work=work):
                return "transactional" if work.transactional else "effect"
            case Human() | WaitTimer() | WaitEvent() | Call():
                return "wait"
            case Condition() | Split() | Join() | SavePoint() | NoReturn() | End():
                return "pure"
            case _:
                assert_never(self.op)


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A way from one node to another."""

    source: str
    target: str
    on: str = OK
    """The outcome that leads this way; `*` for any."""
    when: dict[str, Plain] | None = None
    """Stored condition that must hold."""
    capability: str = ""
    priority: int = 0
    """Lower is tried first."""
    rework: bool = False
    """Leads back; graph checks run without such edges."""
    assign: dict[str, dict[str, Plain]] = {}
    """Stored mapping expressions for names of the data."""

    @property
    def id(self) -> str:
        """Names the edge, in messages and as the last resort of an order."""
        return f"{self.source}-[{self.on}]->{self.target}"


class Policies(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happens when no edge says it."""

    on_failure: Literal["compensate", "dlq", "pause"] = "compensate"
    on_cancel: Literal["compensate", "none"] = "compensate"
    on_reject: OnReject = "abort"
    on_no_edge: Literal["complete", "pause", "fail"] = "complete"
    deadline_ms: int | None = None
    """The whole run is cancelled after this long."""
    stop_grace_ms: int = 30_000
    """How long a cancellation waits for handlers that were told to stop."""
    chain_limit: int | None = None
    """Automatic steps in a row, since the last word from outside, before the run waits for an operator; None means no limit."""
    max_visits: int = 1000
    """How often a token may enter one node before the run waits for an operator."""


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A whole workflow."""

    kind: Kind
    name: str
    version: str
    entry: str
    nodes: dict[str, Node]
    edges: tuple[Edge, ...]
    policies: Policies = Policies()
    ir_version: int = IR_VERSION
    hash: str = ""
    """Over everything else, in canonical form."""

    @property
    def handlers(self) -> frozenset[str]:
        """Names of the handlers that its steps and compensations call."""
        works = [node.op.work for node in self.nodes.values() if isinstance(node.op, Task)]
        works += [node.compensation for node in self.nodes.values() if node.compensation is not None]
        return frozenset(work.handler for work in works)
