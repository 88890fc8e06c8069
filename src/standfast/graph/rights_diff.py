"""Compares the rights that two graphs of one document type require: finds what callers may do in the second but not in the first.

It compares a tenant's contract with the shared one, and the target version of a migration with the current one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from standfast.graph.document_checks import actions_of
from standfast.graph.document_spec import (
    WINDOWS,
    DocumentAction,
    DocumentField,
    DocumentSpec,
    DocumentTransition,
    Region,
    Window,
)
from standfast.graph.index import led_to
from standfast.graph.model import REJECT, TIMEOUT, GateOp, Graph, ProxyOp, RestOp, StateOp

_NOWHERE = ""
"""Source of a new document."""


class LostRights(NamedTuple):
    """A requirement that is weaker in the second graph."""

    name: str
    """The transition, status, action or field."""
    told: str
    """The requirement in the first graph."""
    remedy: str


class _Asks(NamedTuple):
    """The requirements of a path or an action. Empty means none."""

    capability: str = ""
    policies: frozenset[tuple[tuple[str, ...], str]] = frozenset()
    """Roles and conditions, one of which must hold. Empty means that no policy applies."""
    by: Literal["", "itself", "timeout", "rejection", "amendment"] = ""
    """Automatic cause of the path. Empty if a caller requests it."""
    after_ms: int = 0
    slots: frozenset[str] = frozenset()
    """The slots before its gate, which may contain approvals and policy gates."""
    is_own: bool = False
    """Whether only the creator of the document or the requester of its transition may request it."""

    def is_no_less_than(self, other: _Asks) -> bool:
        """Return whether the requirements are the same or stronger."""
        is_permitted = other.capability in {"", self.capability}
        is_allowed = not other.policies or (bool(self.policies) and self.policies <= other.policies)
        is_as_late = self.by == other.by and self.after_ms >= other.after_ms
        return is_as_late and is_permitted and is_allowed and self.is_guarded_as(other)

    def is_guarded_as(self, other: _Asks) -> bool:
        """Return whether the path passes the same slots and excludes at least the same people."""
        return self.slots >= other.slots and self.is_own >= other.is_own


_FREE = _Asks()


class _Way(NamedTuple):
    """A path from one status to another."""

    source: str
    target: str
    asks: _Asks
    name: str = ""
    """Its transition. Empty for the creation or amendment of a document."""

    @property
    def words(self) -> str:
        """Description for messages."""
        return {
            "": f"the transition {self.name!r}" if self.name else "a new document",
            "itself": f"{self.name!r}, which begins by itself,",
            "timeout": f"{self.name!r}, which begins after a time,",
            "rejection": f"a rejection before {self.name!r}",
            "amendment": "an amendment",
        }[self.asks.by]


def fewer_rights(
    before: Graph, after: Graph, slots: Collection[str], *, called: Callable[[str], str] = str
) -> Iterator[LostRights]:
    """Yield what callers may do to documents of the second graph but not of the first.

    No path of the second graph may bypass one of these slots of the first. The content of the slots is not compared.
    """
    old, new = _spec(before), _spec(after)
    lesser = {each.name: each for each in _transitions(old, new)}
    yield from lesser.values()
    for way in _statuses(before, after, slots):
        if way.asks.by or way.name not in lesser:
            told = f"{way.words} leads to {way.target!r}, which requires more here"
            yield LostRights(way.name or way.target, told, "ask for the same on every way to it")
    yield from _actions(old, new)
    yield from _windows(before, after, called)
    yield from _regions(old.regions, new.regions)
    yield from _completed(before, after)
    yield from _fields(old.fields, new.fields, "")
    if old.on_drift == "fail" != new.on_drift:
        yield LostRights("on_drift", "a change in a stable slot is a mistake", "keep `on_drift: fail`")
    if new.self_approval and not old.self_approval:
        told = "authors must not approve their own documents"
        yield LostRights("self_approval", told, "leave `self_approval` out")


def _spec(graph: Graph) -> DocumentSpec:
    assert graph.document is not None
    return graph.document


# -- paths to a status


def _transitions(before: DocumentSpec, after: DocumentSpec) -> Iterator[LostRights]:
    """Yield the weaker transitions with the same name, wherever they lead."""
    known = {each.name: each for each in before.transitions}
    for each in after.transitions:
        if each.name in known:
            yield from _less(
                f"the transition {each.name!r}", each.name, _asked(before, known[each.name]), _asked(after, each)
            )


def _less(what: str, name: str, one: _Asks, other: _Asks) -> Iterator[LostRights]:
    if one.is_own and not other.is_own:
        told = f"only those who created the document or asked for its transition may ask for {name!r}"
        yield LostRights(name, told, "keep `kind: recall`")
    elif not other._replace(policies=one.policies).is_no_less_than(one):
        yield LostRights(name, f"{what} takes {one.capability!r}", "ask for that `permission` here too")
    elif not other.is_no_less_than(one):
        yield LostRights(name, f"policies say who may do {name!r}", "take them over for it, and no others")


def _asked(spec: DocumentSpec, of: DocumentTransition | DocumentAction) -> _Asks:
    about = [each for each in spec.policies if of.name in each.actions]
    is_own = isinstance(of, DocumentTransition) and of.kind == "recall"
    policies = frozenset((tuple(sorted(each.roles)), str(each.when)) for each in about)
    return _Asks(of.capability, policies, is_own=is_own)


def ways_around(before: Graph, after: Graph, slots: Collection[str], status: str) -> Iterator[str]:
    """Yield the paths of the second graph that bypass these slots: the first graph reaches their target only through one of them."""
    old = list(_ways(before, slots))
    free, ways = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for way in old:
        ways[way.source].add(way.target)
        free[way.source] |= set() if way.asks.slots else {way.target}
    near = {status} | led_to(free, status) | (led_to(free, _NOWHERE) - led_to(ways, status))
    for way, sources in _new_ways(before, after):
        same = (each for each in old if (each.source, each.target) == (status, way.target))
        if status in sources and way.target not in near and not any(way.asks.slots >= e.asks.slots for e in same):
            yield f"{way.words} leads from {status!r} to {way.target!r} there, around approvals that are asked for here"


def _statuses(before: Graph, after: Graph, slots: Collection[str]) -> Iterator[_Way]:
    """Yield the paths to a status with weaker requirements than those of the first graph, or that bypass a required one.

    A document with a status in the second graph could have it in the first, so each path can be compared separately.
    """
    old = _Known(_ways(before, slots))
    for way, sources in _new_ways(before, after):
        if not all(old.has(way, each) for each in sources):
            yield way


def _new_ways(before: Graph, after: Graph) -> Iterator[tuple[_Way, set[str]]]:
    """Yield the paths of the second graph to a status of the first, with the first graph's statuses from which they start."""
    known = {_NOWHERE, *_spec(before).states}
    new = list(_ways(after))
    into = defaultdict[str, set[str]](set)
    for way in new:
        into[way.target] |= set() if way.target in known else {way.source}
    sources = {each: ({each} | led_to(into, each)) & known for each in {way.source for way in new}}
    yield from ((way, sources[way.source]) for way in new if way.target in known)


