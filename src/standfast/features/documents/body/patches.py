"""A patch with its short forms written out: full ids, the edges that its author left out, and what each edge is for.

Whatever is wrong with names and ends is reported on the way; what is left is a graph that the other checks can walk.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.body import format as b
from standfast.features.documents.body.outcomes import main_outcome, outcomes_of, refusal_of
from standfast.features.documents.contract.format import Slot
from standfast.features.documents.contract.ids import (
    EDGE,
    IN,
    LOCAL,
    LONGEST,
    OUT,
    edge_id,
    gate_id,
    prefix_of,
    proxy_id,
)
from standfast.features.documents.contract.parts import ANY, CONDITIONAL, UNCONDITIONAL
from standfast.graph.source_files.parsing import shown
from standfast.graph.source_files.values import Condition

Report: TypeAlias = Callable[..., None]
"""Takes a code and a message, and by name the node or edge and the part of the file that they are about."""

_PRINTABLE: Final = frozenset(map(chr, range(0x21, 0x7F)))


class DraftEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge with full ids."""

    id: str
    source: str
    target: str
    on: str
    priority: int
    given: b.PatchEdge | None = None
    """What its author wrote; None if the compiler added it."""

    @property
    def when(self) -> Condition | None:
        """Its condition."""
        return None if self.given is None else self.given.when

    @property
    def order(self) -> tuple[int, str]:
        """When it is tried."""
        return self.priority, self.id


