"""What a document still has to pass in two versions of its workflow: whether the approvals of one are as sure to be asked for in the other.

The graphs are walked here, which only operators cause who move documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from standfast.graph.index import GraphIndex, led_to
from standfast.graph.model import (
    BRANCH,
    Edge,
    GateOp,
    Graph,
    HumanOp,
    JoinOp,
    Node,
    PolicyGateOp,
    RestOp,
    SplitOp,
)
from standfast.graph.model import StateOp as StateNode
from standfast.graph.rights_diff import fewer_rights, formula_of
from standfast.machine.model.queries.edit_windows import index_of

Choice = tuple[object, ...]
"""What a node decides by, so that it can be compared with another one."""


class Versions(NamedTuple):
    """Two versions of a workflow, and what the nodes of the first are called in the second."""

    old: GraphIndex
    new: GraphIndex
    names: Mapping[str, str]

    def counterpart(self, name: str) -> str:
        """What a node is called in the other version."""
        return self.names.get(name, name)

    @property
    def guarded(self) -> set[str]:
        """The slots of the first version in which approvals or policy gates lie."""
        return {
            node.region for node in self.old.graph.nodes.values() if isinstance(node.op, HumanOp | PolicyGateOp)
        } - {""}

    def origin(self, name: str) -> str:
        """The node that has this one as its counterpart; empty if none has."""
        before = next((old for old, new in self.names.items() if new == name), name)
        is_one = before in self.old.graph.nodes and self.counterpart(before) == name
        return before if is_one else ""


def lost_ahead(versions: Versions, place: str) -> Iterator[str]:
    """Why approvals that lie between a node and the gates behind it are not as sure to be asked for from its counterpart on."""
    old = _Walk(versions.old, place)
    new = _Walk(versions.new, versions.counterpart(place))
    for name in old.walls:
        if name != place and (told := _lost(versions, old, new, name)):
            yield f"{name!r} lies ahead of {place!r}, and {told}"


def passed_over(versions: Versions, place: str, approved: Iterable[str]) -> Iterator[str]:
    """Why approvals that come before the counterpart of a node would be passed over: nobody has decided them, and no choice has led around them."""
    at = versions.counterpart(place)
    slot = versions.new.node(at).region
    entry, before = index_of(versions.new).way_in(slot), index_of(versions.old).way_in(slot)
    if not slot or at == entry:
        return
    known = {versions.counterpart(each) for each in approved}
    new, old = _Walk(versions.new, entry, until=at), _Walk(versions.old, before, until=place)
    for name in new.walls:
        if name == at or name in known or not new.leads(name, at):
            continue
        origin = versions.origin(name)
        was_met = origin in old.walls and old.leads(origin, place)
        is_settled = was_met and (not old.can_avoid(origin) or _same(versions, old, new, origin, is_exact=True))
        if not is_settled:
            yield f"{name!r} comes before {at!r} there, and was not decided; have it end where it is, or bring it back to its state first"


def eased(versions: Versions) -> list[str]:
    """What the other version asks of others, by other rules, or not as surely: approvals, the steps ahead of them that are others there, and rights."""
    found: dict[str, None] = {}
    for slot in index_of(versions.old).regions:
        entry, other = index_of(versions.old).way_in(slot), index_of(versions.new).way_in(slot)
        if not entry:
            continue
        old, new = _Walk(versions.old, entry), _Walk(versions.new, other) if other else None
        for name in old.walls:
            if new is None or _lost(versions, old, new, name) or asks_others(versions, name):
                found[name] = None
    old_one, new_one = versions.old.graph, versions.new.graph
    rights = [each.name for each in fewer_rights(old_one, new_one, versions.guarded, called=versions.counterpart)]
    return list(dict.fromkeys([*found, *_changed_ahead(versions), *rights]))


def asks_others(versions: Versions, name: str) -> bool:
    """Whether the counterpart of a question asks others, or lets them decide by other rules."""
    node, other = versions.old.node(name), versions.new.graph.nodes.get(versions.counterpart(name))
    if other is None or not isinstance(node.op, HumanOp) or not isinstance(other.op, HumanOp):
        return False
    apart = {versions.counterpart(each) for each in versions.old.apart(name)}
    return _work(node) != _work(other) or apart != set(versions.new.apart(other.id))


def _changed_ahead(versions: Versions) -> Iterator[str]:
    """The steps of slots from which a way leads to an approval, across gates too, that are not the same in the other version, or not there.

    A step that only leads to another one than before is not named if that is new or gone, nor is a new question behind all approvals.
    """
    walls = [name for name, node in versions.old.graph.nodes.items() if isinstance(node.op, HumanOp | PolicyGateOp)]
    there = [*map(versions.counterpart, walls)]
    old = _ahead(versions.old.graph, walls, versions.counterpart)
    new = _ahead(versions.new.graph, there, str)
    behind = new.keys() - _leading_to(versions.new.graph, there, is_forward=True)
    alone = old.keys() ^ new.keys()
    for name in old | new:
        one, other = old.get(name), new.get(name)
        if one is None and name in behind and isinstance(versions.new.node(name).op, HumanOp):
            continue
        if (
            one is None
            or other is None
            or one.work != other.work
            or (one != other and alone.isdisjoint({*one.leads, *other.leads}))
        ):
            yield versions.origin(name) or name


class _Ahead(NamedTuple):
    """A step ahead of an approval."""

    work: Choice
    leads: tuple[str, ...]
    """Where its ways lead."""


def _ahead(graph: Graph, walls: Iterable[str], called: Callable[[str], str]) -> dict[str, _Ahead]:
    """The steps from which a way leads to one of these, by what they are called."""
    out = defaultdict[str, list[Edge]](list)
    for edge in sorted(graph.edges, key=lambda edge: (edge.on, edge.priority)):
        out[edge.source].append(edge)
    nodes = [graph.nodes[name] for name in sorted(_leading_to(graph, walls)) if graph.nodes[name].region]
    return {
        called(node.id): _Ahead(
            (_work(node, called), *map(_conditions, out[node.id])), tuple(called(each.target) for each in out[node.id])
        )
        for node in nodes
    }


def _leading_to(graph: Graph, names: Iterable[str], *, is_forward: bool = False) -> set[str]:
    """The nodes from which a way leads to one of these, also by leading back unless only ways forward count."""
    into = defaultdict[str, list[str]](list)
    for edge in graph.edges:
        if not (is_forward and edge.rework):
            into[edge.target].append(edge.source)
    return led_to(into, *names)


def _conditions(edge: Edge) -> Choice:
    return (edge.on, repr(edge.when), edge.capability, repr(edge.assign))


def _work(node: Node, called: Callable[[str], str] = str) -> str:
    """All that a node does, without its names, and without what a question says and shows."""
    op = node.op
    if isinstance(op, HumanOp):
        op = replace(op, subject="", template=None, shows={}, channels=(), distinct_from=())
    elif isinstance(op, JoinOp):
        op = replace(op, split=called(op.split))
    return repr(replace(node, id="", op=op, metadata={}))


def _lost(versions: Versions, old: _Walk, new: _Walk, name: str) -> str:
    """Why what lies ahead of a place is not as sure to be met from its counterpart on; empty if it is."""
    node, called = versions.old.node(name), versions.counterpart(name)
    if called not in new.walls:
        return "nothing there asks for it; let the document end where it is"
    other = versions.new.node(called)
    if (told := _weaker(versions, node, other)) or other.region != node.region:
        return told or "its counterpart is in another slot"
    if not new.exits(called) <= old.exits(name):
        return f"{called!r} is left there in ways by which nobody approves"
    if new.can_avoid(called) and not _same(versions, old, new, name):
        return f"there is another way around {called!r} there, or other data says whether it is taken"
    return ""


def _weaker(versions: Versions, node: Node, other: Node) -> str:
    if isinstance(node.op, PolicyGateOp):
        is_same = isinstance(other.op, PolicyGateOp) and (other.op.action, other.op.of) == (node.op.action, node.op.of)
        return "" if is_same and node.run_as == other.run_as else f"{other.id!r} asks for something else there"
    if not isinstance(node.op, HumanOp) or not isinstance(other.op, HumanOp):
        return f"{other.id!r} is of another kind there"
    if (node.op.pins, node.op.approval) != (other.op.pins, other.op.approval):
        return f"{other.id!r} approves something else there"
    index = index_of(versions.new)
    lost = index_of(versions.old).covered(node.op.covers) - index.covered(other.op.covers)
    if lost & index.spec.fields.keys():
        return f"{other.id!r} covers less there"
    return ""


def _same(versions: Versions, old: _Walk, new: _Walk, name: str, *, is_exact: bool = False) -> bool:
    """Whether what leads around a node in the new version has done so in the old one, for the same reasons, and by data that is made in the same way."""
    before = {versions.counterpart(each): choice for each, choice in old.choices(name).items()}
    after = new.choices(versions.counterpart(name))
    if before != after if is_exact else any(before.get(each) != choice for each, choice in after.items()):
        return False
    fed = old.feeding(map(versions.origin, after), versions.counterpart)
    return fed == new.feeding(after) and _computed_alike(versions)


def _computed_alike(versions: Versions) -> bool:
    """Whether the fields of the document are computed there as they are here."""
    old, new = (index_of(each).spec.fields for each in (versions.old, versions.new))
    return all(formula_of(field) == formula_of(new.get(name)) for name, field in old.items())


class _Walk:
    """The nodes between a place and the gates, states and rests behind it."""

    def __init__(self, routes: GraphIndex, place: str, *, until: str = "") -> None:
        self._routes = routes
        self._place = place
        self._until = until
        self._out: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in routes.graph.edges:
            self._out[edge.source].append(edge)
        self._nodes = self._reached(place)
        self._into: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._nodes:
            for edge in () if self._is_stop(name) else self._out[name]:
                self._into[edge.target].append(name)
        self.walls = {name: None for name in self._nodes if isinstance(routes.node(name).op, HumanOp | PolicyGateOp)}
        """The approvals and policy gates among them."""

    def leads(self, name: str, target: str) -> bool:
        """Whether a way leads from one of them to another."""
        return target in self._reached(name)

    def can_avoid(self, wall: str) -> bool:
        """Whether a way leads around a node, or a list says how often it is met."""
        return self._place != wall and (self._place in self._avoiding(wall) or bool(self._lists(wall)))

    def exits(self, wall: str) -> set[Choice]:
        """The ways on from an approval by which it was not given."""
        op = self._routes.node(wall).op
        good = op.approval if isinstance(op, HumanOp) else "ok"
        return {(edge.on, repr(edge.when), edge.capability) for edge in self._out[wall] if edge.on != good}

    def choices(self, wall: str) -> dict[str, Choice]:
        """The nodes that choose whether a node is met, or how often, with what they choose by."""
        around, to, lists = self._avoiding(wall), self._leading([wall]), self._lists(wall)
        found = {}
        for name in self._nodes:
            ways = [] if self._is_stop(name) or name == wall else self._out[name]
            told = [(edge, edge.target in to or edge.target == wall, edge.target in around) for edge in ways]
            is_choosing = name in around and name in to and len({(meets, avoids) for _, meets, avoids in told}) > 1
            if is_choosing or name in lists:
                found[name] = self._choice(name, told)
        return found

    def feeding(self, choosers: Iterable[str], called: Callable[[str], str] = str) -> dict[str, Choice]:
        """The nodes ahead of those that choose that give them data, with what they do, by what they are called. Questions are compared as such."""
        nodes = [self._routes.node(name) for name in self._leading(choosers)]
        return {
            called(node.id): (_work(node, called), *map(_conditions, self._out[node.id]))
            for node in nodes
            if (node.op.is_answering and not isinstance(node.op, HumanOp)) or any(e.assign for e in self._out[node.id])
        }

    def _choice(self, name: str, told: list[tuple[Edge, bool, bool]]) -> Choice:
        node = self._routes.node(name)
        join = self._routes.join_of(name)
        ways = sorted((e.priority, e.on, repr(e.when), e.capability, meets, avoids) for e, meets, avoids in told)
        return (_work(node), None if join is None else _arrivals(join), tuple(ways))

    def _reached(self, place: str) -> dict[str, None]:
        found: dict[str, None] = {}
        waiting = [place]
        while waiting:
            name = waiting.pop()
            if name and name not in found:
                found[name] = None
                waiting += [] if self._is_stop(name) and name != place else [e.target for e in self._out[name]]
        return found

    def _is_stop(self, name: str) -> bool:
        return name == self._until or (
            isinstance(self._routes.node(name).op, GateOp | StateNode | RestOp) and name != self._place
        )

    def _lists(self, wall: str) -> list[str]:
        """The splits over a list, for each entry of which a node is met."""
        splits = [name for name in self._nodes if isinstance(op := self._routes.node(name).op, SplitOp) and op.items]
        joins = [self._routes.join_of(name) for name in splits]
        return [
            name
            for name, join in zip(splits, joins, strict=True)
            if wall in _Walk(self._routes, name, until="" if join is None else join.id).walls
        ]

    def _leading(self, to: Iterable[str]) -> set[str]:
        """The nodes from which a way leads to one of some."""
        return self._back(to, without="")

    def _avoiding(self, wall: str) -> set[str]:
        """The nodes from which the end can be reached without a node. Branches that all have to arrive are gone all."""
        return self._back([each for each in self._nodes if self._is_stop(each)], without=wall)

    def _back(self, ends: Iterable[str], *, without: str) -> set[str]:
        found: set[str] = set()
        waiting = [each for each in ends if each != without]
        while waiting:
            name = waiting.pop()
            if name in found or name == without or (without and self._needs_more(name, found)):
                continue
            found.add(name)
            waiting += self._into[name]
        return found

    def _needs_more(self, name: str, found: set[str]) -> bool:
        """Whether a split sends tokens down all of its branches, and not all of these can go on."""
        if not isinstance(self._routes.node(name).op, SplitOp) or not self._waits_for_all(name):
            return False
        return not all(edge.target in found for edge in self._out[name] if edge.on == BRANCH)

    def _waits_for_all(self, name: str) -> bool:
        join = self._routes.join_of(name)
        is_plain = all(edge.when is None for edge in self._out[name] if edge.on == BRANCH)
        op = None if join is None else join.op
        return is_plain and isinstance(op, JoinOp) and op.strategy == "all" and op.accept is None and op.abort is None


def _arrivals(join: Node) -> Choice:
    op = join.op
    assert isinstance(op, JoinOp)
    return (op.strategy, op.count, op.losers, repr(op.accept), repr(op.abort))
