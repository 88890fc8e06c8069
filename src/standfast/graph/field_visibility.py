"""Which expressions of a workflow read fields that only some roles may see (`visible_to`), and how they read without them.

A value that a script, a list of branches or a kept answer takes from such a field is followed into the data of the run. What the handlers of the
application return is theirs to say: it is shown as it is.
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
"""Stands for a value that is not shown."""

Audience: TypeAlias = tuple[tuple[str, ...], ...]
"""Sets of roles. A reader needs one role of each; an empty audience is everybody."""

Formulas: TypeAlias = Mapping[str, Mapping[str, Expression]]
"""The expressions of a graph, by node and name."""

EVERYBODY: Final[Audience] = ()
_ENTITY, _CONTEXT = "entity", "context"
_DATA: Final = frozenset({_CONTEXT, "input", "workflow"})
"""What expressions call the data of a run."""


class Guarded(NamedTuple):
    """An expression that reads what only some may see."""

    audience: Audience
    masked: Expression
    """The same for everybody else."""
    field: DocumentField | None = None
    """What it reads, if that is a field of which only a part is hidden: the value is masked part by part."""


class Held(NamedTuple):
    """What the data of a run holds of hidden fields under one name."""

    audience: Audience
    field: DocumentField | None = None
    """What it is, if only a part of it is hidden."""


class Audiences:
    """Who may see what the expressions of one graph read."""

    def __init__(self, graph: Graph, formulas: Formulas) -> None:
        self._fields = {} if graph.document is None else graph.document.fields
        self.is_open = not any(_below(each) for each in self._fields.values())
        """Whether every field is for everybody, so that nothing has to be masked."""
        self.everything = _merged(map(_below, self._fields.values()))
        """Who may see all fields of a document."""
        self.names: dict[str, Held] = {} if self.is_open else self._follow(graph, formulas)
        """The names in the data of a run that hold what only some may see."""
        self.nodes = {node: self.names[name] for node, name in _answers(graph).items() if name in self.names}
        """The nodes whose answers, or items, hold it."""
        self._guarded: dict[tuple[str, str], Guarded] = {}
        if self.is_open:
            return
        for node, some in formulas.items():
            for name, expression in some.items():
                audience = self.of(expression)
                if audience:
                    self._guarded[node, name] = self._guard(expression, audience)

    def guarded(self, node: str, name: str) -> Guarded | None:
        """An expression of a node, if only some may see what it reads."""
        return self._guarded.get((node, name))

    def guard(self, expression: Expression | None) -> Guarded | None:
        """An expression that is no part of the graph, such as one of a rule, if only some may see what it reads."""
        audience = EVERYBODY if expression is None or self.is_open else self.of(expression)
        return self._guard(expression, audience) if expression is not None and audience else None

    def of(self, expression: Expression) -> Audience:
        """Who may see what an expression reads."""
        return _merged(self._path(each.path) for each in variables(expression.tree))

    def handed_on(self, call: Node, formulas: Mapping[str, Expression]) -> Audience:
        """Who may see what a call begins with, which its answer may repeat."""
        assert isinstance(call.op, CallOp)
        return self._all if call.op.input is None else _merged(map(self.of, formulas.values()))

    @property
    def _all(self) -> Audience:
        """Who may see all of the data."""
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
        """The field that a path leads to; None if there is none, or if it is hidden itself or lies in one that is."""
        head, *rest = path
        if head == _ENTITY:
            return _at(self._fields, rest)
        held = self.names.get(rest[0]) if head in _DATA and rest else None
        return None if held is None or held.field is None else _at({rest[0]: held.field}, rest)

    def _follow(self, graph: Graph, formulas: Formulas) -> dict[str, Held]:
        """Follow the values of hidden fields into the data, until nothing new is found."""
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
        """Each way in which a value comes into the data, with the name that it gets there."""
        for node in graph.nodes.values():
            some = formulas[node.id]
            match node.op:
                case ScriptOp(into=into):
                    yield into or node.id, self._held(some["expression"])
                case SplitOp(item=item) if "items" in some:
                    yield item, self._held(some["items"], is_list=True)
                case JoinOp(
                    split=split, answer=answer
                ):  # What the branches bring along, which may be all that they hold.
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
    """Under which name the data holds the answer of each node, or the items of a split."""
    found = {}
    for node in graph.nodes.values():
        match node.op:
            case ScriptOp(into=name) | SplitOp(item=name) | JoinOp(answer=name) | CallOp(into=name) if name:
                found[node.id] = name
            case _:
                found[node.id] = node.id
    return found


def exposing(graph: Graph) -> Iterator[Diagnostic]:
    """Find the calls that hand on hidden or sensitive fields: the run that a call starts shows what it is given to all who may read it."""
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
    """A field, hidden where it is sensitive, with all that it holds."""
    return structs.replace(
        field,
        visible_to=field.visible_to or (("sensitive",) if field.sensitive else ()),
        items=None if field.items is None else _closed(field.items),
        fields={name: _closed(each) for name, each in field.fields.items()},
    )


def with_sources(fields: Mapping[str, DocumentField]) -> dict[str, DocumentField]:
    """The fields of a document, where computed ones are hidden from, and as sensitive as, the fields that they read."""
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
    """Some fields, with the computed ones that read them, directly or by one another."""
    found, formulas = set(names), formulas_of(fields)
    for name in in_order(formulas):
        if not found.isdisjoint(fields_read(formulas[name])):
            found.add(name)
    return found


def _merged(audiences: Iterable[Audience]) -> Audience:
    return tuple(sorted({roles for each in audiences for roles in each}))


def _below(field: DocumentField) -> Audience:
    """Who may see a field with all that it holds."""
    return _merged(each.audience for each in _whole(field))


def _along(fields: Mapping[str, DocumentField], path: Sequence[str]) -> Iterator[Audience]:
    """Who may see what lies on a path, and below its end."""
    return (each.audience for each in _met(fields, path))


def _met(fields: Mapping[str, DocumentField], path: Sequence[str]) -> Iterator[DocumentField]:
    """The fields that lie on a path, and all below its end."""
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
    """A field, with all that it holds."""
    yield field
    for each in (*field.fields.values(), *(() if field.items is None else (field.items,))):
        yield from _whole(each)


def _inner(field: DocumentField) -> Mapping[str, DocumentField]:
    return field.fields if field.items is None else _inner(field.items)


def _at(fields: Mapping[str, DocumentField], path: list[str]) -> DocumentField | None:
    """The field at the end of a path; None if there is none, or if it or something on the way is hidden."""
    found: DocumentField | None = None
    for name in path:
        found = fields.get(name)
        if found is None or found.audience:
            return None
        fields = _inner(found)
    return found
