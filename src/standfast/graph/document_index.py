"""What the machine asks of the document of its graph, found once."""

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
from standfast.graph.model import Graph, PolicyGateOp, ProxyOp, StateOp
from standfast.graph.values.external_reads import Reads, reads_of
from standfast.graph.values.forms import Form

MOST_RULES = 1000
"""Expressions of rules that are kept compiled; rules come with commands, and an organisation has few."""


class Computed(NamedTuple):
    """How a field follows from the others."""

    formula: Expression
    times: Expression | None
    per: int
    reads: tuple[str, ...] = ()
    """The fields that it follows from."""

    def value(self, data: Mapping[str, object]) -> object:
        """What it comes to, exactly and in whole numbers; ExpressionError if it cannot be told, None if there is nothing to take times."""
        found = self.formula.evaluate(data)
        factor = 1 if self.times is None else self.times.evaluate(data)
        if self.times is None and self.per == 1:
            return found
        if not isinstance(found, int) or not isinstance(factor, int):
            return None
        return round(Fraction(found * factor, self.per))


def _computed(spec: DocumentSpec) -> dict[str, Computed]:
    """The computed fields, each behind those that it reads."""
    formulas = formulas_of(spec.fields)
    made = {
        name: Computed(parts[0], next(iter(parts[1:]), None), spec.fields[name].per, tuple(sorted(fields_read(parts))))
        for name, parts in formulas.items()
    }
    return {name: made[name] for name in in_order(formulas)}


def _computed_from(system: frozenset[str], computed: Mapping[str, Computed]) -> frozenset[str]:
    """The computed fields that follow from these fields alone, also by way of one another."""
    found = frozenset[str]()
    for name, each in computed.items():
        found |= {name} if {*each.reads} <= system | found else set()
    return found


class DocumentIndex:
    """Where the parts of an envelope are, by the words of its document."""

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
        """The slots whose steps are undone if a rejection leads back to before them."""
        self.stable = frozenset(spec.stable)
        self.system = frozenset(name for name, field in spec.fields.items() if field.system)
        self.computed = _computed(spec)
        self.free = self.system | _computed_from(self.system, self.computed)
        """The fields that an approval of the whole document does not cover: the workflow's own, and what is computed from nothing else."""
        nodes = graph.nodes.values()
        self.state_of = {node.op.status: node.id for node in nodes if isinstance(node.op, StateOp)}
        """The node where a document stays that has a status."""
        self._proxies = {(node.op.slot, node.op.side): node.id for node in nodes if isinstance(node.op, ProxyOp)}
        self.gated = frozenset(
            node.op.action
            for node in nodes
            if isinstance(node.op, PolicyGateOp) and node.op.of in {"", spec.entity_type}
        )
        """The actions that a policy gate stands before."""
        self._payloads = {name: Form(each.payload) for name, each in self.actions.items() if each.payload is not None}
        self._rules: dict[str, tuple[Expression, Reads | None]] = {}
        conditions = (Expression.from_data(each.when) for each in spec.policies if each.when is not None)
        self.judges_by_settings = reads_of(conditions) is not None
        """Whether a policy depends on settings of the organisation."""

    def covered(self, named: Collection[str]) -> frozenset[str]:
        """The fields that an approval covers: those that it names, or else all but the workflow's own."""
        return frozenset(named) or frozenset(self.spec.fields) - self.free

    def way_in(self, slot: str) -> str:
        """The node by which a token comes into a slot that somebody has filled; empty if nobody has."""
        return self._proxies.get((slot, "in"), "")

    def way_out(self, slot: str) -> str:
        """The node by which it leaves the slot."""
        return self._proxies.get((slot, "out"), "")

    def policies(self, name: str) -> list[DocumentPolicy]:
        """The policies about an action or a transition; none if everybody may who has its capability."""
        return self._policies.get(name, [])

    def payload(self, action: str) -> Form | None:
        """What has to be given for an action, if it says so."""
        return self._payloads.get(action)

    def by_itself(self, status: str) -> DocumentTransition | None:
        """The transition that begins as soon as a document rests with a status."""
        return next((t for t in self.spec.transitions if t.begins == "by_itself" and status in t.sources), None)

    def legal(self, status: str) -> list[str]:
        """The transitions that the lifecycle has for a status."""
        return [each.name for each in self.spec.transitions if status in each.sources]

    def region_of(self, node: str, slot: str) -> Region | None:
        """The slot that a node lies in, by the name that it bears, or at whose beginning it lies."""
        if slot:
            return self.regions.get(slot)
        return next((each for each in self.spec.regions if each.entry == node), None)

    def rule(self, stored: dict[str, object]) -> Expression:
        """Returns an expression of a rule or a policy. Raises ExpressionError if it is none."""
        return self._known(stored)[0]

    def reads(self, stored: Iterable[dict[str, object] | None]) -> Reads | None:
        """Returns what expressions of rules or policies read from outside of the document. Raises ExpressionError if one is none."""
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
    """The strictest of these windows; nothing at all is editable."""
    return max(windows, key=WINDOWS.index, default=WINDOWS[0])
