"""A file as its author wrote it: values, and where each of them stands."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Value: TypeAlias = "str | int | float | bool | None"


class Mark(NamedTuple):
    """A place in a text, counted from 1 as editors do."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Scalar(NamedTuple):
    """A value without parts."""

    value: Value
    text: str
    """As it was written, without its quotes."""
    at: Mark


class Items(NamedTuple):
    """A list."""

    items: list[Tree]
    at: Mark


class Field(NamedTuple):
    """A name with its value."""

    name: Mark
    """Where the name stands."""
    tree: Tree


class Fields(NamedTuple):
    """An object."""

    fields: dict[str, Field]
    at: Mark


Tree: TypeAlias = Scalar | Items | Fields


def plain(tree: Tree) -> object:
    """The value without its places."""
    match tree:
        case Scalar(value=value):
            return value
        case Items(items=items):
            return [plain(each) for each in items]
        case Fields(fields=fields):
            return {name: plain(field.tree) for name, field in fields.items()}
