"""Checks of a graph's document specification. Each finding names the place and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from standfast.errors import Diagnostic, ExpressionError
from standfast.expressions import Expression
from standfast.graph.document_spec import (
    FIELD_TYPES,
    WINDOWS,
    DocumentAction,
    DocumentField,
    DocumentSpec,
    DocumentTransition,
    Region,
)
from standfast.graph.model import (
    ActionOp,
    GateOp,
    HumanOp,
    Kind,
    PolicyGateOp,
    ProxyOp,
    RestOp,
    RuleOp,
    StartOp,
    StateOp,
)
from standfast.graph.scopes import GraphDraft
from standfast.graph.values.forms import form_findings
from standfast.graph.values.value_checks import (
    expression_findings,
    listed,
    name_findings,
    plain_findings,
    word_findings,
)

ENVELOPE: Kind = "envelope"
_OF_DOCUMENTS = (StartOp, StateOp, RestOp, GateOp, PolicyGateOp, ProxyOp, ActionOp, RuleOp)
BUILT_IN = ("create", "update")
"""Actions that every document has, declared or not."""
DEEPEST_FIELDS = 8
WORDS = {"amendment": ("new_row", "in_place"), "on_drift": ("amend", "fail")}


def check_document(draft: GraphDraft, kind: Kind, spec: DocumentSpec | None) -> Iterator[Diagnostic]:
    """Yield the findings of a graph's document, and of nodes that need one."""
    if spec is None:
        if kind == ENVELOPE:
            yield Diagnostic("no_document", "an envelope manages documents, and this one has none; give a document")
        for node in draft.nodes.values():
            if isinstance(node.op, _OF_DOCUMENTS) or (isinstance(node.op, HumanOp) and node.op.pins):
                message = f"{node.id!r} is about a document, and the graph has none; give a document, or drop the step"
                yield Diagnostic("no_document", message, node.id)
        return
    if kind != ENVELOPE:
        yield Diagnostic("no_document", f"a graph of the kind {kind!r} manages no documents; make it an envelope")
    yield from _spec(spec)
    for name, field in spec.fields.items():
        yield from _field(f"the field {name!r}", name, field)
    for transition in spec.transitions:
        yield from _transition(spec, transition)
    for action in spec.actions:
        yield from _action(action)
    yield from _policies(spec)
    yield from _nodes(draft, spec)
    for region in spec.regions:
        yield from _region(draft, region)


