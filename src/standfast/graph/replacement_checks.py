"""Checks whether a tenant's workflow may replace the shared one of its name: only if that allows it, and never with weaker rights.

Steps may have other names, so paths are compared. Whatever the shared workflow reaches only after a capability or a
four-eyes task, the replacement must reach only after the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from standfast.errors import Diagnostic
from standfast.graph.model import (
    ANY_OUTCOME,
    ERROR,
    TIMEOUT,
    WITHDRAWN,
    CallOp,
    Edge,
    EndOp,
    Graph,
    HumanOp,
    JoinOp,
    Node,
)
from standfast.kernel.actor import Needed, needed_names, needed_words

Walls: TypeAlias = frozenset[str]
"""The requirements on every path to a place, as words for messages."""

_UNASKED: Final = frozenset({TIMEOUT, ERROR, WITHDRAWN, ANY_OUTCOME})
"""Outcomes of a step without an answer."""
_SELF: Final = "a task that the starter of the run may not answer"
_DISTINCT: Final = "a task that another person has to answer"
_NONE: Final[Walls] = frozenset()
_RETRY: Final = "retry"
"""Metadata key of the capability to retry a step of a process."""


def replacing_findings(shared: Graph, own: Graph) -> Iterator[Diagnostic]:
    """Yield why a tenant's workflow may not replace the shared one. It may require more, but never less."""
    if not shared.rights.replaceable:
        told = (
            f"all tenants share a workflow {shared.name!r}, which tenants may not replace; give this one another name"
        )
        yield Diagnostic("shared_name", f"{told}, or have the shared one published with `replaceable`", "name")
        return
    found = [*_rights(shared, own), *_steps(shared, own), *_ways(shared, own)]
    for place, told in found or _reached(shared, own):
        yield Diagnostic("fewer_rights", f"the shared workflow {shared.name!r} {told}", place)


_Told: TypeAlias = Iterator[tuple[str, str]]


def _rights(shared: Graph, own: Graph) -> _Told:
    before, after = shared.rights, own.rights
    yield from _capability("start", "to start it", before.start, after.start)
    yield from _capability("cancel", "to cancel it", before.cancel or before.start, after.cancel or after.start)


def _steps(shared: Graph, own: Graph) -> _Told:
    """Yield the differences between steps with the same id."""
    for name, one in shared.nodes.items():
        other = own.nodes.get(name)
        if other is None:
            continue
        yield from _capability(name, f"in {name!r}", one.capability, other.capability)
        if _RETRY in one.metadata and _RETRY in other.metadata:
            guards = (str(each.metadata[_RETRY]) for each in (one, other))
            yield from _capability(name, f"to retry {name!r}", *guards)
        if isinstance(one.op, HumanOp) and isinstance(other.op, HumanOp):
            yield from _four_eyes(name, one.op, other.op)


def _capability(place: str, where: str, wanted: Needed, given: Needed) -> _Told:
    lacking = tuple(each for each in needed_names(wanted) if each not in needed_names(given))
    if lacking:
        yield place, f"requires {needed_words(lacking)} {where}; require it here too"


def _four_eyes(name: str, one: HumanOp, other: HumanOp) -> _Told:
    if other.self_approval and not one.self_approval:
        yield name, f"has `self_approval: false` in {name!r}; keep that"
    if not {*one.distinct_from} <= {*other.distinct_from} or other.distinct_approvers < one.distinct_approvers:
        yield name, f"has others than those of earlier questions answer {name!r}; keep that"


def _ways(shared: Graph, own: Graph) -> _Told:
    """Yield the differences between transitions from steps with the same id by the same event."""
    before, after = _grouped(shared), _grouped(own)
    for (source, event), ways in before.items():
        if not any(each.capability for each in ways):
            continue
        own_ways = after.get((source, event)) or after.get((source, ANY_OUTCOME), [])
        for lacking in _unguarded(ways, own_ways):
            yield (
                source,
                f"requires the capability {lacking!r} on the way from {source!r} by {event!r}; require it here too",
            )


def _grouped(graph: Graph) -> dict[tuple[str, str], list[Edge]]:
    found: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in sorted(graph.edges, key=lambda each: (each.priority, each.id)):
        found[edge.source, edge.on].append(edge)
    return found