class _Known:
    """The paths of the first graph by target."""

    def __init__(self, ways: Iterable[_Way]) -> None:
        self._into = defaultdict[str, list[_Way]](list)
        self._free = defaultdict[str, set[str]](set)
        self._near: dict[str, set[str]] = {}
        for way in dict.fromkeys(ways):
            self._into[way.target].append(way)
            if way.asks == _FREE:
                self._free[way.source].add(way.target)

    def has(self, own: _Way, source: str) -> bool:
        """Return whether a document could take an equal path, from a status or from one reachable without requirements."""
        if source not in self._near:
            self._near[source] = {_NOWHERE, source} | led_to(self._free, _NOWHERE, source)
        near = self._near[source]
        direct = [each.asks for each in self._into[own.target] if each.source == source and not each.asks.by]
        if direct and not own.asks.by and not any(map(own.asks.is_guarded_as, direct)):
            return False
        return own.target in near or any(
            each.source in near and own.asks.is_no_less_than(each.asks) for each in self._into[own.target]
        )


def _ways(graph: Graph, slots: Collection[str] | None = None) -> Iterator[_Way]:
    """Yield all paths to a status, with the slots that they pass."""
    spec = _spec(graph)
    guarding = [each for each in spec.regions if slots is None or each.id in slots]
    yield _Way(_NOWHERE, spec.initial, _FREE)
    if spec.amended in spec.states:
        yield _Way(_NOWHERE, spec.amended, _Asks(by="amendment"))
        if spec.amendment == "new_row":
            yield _Way(_NOWHERE, spec.superseded, _Asks(by="amendment"))
        else:
            kept = [name for name, window in spec.states.items() if window != "editable" and name not in spec.terminal]
            yield from (_Way(each, spec.amended, _Asks(by="amendment")) for each in kept)
    for each in spec.transitions:
        for source in each.sources:
            slot = _before(graph, guarding, source, each.name)
            yield _Way(source, each.target, _asked(spec, each)._replace(slots=slot), each.name)
            if each.begins == "by_itself":
                yield _Way(source, each.target, _Asks(by="itself", slots=slot), each.name)
    yield from _ways_of_edges(graph, spec, guarding)


