"""Visibility of fields (`visible_to`): finds the expressions that read restricted fields, and their masked forms.

Values that a script, a branch list or a stored answer takes from such a field are tracked through the run's data.
Results of application handlers are not tracked and are shown unmasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import structs

from standfast.errors import Diagnostic
from standfast.expressions import Expression
from standfast.expressions.model.tree import Constant, TextTemplate, Variable, variables
from standfast.graph.document_checks import fields_read, formulas_of, in_order
from standfast.graph.document_spec import DocumentField
from standfast.graph.model import CallOp, Graph, JoinOp, Node, ScriptOp, SplitOp
from standfast.graph.nodes.task import KEPT

MASKED: Final = "***"
"""Replaces a hidden value."""

Audience: TypeAlias = tuple[tuple[str, ...], ...]
"""Sets of roles. A reader needs one role of each. Empty means all readers."""

Formulas: TypeAlias = Mapping[str, Mapping[str, Expression]]
"""The expressions of a graph, by node and name."""

EVERYBODY: Final[Audience] = ()
_ENTITY, _CONTEXT = "entity", "context"
_DATA: Final = frozenset({_CONTEXT, "input", "workflow"})
"""Names of the run's data in expressions."""


class Guarded(NamedTuple):
    """An expression that reads restricted data."""

    audience: Audience
    masked: Expression
    """The masked expression for other readers."""
    field: DocumentField | None = None
    """The field that it reads, if only parts of it are hidden. Its value is then masked part by part."""


class Held(NamedTuple):
    """Restricted content of the run's data under one name."""

    audience: Audience
    field: DocumentField | None = None
    """The field, if only parts of it are hidden."""


class Audiences:
    """Audiences of the expressions of one graph."""

    def __init__(self, graph: Graph, formulas: Formulas) -> None:
        self._fields = {} if graph.document is None else graph.document.fields
        self.is_open = not any(_below(each) for each in self._fields.values())
        """Whether no field is restricted, so that nothing is masked."""
        self.everything = _merged(map(_below, self._fields.values()))
        """The audience of all fields of a document together."""
        self.names: dict[str, Held] = {} if self.is_open else self._follow(graph, formulas)
        """Names in the run's data with restricted content."""
        self.nodes = {node: self.names[name] for node, name in _answers(graph).items() if name in self.names}
        """Nodes whose answers or items have restricted content."""
        self._guarded: dict[tuple[str, str], Guarded] = {}
        if self.is_open:
            return
        for node, some in formulas.items():
            for name, expression in some.items():
                audience = self.of(expression)
                if audience:
                    self._guarded[node, name] = self._guard(expression, audience)

    def guarded(self, node: str, name: str) -> Guarded | None:
        """Return a node's expression with its masked form, if it reads restricted data."""
        return self._guarded.get((node, name))

    def guard(self, expression: Expression | None) -> Guarded | None:
        """Return the masked form of an expression outside the graph, such as a rule's, if it reads restricted data."""
        audience = EVERYBODY if expression is None or self.is_open else self.of(expression)
        return self._guard(expression, audience) if expression is not None and audience else None

    def of(self, expression: Expression) -> Audience:
        """Return the audience of an expression."""
        return _merged(self._path(each.path) for each in variables(expression.tree))

    def handed_on(self, call: Node, formulas: Mapping[str, Expression]) -> Audience:
        """Return the audience of a call's input, which its answer may repeat."""
        assert isinstance(call.op, CallOp)
        return self._all if call.op.input is None else _merged(map(self.of, formulas.values()))

    @property
    def _all(self) -> Audience:
        """Return the audience of the whole data."""
        return _merged(each.audience for each in self.names.values())

    def _path(self, path: tuple[str, ...]) -> Audience:
        head, *rest = path
        if head == _ENTITY:
            return _merged(_along(self._fields, rest))
        if head not in _DATA:
            return EVERYBODY
        if not rest:
            return self._all
        held = self.names.get(rest[0])
        if held is None:
            return EVERYBODY
        return held.audience if held.field is None else _merged(_along({rest[0]: held.field}, rest))

    def _field(self, path: tuple[str, ...]) -> DocumentField | None:
        """Return the field at a path. None if there is none, or if it or a parent is hidden."""
        head, *rest = path
        if head == _ENTITY:
            return _at(self._fields, rest)
        held = self.names.get(rest[0]) if head in _DATA and rest else None
        return None if held is None or held.field is None else _at({rest[0]: held.field}, rest)

    def _follow(self, graph: Graph, formulas: Formulas) -> dict[str, Held]:
        """Track values of hidden fields into the data until a fixed point."""
        self.names = {}
        while True:
            found: dict[str, Held] = {}
            for name, held in self._sources(graph, formulas):
                known = found.get(name)
                found[name] = held if known is None else Held(_merged([known.audience, held.audience]))
            found = {name: held for name, held in found.items() if held.audience}
            if found == self.names:
                return found
            self.names = found

    def _sources(self, graph: Graph, formulas: Formulas) -> Iterator[tuple[str, Held]]:
        """Yield the sources of the data, each with the name that receives the value."""
        for node in graph.nodes.values():
            some = formulas[node.id]
            match node.op:
                case ScriptOp(into=into):
                    yield into or node.id, self._held(some["expression"])
                case SplitOp(item=item) if "items" in some:
                    yield item, self._held(some["items"], is_list=True)
                case JoinOp(split=split, answer=answer):  # The data of the branches, which may be their whole content.
                    yield from ((name, Held(self._all)) for name in {split, answer or node.id})
                case CallOp(into=into):
                    yield into or node.id, Held(self.handed_on(node, some))
                case _:
                    yield from (
                        (name.removeprefix(KEPT), self._held(each))
                        for name, each in some.items()
                        if name.startswith(KEPT)
                    )
        for edge in graph.edges:
            yield from ((name, self._held(Expression.from_data(stored))) for name, stored in edge.assign.items())

    def _held(self, expression: Expression, *, is_list: bool = False) -> Held:
        tree = expression.tree
        field = self._field(tree.path) if isinstance(tree, Variable) else None
        if field is not None and is_list:
            field = field.items if field.items is not None and not field.items.audience else None
        return Held(self.of(expression), field)

    def _guard(self, expression: Expression, audience: Audience) -> Guarded:
        tree = expression.tree
        if isinstance(tree, TextTemplate):
            parts = tuple(
                Constant(value=MASKED, at=each.at) if isinstance(each, Variable) and self._path(each.path) else each
                for each in tree.parts
            )
            return Guarded(audience, Expression(expression.source, expression.spelling, TextTemplate(parts=parts)))
        masked = Expression(expression.source, expression.spelling, Constant(value=MASKED))
        return Guarded(audience, masked, self._field(tree.path) if isinstance(tree, Variable) else None)