def _unguarded(ways: Sequence[Edge], own: Sequence[Edge]) -> list[str]:
    """Return the guards that a path of the tenant drops.

    An unguarded path must have a counterpart with the same condition and guards in the shared workflow.
    """
    lacking = set[str]()
    for place, way in enumerate(ways):
        if not way.capability:
            continue
        open_ways = [at for at, each in enumerate(own) if each.capability != way.capability]
        same = [at for at, each in enumerate(own) if (each.when, each.capability) == (way.when, way.capability)]
        first = [each.when for each in ways[:place] if each.capability != way.capability]
        behind = [each.when for each in ways[place + 1 :] if each.capability != way.capability]
        for at in open_ways:
            is_before = not same or at < same[0]
            if own[at].when not in (first if is_before else [*first, *behind]):
                lacking.add(way.capability)
    return sorted(lacking)


def _reached(shared: Graph, own: Graph) -> _Told:
    """Yield the weaker requirements on what both workflows do, whatever the names of their steps."""
    before, after = _effects(shared), _effects(own)
    for what, walls in before.items():
        lacking = walls - after.get(what, walls)
        if lacking:
            place, told = what
            yield place, f"reaches {told} only behind {' and '.join(sorted(lacking))}; put the same before it here"


def _effects(graph: Graph) -> dict[tuple[str, str], Walls]:
    """Return the requirements before each effect of a workflow, common to all steps that have it."""
    found: dict[tuple[str, str], Walls] = {}
    led = {edge.source for edge in graph.edges}
    before = _before(graph)
    for name, node in graph.nodes.items():
        walls = before[name] | _words(() if node.op.call is None else needed_names(node.op.call.capability))
        done = [(name, repr(name))]
        if node.op.call is not None:
            done.append((node.op.call.handler, f"the handler {node.op.call.handler!r}"))
        if isinstance(node.op, CallOp):
            done.append((node.op.definition, f"the workflow {node.op.definition!r}"))
        if isinstance(node.op, EndOp) and node.op.status == "completed":
            done.append((node.op.outcome, f"the end {node.op.outcome!r}" if node.op.outcome else "its end"))
        if not isinstance(node.op, EndOp) and name not in led:
            done.append(("", "its end"))
            walls |= _asked(node, "")
        for each in done:
            found[each] = found[each] & walls if each in found else walls
    return found


def _before(graph: Graph) -> dict[str, Walls]:
    """Return the requirements that a token has passed on every path to each node."""
    into: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        into[edge.target].append(edge)
    every = frozenset().union(
        *(_asked(node, "") for node in graph.nodes.values()), *(_words([edge.capability]) for edge in graph.edges)
    )
    found = dict.fromkeys(graph.nodes, every)
    found |= dict.fromkeys({graph.entry, graph.policies.on_deadline} & graph.nodes.keys(), _NONE)
    while True:
        fresh = {name: _entered(graph, found, name, into[name]) if into[name] else found[name] for name in found}
        if fresh == found:
            return found
        found = fresh


def _entered(graph: Graph, found: dict[str, Walls], name: str, ways: Sequence[Edge]) -> Walls:
    passed = [found[way.source] | _asked(graph.nodes[way.source], way.on) | _words([way.capability]) for way in ways]
    op = graph.nodes[name].op
    if isinstance(op, JoinOp) and op.strategy == "all":
        return frozenset().union(*passed)
    at_once = [_NONE] if name in {graph.entry, graph.policies.on_deadline} else []
    return frozenset.intersection(*passed, *at_once)


def _asked(node: Node, on: str) -> Walls:
    """Return the rights required for a node to have an outcome."""
    if on in _UNASKED:
        return _NONE
    walls = set(_words(needed_names(node.capability)))
    if node.op.call is not None:
        walls |= _words(needed_names(node.op.call.capability))
    if isinstance(node.op, HumanOp):
        walls |= set() if node.op.self_approval else {_SELF}
        walls |= {_DISTINCT} if node.op.distinct_from or node.op.distinct_approvers else set()
    return frozenset(walls)


def _words(capabilities: Iterable[str]) -> Walls:
    return frozenset(f"the capability {each!r}" for each in capabilities if each)