def _before(graph: Graph, slots: Iterable[Region], status: str, transition: str) -> frozenset[str]:
    """Return the slots between a status and the gate of a transition."""
    ends = [(each.id, graph.nodes[each.entry].op, graph.nodes[each.exit].op) for each in slots]
    return frozenset(
        name
        for name, entry, exit_ in ends
        if isinstance(entry, StateOp)
        and isinstance(exit_, GateOp)
        and (entry.status, exit_.transition) == (status, transition)
    )


def _ways_of_edges(graph: Graph, spec: DocumentSpec, guarding: Iterable[Region]) -> Iterator[_Way]:
    """Yield the automatic paths: after a rejection or a timeout."""
    exits = {each.id: each.exit for each in spec.regions}
    transitions = {each.name: each for each in spec.transitions}
    for edge in graph.edges:
        source, to = graph.nodes[edge.source], graph.nodes[edge.target].op
        if edge.on == REJECT and isinstance(source.op, GateOp) and isinstance(to, StateOp):
            name = source.op.transition
            for status in transitions[name].sources:
                yield _Way(status, to.status, _Asks(by="rejection"), name)
        elif edge.on == TIMEOUT and isinstance(source.op, StateOp):
            gate = graph.nodes[exits[to.slot]].op if isinstance(to, ProxyOp) else to
            if isinstance(gate, GateOp):
                slot = _before(graph, guarding, source.op.status, gate.transition)
                asks = _Asks(by="timeout", after_ms=source.timeout_ms or 0, slots=slot)
                yield _Way(source.op.status, transitions[gate.transition].target, asks, gate.transition)


# -- actions on a document


def _actions(before: DocumentSpec, after: DocumentSpec) -> Iterator[LostRights]:
    """Yield the weaker actions.

    An action without a counterpart is compared with an edit, as is an amendment without a declared action.
    """
    known, own = actions_of(before), actions_of(after)
    for name in sorted({*known, *own}):
        other = own.get(name, own["update"] if name == "amend" else None)
        if other is None:
            continue
        edit = known["create" if other.creates else "update"]
        one = known.get(name, edit)
        does_more = name not in known or not _does_no_more(other, one)
        for base in dict.fromkeys((one.name, edit.name if does_more else one.name)):
            yield from _less(f"the action {name!r}", name, _asked(before, known[base]), _asked(after, other))
        if does_more and not _does_no_more(other, edit):
            told = f"no action changes all that {name!r} changes here"
            yield LostRights(name, told, "take over its `payload`, `handler` and `creates`, or leave it out")
        if other.workflow_allowed and not one.workflow_allowed:
            yield LostRights(name, f"the workflow may not do {name!r}", "leave `workflow_allowed` out")


