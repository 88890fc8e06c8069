"""The expressions of a body: each is read where it stands, against the contract and what the steps before it have kept under `context`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from standfast.errors import ExpressionError
from standfast.expressions import Type
from standfast.features.documents.body import format as b
from standfast.features.documents.body.patches import PatchDraft, Report
from standfast.features.documents.contract.expressions import Language, Related, Stored, schema_type
from standfast.features.documents.contract.format import Contract
from standfast.graph.source_files.parsing import shown
from standfast.graph.source_files.values import Condition
from standfast.graph.source_files.values import Formula as Given

_TYPES: Final = {"int": "number", "any": "any", "list": "list", "object": "object"}
_HOLES: Final = "{"


class BodyExpression(NamedTuple):
    """An expression of a node, and where it stands."""

    name: str
    """By which the compiled node has it."""
    field: str
    """The field of the part that it stands in."""
    part: object
    given: Condition | Given
    kind: Literal["condition", "mapping", "template"]


class Formulas(NamedTuple):
    """The stored forms of the expressions of one patch."""

    nodes: dict[str, dict[str, Stored]]
    edges: dict[str, Stored]


def writes_of(node: b.PatchNode) -> tuple[str, ...]:
    """The names under `context` that a node keeps something by."""
    match node:
        case (
            b.WaitEventNode(into=str(name))
            | b.WebhookNode(into=str(name))
            | b.ScriptNode(into=str(name))
            | b.TaskNode(into=str(name))
            | b.CallNode(into=str(name))
            | b.UnreadNode(into=str(name))
            | b.ForEachNode(item=name)
        ):
            return (name,)
        case _:
            return ()


def declared(types: Mapping[str, str]) -> dict[str, Type]:
    """The types of names that come from elsewhere."""
    plain = {"string", "money", "bool", "date", "datetime"}
    return {name: Type(each if each in plain else _TYPES[each]) for name, each in types.items()}  # type: ignore[arg-type]


def read_formulas(
    draft: PatchDraft,
    order: list[str],
    *,
    contract: Contract,
    related: Related,
    outside: Mapping[str, Type],
    report: Report,
) -> Formulas:
    """The expressions of a patch whose nodes come in this order; what is wrong is reported, and left out."""
    reader = _Expressions(contract, related, outside, report)
    before = _before(draft, order)
    found = Formulas({}, {})
    for name in sorted(draft.nodes):
        language = reader.language(before.get(name))
        stored = {
            each.name: form
            for each in formulas_of(draft.nodes[name])
            if (form := reader.read(language, each, node=name)) is not None
        }
        if stored:
            found.nodes[name] = stored
    for edge in draft.edges:
        if edge.given is None or edge.when is None:
            continue
        language = reader.language(
            before.get(edge.source), writes_of(draft.nodes[edge.source]) if edge.source in draft.nodes else ()
        )
        formula = BodyExpression("when", "when", edge.given, edge.when, "condition")
        form = reader.read(language, formula, edge=edge.id)
        if form is not None:
            found.edges[edge.id] = form
    return found


def formulas_of(node: b.PatchNode) -> Iterator[BodyExpression]:
    """The expressions of a node."""
    yield from _mappings(node)
    yield from _conditions(node)
    yield from _texts(node)


def _mappings(node: b.PatchNode) -> Iterator[BodyExpression]:
    for field in ("payload", "shows", "input"):
        given: Mapping[str, Given] = getattr(node, field, {})
        yield from (BodyExpression(f"{field}.{name}", field, node, each, "mapping") for name, each in given.items())
    match node:
        case b.ApprovalNode():
            for place, each in enumerate(node.approvers or ()):
                if each.expression is not None:
                    yield BodyExpression(f"approvers.{place}", "expression", each, each.expression, "mapping")
        case b.ActionNode(target=str(target)):
            yield BodyExpression("target", "target", node, target, "mapping")
        case b.WaitTimerNode(until=str(until)):
            yield BodyExpression("until", "until", node, until, "mapping")
        case b.ScriptNode():
            yield BodyExpression("formula", "formula", node, node.formula, "mapping")
        case b.ForEachNode():
            yield BodyExpression("items", "items", node, node.items, "mapping")
        case _:
            pass


def _conditions(node: b.PatchNode) -> Iterator[BodyExpression]:
    match node:
        case b.ConditionNode():
            given = {"expression": node.expression}
        case b.ParallelJoinNode():
            given = {"accept": node.accept, "abort": node.abort}
        case b.WaitEventNode():
            given = {"match": node.match}
        case b.RuleNode():
            for rule in node.rules:
                if rule.when is not None:
                    yield BodyExpression(f"when.{rule.name}", "when", rule, rule.when, "condition")
            return
        case _:
            return
    yield from (BodyExpression(name, name, node, each, "condition") for name, each in given.items() if each is not None)


def _texts(node: b.PatchNode) -> Iterator[BodyExpression]:
    """Texts with holes; a key and an address are one also without."""
    match node:
        case b.WebhookNode():
            texts = {"url": node.url}
        case b.WaitEventNode():
            texts = {} if node.key is None else {"key": node.key}
        case b.ApprovalNode(title=title) if _HOLES in title:
            texts = {"title": title}
        case b.NotificationNode():
            given = {"subject": node.subject, "body": node.body, **{f"to.{at}": to for at, to in enumerate(node.to)}}
            texts = {name: text for name, text in given.items() if _HOLES in text}
        case _:
            return
    yield from (BodyExpression(name, name.split(".")[0], node, text, "template") for name, text in texts.items())


class _Expressions:
    """Reads expressions; what can be read depends on what was kept before."""

    def __init__(self, contract: Contract, related: Related, outside: Mapping[str, Type], report: Report) -> None:
        self._contract = contract
        self._related = related
        self._outside = outside
        self._report = report
        self._known: dict[frozenset[str] | None, Language] = {}

    def language(self, names: frozenset[str] | None, more: tuple[str, ...] = ()) -> Language:
        """The language where these names are kept; None means that nobody can tell which."""
        key = None if names is None else names | frozenset(more)
        if key not in self._known:
            context = None if key is None else {**dict.fromkeys(key, Type("any")), **self._outside}
            self._known[key] = Language(
                self._contract, schema_type(self._contract, context), self._related, reads_others=True
            )
        return self._known[key]

    def read(self, language: Language, formula: BodyExpression, *, node: str = "", edge: str = "") -> Stored | None:
        try:
            match formula.kind, formula.given:
                case "condition", str() | dict() as given:
                    return language.condition(given)
                case "template", given:
                    return language.template(str(given))
                case _, given:
                    assert not isinstance(given, dict)
                    return language.mapping(given)
        except ExpressionError as error:
            what = shown(edge or node)
            message = f"{formula.name!r} of {what} is wrong at character {error.position or 0}: {error}"
            self._report("expression", message, node=node, edge=edge, part=formula.part, field=formula.field)
        return None


def _before(draft: PatchDraft, order: list[str]) -> dict[str, frozenset[str]]:
    """What was kept before each node, on one way to it or another."""
    before: dict[str, frozenset[str]] = {}
    for name in order:
        kept: frozenset[str] = frozenset()
        for edge in draft.back[name]:
            source = draft.nodes.get(edge.source)
            kept |= before.get(edge.source, frozenset()) | frozenset(() if source is None else writes_of(source))
        before[name] = kept
    return before
