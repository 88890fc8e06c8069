"""Index of a graph's document specification, computed once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from standfast.expressions import Expression
from standfast.graph.document_checks import actions_of, fields_read, formulas_of, in_order
from standfast.graph.document_spec import (
    WINDOWS,
    DocumentPolicy,
    DocumentSpec,
    DocumentTransition,
    Region,
    Window,
)
from standfast.graph.model import Graph, HumanOp, PolicyGateOp, ProxyOp, StateOp
from standfast.graph.values.external_reads import Reads, reads_of
from standfast.graph.values.forms import Form

MOST_RULES = 1000
"""Cache size for compiled rule expressions. Rules arrive with commands, and an organisation has few."""


class Computed(NamedTuple):
    """The computation of a field."""

    formula: Expression
    times: Expression | None
    per: int
    reads: tuple[str, ...] = ()
    """The fields that it reads."""

    def value(self, data: Mapping[str, object]) -> object:
        """Compute the value exactly, as an integer.

        Returns None if there is nothing to multiply. Raises ExpressionError on failure.
        """
        found = self.formula.evaluate(data)
        factor = 1 if self.times is None else self.times.evaluate(data)
        if self.times is None and self.per == 1:
            return found
        if not isinstance(found, int) or not isinstance(factor, int):
            return None
        return round(Fraction(found * factor, self.per))


def _computed(spec: DocumentSpec) -> dict[str, Computed]:
    """Return the computed fields in dependency order."""
    formulas = formulas_of(spec.fields)
    made = {
        name: Computed(parts[0], next(iter(parts[1:]), None), spec.fields[name].per, tuple(sorted(fields_read(parts))))
        for name, parts in formulas.items()
    }
    return {name: made[name] for name in in_order(formulas)}


def _computed_from(system: frozenset[str], computed: Mapping[str, Computed]) -> frozenset[str]:
    """Return the computed fields that depend on these fields alone, also indirectly."""
    found = frozenset[str]()
    for name, each in computed.items():
        found |= {name} if {*each.reads} <= system | found else set()
    return found


def _before_approvals(graph: Graph) -> frozenset[str]:
    """The nodes of slots from which a way leads to an approval of the same slot."""
    into: dict[str, list[str]] = {}
    for edge in graph.edges:
        if graph.nodes[edge.source].region == graph.nodes[edge.target].region:
            into.setdefault(edge.target, []).append(edge.source)
    waiting = [node.id for node in graph.nodes.values() if isinstance(node.op, HumanOp) and node.op.pins]
    found = set[str]()
    while waiting:
        fresh = {each for each in into.get(waiting.pop(), ()) if each not in found}
        found |= fresh
        waiting += fresh
    return frozenset(found)


class DocumentIndex:
    """Index of an envelope by the names of its document."""

    def __init__(self, graph: Graph, spec: DocumentSpec) -> None:
        self.spec = spec
        self.actions = actions_of(spec)
        self.transitions = {each.name: each for each in spec.transitions}
        self._policies = {
            name: [each for each in spec.policies if name in each.actions]
            for name in (*self.actions, *self.transitions)
        }
        self.regions = {each.id: each for each in spec.regions}
        self.undone = frozenset(each.id for each in spec.regions if each.on_reject == "compensate")
        """Slots whose steps are compensated if a rejection leads back before them."""
        self.stable = frozenset(spec.stable)
        self.system = frozenset(name for name, field in spec.fields.items() if field.system)
        self.computed = _computed(spec)
        self.free = self.system | _computed_from(self.system, self.computed)
        """Fields that an approval of the whole document does not cover: those of the workflow, and those computed
        from them alone."""
        nodes = graph.nodes.values()
        self.state_of = {node.op.status: node.id for node in nodes if isinstance(node.op, StateOp)}
        """The node of each status."""
        self._proxies = {(node.op.slot, node.op.side): node.id for node in nodes if isinstance(node.op, ProxyOp)}
        self.before_approvals = _before_approvals(graph)
        """The nodes from which a way leads to an approval of the same slot."""
        self.gated = frozenset(
            node.op.action
            for node in nodes
            if isinstance(node.op, PolicyGateOp) and node.op.of in {"", spec.entity_type}
        )
        """Actions behind a policy gate."""
        self._payloads = {name: Form(each.payload) for name, each in self.actions.items() if each.payload is not None}
        self._rules: dict[str, tuple[Expression, Reads | None]] = {}
        conditions = (Expression.from_data(each.when) for each in spec.policies if each.when is not None)
        self.judges_by_settings = reads_of(conditions) is not None
        """Whether a policy depends on settings of the organisation."""

    def covered(self, named: Collection[str]) -> frozenset[str]:
        """Return the fields that an approval covers: the named ones, or all but those of the workflow."""
        return frozenset(named) or frozenset(self.spec.fields) - self.free

    def way_in(self, slot: str) -> str:
        """Return the entry node of a filled slot. Empty for an unfilled one."""
        return self._proxies.get((slot, "in"), "")

    def way_out(self, slot: str) -> str:
        """Return the exit node of a filled slot."""
        return self._proxies.get((slot, "out"), "")

    def policies(self, name: str) -> list[DocumentPolicy]:
        """Return the policies for an action or a transition. Without any, the capability alone decides."""
        return self._policies.get(name, [])

    def payload(self, action: str) -> Form | None:
        """Return the form for an action's payload, or None."""
        return self._payloads.get(action)

    def by_itself(self, status: str) -> DocumentTransition | None:
        """Return the transition that begins automatically when a document reaches a status."""
        return next((t for t in self.spec.transitions if t.begins == "by_itself" and status in t.sources), None)

    def legal(self, status: str) -> list[str]:
        """Return the transitions that the lifecycle allows from a status."""
        return [each.name for each in self.spec.transitions if status in each.sources]

    def region_of(self, node: str, slot: str) -> Region | None:
        """Return the slot of a node, by the name in the node or by its entry."""
        if slot:
            return self.regions.get(slot)
        return next((each for each in self.spec.regions if each.entry == node), None)

    def rule(self, stored: dict[str, object]) -> Expression:
        """Return the expression of a rule or a policy. Raises ExpressionError if it is invalid."""
        return self._known(stored)[0]

    def reads(self, stored: Iterable[dict[str, object] | None]) -> Reads | None:
        """Return what expressions of rules or policies read from outside the document.

        Raises ExpressionError for an invalid one.
        """
        found = [reads for each in stored if each is not None and (reads := self._known(each)[1]) is not None]
        if not found:
            return None
        return Reads(any(each.org for each in found), tuple(sorted({name for each in found for name in each.refs})))

    def _known(self, stored: dict[str, object]) -> tuple[Expression, Reads | None]:
        key = str(stored.get("hash", ""))
        known = self._rules.get(key)
        if known is None:
            expression = Expression.from_data(stored)
            known = (expression, reads_of([expression]))
            if len(self._rules) >= MOST_RULES:
                self._rules.clear()
            self._rules[key] = known
        return known


def strictest(*windows: Window) -> Window:
    """Return the strictest of these windows, or editable without any."""
    return max(windows, key=WINDOWS.index, default=WINDOWS[0])
