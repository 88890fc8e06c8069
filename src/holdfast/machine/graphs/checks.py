"""What can be wrong with a graph, as diagnostics: each names the node, the rule and the remedy. All findings at once.

Here every node and edge is judged by itself; `flow` judges where tokens can go. A check needs as little as possible from the others:
what depends on names looks only at those that stand for one node.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import get_args

import msgspec

from holdfast.errors import Diagnostic, ExpressionError
from holdfast.expressions import Expression
from holdfast.expressions.characters import JOINERS, describe, is_hidden
from holdfast.expressions.paths import NAME_PATTERN
from holdfast.kernel import vocabulary
from holdfast.kernel.canonical import LARGEST_INTEGER
from holdfast.machine.graphs import graph as g
from holdfast.machine.graphs.graph import Edge, Join, Kind, Node, Policies, Split, Work
from holdfast.machine.graphs.scopes import Draft, check_flow

LOOPING: frozenset[Kind] = frozenset({"process", "rules"})
"""Kinds of workflows that may go in circles."""
HIGHEST_PRIORITY = 100
RESERVED_PREFIX = "cond#"
LONGEST_NAME = 200
MOST_BYTES = vocabulary.LONGEST_NAME
LONGEST_MS = 100 * 366 * 24 * 3600 * 1000
"""A hundred years: a moment much further ahead is not a date any more."""
DEEPEST_METADATA = 64

_WHOLE = 100
"""The whole, in percent."""
_ANY_OUTCOME = "*"

BACKOFFS = ("fixed", "linear", "exponential")
STRATEGIES = ("all", "any", "count")
LOSERS: tuple[str, ...] = get_args(g.Losers)
END_STATUSES = ("completed", "failed", "cancelled")
POLICY_WORDS = {
    "on_failure": ("compensate", "dlq", "pause"),
    "on_cancel": ("compensate", "none"),
    "on_reject": ("abort", "fail"),
    "on_no_edge": ("complete", "pause", "fail"),
}

OUTCOMES: dict[type[g.Op], frozenset[str]] = {
    g.Task: frozenset({g.OK, g.ERROR}),  # A call that took too long has failed.
    g.Condition: frozenset({g.TRUE, g.FALSE, g.ERROR}),
    g.Split: frozenset({g.BRANCH, g.ERROR}),
    g.Join: frozenset({g.OK, g.ERROR}),  # There may be no room for what the branches answered.
    g.SavePoint: frozenset({g.OK}),
    g.NoReturn: frozenset({g.OK}),
    # A wait that is over without an edge for `timeout` has failed; so has a rejection, where the policy says so.
    g.Human: frozenset({g.CONFIRMED, g.REJECTED, g.TIMEOUT, g.ERROR}),
    g.WaitTimer: frozenset({g.OK}),
    g.WaitEvent: frozenset({g.OK, g.TIMEOUT, g.ERROR}),
    g.Call: frozenset({g.OK, g.ERROR, g.TIMEOUT}),
    g.End: frozenset(),
}
"""What each kind of node can be left by."""


def check_graph(
    *,
    kind: Kind,
    name: str,
    version: str,
    entry: str,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    policies: Policies,
) -> list[Diagnostic]:
    """Everything that is wrong, in an order that does not depend on the order of nodes and edges."""
    draft = Draft(nodes, edges, entry)
    found = [
        *_workflow(kind, name, version),
        *(list(_policies(policies)) or _unstorable(policies, "what the policies say")),
        *_names(nodes),
        *_references(draft),
        *(finding for node in nodes for finding in _node(node)),
        *_edges(draft),
        *_forks(draft),
        *check_flow(draft, may_loop=kind in LOOPING),
    ]
    return sorted(dict.fromkeys(found), key=lambda each: (each.position, each.code, each.message))


# -- the whole


def _workflow(kind: Kind, name: str, version: str) -> Iterator[Diagnostic]:
    yield from _word("", "kind", "the kind of the workflow", kind, words=get_args(Kind))
    yield from _name("", "unnamed_workflow", "the name of the workflow", name)
    yield from _name("", "no_version", "the version of the workflow", version)


def _policies(policies: Policies) -> Iterator[Diagnostic]:
    for field, words in POLICY_WORDS.items():
        yield from _word("", field, f"the policy {field}", getattr(policies, field), words=words)
    if policies.deadline_ms is not None:
        yield from _time("", "deadline", "the deadline", policies.deadline_ms, low=1)
    yield from _time("", "stop_grace", "the time that a cancellation waits", policies.stop_grace_ms)
    if policies.chain_limit is not None:
        yield from _number("", "chain_limit", "the limit of automatic steps in a row", policies.chain_limit, low=1)
    yield from _number("", "max_visits", "the limit of visits", policies.max_visits, low=1)


def _names(nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    if not nodes:
        yield Diagnostic("empty", "the workflow has no steps; add at least one")
    names = [node.id for node in nodes] + [node.compensation_name for node in nodes if node.compensation_name]
    for name, count in Counter(names).items():
        yield from _name(name, "unnamed_step", "the name of a step", name)
        if count > 1:
            message = f"there are {count} steps named {name!r}, compensations included; give each a name of its own"
            yield Diagnostic("duplicate_step", message, name)
        if name.startswith(RESERVED_PREFIX):
            message = f"{name!r} begins with {RESERVED_PREFIX!r}, which is kept for the engine; take another name"
            yield Diagnostic("reserved_name", message, name)


def _references(draft: Draft) -> Iterator[Diagnostic]:
    for edge in draft.edges:
        for end in {edge.source, edge.target} - draft.names:
            message = f"{edge.id} names {end!r}, which does not exist; add the step or correct the name"
            yield Diagnostic("unknown_step", message, edge.source)
    if draft.names and draft.entry not in draft.names:
        message = f"the workflow begins at {draft.entry!r}, which does not exist; name one of its steps"
        yield Diagnostic("unknown_entry", message, draft.entry)


# -- nodes


def _node(node: Node) -> Iterator[Diagnostic]:
    """What is wrong with a node; only one that seems sound is asked whether it can be stored."""
    found = [*_common(node), *_op(node.id, node.op), *_question(node.id, node.op)]
    yield from found or _unstorable(node, repr(node.id), node.id)


def _common(node: Node) -> Iterator[Diagnostic]:
    name = node.id
    yield from _number(name, "priority", f"the priority of {name!r}", node.priority, high=HIGHEST_PRIORITY)
    if node.timeout_ms is not None and g.TIMEOUT in OUTCOMES[type(node.op)]:
        yield from _time(name, "timeout", f"the timeout of {name!r}", node.timeout_ms, low=1)
    elif node.timeout_ms is not None:
        yield Diagnostic("timeout", f"{name!r} waits for nobody, so it has no use for a timeout; remove it", name)
    if node.compensation is not None:
        yield from _work(name, f"the compensation of {name!r}", node.compensation, least_calls=0)
    if node.compensation_priority is not None:
        what = f"the priority of the compensation of {name!r}"
        yield from _number(name, "priority", what, node.compensation_priority, high=HIGHEST_PRIORITY)
    for metadata in (node.metadata, node.compensation_metadata or {}):
        yield from _metadata(name, metadata)


def _metadata(name: str, metadata: dict[str, g.Plain]) -> Iterator[Diagnostic]:
    place = _not_plain(metadata)
    if place:
        remedy = "use texts, whole numbers, true, false, null, and lists and objects of them"
        yield Diagnostic("metadata", f"{place} of {name!r} cannot be stored as it is; {remedy}", name)


def _op(name: str, op: g.Op) -> Iterator[Diagnostic]:
    match op:
        case g.Task(work=work):
            yield from _work(name, repr(name), work, least_calls=1)
        case g.Condition(expression=stored):
            yield from _expression(name, f"the condition of {name!r}", stored)
        case g.Split():
            yield from _split(name, op)
        case g.Join(strategy=strategy, losers=losers):
            yield from _word(name, "join_strategy", f"the strategy of {name!r}", strategy, words=STRATEGIES)
            yield from _word(name, "join_losers", f"what {name!r} does with its losers", losers, words=LOSERS)
        case g.WaitTimer(duration_ms=duration):
            yield from _time(name, "wait_duration", f"the time that {name!r} waits", duration)
        case g.WaitEvent(signal=signal):
            yield from _name(name, "no_signal", f"the signal that {name!r} waits for", signal)
        case g.Call(definition=definition):
            yield from _name(name, "no_definition", f"the workflow that {name!r} calls", definition)
        case g.End(status=status):
            yield from _word(name, "end_status", f"the status of {name!r}", status, words=END_STATUSES)
        case g.SavePoint() | g.NoReturn() | g.Human():  # For a question, see `_question`.
            pass


def _work(name: str, what: str, work: Work, *, least_calls: int) -> Iterator[Diagnostic]:
    retry = work.retry
    yield from _name(name, "no_handler", f"the handler of {what}", work.handler)
    what_counts = f"the number of calls of {what}, the first one included,"
    yield from _number(name, "attempts", what_counts, retry.max_calls, low=least_calls)
    yield from _time(name, "start_after", f"the start delay of {what}", work.start_after_ms)
    yield from _time(name, "retry_delay", f"the delay of {what}", retry.delay_ms)
    yield from _time(name, "retry_cap", f"the longest delay of {what}", retry.cap_ms)
    yield from _number(name, "retry_factor", f"the factor of {what} in percent", retry.factor_percent, low=_WHOLE)
    yield from _number(name, "retry_jitter", f"the jitter of {what} in percent", retry.jitter_percent, high=_WHOLE)
    yield from _word(name, "retry_backoff", f"the backoff of {what}", retry.backoff, words=BACKOFFS)
    if work.once and type(retry.max_calls) is int and retry.max_calls > 1:
        message = f"{what} is called at most once, which {retry.max_calls} calls contradict; allow 1, or drop `once`"
        yield Diagnostic("once", message, name)
    if work.timeout_ms is not None:
        yield from _time(name, "timeout", f"the timeout of the handler of {what}", work.timeout_ms, low=1)


def _question(name: str, op: g.Op) -> Iterator[Diagnostic]:
    if not isinstance(op, g.Human):
        return
    if op.template is not None:
        yield from _expression(name, f"the subject of {name!r}", op.template)
    for shown, stored in op.shows.items():
        yield from _expression(name, f"{shown!r}, which {name!r} shows,", stored)
    if op.on_reject is not None:
        what = f"what follows a rejection of {name!r}"
        yield from _word(name, "on_reject", what, op.on_reject, words=POLICY_WORDS["on_reject"])


def _split(name: str, op: Split) -> Iterator[Diagnostic]:
    if op.limit is not None:
        yield from _number(name, "limit", f"the limit of {name!r}", op.limit, low=1)
    if op.items is None:
        return
    yield from _expression(name, f"the list of {name!r}", op.items)
    if re.fullmatch(NAME_PATTERN, str(op.item)) is None:
        remedy = "take a name of ASCII letters, digits and _ that does not begin with a digit"
        yield Diagnostic("item_name", f"{name!r} names its item {op.item!r}; {remedy}", name)


# -- edges


def _edges(draft: Draft) -> Iterator[Diagnostic]:
    counts = Counter(edge.id for edge in draft.edges)
    for edge in draft.edges:
        if counts[edge.id] > 1:
            # The machine finds conditions by the edge's id, and nothing would settle the order of equal edges.
            message = f"there are {counts[edge.id]} edges {edge.id}; keep one, with one condition for all of them"
            yield Diagnostic("duplicate_edge", message, edge.source)
        yield from list(_edge(draft, edge)) or _unstorable(edge, edge.id, edge.source)


def _edge(draft: Draft, edge: Edge) -> Iterator[Diagnostic]:
    place, what = edge.source, f"the priority of {edge.id}"
    yield from _number(place, "edge_priority", what, edge.priority, low=-LARGEST_INTEGER)
    if edge.when is not None:
        yield from _expression(place, f"the condition of {edge.id}", edge.when)
    for target, stored in edge.assign.items():
        yield from _expression(place, f"what {edge.id} assigns to {target!r}", stored)
    source = draft.nodes.get(place)
    if source is None:
        return
    if isinstance(source.op, Split) and edge.on == g.BRANCH and (edge.when is not None or edge.assign):
        message = f"{edge.id} is a branch, which is taken always and as it is; ask and assign in a step of the branch"
        yield Diagnostic("branch_condition", message, place)
    yield from _outcome(source, edge)


def _outcome(node: Node, edge: Edge) -> Iterator[Diagnostic]:
    """Ways that no token will ever take."""
    known = OUTCOMES[type(node.op)]
    possible = set(known)
    if node.timeout_ms is None:
        possible.discard(g.TIMEOUT)
    if isinstance(node.op, Split) and node.op.items is None:
        possible.discard(g.ERROR)
    if edge.on in possible or (edge.on == _ANY_OUTCOME and possible):
        return
    if edge.on == g.TIMEOUT and g.TIMEOUT in known:
        remedy = "give it a timeout, or remove the edge"
    else:
        remedy = f"it can be left by {_listed(possible)}" if possible else "nothing leads on from it: remove the edge"
    kind = type(node.op).__struct_config__.tag
    yield Diagnostic("outcome", f"{node.id!r} ({kind}) is never left by {edge.on!r}; {remedy}", node.id)


# -- forks and their joins


def _forks(draft: Draft) -> Iterator[Diagnostic]:
    branches = Counter(edge.source for edge in draft.edges if edge.on == g.BRANCH)
    joins: defaultdict[str, list[str]] = defaultdict(list)
    for node in draft.nodes.values():
        if isinstance(node.op, Join):
            joins[node.op.split].append(node.id)
            yield from _join(draft, node.id, node.op, branches[node.op.split])
    for node in draft.nodes.values():
        if isinstance(node.op, Split):
            yield from _fork(node.id, node.op, branches[node.id], joins[node.id])


def _fork(name: str, op: Split, branches: int, joins: list[str]) -> Iterator[Diagnostic]:
    if not branches:
        yield Diagnostic("no_branches", f"{name!r} has no branches; give it at least one", name)
    if branches > 1 and op.items is not None:
        message = f"{name!r} runs one branch for each item, and it has {branches}; keep one"
        yield Diagnostic("many_branches", message, name)
    if len(joins) > 1:
        message = f"the branches of {name!r} meet at {_listed(joins)}; keep one of these joins"
        yield Diagnostic("two_joins", message, name)


def _join(draft: Draft, name: str, op: Join, branches: int) -> Iterator[Diagnostic]:
    split = draft.split_of(op)
    if split is None:
        if op.split in draft.nodes or op.split not in draft.names:
            message = f"{name!r} joins {op.split!r}, which is not a fork; name the fork that it belongs to"
            yield Diagnostic("join_without_split", message, name)
    elif op.strategy == "count":
        of = draft.nodes[split].op
        high = branches if isinstance(of, Split) and of.items is None else LARGEST_INTEGER
        what = f"the number of branches that {name!r} needs"
        yield from _number(name, "join_count", what, op.count, low=1, high=max(1, high))


# -- values


def _name(position: str, code: str, what: str, text: object) -> Iterator[Diagnostic]:
    """Words by which something is found or shown."""
    if not isinstance(text, str):
        yield Diagnostic(code, f"{what} is {text!r}; give a text", position)
        return
    if not text.strip():
        yield Diagnostic(code, f"{what} is empty; give one", position)
    if len(text) > LONGEST_NAME:
        message = f"{what} has {len(text)} characters ({text[:20]!r}…); use at most {LONGEST_NAME}"
        yield Diagnostic("long_name", message, position)
    elif (size := len(text.encode("utf-8", "replace"))) > MOST_BYTES:
        message = f"{what} takes {size} bytes ({text[:20]!r}…); use at most {MOST_BYTES}, which is fewer letters of other alphabets"
        yield Diagnostic("long_name", message, position)
    hidden = next((each for each in text if is_hidden(each) and each not in JOINERS), None)
    if hidden is not None:
        yield Diagnostic("hidden_character", f"{what} holds {describe(hidden)}; remove it", position)


def _word(position: str, code: str, what: str, value: str, *, words: Collection[str]) -> Iterator[Diagnostic]:
    if value not in words:
        yield Diagnostic(code, f"{what} is {value!r}; it can be {_listed(words)}", position)


def _time(position: str, code: str, what: str, value: object, *, low: int = 0) -> Iterator[Diagnostic]:
    return _number(position, code, f"{what} in milliseconds", value, low=low, high=LONGEST_MS)


def _number(
    position: str, code: str, what: str, value: object, *, low: int = 0, high: int = LARGEST_INTEGER
) -> Iterator[Diagnostic]:
    if type(value) is int and low <= value <= high:
        return
    wanted = f"a whole number from {low} to {high}"
    if high >= LONGEST_MS:  # A bound that nobody meets on purpose is named only to those who do.
        wanted = f"at most {high}" if isinstance(value, int) and value > high else f"a whole number of at least {low}"
    yield Diagnostic(code, f"{what} is {value!r}; it must be {wanted}", position)


def _expression(position: str, what: str, stored: object) -> Iterator[Diagnostic]:
    """What the machine could not read back when it prepares the graph."""
    try:
        Expression.from_data(stored)
    except ExpressionError as error:
        yield Diagnostic("expression", f"{what} cannot be read: {error}; store a parsed expression's data", position)


def _not_plain(metadata: object) -> str:
    """The place of the first value that JSON without fractions does not have; empty if there is none."""
    pending: list[tuple[object, str, int]] = [(metadata, "metadata", 0)]
    while pending:
        value, place, depth = pending.pop()
        if depth > DEEPEST_METADATA:
            return f"metadata nested deeper than {DEEPEST_METADATA} levels"
        match value:
            case None | bool() | str():
                pass
            case int() if abs(value) <= LARGEST_INTEGER:
                pass
            case list():
                pending += [(each, f"{place}[{index}]", depth + 1) for index, each in enumerate(value)]
            case dict() if all(isinstance(key, str) for key in value):
                pending += [(each, f"{place}.{key}", depth + 1) for key, each in value.items()]
            case _:
                return place
    return ""


def _unstorable(value: Node | Edge | Policies, what: str, position: str = "") -> Iterator[Diagnostic]:
    """What would not come back from the store as it is: a value of another type, or half a character."""
    try:
        is_same = msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value
        reason = "" if is_same else "it would come back changed"
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        reason = str(error)
    if reason:
        yield Diagnostic("not_storable", f"{what} cannot be stored: {reason}; give each field its own type", position)


def _listed(words: Collection[str]) -> str:
    return ", ".join(repr(word) for word in sorted(words))
