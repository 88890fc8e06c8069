"""What can be wrong with the shape of one patch: how it begins and ends, where its tokens go, whether its branches meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.body import format as b
from standfast.features.documents.body.outcomes import (
    outcomes_of,
    refusal_of,
    required_outcomes,
    spelt_out,
)
from standfast.features.documents.body.patches import DraftEdge, PatchDraft, Report
from standfast.features.documents.contract.edit_windows import is_stricter
from standfast.features.documents.contract.ids import gate_id
from standfast.features.documents.contract.parts import ANY, BRANCH, OK
from standfast.graph.scopes import DEEPEST_FORKS
from standfast.graph.source_files.parsing import shown

Scope = tuple[str, ...]
"""The splits that a token is inside of, from the outermost."""

_SHOWN: Final = 8
"""Nodes of a circle that a message lists."""
_SEVERAL: Final = 2


class PatchShape(NamedTuple):
    """What was found out about a patch whose shape is sound."""

    order: list[str]
    """Its nodes and proxies, each after those that lead to it."""
    scopes: dict[str, Scope]
    joins: dict[str, str]
    """For each split that has one, its join."""


def check_shape(draft: PatchDraft, report: Report) -> PatchShape | None:
    """Report all that is wrong with the shape of a patch; None if tokens could not be followed through it."""
    _window(draft, report)
    _on_reject(draft, report)
    _entry(draft, report)
    _exit(draft, report)
    _beginning(draft, report)
    unread = {name for name, node in draft.nodes.items() if isinstance(node, b.UnreadNode)}
    for name in sorted(draft.nodes.keys() - unread):
        _outcomes(draft, name, report)
        _shadows(draft, name, report)
    _shadows(draft, draft.way_in, report)
    order = _order(draft)
    if len(order) < len(draft.nodes) + _SEVERAL:
        _circles(draft, set(order), report)
        return None
    return None if unread else _Branches(draft, order, report).shape()


def _window(draft: PatchDraft, report: Report) -> None:
    given, slot = draft.patch.window, draft.slot
    if given is not None and is_stricter(slot.window, given):
        message = f"the patch makes {slot.id} {given}, and it is {slot.window}; a window can only be made stricter"
        report("window_loosened", message, part=draft.patch, field="window")
    floor = slot.window if given is None or is_stricter(slot.window, given) else given
    for name, node in draft.nodes.items():
        if node.window is not None and is_stricter(floor, node.window):
            message = f"{shown(name)} is {node.window} in a slot that is {floor}; a window can only be made stricter"
            report("window_loosened", message, node=name, part=node, field="window")


def _on_reject(draft: PatchDraft, report: Report) -> None:
    if draft.patch.on_reject == "keep" and draft.slot.on_reject == "compensate":
        message = (
            f"a rejection undoes what the steps of {draft.slot.id} did, and the patch would keep it; drop `on_reject`"
        )
        report("on_reject", message, part=draft.patch, field="on_reject")


def _entry(draft: PatchDraft, report: Report) -> None:
    starts, begun = draft.starts(), draft.out[draft.way_in]
    if draft.patch.entry == "serial" and len(begun) > 1:
        told = ", ".join(starts[:_SHOWN])
        message = f"the patch begins at {len(begun)} nodes ({told}), and its entry is serial; lead them on from one, or take `entry: branch`"
        report("entry_mode", message, part=draft.patch, field="entry")
    if draft.patch.entry == "serial":
        for edge in begun:
            if edge.when is not None:
                message = "a serial entry asks nothing; take `entry: branch`, or ask in a condition node"
                report("entry_mode", message, edge=edge.id, part=edge.given, field="when")


def _exit(draft: PatchDraft, report: Report) -> None:
    endings = draft.endings()
    if draft.patch.exit == "single" and len(endings) > 1:
        told = ", ".join(sorted({edge.source for edge in endings})[:_SHOWN])
        message = f"the patch ends in {len(endings)} ways (from {told}), and its exit is single; lead them together, or take `exit: join`"
        report("exit_mode", message, part=draft.patch, field="exit")


def _beginning(draft: PatchDraft, report: Report) -> None:
    """Nothing has happened yet where a slot begins, so that there is no word for it."""
    for edge in draft.out[draft.way_in]:
        if edge.on not in {OK, ANY}:
            message = f"`in` is never left by {shown(edge.on)}: the slot begins there; drop `on`, or ask in `when`"
            report("outcome", message, edge=edge.id, part=edge.given, field="on")


def _outcomes(draft: PatchDraft, name: str, report: Report) -> None:
    node = draft.nodes[name]
    known = outcomes_of(node)
    for edge in draft.out[name]:
        if edge.on not in known and not (edge.on == ANY and not isinstance(node, b.ParallelSplitNode)):
            told = suggestion(edge.on, known) or f"; it can be {', '.join(known)}"
            message = f"{shown(name)} is never left by {shown(edge.on)}{told}"
            report("outcome", message, edge=edge.id, part=edge.given, field="on")
        if isinstance(node, b.ForEachNode) and edge.on == BRANCH and edge.when is not None:
            message = f"{shown(name)} goes on in a branch for every item; ask in a condition node of the branch"
            report("branch_condition", message, edge=edge.id, part=edge.given, field="when")
    led = {edge.on for edge in draft.out[name]}
    if ANY in led and spelt_out(node, led) == ():
        message = f"{shown(name)} has a way for any outcome, and every one has a way of its own; remove it"
        report("edge_shadowed", message, node=name, part=node)
    for word in required_outcomes(node):
        if word not in led and ANY not in led:
            message = f"{shown(name)} can be left by {word!r}, and no edge leads on from that; add one"
            report("outcome_unrouted", message, node=name, part=node)
    word = refusal_of(node)
    if word:
        _refusal(draft, name, word, report)


def _refusal(draft: PatchDraft, name: str, word: str, report: Report) -> None:
    ways, node = [edge for edge in draft.out[name] if edge.on == word], draft.nodes[name]
    if ways and all(edge.when is not None for edge in ways):
        message = (
            f"{shown(name)} is left by {word!r} by ways with conditions alone; add one without, or remove them all"
        )
        report("rejection_unrouted", message, node=name, part=node)
    is_free = all(edge.target == draft.way_out for edge in ways)
    if is_free and not draft.slot.exit.startswith(gate_id("")):
        message = f"{shown(name)} can refuse a document where no gate follows that could send it back"
        report("rejection_unrouted", f"{message}; lead {word!r} to a node of the slot", node=name, part=node)


def _shadows(draft: PatchDraft, name: str, report: Report) -> None:
    """Ways that are never taken, because one without a condition is tried before."""
    if isinstance(draft.nodes.get(name), b.ParallelSplitNode):
        return
    closed: dict[str, DraftEdge] = {}
    for edge in sorted(draft.out[name], key=lambda edge: edge.order):
        before = closed.get(edge.on) or closed.get(ANY)
        if before is not None:
            message = f"this way is never taken: {shown(before.id)} comes before it and asks nothing; give one of them a condition, or a priority"
            report("edge_shadowed", message, edge=edge.id, part=edge.given or draft.nodes.get(edge.target))
        elif edge.when is None:
            closed[edge.on] = edge


# -- where tokens go


def _order(draft: PatchDraft) -> list[str]:
    """The nodes, each after those that lead to it, as far as there are no circles; of equal ones the lower id first."""
    counts = dict.fromkeys((draft.way_in, draft.way_out, *draft.nodes), 0)
    for edge in draft.edges:
        counts[edge.target] += 1
    free = [name for name, count in counts.items() if not count]
    heapify(free)
    order: list[str] = []
    while free:
        name = heappop(free)
        order.append(name)
        for edge in draft.out[name]:
            counts[edge.target] -= 1
            if not counts[edge.target]:
                heappush(free, edge.target)
    return order


def _circles(draft: PatchDraft, sorted_out: set[str], report: Report) -> None:
    left = {name for name in draft.nodes if name not in sorted_out}
    seen: set[str] = set()
    for start in sorted(left):
        if start in seen:
            continue
        circle = _circle(draft, start, left)
        seen |= set(circle)
        if circle:
            told = " → ".join(circle[:_SHOWN]) + (" → …" if len(circle) > _SHOWN else "")
            message = f"{told} goes in a circle; remove the edge that leads back: a rejection goes back by itself"
            report("cycle", message, node=circle[0], part=draft.nodes[circle[0]])


def _circle(draft: PatchDraft, start: str, among: set[str]) -> list[str]:
    """A way from a node back to itself; empty if there is none."""
    before: dict[str, str] = {}
    pending = [start]
    for name in pending:  # It grows while it is walked.
        for edge in draft.out[name]:
            if edge.target in among and edge.target not in before:
                before[edge.target] = name
                pending.append(edge.target)
    if start not in before:
        return []
    circle = [start, before[start]]
    while circle[-1] != start:
        circle.append(before[circle[-1]])
    return circle[::-1]


# -- branches


class _Branches:
    """Follows tokens through splits and joins, each node once."""

    def __init__(self, draft: PatchDraft, order: list[str], report: Report) -> None:
        self._draft = draft
        self._order = order
        self._report = report
        self._scopes: dict[str, Scope] = {draft.way_in: ()}
        self._arrivals: defaultdict[str, list[tuple[DraftEdge, Scope]]] = defaultdict(list)
        self._joins: dict[str, str] = {}
        self._is_sound = True

    def shape(self) -> PatchShape | None:
        for name in self._order:
            self._enter(name)
        for split in self._missed():
            if split in self._joins:
                message = (
                    f"a branch of {shown(split)} leaves the slot past {shown(self._joins[split])}; lead it to that join"
                )
                self._find("branch_misses_join", message, split)
        self._clashes()
        for name, node in sorted(self._draft.nodes.items()):
            branches = [edge for edge in self._draft.out[name] if edge.on == BRANCH]
            if isinstance(node, b.ForEachNode) and len(branches) > 1:
                told = f"{shown(name)} goes on by one edge for all items, and has {len(branches)}; ask in a condition node behind it"
                self._find("branches", told, name)
            elif (
                isinstance(node, b.ParallelSplitNode)
                and not isinstance(node, b.ForEachNode)
                and len(branches) < _SEVERAL
            ):
                self._find("branches", f"{shown(name)} has one branch; give it several, or remove it", name)
            if isinstance(node, b.ParallelSplitNode) and len(self._scopes.get(name, ())) == DEEPEST_FORKS:
                told = f"{shown(name)} lies inside of {DEEPEST_FORKS} others, which is as deep as they go; call another workflow"
                self._find("nested", told, name)
        return PatchShape(self._order, self._scopes, self._joins) if self._is_sound else None

    def _clashes(self) -> None:
        """Lists inside of lists whose items have one name: a branch would find only the inner one."""
        lists = {name: node for name, node in self._draft.nodes.items() if isinstance(node, b.ForEachNode)}
        for name, node in sorted(lists.items()):
            around = [lists[each] for each in self._scopes.get(name, ()) if each in lists]
            if any(each.item == node.item for each in around):
                message = (
                    f"{shown(name)} and a list around it both call their item {shown(node.item)}; give it another name"
                )
                self._find("item_clash", message, name)

    def _enter(self, name: str) -> None:
        arrivals = self._arrivals[name]
        if arrivals and name != self._draft.way_out:
            scopes = list(dict.fromkeys(scope for _, scope in arrivals))
            if len(scopes) > 1:
                message = f"{shown(name)} is reached both inside and outside of a branch, or from branches of different splits"
                self._find("mixed_scope", f"{message}; let branches meet at a parallel_join first", name)
            self._scopes[name] = scopes[0]
        scope = self._scopes.get(name, ())
        node = self._draft.nodes.get(name)
        if isinstance(node, b.ParallelJoinNode):
            scope = self._join(name, scope)
        for edge in self._draft.ways(name):
            inner = (*scope, name) if isinstance(node, b.ParallelSplitNode) and edge.on == BRANCH else scope
            self._arrivals[edge.target].append((edge, inner))

    def _join(self, name: str, scope: Scope) -> Scope:
        if not scope:
            message = (
                f"{shown(name)} joins nothing: no branch of a parallel_split leads to it; add the split, or remove it"
            )
            self._find("join_without_split", message, name)
            return scope
        split = scope[-1]
        if split in self._joins:
            message = f"the branches of {shown(split)} meet both at {shown(self._joins[split])} and at {shown(name)}; keep one"
            self._find("two_joins", message, name)
        self._joins.setdefault(split, name)
        return scope[:-1]

    def _missed(self) -> Iterator[str]:
        """The splits that tokens leave the slot from the inside of."""
        return iter(sorted({split for _, scope in self._arrivals[self._draft.way_out] for split in scope}))

    def _find(self, code: str, message: str, node: str) -> None:
        self._is_sound = False
        self._report(code, message, node=node, part=self._draft.nodes.get(node))


def refusals(draft: PatchDraft) -> Iterator[tuple[str, str]]:
    """The nodes whose refusal no edge routes, so that it leaves the slot, and the words that they are left by."""
    for name, node in sorted(draft.nodes.items()):
        word = refusal_of(node)
        if word and not any(edge.on == word for edge in draft.out[name]):
            yield name, word
