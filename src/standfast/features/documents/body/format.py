"""The format of an organisation's body, declared once: a patch for each slot that it fills, made of nodes and edges.

A body never says anything about the envelope. What it could say about it, the format has no word for.

Contracts and bodies as files to be kept in git and taken elsewhere: YAML that reads back as what it was, with a hash over what it says.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
import yaml
from msgspec import UNSET, Meta, UnsetType, field

from standfast.features.documents.body.scenario_format import MOST_SCENARIOS, NodeId, Scenario
from standfast.features.documents.contract.format import Contract, OnReject, Window
from standfast.features.documents.contract.loading import content_hash
from standfast.graph.source_files.tree import value_of
from standfast.graph.source_files.values import (
    SLOT,
    WORD,
    Capability,
    Condition,
    Duration,
    Formula,
    Name,
    Plain,
    Text,
    some,
)

MOST_NODES: Final = 200
"""Nodes of one patch."""
MOST_EDGES: Final = 1000
"""Edges of one patch."""
MOST_BRANCHES: Final = 60
"""Branches for items of a list at the same time; a run has some tokens besides."""
End = Annotated[
    str,
    Meta(
        min_length=1, max_length=200, description="The id of a node of the patch; `in` and `out` are the slot's ends."
    ),
]
Context = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=WORD, description="The name under context. that keeps the result.")
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is an object in the file."""


class Approver(_Part, frozen=True, kw_only=True):
    """Who is asked: one of `role`, `user`, `expression` and `resolver`."""

    role: Annotated[Name | None, Meta(description="Those who have this role.")] = None
    user: Annotated[Name | None, Meta(description="This person, by id.")] = None
    expression: Annotated[
        Name | None,
        Meta(
            description="Whoever this expression names, such as entity.budget_owner_id: a user, role:<name>, or a list."
        ),
    ] = None
    resolver: Annotated[
        Name | None,
        Meta(description="Whoever this resolver finds, such as manager, or one that the application registers."),
    ] = None
    of: Annotated[Name | None, Meta(description="What the resolver is given.")] = None
    weight: Annotated[int, Meta(ge=1, le=1_000_000, description="What a decision of each of them weighs.")] = 1
    pick: Annotated[
        Literal["any", "all", "in_turn"],
        Meta(description="Of several: they share one question, each of them is asked, or one of them in turn."),
    ] = "any"


class FlatRule(_Part, frozen=True, kw_only=True):
    """One rule of a rule node."""

    name: Annotated[Name, Meta(description="What the history calls it.")]
    effect: Annotated[
        Literal["block", "warn", "require_field", "outcome"],
        Meta(description="What follows if it holds: blocked, a warning, blocked unless a field is there, or a word."),
    ]
    when: Annotated[Condition | None, Meta(description="When it holds; without it, always.")] = None
    field: Annotated[Name | None, Meta(description="The field that `require_field` requires.")] = None
    reason: Annotated[Text, Meta(description="Why, for whoever reads it.")] = ""
    outcome: Annotated[Name | None, Meta(description="The word that the node is left by, for `outcome`.")] = None


class BodyRetry(_Part, frozen=True, kw_only=True):
    """How often a call is made, and how long is waited in between."""

    attempts: Annotated[int, Meta(ge=1, le=1_000_000, description="Calls in all, the first one included.")] = 5
    delay: Annotated[Duration, Meta(description="The wait before the second call.")] = "1s"
    backoff: Annotated[
        Literal["fixed", "linear", "exponential"], Meta(description="How the wait grows from call to call.")
    ] = "exponential"
    factor: Annotated[float, Meta(ge=1, le=1000, description="By what an exponential wait grows.")] = 2.0
    cap: Annotated[Duration, Meta(description="The longest wait.")] = "5m"
    jitter: Annotated[float, Meta(ge=0, le=1, description="The share of the wait that is added at random.")] = 0.1


