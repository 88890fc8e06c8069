"""Checks of a graph. They return all findings together as diagnostics, each with node, rule and remedy.

This module checks each node and edge separately; `scopes` checks where tokens can go. Checks that depend on names skip
ambiguous ones, so that one mistake causes few findings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import get_args

import msgspec

from standfast.errors import Diagnostic
from standfast.graph import model as g
from standfast.graph.document_checks import check_document
from standfast.graph.model import (
    LOOPING,
    DocumentSpec,
    Edge,
    EventTrigger,
    HumanOp,
    JoinOp,
    Kind,
    Node,
    Policies,
    Rights,
    SplitOp,
)
from standfast.graph.nodes.action import OWN_WORK
from standfast.graph.nodes.human import REFUSALS
from standfast.graph.scopes import GraphDraft, check_flow
from standfast.graph.values.value_checks import (
    expression_findings,
    listed,
    name_findings,
    needed_findings,
    number_findings,
    plain_findings,
    time_findings,
    word_findings,
    work_findings,
)
from standfast.kernel.codec.canonical import LARGEST_INTEGER
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.names import MISLEADING, is_misleading

NO_RIGHTS = Rights()
HIGHEST_PRIORITY = 100
RESERVED_PREFIX = "cond#"

POLICY_WORDS = {
    "on_failure": ("compensate", "dlq", "pause"),
    "on_cancel": ("compensate", "none"),
    "on_reject": REFUSALS,
    "on_no_edge": ("complete", "pause", "fail"),
}


def check_graph(  # noqa: PLR0913 - the parts of a graph, all by name
    *,
    kind: Kind,
    name: str,
    version: str,
    entry: str,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    policies: Policies,
    rights: Rights = NO_RIGHTS,
    triggers: Sequence[EventTrigger] = (),
    document: DocumentSpec | None = None,
) -> list[Diagnostic]:
    """Return all findings, in an order that does not depend on the order of nodes and edges."""
    draft = GraphDraft(nodes, edges, entry, on_deadline=policies.on_deadline)
    found = [
        *_workflow(kind, name, version),
        *_rights(rights),
        *(finding for each in triggers for finding in _trigger(each)),
        *(list(_policies(policies)) or _unstorable(policies, "the policies")),
        *_names(nodes),
        *_references(draft),
        *(finding for node in nodes for finding in node_findings(node)),
        *_edges(draft),
        *_missing_ways(draft),
        *_distinct(draft),
        *_forks(draft),
        *check_document(draft, kind, document),
        *check_flow(draft, may_loop=kind in LOOPING),
    ]
    return sorted(dict.fromkeys(found), key=lambda each: (each.position, each.code, each.message))


# -- the whole graph


def _workflow(kind: Kind, name: str, version: str) -> Iterator[Diagnostic]:
    yield from word_findings("", "kind", "the kind of the workflow", kind, words=get_args(Kind))
    yield from name_findings("", "unnamed_workflow", "the name of the workflow", name)
    yield from name_findings("", "no_version", "the version of the workflow", version)
    for what, text in (("name", name), ("version", version)):
        if text and is_misleading(text):
            yield Diagnostic("misleading_name", f"the {what} of the workflow, {text!r}, {MISLEADING}", "")


def _rights(rights: Rights) -> Iterator[Diagnostic]:
    for what, capability in (("start", rights.start), ("cancel", rights.cancel)):
        yield from needed_findings("", f"the capability to {what} the workflow", capability)


def _trigger(trigger: EventTrigger) -> Iterator[Diagnostic]:
    what = f"the trigger {trigger.event!r}"
    yield from name_findings("", "no_event", "the event that starts the workflow", trigger.event)
    for name, stored in {"key": trigger.key, "condition": trigger.when, **(trigger.input or {})}.items():
        if stored is not None:
            yield from expression_findings("", f"{name!r} of {what}", stored)


def _policies(policies: Policies) -> Iterator[Diagnostic]:
    for field, words in POLICY_WORDS.items():
        yield from word_findings("", field, f"the policy {field}", getattr(policies, field), words=words)
    if policies.on_deadline and policies.deadline_ms is None:
        message = f"the workflow goes to {policies.on_deadline!r} when its time is over, and has no deadline; give one"
        yield Diagnostic("deadline", message, policies.on_deadline)
    if policies.deadline_ms is not None:
        yield from time_findings("", "deadline", "the deadline", policies.deadline_ms, low=1)
    yield from time_findings("", "stop_grace", "the time that a cancellation waits", policies.stop_grace_ms)
    if policies.chain_limit is not None:
        yield from number_findings(
            "", "chain_limit", "the limit of automatic steps in a row", policies.chain_limit, low=1
        )
    yield from number_findings("", "max_visits", "the limit of visits", policies.max_visits, low=1)
    if policies.max_bytes is not None:
        yield from number_findings("", "max_bytes", "the limit of the data", policies.max_bytes, low=1)
    if policies.max_tokens is not None:
        yield from number_findings("", "max_tokens", "the limit of tokens", policies.max_tokens, low=1)


def _names(nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    if not nodes:
        yield Diagnostic("empty", "the workflow has no steps; add at least one")
    names = [node.id for node in nodes] + [node.compensation_name for node in nodes if node.compensation_name]
    for name, count in Counter(names).items():
        yield from name_findings(name, "unnamed_step", "the name of a step", name)
        if count > 1:
            message = f"there are {count} steps named {name!r}, compensations included; give each a name of its own"
            yield Diagnostic("duplicate_step", message, name)
        if name.strip() and is_misleading(name):
            yield Diagnostic("misleading_name", f"the name of a step, {name!r}, {MISLEADING}", name)
        if name.startswith(RESERVED_PREFIX):
            message = f"{name!r} begins with {RESERVED_PREFIX!r}, which is kept for the engine; take another name"
            yield Diagnostic("reserved_name", message, name)


def _references(draft: GraphDraft) -> Iterator[Diagnostic]:
    for edge in draft.edges:
        for end in {edge.source, edge.target} - draft.names:
            message = f"{edge.id} names {end!r}, which does not exist; add the step or correct the name"
            yield Diagnostic("unknown_step", message, edge.source)
    if draft.names and draft.entry not in draft.names:
        message = f"the workflow begins at {draft.entry!r}, which does not exist; name one of its steps"
        yield Diagnostic("unknown_entry", message, draft.entry)
    if draft.on_deadline and draft.on_deadline not in draft.names:
        message = f"the workflow goes to {draft.on_deadline!r} when its time is over, which does not exist; name one of its steps"
        yield Diagnostic("deadline", message, draft.on_deadline)


# -- nodes


def node_findings(node: Node) -> Iterator[Diagnostic]:
    """Yield the findings of one node. Only a valid one is checked for whether it can be stored."""
    found = [*_common(node), *node.op.findings(node.id), *_formulas(node)]
    yield from found or _unstorable(node, repr(node.id), node.id)


def _formulas(node: Node) -> Iterator[Diagnostic]:
    for _, what, stored in node.op.formulas(node.id):
        yield from expression_findings(node.id, what, stored)


def _common(node: Node) -> Iterator[Diagnostic]:
    name = node.id
    yield from number_findings(name, "priority", f"the priority of {name!r}", node.priority, high=HIGHEST_PRIORITY)
    if node.timeout_ms is not None and g.TIMEOUT in node.op.exits:
        yield from time_findings(name, "timeout", f"the timeout of {name!r}", node.timeout_ms, low=1)
        if isinstance(node.op, HumanOp) and node.op.times is not None and type(node.timeout_ms) is int:
            yield from node.op.times.beyond(name, node.timeout_ms)
    elif node.timeout_ms is not None:
        yield Diagnostic("timeout", f"{name!r} waits for nothing, so a timeout has no effect; remove it", name)
    yield from needed_findings(name, f"the capability of {name!r}", node.capability)
    if node.compensation is not None and not (isinstance(node.op, g.ActionOp) and node.compensation in OWN_WORK):
        yield from work_findings(name, f"the compensation of {name!r}", node.compensation, least_calls=0)
    if node.compensation_priority is not None:
        what = f"the priority of the compensation of {name!r}"
        yield from number_findings(name, "priority", what, node.compensation_priority, high=HIGHEST_PRIORITY)
    for metadata in (node.metadata, node.compensation_metadata or {}):
        yield from plain_findings(name, "metadata", metadata)


# -- edges


def _edges(draft: GraphDraft) -> Iterator[Diagnostic]:
    counts = Counter(edge.id for edge in draft.edges)
    for edge in draft.edges:
        if counts[edge.id] > 1:
            # The machine finds conditions by the edge's id, and equal edges would have no order.
            message = f"there are {counts[edge.id]} edges {edge.id}; keep one, with one condition for all of them"
            yield Diagnostic("duplicate_edge", message, edge.source)
        yield from list(_edge(draft, edge)) or _unstorable(edge, edge.id, edge.source)


def _edge(draft: GraphDraft, edge: Edge) -> Iterator[Diagnostic]:
    place, what = edge.source, f"the priority of {edge.id}"
    yield from number_findings(place, "edge_priority", what, edge.priority, low=-LARGEST_INTEGER)
    if edge.when is not None:
        yield from expression_findings(place, f"the condition of {edge.id}", edge.when)
    if edge.capability:
        yield from name_findings(place, "capability", f"the capability of {edge.id}", edge.capability)
    for target, stored in edge.assign.items():
        yield from expression_findings(place, f"what {edge.id} assigns to {target!r}", stored)
    source = draft.nodes.get(place)
    if source is None:
        return
    if isinstance(source.op, SplitOp) and edge.on == g.BRANCH:
        if edge.assign or edge.capability:
            message = f"{edge.id} is a branch, which is taken as it is; assign and demand in a step of the branch"
            yield Diagnostic("branch_condition", message, place)
        if edge.when is not None and source.op.items is not None:
            message = f"{edge.id} is the branch of every item; ask in a step of the branch"
            yield Diagnostic("branch_condition", message, place)
    yield from _outcome(draft, source, edge)


def _outcome(draft: GraphDraft, node: Node, edge: Edge) -> Iterator[Diagnostic]:
    """Yield the edges that no token can take."""
    known = node.op.exits
    possible = known if node.timeout_ms is not None or draft.on_deadline else known - {g.TIMEOUT}
    if edge.on in possible or (edge.on == g.ANY_OUTCOME and possible):
        return
    if edge.on == g.TIMEOUT and g.TIMEOUT in known:
        remedy = "give it a timeout, or remove the edge"
    else:
        remedy = f"it can be left by {listed(possible)}" if possible else "nothing leads on from it: remove the edge"
    kind = type(node.op).__struct_config__.tag
    yield Diagnostic("outcome", f"{node.id!r} ({kind}) is never left by {edge.on!r}; {remedy}", node.id)


def _missing_ways(draft: GraphDraft) -> Iterator[Diagnostic]:
    """Yield the answers without an edge."""
    led = {(edge.source, edge.on) for edge in draft.edges}
    for node in draft.nodes.values():
        if (node.id, g.ANY_OUTCOME) in led:
            continue
        for outcome in node.op.required:
            if (node.id, outcome) not in led:
                message = f"{node.id!r} can be answered by {outcome!r}, and no edge leads on from that; add one, or drop the outcome"
                yield Diagnostic("no_way", message, node.id)


def _distinct(draft: GraphDraft) -> Iterator[Diagnostic]:
    """Yield references to deciders of steps that are no human steps."""
    for node in draft.nodes.values():
        for other in node.op.distinct_from if isinstance(node.op, HumanOp) else ():
            if other not in draft.nodes or not isinstance(draft.nodes[other].op, HumanOp):
                message = f"{node.id!r} is to be distinct from {other!r}, which is no human step; name human steps of this workflow"
                yield Diagnostic("distinct_from", message, node.id)


# -- splits and joins


def _forks(draft: GraphDraft) -> Iterator[Diagnostic]:
    if draft.on_deadline and any(isinstance(node.op, SplitOp) for node in draft.nodes.values()):
        message = "the workflow has forks, so it is undefined which branch continues when its time is over; drop `on_deadline`"
        yield Diagnostic("deadline", message, draft.on_deadline)
    branches = Counter(edge.source for edge in draft.edges if edge.on == g.BRANCH)
    joins: defaultdict[str, list[str]] = defaultdict(list)
    for node in draft.nodes.values():
        if isinstance(node.op, JoinOp):
            joins[node.op.split].append(node.id)
            yield from _join(draft, node.id, node.op, branches[node.op.split])
    for node in draft.nodes.values():
        if isinstance(node.op, SplitOp):
            yield from _fork(node.id, node.op, branches[node.id], joins[node.id])


def _fork(name: str, op: SplitOp, branches: int, joins: list[str]) -> Iterator[Diagnostic]:
    if not branches:
        yield Diagnostic("no_branches", f"{name!r} has no branches; give it at least one", name)
    if branches > 1 and op.items is not None:
        message = f"{name!r} runs one branch for each item, and it has {branches}; keep one"
        yield Diagnostic("many_branches", message, name)
    if len(joins) > 1:
        message = f"the branches of {name!r} meet at {listed(joins)}; keep one of these joins"
        yield Diagnostic("two_joins", message, name)


def _join(draft: GraphDraft, name: str, op: JoinOp, branches: int) -> Iterator[Diagnostic]:
    split = draft.split_of(op)
    if split is None:
        if op.split in draft.nodes or op.split not in draft.names:
            message = f"{name!r} joins {op.split!r}, which is not a fork; name the fork that it belongs to"
            yield Diagnostic("join_without_split", message, name)
    elif op.strategy == "count":
        of = draft.nodes[split].op
        high = branches if isinstance(of, SplitOp) and of.items is None else LARGEST_INTEGER
        what = f"the number of branches that {name!r} needs"
        yield from number_findings(name, "join_count", what, op.count, low=1, high=max(1, high))


# -- values


def _unstorable(value: Node | Edge | Policies, what: str, position: str = "") -> Iterator[Diagnostic]:
    """Yield values that would not survive storage: wrong types and lone surrogates."""
    try:
        is_same = msgspec.json.decode(msgspec.json.encode(value), type=settled(type(value))) == value
        reason = "" if is_same else "it would come back changed"
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        reason = str(error)
    if reason:
        yield Diagnostic("not_storable", f"{what} cannot be stored: {reason}; give each field its own type", position)
