"""What can be wrong with a graph, as diagnostics: each names the node, the rule and the remedy. All findings at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from holdfast.errors import Diagnostic
from holdfast.machine.graph import Edge, Join, Node, Split, Task

HIGHEST_PRIORITY = 100
RESERVED_PREFIX = "cond#"


def check_graph(nodes: Sequence[Node], edges: Sequence[Edge], entry: str, *, may_loop: bool) -> list[Diagnostic]:
    """Everything that is wrong."""
    names = {node.id for node in nodes}
    found = [*_names(nodes), *_references(edges, names, entry)]
    if found:
        return found  # What follows needs a graph whose names make sense.
    return [
        *_nodes(nodes),
        *_joins(nodes, edges),
        *_reachable(edges, names, entry),
        *([] if may_loop else _cycles(edges)),
    ]


def _names(nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    if not nodes:
        yield Diagnostic("empty", "the workflow has no steps; add at least one")
    counts = Counter([node.id for node in nodes] + [node.compensation_name for node in nodes if node.compensation_name])
    for name, count in sorted(counts.items()):
        if count > 1:
            yield Diagnostic(
                "duplicate_step", f"there are {count} steps named {name!r}; give each a name of its own", name
            )
        if not name:
            yield Diagnostic("unnamed_step", "a step has no name; give it one")
        if name.startswith(RESERVED_PREFIX):
            yield Diagnostic(
                "reserved_name", f"{name!r} begins with {RESERVED_PREFIX!r}, which is kept for the engine", name
            )


def _references(edges: Sequence[Edge], names: set[str], entry: str) -> Iterator[Diagnostic]:
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in names:
                yield Diagnostic("unknown_step", f"{edge.id} names {end!r}, which does not exist", edge.source)
    if names and entry not in names:
        yield Diagnostic("unknown_entry", f"the workflow begins at {entry!r}, which does not exist", entry)


def _nodes(nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    for node in nodes:
        if not 0 <= node.priority <= HIGHEST_PRIORITY:
            yield Diagnostic("priority", f"{node.id!r} has priority {node.priority}; it must be from 0 to 100", node.id)
        if isinstance(node.op, Task):
            yield from _task(node, node.op)
        if node.compensation is not None and node.compensation.retry.max_calls < 0:
            yield Diagnostic(
                "retries", f"the compensation of {node.id!r} may not have a negative number of calls", node.id
            )


def _task(node: Node, op: Task) -> Iterator[Diagnostic]:
    work = op.work
    if not work.handler:
        yield Diagnostic("no_handler", f"{node.id!r} has no handler; give a function or the name of one", node.id)
    if work.retry.max_calls < 1:
        yield Diagnostic(
            "retries", f"{node.id!r} allows {work.retry.max_calls} calls; a step needs at least one", node.id
        )
    if work.retry.delay_ms < 0:
        yield Diagnostic("retries", f"{node.id!r} has a negative delay", node.id)
    if work.timeout_ms is not None and work.timeout_ms <= 0:
        yield Diagnostic("timeout", f"{node.id!r} has a timeout of {work.timeout_ms} ms; it must be positive", node.id)


def _joins(nodes: Sequence[Node], edges: Sequence[Edge]) -> Iterator[Diagnostic]:
    by_name = {node.id: node for node in nodes}
    branches = Counter(edge.source for edge in edges if edge.on == "branch")
    for node in nodes:
        if isinstance(node.op, Split) and not branches[node.id]:
            yield Diagnostic("no_branches", f"{node.id!r} has no branches; give it at least one", node.id)
        if not isinstance(node.op, Join):
            continue
        split = by_name.get(node.op.split)
        if split is None or not isinstance(split.op, Split):
            yield Diagnostic("join_without_split", f"{node.id!r} joins {node.op.split!r}, which is not a fork", node.id)
        elif node.op.strategy == "count" and not 1 <= node.op.count <= branches[split.id] and split.op.items is None:
            many = branches[split.id]
            yield Diagnostic(
                "join_count", f"{node.id!r} needs {node.op.count} of {many} branches; it can have 1 to {many}", node.id
            )


def _reachable(edges: Sequence[Edge], names: set[str], entry: str) -> Iterator[Diagnostic]:
    out = _out(edges)
    seen, pending = {entry}, [entry]
    while pending:
        for edge in out[pending.pop()]:
            if edge.target not in seen:
                seen.add(edge.target)
                pending.append(edge.target)
    for name in sorted(names - seen):
        yield Diagnostic("unreachable", f"no way leads to {name!r}; connect it or remove it", name)


def _cycles(edges: Sequence[Edge]) -> Iterator[Diagnostic]:
    """A sorted Kahn: what cannot be put in order goes in circles."""
    forward = [edge for edge in edges if not edge.rework]
    waiting = Counter(edge.target for edge in forward)
    out = _out(forward)
    names = {end for edge in forward for end in (edge.source, edge.target)}
    ready = [name for name in sorted(names) if not waiting[name]]
    while ready:
        name = ready.pop()
        names.discard(name)
        for edge in out[name]:
            waiting[edge.target] -= 1
            if not waiting[edge.target]:
                ready.append(edge.target)
    if names:
        listed = ", ".join(repr(name) for name in sorted(names))
        yield Diagnostic("cycle", f"these steps go in a circle: {listed}; a saga may not loop", min(names))


def _out(edges: Sequence[Edge]) -> defaultdict[str, list[Edge]]:
    out: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        out[edge.source].append(edge)
    return out