class _Node(_Part, frozen=True, kw_only=True, tag_field="type"):
    """What all nodes have."""

    id: NodeId
    title: Annotated[Text, Meta(description="What people read.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""
    window: Annotated[Window | None, Meta(description="A window for this node alone, stricter than the slot's.")] = None


class ActionNode(_Node, frozen=True, kw_only=True, tag="action"):
    """Does something to the document, by an action of its contract, or to another one. A policy gate stands before it. Left by `ok`, `denied`, `error`."""

    action: Annotated[
        Name, Meta(description="The action, such as invoice.post; that of another type is done to a document of that.")
    ]
    target: Annotated[
        Name | None,
        Meta(
            description="Which other document: an expression that gives its id. Without it, `create` of another type makes one."
        ),
    ] = None
    payload: Annotated[dict[str, Formula], Meta(description="What it is given: expressions, by name.")] = {}
    run_as: Annotated[Name, Meta(description="In whose name: actor, system, or service_account:<id>.")] = "actor"
    undo: Annotated[
        Name | None, Meta(description="The action that takes it back, where its branch turns out to be in vain.")
    ] = None
    retry: Annotated[
        BodyRetry | None, Meta(description="How its handler is called again; without it, as the setting `retry` says.")
    ] = None


class ApprovalNode(_Node, frozen=True, kw_only=True, tag="approval"):
    """Asks people, who see the document as it is now. Left by `approved`, `rejected`, `timeout`, `error`."""

    approvers: Annotated[list[Approver], some("Who is asked.", empty="nobody could decide")] | UnsetType = UNSET
    chain: Annotated[Name | None, Meta(description="The approval chain that says who is asked, stage by stage.")] = None
    agree: Annotated[
        Literal["any", "all", "n", "weight"] | None,
        Meta(description="How many of them have to be for it; `n` and `weight` take `least`."),
    ] = None
    least: Annotated[int, Meta(ge=0, le=1_000_000, description="How many, or how much weight.")] = 0
    covers: (
        Annotated[
            list[Name],
            some(
                "The fields that it is about: an edit of others leaves it valid; without it, all.",
                empty="it would be about nothing",
            ),
        ]
        | UnsetType
    ) = UNSET
    shows: Annotated[dict[str, Formula], Meta(description="What the question shows besides, by name.")] = {}
    requires_reason: Annotated[bool, Meta(description="Whether a rejection needs a reason.")] = True
    self_approval: Annotated[
        bool | None,
        Meta(
            description="Whether whoever wrote the document or asks may decide too, if the contract lets them; without it, as that says."
        ),
    ] = None
    distinct_from: (
        Annotated[
            list[NodeId],
            some("Approvals of this patch whose deciders may not decide here.", empty="it would keep nobody apart"),
        ]
        | UnsetType
    ) = UNSET
    distinct_approvers: Annotated[bool, Meta(description="Whether nobody may decide who has decided before.")] = False
    delegable: Annotated[bool, Meta(description="Whether somebody may decide in their place.")] = True
    capability: Annotated[Capability | None, Meta(description="What is needed to decide.")] = None
    form: Annotated[dict[str, Plain] | None, Meta(description="What is given with a decision: a JSON Schema.")] = None
    timeout: Annotated[Duration | None, Meta(description="How long a decision is waited for.")] = None
    due: Annotated[Duration | None, Meta(description="When it is due, for those who are asked.")] = None
    remind: Annotated[list[Duration], Meta(description="When they are reminded.")] = []
    escalate_to: Annotated[Name | None, Meta(description="The role that is asked too once it is due.")] = None
    calendar: Annotated[
        Name | None, Meta(description="The organisation's calendar: all its times count working days and hours.")
    ] = None
    channels: (
        Annotated[
            list[Name], some("How they are told that they are asked, such as email.", empty="nobody would be told")
        ]
        | UnsetType
    ) = UNSET


class ConditionNode(_Node, frozen=True, kw_only=True, tag="condition"):
    """Branches: by `true` and `false` of its own expression, or by the conditions of its edges."""

    expression: Annotated[Condition | None, Meta(description="What is asked; without it, the edges ask.")] = None


class ParallelSplitNode(_Node, frozen=True, kw_only=True, tag="parallel_split"):
    """Goes on in several branches at once, one for each edge whose condition holds. Left by `error` if none does."""


class ParallelJoinNode(_Node, frozen=True, kw_only=True, tag="parallel_join"):
    """Waits for the branches of its split. Left by `ok`, `none`, `abort`."""

    mode: Annotated[Literal["all", "any"], Meta(description="For all of them, or for the first.")] = "all"
    losers: Annotated[
        Literal["undo", "finish", "stop"],
        Meta(
            description="What becomes of branches that the join does not wait for: undone, finished before the document leaves the slot, or stopped."
        ),
    ] = "undo"
    accept: Annotated[
        Condition | None,
        Meta(
            description="Which arrivals count; others have come to their end, and without any the join is left by `none`."
        ),
    ] = None
    abort: Annotated[
        Condition | None,
        Meta(
            description="Which arrival ends the join at once, by `abort`, and has undone what the other branches did."
        ),
    ] = None


class ForEachNode(ParallelSplitNode, frozen=True, kw_only=True, tag="for_each"):
    """Goes on in a branch for each item of a list, all of them by the one edge that leaves it. Its branches meet like those of a split."""

    items: Annotated[Name, Meta(description="The list: an expression, such as entity.lines.")]
    item: Annotated[Context, Meta(description="The name under context. by which a branch finds its item.")] = "item"
    limit: Annotated[int, Meta(ge=1, le=MOST_BRANCHES, description="Branches at the same time; without it, all.")] = (
        MOST_BRANCHES
    )
    most: Annotated[
        int, Meta(ge=1, le=10_000, description="Items that there may be; with more of them the step fails.")
    ] = MOST_BRANCHES
    on_empty: Annotated[
        Literal["fail", "skip"],
        Meta(description="What a list without items comes to: the step fails, or the document goes on."),
    ] = "fail"


class WaitTimerNode(_Node, frozen=True, kw_only=True, tag="wait_timer"):
    """Waits for a time, until an instant, or for the next time of a calendar rule: one of the three."""

    duration: Annotated[Duration | None, Meta(description="How long.")] = None
    calendar: Annotated[
        Name | None, Meta(description="The organisation's calendar: the duration counts working days and hours.")
    ] = None
    until: Annotated[Name | None, Meta(description="Until when: an expression, such as entity.due_date.")] = None
    cron: Annotated[Name | None, Meta(description="A calendar rule of five fields, such as 0 9 1 * *.")] = None
    time_zone: Annotated[Name | None, Meta(description="Whose clock `cron` means; without it, UTC.")] = None


class WaitEventNode(_Node, frozen=True, kw_only=True, tag="wait_event"):
    """Waits for an event from outside. Left by `event`, `timeout`, `error`."""

    event: Annotated[Name, Meta(description="The name that it is published under.")]
    key: Annotated[
        Name | None, Meta(description="Which of these events: a text with holes, such as pod:{entity.shipment_id}.")
    ] = None
    match: Annotated[Condition | None, Meta(description="Which of these events, over event.")] = None
    timeout: Annotated[Duration | None, Meta(description="How long it is waited for.")] = None
    into: Annotated[Context | None, Meta(description="The name under context. that keeps what it brings.")] = None


class WebhookNode(_Node, frozen=True, kw_only=True, tag="webhook_out"):
    """Sends an HTTP request, outside of any transaction. Left by `ok` or `error`; without `await` at once, by `ok`."""

    url: Annotated[Name, Meta(description="The address, a text with holes.")]
    payload: Annotated[dict[str, Formula], Meta(description="What is sent: expressions, by name.")] = {}
    secret: Annotated[
        Name | None,
        Meta(
            description="Where the secret is found that it is signed with: env:NAME or file:/path, as `webhook_secrets` of the settings has it."
        ),
    ] = None
    attempts: Annotated[int, Meta(ge=1, le=100, description="Requests in all.")] = 5
    once: Annotated[bool, Meta(description="Whether a request that may have been sent is never sent again.")] = False
    waits: Annotated[bool, Meta(description="Whether the workflow waits until it is taken.")] = field(
        name="await", default=True
    )
    timeout: Annotated[Duration | None, Meta(description="How long one request may take.")] = None
    into: Annotated[Context | None, Meta(description="The name under context. that keeps the answer.")] = None


class NotificationNode(_Node, frozen=True, kw_only=True, tag="notification"):
    """Tells people something."""

    to: Annotated[list[Name], Meta(min_length=1, description="Users, addresses, role:<name>; texts with holes.")]
    subject: Annotated[Name, Meta(description="A text with holes.")]
    body: Annotated[Text, Meta(description="A text with holes.")] = ""
    channels: (
        Annotated[list[Name], some("How, such as email; without it, in_app.", empty="nobody would be told")] | UnsetType
    ) = UNSET
    waits: Annotated[bool, Meta(description="Whether the workflow waits until they are told.")] = field(
        name="await", default=False
    )


class ScriptNode(_Node, frozen=True, kw_only=True, tag="script"):
    """Computes a value by an expression."""

    formula: Annotated[Formula, Meta(description="The expression.")]
    into: Annotated[Context | None, Meta(description="The name under context. that keeps the value.")] = None


class RuleNode(_Node, frozen=True, kw_only=True, tag="rule"):
    """Judges the document by flat rules. Left by `ok`, `blocked`, or the word of a rule."""

    rules: Annotated[list[FlatRule], Meta(min_length=1, description="The rules, in order.")]


class TaskNode(_Node, frozen=True, kw_only=True, tag="task"):
    """Calls a handler of the application: a kind of step that it brings itself. Left by `ok` or `error`."""

    handler: Annotated[Name, Meta(description="The name of the handler.")]
    input: Annotated[dict[str, Formula], Meta(description="What it is given: expressions, by name.")] = {}
    attempts: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None, Meta(description="Calls in all, where `retry` is not given.")
    ] = None
    retry: Annotated[
        BodyRetry | None, Meta(description="How the call is made again; without it, as the setting `retry` says.")
    ] = None
    timeout: Annotated[Duration | None, Meta(description="How long one call may take.")] = None
    into: Annotated[Context | None, Meta(description="The name under context. that keeps its answer.")] = None
    capability: Annotated[
        Name | None,
        Meta(description="What whoever asked for the transition needs for the call; a handler may require it."),
    ] = None


class CallNode(_Node, frozen=True, kw_only=True, tag="call"):
    """Starts another workflow and waits for its end; it is cancelled if that is not waited for any more. Left by `ok`, `error`, `timeout`."""

    workflow: Annotated[Name, Meta(description="The workflow: a saga or a process.")]
    version: Annotated[Name | None, Meta(description="Its version; without it, the newest.")] = None
    input: Annotated[dict[str, Formula], Meta(description="What it begins with: expressions, by name.")] = {}
    timeout: Annotated[Duration | None, Meta(description="How long its end is waited for.")] = None
    into: Annotated[Context | None, Meta(description="The name under context. that keeps what it came to.")] = None
    detached: Annotated[
        bool,
        Meta(
            description="Whether it is no part of the document: it is only waited for, and neither cancelled nor undone with it."
        ),
    ] = False


class UnreadNode(_Node, frozen=True, kw_only=True, tag="unread"):
    """Stands for a node that cannot be read, so that edges and expressions which name it are not wrong by that. No file has one."""

    into: Context | None = None


PatchNode: TypeAlias = (
    ActionNode
    | ApprovalNode
    | ConditionNode
    | ParallelSplitNode
    | ForEachNode
    | ParallelJoinNode
    | WaitTimerNode
    | WaitEventNode
    | WebhookNode
    | NotificationNode
    | ScriptNode
    | RuleNode
    | TaskNode
    | CallNode
)


class PatchEdge(_Part, frozen=True, kw_only=True):
    """A way from one node of a patch to another."""

    source: End = field(name="from")
    target: End = field(name="to")
    id: Annotated[Name | None, Meta(description="Its id; without it, one is made of the two nodes.")] = None
    on: Annotated[
        Name | None,
        Meta(
            description="What the first node is left by, or * for all that no other edge names, refusals apart; without it, the label if that is such a word, or the usual outcome."
        ),
    ] = None
    when: Annotated[Condition | None, Meta(description="What must hold, over entity., actor., org., now, context.")] = (
        None
    )
    label: Annotated[Text, Meta(description="What people read.")] = ""
    priority: Annotated[
        Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] | None,
        Meta(description="Lower is tried first; without it, 100 with a condition, 1000 without."),
    ] = None


