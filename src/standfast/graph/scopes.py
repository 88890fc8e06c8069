"""Where tokens can go in a draft of a graph, and what is wrong with their ways: branches that leave their fork, circles, steps without a way to them.

Every walk is a loop that touches nodes and edges a fixed number of times, so long chains and wide or deep forks cost no more than
their size. What a node or an edge says about itself is the business of `checks`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from standfast.errors import Diagnostic
from standfast.graph.model import BRANCH, Edge, EndOp, Graph, JoinOp, Node, SplitOp

LONGEST_CIRCLE = 8
"""How many steps of a circle a message lists."""
DEEPEST_FORKS = 64
"""How deep forks may lie inside of one another."""

Scopes = dict[str, str | None]
"""For each node that has a way to it: the split whose branches it belongs to, or None outside of any."""
Out = defaultdict[str, list[Edge]]
"""The edges that lead on from each node."""


class GraphDraft:
    """Nodes and edges that may be wrong, indexed once."""

    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge], entry: str, *, on_deadline: str = "") -> None:
        counts = Counter(node.id for node in nodes)
        self.names = frozenset(counts)
        self.nodes = {node.id: node for node in nodes if counts[node.id] == 1}
        """Nodes whose name stands for them alone."""
        self.edges = sorted(edges, key=lambda edge: (edge.source, edge.id))
        self.sure = [edge for edge in self.edges if edge.source in self.nodes and edge.target in self.nodes]
        """Edges of which it is clear from where to where they lead."""
        self.entry = entry
        self.on_deadline = on_deadline
        self.beginnings = [entry, on_deadline] if on_deadline else [entry]
        """Where a run begins, and where it goes to when its time is over."""

    def split_of(self, op: JoinOp) -> str | None:
        """The split whose branches meet at a join; None if what it names is no split."""
        node = self.nodes.get(op.split)
        return op.split if node is not None and isinstance(node.op, SplitOp) else None


def check_flow(draft: GraphDraft, *, may_loop: bool) -> Iterator[Diagnostic]:
    """Everything that is wrong with the ways of tokens."""
    scopes, crossings = _scopes(draft)
    yield from crossings
    yield from _items(draft, scopes)
    yield from _nested(draft, scopes)
    yield from _reachable(draft)
    if not may_loop:
        yield from _cycles(draft)


def outside_of_branches(graph: Graph) -> frozenset[str]:
    """The nodes of a sound graph that belong to no branch."""
    scopes, _ = _scopes(GraphDraft(list(graph.nodes.values()), graph.edges, graph.entry))
    return frozenset(name for name, scope in scopes.items() if scope is None)


# -- branches


def _scopes(draft: GraphDraft) -> tuple[Scopes, list[Diagnostic]]:
    """The scope of each node, and the ways that break the order of scopes.

    A token knows only the split that made it. So one that comes to a join must come from this join's split, and a node cannot
    belong to branches and to what lies outside of them. An end may: it ends every token alike. Edges that lead back count,
    because tokens take them.
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
    """Items that would hide something else of the same name, in a walk from the outer lists to the inner ones."""
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
    """Forks so deep inside of others that nobody has written them; every level makes the names of tokens longer."""
    depths: dict[str | None, int] = {None: 0}
    for name, scope in scopes.items():  # A fork is met before what lies in its branches.
        if isinstance(draft.nodes[name].op, SplitOp):
            depths[name] = depths[scope] + 1
            if depths[name] == DEEPEST_FORKS + 1:
                remedy = "call another workflow for the inner ones"
                yield Diagnostic("nested", f"{name!r} is a fork nested deeper than {DEEPEST_FORKS}; {remedy}", name)


# -- ways


def _reachable(draft: GraphDraft) -> Iterator[Diagnostic]:
    if draft.entry not in draft.names or any(edge.target not in draft.names for edge in draft.edges):
        return  # A wrong name cuts off all that lies behind it; to list that would hide the cause.
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
    """One finding for each knot of steps that lead back to themselves, with a shortest circle of it."""
    for names in circles([edge for edge in draft.sure if not edge.rework]):
        steps = [repr(name) for name in names]
        if len(steps) > LONGEST_CIRCLE:
            steps[LONGEST_CIRCLE - 2 : -1] = [f"({len(steps) - LONGEST_CIRCLE + 1} more)"]
        message = f"{' → '.join(steps)} goes in a circle; remove the edge that leads back, or mark it as rework"
        yield Diagnostic("cycle", message, names[0])


def circles(edges: Sequence[Edge]) -> Iterator[list[str]]:
    """For each knot of nodes that lead back to themselves a shortest circle of it, from a node to that node."""
    out = _out(edges)
    for knot in _knots(out):
        yield _circle(min(knot), knot, out)


def _knots(out: Out) -> Iterator[set[str]]:
    """Groups of nodes that all lead to one another (Kosaraju's two walks: along the edges, then against them).

    `graphlib` would stop at the first circle that it meets, a long one as likely as a short one. An author who is told of
    each knot, by its shortest circle, mends all of them at once.
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
    """The nodes that lead on, each after all that lies behind it, as far as circles allow."""
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
    """A shortest way from a node of a knot back to itself."""
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