class PatchDraft:
    """One patch, written out."""

    def __init__(self, slot: Slot, patch: b.Patch, report: Report) -> None:
        self.slot = slot
        self.patch = patch
        self.way_in, self.way_out = proxy_id(slot.id, IN), proxy_id(slot.id, OUT)
        self._report = report
        self.nodes: dict[str, b.PatchNode] = {}
        self._name_nodes()
        self.edges: list[DraftEdge] = []
        self._lead()
        self._attach()
        self.edges.sort(key=lambda edge: edge.id)
        self.out: defaultdict[str, list[DraftEdge]] = defaultdict(list)
        self.back: defaultdict[str, list[DraftEdge]] = defaultdict(list)
        for edge in self.edges:
            self.out[edge.source].append(edge)
            self.back[edge.target].append(edge)

    def full(self, name: str) -> str:
        """The id that a name in the patch stands for."""
        if name in {IN, OUT}:
            return proxy_id(self.slot.id, name)
        return name if ":" in name else prefix_of(self.slot.id) + name

    # -- nodes

    def _name_nodes(self) -> None:
        for node in self.patch.nodes or ():
            name = self.full(node.id)
            wrong = "" if node.id not in {IN, OUT} else "it is the name of an end of the slot; take another"
            wrong = wrong or self._wrong_id(name)
            if wrong:
                self._report(
                    "node_id", f"a node has the id {shown(node.id)}; {wrong}", node=name, part=node, field="id"
                )
            if name in self.nodes:
                message = f"there are several nodes {shown(name)}; give each an id of its own"
                self._report("duplicate_node", message, node=name, part=node, field="id")
            self.nodes.setdefault(name, node)

    def _wrong_id(self, name: str) -> str:
        """What is wrong with a full id, and what to do; empty if nothing is."""
        prefix = prefix_of(self.slot.id)
        if not name.startswith(prefix):
            return f"nodes of this slot are called {prefix}<name>, or <name> for short"
        if LOCAL.fullmatch(name.removeprefix(prefix)) is None:
            return "use letters, digits, _ and - behind the slot, at most 64"
        return f"use at most {LONGEST} characters" if len(name) > LONGEST else ""

    # -- edges

    def _lead(self) -> None:
        counts: Counter[tuple[str, str]] = Counter()
        for given in self.patch.edges:
            source, target = self.full(given.source), self.full(given.target)
            counts[source, target] += 1
            name = given.id or edge_id(source, target, counts[source, target])
            if not (self._known(given, source, "from", name) & self._known(given, target, "to", name)):
                continue
            if not self._is_onward(given, source, target, name):
                continue
            self._check_edge_id(given, edge_id(source, target), name)
            priority = given.priority
            if priority is None:
                priority = UNCONDITIONAL if given.when is None else CONDITIONAL
            on = self._outcome(given, source)
            self.edges.append(DraftEdge(id=name, source=source, target=target, on=on, priority=priority, given=given))
        for name, count in Counter(edge.id for edge in self.edges).items():
            if count > 1:
                last = [edge.given for edge in self.edges if edge.id == name][-1]
                message = f"there are {count} edges {shown(name)}; give each its own id"
                self._report("duplicate_edge", message, edge=name, part=last, field="id")

    def _check_edge_id(self, given: b.PatchEdge, usual: str, name: str) -> None:
        """An id can be read, and is none that the compiler gives to an edge between others."""
        if given.id is None:
            return
        if len(given.id) > LONGEST or not set(given.id) <= _PRINTABLE:
            message = f"an edge has the id {shown(given.id)}; use at most {LONGEST} ASCII characters without spaces"
            self._report("edge_id", message, edge=name, part=given, field="id")
        if given.id.startswith(EDGE) and not _is_numbered(given.id, usual):
            message = f"an edge has the id {shown(given.id)}, which stands for a way between others; drop it, or take one that does not begin with {EDGE}"
            self._report("edge_id", message, edge=name, part=given, field="id")

    def _known(self, given: b.PatchEdge, name: str, field: str, edge: str) -> bool:
        if name in self.nodes or name in {self.way_in, self.way_out}:
            return True
        if name.startswith(prefix_of(self.slot.id)):
            known = [*self.nodes, self.way_in, self.way_out]
            message = f"`{field}` names {shown(name)}, which is no node of this patch{suggestion(name, known)}"
            self._report(
                "unknown_node", f"{message}; add the node, or correct the name", edge=edge, part=given, field=field
            )
        else:
            message = f"`{field}` names {shown(name)}, which is outside of {self.slot.id}"
            remedy = "edges stay among the nodes of their slot and its ends, `in` and `out`"
            self._report("edge_scope", f"{message}; {remedy}", edge=edge, part=given, field=field)
        return False

    def _is_onward(self, given: b.PatchEdge, source: str, target: str, edge: str) -> bool:
        if source == target:
            self._report("self_loop", f"{shown(source)} leads to itself; remove the edge", edge=edge, part=given)
        elif target == self.way_in:
            message = "nothing leads to `in`, where the slot begins; remove the edge"
            self._report("edge_direction", message, edge=edge, part=given, field="to")
        elif source == self.way_out:
            message = "nothing leads on from `out`, where the slot ends; remove the edge"
            self._report("edge_direction", message, edge=edge, part=given, field="from")
        else:
            return True
        return False

    def _outcome(self, given: b.PatchEdge, source: str) -> str:
        node = self.nodes.get(source)
        if given.on is not None:
            return given.on
        if node is not None and given.label in outcomes_of(node):
            return given.label
        return main_outcome(node)

    # -- what authors leave out

    def _attach(self) -> None:
        reached = {edge.target for edge in self.edges if edge.source != self.way_in}
        begun = {edge.target for edge in self.edges if edge.source == self.way_in}
        for name in self.starts(reached):
            if name not in begun:
                self._add(self.way_in, name, main_outcome(None))
        left = {edge.source for edge in self.edges}
        for name in sorted(self.nodes.keys() - left):
            node = self.nodes[name]
            on = ANY if isinstance(node, b.ConditionNode) and node.expression is not None else main_outcome(node)
            self._add(name, self.way_out, on)
        if not self.nodes and not self.edges:
            self._add(self.way_in, self.way_out, main_outcome(None))

    def starts(self, reached: set[str] | None = None) -> list[str]:
        """The nodes that no other node of the patch leads to."""
        if reached is None:
            reached = {edge.target for edge in self.edges if edge.source != self.way_in}
        return sorted(self.nodes.keys() - reached)

    def _add(self, source: str, target: str, on: str) -> None:
        taken = {edge.id for edge in self.edges}
        number = next(each for each in range(1, len(taken) + 2) if edge_id(source, target, each) not in taken)
        name = edge_id(source, target, number)
        self.edges.append(DraftEdge(id=name, source=source, target=target, on=on, priority=UNCONDITIONAL))

    # -- walks

    def endings(self) -> list[DraftEdge]:
        """The edges that lead out of the slot, rejections apart: those that lead out at once, and those that no approval lies behind."""
        ends = (edge for edge in self.back[self.way_out] if not is_rejection(edge, self.nodes))
        return [edge for edge in ends if not self.is_unapproved(edge) and not self._is_refused(edge)]

    @functools.cached_property
    def refused(self) -> frozenset[str]:
        """The nodes that a document reaches only by a refusal which no approval has answered. At the end of the slot their ways refuse the document."""
        clean, tainted = {self.way_in}, set[str]()
        waiting = [(self.way_in, False)]
        while waiting:
            name, is_tainted = waiting.pop()
            for edge in self.out[name]:
                found, is_refused = clean, False
                if self.is_unapproved(edge) or (is_tainted and not self._is_approved(edge)):
                    found, is_refused = tainted, True
                if edge.target not in found:
                    found.add(edge.target)
                    waiting.append((edge.target, is_refused))
        return frozenset(tainted - clean - {self.way_out})

    def _is_refused(self, edge: DraftEdge) -> bool:
        return edge.source in self.refused and not self._is_approved(edge)

    def is_unapproved(self, edge: DraftEdge) -> bool:
        """Whether an edge leads on from an approval that was not given, or from a rule that blocks. Where no gate follows, nothing is refused."""
        node = self.nodes.get(edge.source)
        if not self.slot.exit.startswith(gate_id("")):
            return False
        if isinstance(node, b.ApprovalNode):
            return not self._is_approved(edge)
        return node is not None and edge.on == refusal_of(node)

    def _is_approved(self, edge: DraftEdge) -> bool:
        """Whether an edge is taken where an approval was given."""
        node = self.nodes.get(edge.source)
        if not isinstance(node, b.ApprovalNode):
            return False
        others = {each.on for each in self.out[edge.source]}
        return edge.on == main_outcome(node) or (edge.on == ANY and main_outcome(node) not in others)

    def ways(self, name: str) -> Iterator[DraftEdge]:
        """The edges from a node, rejections that leave the slot apart."""
        return (edge for edge in self.out[name] if not (edge.target == self.way_out and is_rejection(edge, self.nodes)))


def _is_numbered(name: str, usual: str) -> bool:
    """Whether an id is the usual one, or one of several like it."""
    number = name.removeprefix(usual).removeprefix("#")
    return name.startswith(usual) and (name == usual or (name == f"{usual}#{number}" and number.isdecimal()))


def is_rejection(edge: DraftEdge, nodes: dict[str, b.PatchNode]) -> bool:
    """Whether an edge is the way of a document that was refused: by people, or by a rule."""
    node = nodes.get(edge.source)
    return node is not None and edge.on == refusal_of(node)