class Patch(_Part, frozen=True, kw_only=True):
    """What an organisation puts into one slot."""

    nodes: Annotated[list[PatchNode], some("The steps.", empty="nothing would be done there")] | UnsetType = UNSET
    edges: Annotated[
        list[PatchEdge],
        Meta(description="The ways between them; from `in` and to `out` they are added where they are clear."),
    ] = []
    entry: Annotated[
        Literal["serial", "branch"],
        Meta(
            description="Whether it begins at one node, or at one of several, by the conditions of the edges from `in`."
        ),
    ] = "serial"
    exit: Annotated[
        Literal["single", "join"],
        Meta(description="Whether one node ends it, or several do, which are waited for."),
    ] = "single"
    window: Annotated[Window | None, Meta(description="A window for the slot, stricter than the contract's.")] = None
    on_reject: Annotated[
        OnReject | None,
        Meta(
            description="What a rejection that leads back to before the slot does to what its steps did: keep it, or compensate: steps with an `undo` are undone. Without it, as the contract says."
        ),
    ] = None


class Base(_Part, frozen=True, kw_only=True):
    """What a body is written for."""

    entity_type: Annotated[Name, Meta(description="The type of the documents.")]
    envelope_version: Annotated[int, Meta(ge=1, le=1_000_000, description="The version of the envelope.")]


