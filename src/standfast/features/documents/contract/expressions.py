"""The expressions of documents: what they can read, by the contract, and the form in which a graph stores them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions import Expression, ExpressionErrorCode, ExpressionOptions, Spelling, Type, parse
from standfast.expressions.model.suggestions import suggestion
from standfast.expressions.model.tree import Node, variables
from standfast.expressions.model.types import Kind
from standfast.features.documents.contract.format import (
    ComputedField,
    Contract,
    EnumField,
    Field,
    ListField,
    ObjectField,
    RefField,
)
from standfast.graph.source_files.values import Condition, Formula
from standfast.kernel.codec.type_cache import settled

Stored: TypeAlias = dict[str, object]
"""The stored form of an expression, as graphs have it."""
Related: TypeAlias = Mapping[str, Contract]
"""The contracts of other types, by name, as far as they are known."""

ENTITY: Final = "entity"
RELATED: Final = "related"
"""What compiled expressions call the documents that a document refers to, as they were."""
SYSTEM: Final[dict[str, Type]] = {
    "id": Type("string"),
    "version": Type("number"),
    "amended_from": Type("string"),
    "superseded_by": Type("string"),
}
"""What every document has besides its fields, and its status."""
STATUS: Final = "status"
RESERVED: Final = frozenset({*SYSTEM, STATUS})
"""Names that no field can have."""

NAMESPACES: Final = frozenset({ENTITY, "actor", "org", "now", "context", "event", "approval"})
OPTIONS: Final = ExpressionOptions(namespaces=NAMESPACES)
_OPEN: Final = Type("object")
_ACTOR: Final = Type(
    "object",
    fields={
        "id": Type("string"),
        "kind": Type("string"),
        "roles": Type("list", items=Type("string")),
        "capabilities": Type("list", items=Type("string")),
    },
)
_PLAIN: Final = {
    "string": Type("string"),
    "int": Type("number"),
    "money": Type("money"),
    "bool": Type("bool"),
    "date": Type("date"),
    "datetime": Type("datetime"),
}
_REMEMBERED: Final = 4096
_DEEPEST_REF: Final = 3
"""Names in a path through a reference: the namespace, the field and one of the other document."""


def entity_type(contract: Contract) -> Type:
    """What an expression can read of a document."""
    own = {name: field_type(each) for name, each in contract.fields.items()}
    return Type("object", fields={**own, **SYSTEM, STATUS: Type("string", values=tuple(contract.lifecycle.states))})


def field_type(field: Field) -> Type:
    """The type of a field. A reference is not checked: it is an id, and the way to the other document's fields."""
    match field:
        case EnumField(values=values):
            return Type("string", values=tuple(values))
        case ListField(items=items):
            return Type("list", items=None if items is None else field_type(items))
        case ObjectField(fields=fields):
            return Type("object", fields={name: field_type(each) for name, each in fields.items()} or None)
        case RefField():
            return Type("any")
        case ComputedField(gives=gives):
            return _PLAIN[gives]
        case _:
            return _PLAIN[str(type(field).__struct_config__.tag)]


def schema_type(contract: Contract, context: Mapping[str, Type] | None = None) -> Type:
    """All that an expression can read; `context` None means that anything may be in it."""
    return Type(
        "object",
        fields={
            ENTITY: entity_type(contract),
            "actor": _ACTOR,
            "org": _OPEN,
            "now": Type("datetime"),
            "context": _OPEN if context is None else Type("object", fields=dict(context)),
            "event": _OPEN,
            "approval": _OPEN,
        },
    )