def _spec(spec: DocumentSpec) -> Iterator[Diagnostic]:
    yield from name_findings("", "entity_type", "the type of the documents", spec.entity_type)
    for status, window in spec.states.items():
        yield from name_findings("", "status", "a status", status)
        yield from word_findings("", "window", f"the window of {status!r}", window, words=WINDOWS)
    for what, status in (("the first status", spec.initial), *(("a final status", each) for each in spec.terminal)):
        if status not in spec.states:
            yield Diagnostic("status", f"{what}, {status!r}, is none of {listed(spec.states)}; name one of these")
    for field, words in WORDS.items():
        yield from word_findings("", field, f"{field} of the document", getattr(spec, field), words=words)
    for what, names in (
        ("transitions", [each.name for each in spec.transitions]),
        ("actions", [each.name for each in spec.actions]),
        ("slots", [each.id for each in spec.regions]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield Diagnostic("duplicate", f"there are {count} {what} named {name!r}; give each a name of its own")
    yield from _circular(spec)


def formulas_of(fields: Mapping[str, DocumentField]) -> dict[str, list[Expression]]:
    """Return the expressions of each computed field."""
    return {
        name: [Expression.from_data(each) for each in (field.formula, field.times) if each is not None]
        for name, field in fields.items()
        if field.type == "computed" and field.formula is not None
    }


def fields_read(parts: Iterable[Expression | None]) -> set[str]:
    """Return the fields of the document that these expressions read."""
    return {path.split(".")[1] for part in parts if part is not None for path in part.variables if "." in path}


def in_order(formulas: Mapping[str, Iterable[Expression | None]]) -> list[str]:
    """Return the computed fields in dependency order, which is the same in every process.

    Raises CycleError for circular ones.
    """
    read = {name: fields_read(parts) for name, parts in sorted(formulas.items())}
    return list(TopologicalSorter({name: sorted(each & read.keys()) for name, each in read.items()}).static_order())


def _circular(spec: DocumentSpec) -> Iterator[Diagnostic]:
    fields = {name: each for name, each in spec.fields.items() if each.type == "computed"}
    try:
        in_order({name: [_read(each.formula), _read(each.times)] for name, each in fields.items()})
    except ExpressionError:
        return  # It is reported elsewhere.
    except CycleError as error:
        told = " from ".join(map(repr, error.args[1]))
        yield Diagnostic("field", f"{told} would be computed; compute a field from those that are given")


def _read(formula: object) -> Expression | None:
    return None if formula is None else Expression.from_data(formula)


def _field(what: str, place: str, field: DocumentField, depth: int = 1) -> Iterator[Diagnostic]:
    yield from name_findings(place, "field", "the name of a field", place)
    yield from word_findings(place, "field", f"the type of {what}", field.type, words=FIELD_TYPES)
    if field.type == "enum" and not field.values:
        yield Diagnostic("field", f"{what} is an enum and has no values; name them", place)
    if field.type == "computed" and field.formula is None:
        yield Diagnostic("field", f"{what} is computed and does not say how; give a formula", place)
    if field.type != "computed" and field.formula is not None:
        yield Diagnostic("field", f"{what} has a formula and is given; make it computed, or drop the formula", place)
    if field.formula is not None:
        yield from expression_findings(place, f"the formula of {what}", field.formula)
    yield from plain_findings(place, "default", field.default)
    if depth > DEEPEST_FIELDS:
        yield Diagnostic("field", f"{what} lies deeper than {DEEPEST_FIELDS} levels; make it flatter", place)
        return
    if field.items is not None:
        yield from _field(f"an entry of {what}", f"{place}[]", field.items, depth + 1)
    for name, inner in field.fields.items():
        yield from _field(f"{name!r} of {what}", f"{place}.{name}", inner, depth + 1)


def _transition(spec: DocumentSpec, transition: DocumentTransition) -> Iterator[Diagnostic]:
    what = f"the transition {transition.name!r}"
    yield from name_findings("", "transition", "the name of a transition", transition.name)
    for status in sorted({*transition.sources, transition.target} - spec.states.keys()):
        message = f"{what} names the status {status!r}; there are {listed(spec.states)}"
        yield Diagnostic("transition", message, transition.name)
    for status in sorted(set(transition.sources) & set(spec.terminal)):
        message = f"{what} leads on from {status!r}, which is final; leave it out, or do not call it final"
        yield Diagnostic("transition", message, transition.name)
    if not transition.sources:
        yield Diagnostic("transition", f"{what} leads on from no status; name at least one", transition.name)


def _action(action: DocumentAction) -> Iterator[Diagnostic]:
    yield from name_findings("", "document_action", "the name of an action", action.name)
    if action.payload is not None:
        what = f"the payload of {action.name!r}"
        yield from list(plain_findings(action.name, "payload", action.payload)) or (
            Diagnostic("payload", f"{what}: {each.message}", action.name)
            for each in form_findings(action.name, action.payload)
        )


def _policies(spec: DocumentSpec) -> Iterator[Diagnostic]:
    known = {*actions_of(spec), *(each.name for each in spec.transitions)}
    for policy in spec.policies:
        what = f"the policy {policy.name!r}"
        yield from name_findings("", "policy", "the name of a policy", policy.name)
        for name in sorted(set(policy.actions) - known):
            yield Diagnostic("policy", f"{what} is about {name!r}; there are {listed(sorted(known))}", policy.name)
        if policy.when is not None:
            yield from expression_findings(policy.name, f"the condition of {what}", policy.when)


def _nodes(draft: GraphDraft, spec: DocumentSpec) -> Iterator[Diagnostic]:
    """Yield nodes that name missing parts of the document, and statuses and transitions without a node."""
    states = Counter(node.op.status for node in draft.nodes.values() if isinstance(node.op, StateOp))
    gates = Counter(node.op.transition for node in draft.nodes.values() if isinstance(node.op, GateOp))
    for what, named, known in (
        ("status", states, list(spec.states)),
        ("transition", gates, [each.name for each in spec.transitions]),
    ):
        for name in known:
            if named[name] != 1:
                message = f"the {what} {name!r} has {named[name]} nodes; it must have one"
                yield Diagnostic("envelope", message, name)
        for name in sorted(named.keys() - set(known)):
            yield Diagnostic("envelope", f"a node names the {what} {name!r}, which the document does not have", name)
    for node in draft.nodes.values():
        yield from _window(node.id, spec)
        if isinstance(node.op, ActionOp | PolicyGateOp) and not node.op.of and node.op.action not in actions_of(spec):
            message = f"{node.id!r} names the action {node.op.action!r}; there are {listed(actions_of(spec))}"
            yield Diagnostic("document_action", message, node.id)
        if isinstance(node.op, HumanOp):
            for name in sorted(set(node.op.covers) - spec.fields.keys()):
                message = (
                    f"{node.id!r} covers {name!r}, which the document does not have; there are {listed(spec.fields)}"
                )
                yield Diagnostic("covers", message, node.id)
    for name in sorted({*spec.windows, *spec.stable} - draft.names):
        yield Diagnostic("window", f"the document has a window for {name!r}, which is no step; remove it", name)


def _window(node: str, spec: DocumentSpec) -> Iterator[Diagnostic]:
    if node not in spec.windows:
        yield Diagnostic("window", f"{node!r} has no window; say whether a document can be edited there", node)
    else:
        yield from word_findings(node, "window", f"the window of {node!r}", spec.windows[node], words=WINDOWS)


def _region(draft: GraphDraft, region: Region) -> Iterator[Diagnostic]:
    yield from name_findings("", "slot", "the name of a slot", region.id)
    yield from word_findings(region.id, "window", f"the window of {region.id!r}", region.window, words=WINDOWS)
    what = f"what a rejection does to {region.id!r}"
    yield from word_findings(region.id, "on_reject", what, region.on_reject, words=("keep", "compensate"))
    for end in sorted({region.entry, region.exit} - draft.names):
        message = f"the slot {region.id!r} lies at {end!r}, which does not exist; name two steps of the envelope"
        yield Diagnostic("slot", message, region.id)


def actions_of(spec: DocumentSpec) -> dict[str, DocumentAction]:
    """Return the actions on a document by name, including the built-in ones."""
    built_in = {name: DocumentAction(name=name, creates=name == "create") for name in BUILT_IN}
    return built_in | {each.name: each for each in spec.actions}