SlotName = Annotated[str, Meta(max_length=64, pattern=SLOT)]


class Body(_Part, frozen=True, kw_only=True):
    """All that an organisation adds to an envelope."""

    base: Annotated[Base, Meta(description="What it is written for.")]
    slots: Annotated[dict[SlotName, Patch], Meta(description="A patch for each slot that is filled.")] = {}
    name: Annotated[Text, Meta(description="What people call it.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""
    context: Annotated[
        dict[str, Literal["string", "int", "money", "bool", "date", "datetime", "list", "object", "any"]],
        Meta(description="Names under context. that come from elsewhere, with their types."),
    ] = {}
    scenarios: Annotated[
        list[Scenario],
        Meta(
            max_length=MOST_SCENARIOS,
            description="Tests of the body, which must come out right before it is published.",
        ),
    ] = []
    hash: Annotated[
        Name | None, Meta(description="Written by an export; what was changed since is refused until it is removed.")
    ] = None


_WIDTH: Final = 120
_BREAKS: Final = frozenset("\x85\u2028\u2029")
"""What YAML takes for the end of a line where it is not quoted."""


def export_yaml(part: Contract | Body) -> str:
    """A contract or a body as YAML, with its hash: what is changed afterwards is refused until the hash is removed."""
    plain = msgspec.to_builtins(part)
    plain["hash"] = content_hash(part)
    return plain_yaml(plain)


def plain_yaml(plain: object) -> str:
    """Plain data as YAML, as the reader of files reads it back."""
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes what the reader of files reads back: a text that would be taken for something else is quoted."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - whatever it is
        """Write everything out, so that every place can be changed by itself."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    is_plain = value_of(text) == text and not isinstance(value_of(text), int | float) and _BREAKS.isdisjoint(text)
    style = None if is_plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