def _does_no_more(action: DocumentAction, than: DocumentAction) -> bool:
    """Return whether an action changes the same fields, or a subset of those of an action on any field."""
    is_any = than.payload is None and not than.handler
    is_same = (repr(action.payload), action.handler) == (repr(than.payload), than.handler)
    return action.creates == than.creates and (is_any or is_same)


def _windows(before: Graph, after: Graph, called: Callable[[str], str]) -> Iterator[LostRights]:
    """Yield the weaker windows of statuses, gates and steps."""
    old, new, remedy = _spec(before), _spec(after), "make its `window` at least as strict"
    for status, window in old.states.items():
        if _is_looser(new.states.get(status, window), window):
            yield LostRights(status, f"documents that are {status!r} are {window}", remedy)
    for name, window in old.windows.items():
        is_step = not isinstance(before.nodes[name].op, StateOp | ProxyOp)
        if is_step and _is_looser(new.windows.get(called(name), window), window):
            yield LostRights(name, f"documents at {name!r} are {window}", remedy)


def _is_looser(window: Window, than: Window) -> bool:
    return WINDOWS.index(window) < WINDOWS.index(than)


def _regions(before: Iterable[Region], after: Iterable[Region]) -> Iterator[LostRights]:
    """Yield the weaker effects of edits and rejections in common slots."""
    known = {each.id: each for each in after}
    for one in before:
        other = known.get(one.id, one)
        if _is_looser(other.window, one.window):
            yield LostRights(one.id, f"the slot {one.id!r} is {one.window}", "make its `window` at least as strict")
        for told, is_kept in (
            ("stable: true", other.stable or not one.stable),
            ("on_edit: restart", other.on_edit == "restart" or one.on_edit == "keep"),
            ("on_reject: compensate", other.on_reject == "compensate" or one.on_reject == "keep"),
        ):
            if not is_kept:
                yield LostRights(one.id, f"the slot {one.id!r} has `{told}`", "keep that")


def _completed(before: Graph, after: Graph) -> Iterator[LostRights]:
    """Yield statuses that end a round only in the second graph, where an amendment would become active earlier."""
    for status in sorted(_completing(after) - _completing(before) - {*_spec(after).terminal}):
        yield LostRights(status, f"no round of work is over at {status!r}", "give it `completes: false`")


def _completing(graph: Graph) -> set[str]:
    ends = [graph.nodes[each.source].op for each in graph.edges if isinstance(graph.nodes[each.target].op, RestOp)]
    return {each.status for each in ends if isinstance(each, StateOp)}


def _fields(
    before: Mapping[str, DocumentField], after: Mapping[str, DocumentField], within: str
) -> Iterator[LostRights]:
    for name, one in before.items():
        other, place = after.get(name), f"{within}{name}"
        if other is None:
            continue
        if one.sensitive and not other.sensitive:
            yield LostRights(place, f"the field {place!r} is `sensitive`", "keep that")
        if one.visible_to and not (other.visible_to and set(other.visible_to) <= set(one.visible_to)):
            told = f"the field {place!r} is visible to {', '.join(one.visible_to)}"
            yield LostRights(place, told, "keep `visible_to`")
        if one.system != other.system:
            told = f"the field {place!r} is {'' if one.system else 'not '}among the `system_fields`"
            yield LostRights(place, told, "keep that")
        if formula_of(one) != formula_of(other):
            yield LostRights(place, f"the field {place!r} is computed in another way, or not at all", "keep that")
        yield from _fields(one.fields, other.fields, f"{place}.")
        if one.items is not None and other.items is not None:
            yield from _fields({"items": one.items}, {"items": other.items}, f"{place}.")


def formula_of(field: DocumentField | None) -> tuple[object, ...]:
    """Return the computation of a field in comparable form. Empty for other fields."""
    return () if field is None or field.formula is None else (repr(field.formula), repr(field.times), field.per)