class Language:
    """The expressions that one place of a document's workflow can have."""

    def __init__(self, contract: Contract, schema: Type, related: Related, *, reads_others: bool = False) -> None:
        self._reads_others = reads_others
        """Whether fields of other documents can be read there, which a document has with it as they were."""
        self._refs = {name: each.of for name, each in contract.fields.items() if isinstance(each, RefField)}
        self._schema = schema
        self._related = related

    def condition(self, given: Condition) -> Stored:
        """The stored form of a condition, as text or as an object; ExpressionError if it is none."""
        read = _parsed(given, "native") if isinstance(given, str) else _parsed(_json(given), "json")
        self._check_references(read)
        return self._stored(read.check(self._schema, expects="bool"))

    def mapping(self, given: Formula, *, expects: Kind | None = None) -> Stored:
        """The stored form of a value; what is no text stands for itself."""
        read = _parsed(given if isinstance(given, str) else _json(given), "mapping")
        self._check_references(read)
        return self._stored(read.check(self._schema, expects=expects))

    def template(self, given: str) -> Stored:
        """The stored form of a text with `{path}` holes."""
        read = _parsed(given, "template")
        self._check_references(read)
        return self._stored(read.check(self._schema))

    def check_own(self, stored: Stored) -> None:
        """Refuse what reads another document where no facts of one are read: ExpressionError, with the place."""
        read = Expression.from_data(stored)
        for path, at in _paths(read):
            if len(path) >= _DEEPEST_REF and path[0] == ENTITY and path[1] in self._refs:
                raise ExpressionError(
                    leads_away(path), reason=ExpressionErrorCode.NOT_AN_OBJECT, source=read.source, position=at
                )

    def _stored(self, read: Expression) -> Stored:
        if not self._reads_others or not any(map(self._leads_on, _paths(read))):
            return read.to_data()
        tree: Node = msgspec.convert(self._through(msgspec.to_builtins(read.tree)), settled(Node))
        return Expression(read.source, read.spelling, tree).to_data()

    def _leads_on(self, path: tuple[tuple[str, ...], int]) -> bool:
        names, _ = path
        return len(names) == _DEEPEST_REF and names[0] == ENTITY and names[1] in self._refs

    def _through(self, part: object) -> object:
        """A tree whose paths through references lead to what the document has with it of the others."""
        if isinstance(part, list | tuple):
            return [self._through(each) for each in part]
        if not isinstance(part, dict):
            return part
        if isinstance(path := part.get("path"), list | tuple) and self._leads_on((tuple(path), 0)):
            return {**part, "path": [RELATED, *path[1:]]}
        return {name: self._through(each) for name, each in part.items()}

    def _check_references(self, read: Expression) -> None:
        for path, at in _paths(read):
            if len(path) < _DEEPEST_REF or path[0] != ENTITY or path[1] not in self._refs:
                continue
            other = self._related.get(self._refs[path[1]])
            if len(path) > _DEEPEST_REF:
                message = f"'{'.'.join(path)}' leads through two documents; one is read, so let a computed field of it say the rest"
                raise ExpressionError(
                    message, reason=ExpressionErrorCode.NOT_AN_OBJECT, source=read.source, position=at
                )
            if other is not None and path[2] not in {*other.fields, *RESERVED}:
                told = suggestion(path[2], other.fields)
                message = f"there is no '{path[2]}' in '{other.entity_type}', which '{path[0]}.{path[1]}' is{told}"
                raise ExpressionError(message, reason=ExpressionErrorCode.UNKNOWN_NAME, source=read.source, position=at)
            if other is not None and _is_private(other, path[2]):
                message = f"'{path[2]}' of '{path[0]}.{path[1]}' is not for everybody's eyes, and would stand in the history; take another"
                raise ExpressionError(message, reason=ExpressionErrorCode.UNKNOWN_NAME, source=read.source, position=at)


def leads_away(path: Sequence[str]) -> str:
    """Say that an expression leads to another document from a place where only steps can follow."""
    told = f"{'.'.join(path)!r} leads through {path[1]!r} to another document, which steps of a body alone read"
    return f"{told}; decide it by a `rule` or `condition` node in a slot"


def _is_private(contract: Contract, name: str) -> bool:
    """Whether a field is not for everybody's eyes, or is computed from one that is not."""
    field = contract.fields.get(name)
    if field is None or field.sensitive or field.visible_to:
        return field is not None
    formulas = [field.formula, field.times] if isinstance(field, ComputedField) else []
    texts = [each if isinstance(each, str) else _json(each) for each in formulas if each is not None]
    read = [_parsed(each, "mapping") for each in texts]
    return any(len(path) > 1 and _is_private(contract, path[1]) for each in read for path, _ in _paths(each))


def _paths(read: Expression) -> Iterator[tuple[tuple[str, ...], int]]:
    for each in variables(read.tree):
        yield tuple(each.path), each.at


def _json(given: object) -> str:
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


@lru_cache(maxsize=_REMEMBERED)
def _parsed(source: str, spelling: Spelling) -> Expression:
    return parse(source, spelling=spelling, options=OPTIONS)
