"""Schemas: the types of the names that an expression may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.types import Kind

TypeName: TypeAlias = Kind | Literal["any", "money"]

TYPE_NAMES: Final[tuple[str, ...]] = ("any", "money", *get_args(Kind))
"""All types of a schema. `money` is an integer of minor units, and `any` is unchecked."""


class Type(msgspec.Struct, frozen=True):
    """The type of one name in the data."""

    name: TypeName = "any"
    fields: Mapping[str, Type] | None = None
    """Fields of an object. None if they are unknown."""
    items: Type | None = None
    """Type of list items. None if it is unknown."""
    values: tuple[str, ...] = ()
    """The possible texts. Empty means any."""

    @property
    def kind(self) -> Kind | Literal["any"]:
        """The kind for operators: money compares as a number."""
        return "number" if self.name == "money" else self.name

    def __str__(self) -> str:
        return self.name


ANY: Final = Type()
BOOL: Final = Type("bool")


def schema_type(form: object) -> Type:
    """Build a type from its short form: a name, a list with its item type, an object of fields, or a `Type`.

    `{"entity": {"total": "money", "tags": ["string"]}, "now": "datetime"}` describes two namespaces.
    """
    match form:
        case Type():
            return form
        case str() if form in TYPE_NAMES:
            return Type(cast("TypeName", form))
        case [item]:
            return Type("list", items=schema_type(item))
        case Mapping():
            return Type("object", fields={str(name): schema_type(each) for name, each in form.items()})
        case _:
            raise ExpressionError(
                f"{form!r} is not a type; a schema has {', '.join(TYPE_NAMES)}, [type] and objects of these",
                reason=ExpressionErrorCode.BAD_SCHEMA,
            )