def _answers(graph: Graph) -> dict[str, str]:
    """Return the data name of each node's answer or of a split's items."""
    found = {}
    for node in graph.nodes.values():
        match node.op:
            case ScriptOp(into=name) | SplitOp(item=name) | JoinOp(answer=name) | CallOp(into=name) if name:
                found[node.id] = name
            case _:
                found[node.id] = node.id
    return found


def exposing(graph: Graph) -> Iterator[Diagnostic]:
    """Yield calls that pass on hidden or sensitive fields. The called run shows its input to all its readers."""
    spec = graph.document
    if spec is None:
        return
    fields = {name: _closed(field) for name, field in spec.fields.items()}
    formulas = {
        node.id: {name: Expression.from_data(stored) for name, _, stored in node.op.formulas(node.id)}
        for node in graph.nodes.values()
    }
    closed = Audiences(structs.replace(graph, document=structs.replace(spec, fields=fields)), formulas)
    for node in graph.nodes.values():
        if isinstance(node.op, CallOp) and closed.handed_on(node, formulas[node.id]):
            message = f"{node.id!r} hands a hidden or sensitive field to {node.op.definition!r}, which shows it to all who may read that run"
            remedy = "pass `entity.id`, and let a task of the called workflow read what it may"
            yield Diagnostic("private_input", f"{message}; {remedy}", node.id)


def _closed(field: DocumentField) -> DocumentField:
    """Return a field with its parts, hidden if it is sensitive."""
    return structs.replace(
        field,
        visible_to=field.visible_to or (("sensitive",) if field.sensitive else ()),
        items=None if field.items is None else _closed(field.items),
        fields={name: _closed(each) for name, each in field.fields.items()},
    )


def with_sources(fields: Mapping[str, DocumentField]) -> dict[str, DocumentField]:
    """Return the fields, with computed ones as restricted and sensitive as the fields that they read."""
    found, formulas = dict(fields), formulas_of(fields)
    for name in in_order(formulas):
        paths = [each.path for part in formulas[name] for each in variables(part.tree) if each.path[0] == _ENTITY]
        met = [field for _, *path in paths for field in _met(found, path)]
        found[name] = structs.replace(
            found[name],
            sources=_merged(each.audience for each in met),
            sensitive=found[name].sensitive or any(each.sensitive for each in met),
        )
    return found


def readers_of(fields: Mapping[str, DocumentField], names: Iterable[str]) -> set[str]:
    """Return these fields with the computed ones that read them, also indirectly."""
    found, formulas = set(names), formulas_of(fields)
    for name in in_order(formulas):
        if not found.isdisjoint(fields_read(formulas[name])):
            found.add(name)
    return found


def _merged(audiences: Iterable[Audience]) -> Audience:
    return tuple(sorted({roles for each in audiences for roles in each}))


def _below(field: DocumentField) -> Audience:
    """Return the audience of a field with all its parts."""
    return _merged(each.audience for each in _whole(field))


def _along(fields: Mapping[str, DocumentField], path: Sequence[str]) -> Iterator[Audience]:
    """Yield the audiences along a path and below its end."""
    return (each.audience for each in _met(fields, path))


def _met(fields: Mapping[str, DocumentField], path: Sequence[str]) -> Iterator[DocumentField]:
    """Yield the fields along a path and below its end."""
    if not path:
        for each in fields.values():
            yield from _whole(each)
        return
    field = fields.get(path[0])
    if field is None:
        return
    if len(path) == 1:
        yield from _whole(field)
        return
    yield field
    while field.items is not None:
        field = field.items
        yield field
    yield from _met(field.fields, path[1:])


def _whole(field: DocumentField) -> Iterator[DocumentField]:
    """Yield a field with all its parts."""
    yield field
    for each in (*field.fields.values(), *(() if field.items is None else (field.items,))):
        yield from _whole(each)


def _inner(field: DocumentField) -> Mapping[str, DocumentField]:
    return field.fields if field.items is None else _inner(field.items)


def _at(fields: Mapping[str, DocumentField], path: list[str]) -> DocumentField | None:
    """Return the field at the end of a path. None if there is none, or if it or a parent is hidden."""
    found: DocumentField | None = None
    for name in path:
        found = fields.get(name)
        if found is None or found.audience:
            return None
        fields = _inner(found)
    return found
