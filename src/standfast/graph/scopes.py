"""Checks the paths of tokens in a draft graph: branches that leave their split, cycles, and unreachable steps.

All traversals are iterative and linear in nodes and edges, so that long chains and deep splits are cheap. `checks`
handles single nodes and edges.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from standfast.errors import Diagnostic
from standfast.graph.model import BRANCH, Edge, EndOp, Graph, JoinOp, Node, SplitOp

LONGEST_CIRCLE = 8
"""Maximum number of steps of a cycle in a message."""
DEEPEST_FORKS = 64
"""Maximum nesting depth of splits."""

Scopes = dict[str, str | None]
"""For each reachable node the split of its branch, or None outside all branches."""
Out = defaultdict[str, list[Edge]]
"""The outgoing edges of each node."""


class GraphDraft:
    """Nodes and edges of an unchecked graph, indexed once."""

    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge], entry: str, *, on_deadline: str = "") -> None:
        counts = Counter(node.id for node in nodes)
        self.names = frozenset(counts)
        self.nodes = {node.id: node for node in nodes if counts[node.id] == 1}
        """Nodes with a unique name."""
        self.edges = sorted(edges, key=lambda edge: (edge.source, edge.id))
        self.sure = [edge for edge in self.edges if edge.source in self.nodes and edge.target in self.nodes]
        """Edges with unambiguous ends."""
        self.entry = entry
        self.on_deadline = on_deadline
        self.beginnings = [entry, on_deadline] if on_deadline else [entry]
        """The entry, and the node after the deadline."""

    def split_of(self, op: JoinOp) -> str | None:
        """Return the split of a join, or None if it names no split."""
        node = self.nodes.get(op.split)
        return op.split if node is not None and isinstance(node.op, SplitOp) else None


def check_flow(draft: GraphDraft, *, may_loop: bool) -> Iterator[Diagnostic]:
    """Yield all findings about the paths of tokens."""
    scopes, crossings = _scopes(draft)
    yield from crossings
    yield from _items(draft, scopes)
    yield from _nested(draft, scopes)
    yield from _reachable(draft)
    if not may_loop:
        yield from _cycles(draft)


def outside_of_branches(graph: Graph) -> frozenset[str]:
    """Return the nodes of a valid graph that are in no branch."""
    scopes, _ = _scopes(GraphDraft(list(graph.nodes.values()), graph.edges, graph.entry))
    return frozenset(name for name, scope in scopes.items() if scope is None)


# -- branches


def _scopes(draft: GraphDraft) -> tuple[Scopes, list[Diagnostic]]:
    """Return the scope of each node, and the paths that violate scopes.

    A token knows only the split that created it. A join therefore accepts only branches of its own split, and a node
    cannot be both inside and outside branches. An end may, because it ends every token alike. Edges that lead back
    count, because tokens take them.
    """
    scopes: Scopes = {}
    before: dict[str, str] = {}
    found: list[Diagnostic] = []
    out = _out(draft.sure)
    arrivals: deque[tuple[str, str | None, str]] = deque()
    arrivals.extend((name, None, "") for name in draft.beginnings if name in draft.nodes)
    while arrivals:
        name, scope, source = arrivals.popleft()
        op = draft.nodes[name].op
        split = draft.split_of(op) if isinstance(op, JoinOp) else None
        if split is not None and scope != split:
            found.append(_not_of_split(name, split, _way(source, scope)))
        elif name not in scopes:
            scopes[name], before[name] = scope, source
            behind = scope if split is None else scopes[split]
            for edge in out[name]:
                is_branch = isinstance(op, SplitOp) and edge.on == BRANCH
                arrivals.append((edge.target, name if is_branch else behind, name))
        elif scope != scopes[name] and not isinstance(op, EndOp):
            found.append(_mixed(name, _way(before[name], scopes[name]), _way(source, scope)))
    return scopes, found


def _not_of_split(name: str, split: str, way: str) -> Diagnostic:
    message = f"{name!r} joins the branches of {split!r}, but {way} leads to it as well; lead it past this join"
    return Diagnostic("join_scope", message, name)


def _mixed(name: str, first: str, second: str) -> Diagnostic:
    remedy = "let branches pass their join first, or give each way a step of its own"
    return Diagnostic("mixed_scope", f"to {name!r} lead both {first} and {second}; {remedy}", name)


def _way(source: str, scope: str | None) -> str:
    start = f"the way from {source!r}" if source else "the beginning"
    place = "outside of any fork" if scope is None else f"in a branch of {scope!r}"
    return f"{start} ({place})"


def _items(draft: GraphDraft, scopes: Mapping[str, str | None]) -> Iterator[Diagnostic]:
    """Yield items that hide another item of the same name, from the outer lists to the inner ones."""
    inner: defaultdict[str | None, list[str]] = defaultdict(list)
    for name, scope in scopes.items():
        if isinstance(draft.nodes[name].op, SplitOp):
            inner[scope].append(name)
    above: Counter[str] = Counter()
    pending = [(name, True) for name in inner[None]]
    while pending:
        name, is_entered = pending.pop()
        op = draft.nodes[name].op
        assert isinstance(op, SplitOp)
        if is_entered:
            pending.append((name, False))
            pending += [(each, True) for each in inner[name]]
        if op.items is None:
            continue
        if is_entered and (op.item in draft.names or above[op.item]):
            other = "a step" if op.item in draft.names else "the item of a list around it"
            message = f"the item of {name!r} and {other} are both named {op.item!r}; give the item another name"
            yield Diagnostic("item_clash", message, name)
        above[op.item] += 1 if is_entered else -1


def _nested(draft: GraphDraft, scopes: Mapping[str, str | None]) -> Iterator[Diagnostic]:
    """Yield splits nested beyond the limit. Each level lengthens the names of tokens."""
    depths: dict[str | None, int] = {None: 0}
    for name, scope in scopes.items():  # A split is visited before its branches.
        if isinstance(draft.nodes[name].op, SplitOp):
            depths[name] = depths[scope] + 1
            if depths[name] == DEEPEST_FORKS + 1:
                remedy = "call another workflow for the inner ones"
                yield Diagnostic("nested", f"{name!r} is a fork nested deeper than {DEEPEST_FORKS}; {remedy}", name)


# -- reachability


def _reachable(draft: GraphDraft) -> Iterator[Diagnostic]:
    if draft.entry not in draft.names or any(edge.target not in draft.names for edge in draft.edges):
        return  # A wrong name makes everything behind it unreachable. Reporting that would hide the cause.
    out = _out(draft.edges)
    pending = [draft.entry, *(name for name in draft.beginnings if name in draft.names)]
    seen = set(pending)
    while pending:
        following = {edge.target for edge in out[pending.pop()]} - seen
        seen |= following
        pending += following
    for name in draft.names - seen:
        yield Diagnostic("unreachable", f"no way leads to {name!r}; connect it or remove it", name)


def _cycles(draft: GraphDraft) -> Iterator[Diagnostic]:
    """Yield one finding per strongly connected component, with a shortest cycle."""
    for names in circles([edge for edge in draft.sure if not edge.rework]):
        steps = [repr(name) for name in names]
        if len(steps) > LONGEST_CIRCLE:
            steps[LONGEST_CIRCLE - 2 : -1] = [f"({len(steps) - LONGEST_CIRCLE + 1} more)"]
        message = f"{' → '.join(steps)} goes in a circle; remove the edge that leads back, or mark it as rework"
        yield Diagnostic("cycle", message, names[0])


def circles(edges: Sequence[Edge]) -> Iterator[list[str]]:
    """Yield a shortest cycle of each strongly connected component, from a node back to itself."""
    out = _out(edges)
    for knot in _knots(out):
        yield _circle(min(knot), knot, out)


def _knots(out: Out) -> Iterator[set[str]]:
    """Yield the strongly connected components (Kosaraju's algorithm).

    `graphlib` would report only the first cycle, possibly a long one. With one shortest cycle per component an author
    can correct all of them together.
    """
    back: defaultdict[str, list[str]] = defaultdict(list)
    for edge in (edge for edges in out.values() for edge in edges):
        back[edge.target].append(edge.source)
    placed: set[str] = set()
    for start in reversed(_finished(out)):
        if start in placed:
            continue
        knot, pending = {start}, [start]
        placed.add(start)
        while pending:
            fresh = set(back[pending.pop()]) - placed
            placed |= fresh
            knot |= fresh
            pending += fresh
        if len(knot) > 1 or start in back[start]:
            yield knot


def _finished(out: Out) -> list[str]:
    """Return the nodes in reverse postorder of a depth-first search."""
    order: list[str] = []
    seen: set[str] = set()
    for start in [name for name, edges in out.items() if edges]:
        trail = [] if start in seen else [(start, iter(out[start]))]
        seen.add(start)
        while trail:
            name, edges = trail[-1]
            fresh = next((edge.target for edge in edges if edge.target not in seen), None)
            if fresh is None:
                order.append(name)
                trail.pop()
            else:
                seen.add(fresh)
                trail.append((fresh, iter(out.get(fresh, ()))))
    return order


def _circle(start: str, knot: set[str], out: Out) -> list[str]:
    """Return a shortest cycle from a node through its component."""
    before: dict[str, str] = {}
    pending = deque([start])
    while start not in before:
        name = pending.popleft()
        for edge in out[name]:
            if edge.target in knot and edge.target not in before:
                before[edge.target] = name
                pending.append(edge.target)
    circle = [start, before[start]]
    while circle[-1] != start:
        circle.append(before[circle[-1]])
    return circle[::-1]


def _out(edges: Sequence[Edge]) -> Out:
    out: Out = defaultdict(list)
    for edge in edges:
        out[edge.source].append(edge)
    return out
