"""The tree of a source file: values with their positions.

Unquoted scalars follow the rules of JSON, in YAML too. Trees have no cycles and are excluded from garbage collection,
because large files have hundreds of thousands of values.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

Value: TypeAlias = "str | int | float | bool | None"


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A position in a text, counted from 1 as in editors."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Scalar(msgspec.Struct, frozen=True, gc=False):
    """A value without parts."""

    value: Value
    text: str
    """The written text without its quotes."""
    at: Mark


class FileItems(msgspec.Struct, frozen=True, gc=False):
    """A list."""

    items: list[Tree]
    at: Mark


class FileField(msgspec.Struct, frozen=True, gc=False):
    """A name with its value."""

    name: Mark
    """Position of the name."""
    tree: Tree


class Fields(msgspec.Struct, frozen=True, gc=False):
    """An object."""

    fields: dict[str, FileField]
    at: Mark


Tree: TypeAlias = Scalar | FileItems | Fields


def plain(tree: Tree) -> object:
    """Return the value without positions."""
    match tree:
        case Scalar(value=value):
            return value
        case FileItems(items=items):
            return [plain(each) for each in items]
        case Fields(fields=fields):
            return {name: plain(field.tree) for name, field in fields.items()}


_WORDS: Final[dict[str, Value]] = {"null": None, "~": None, "": None, "true": True, "false": False}
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_BROKEN: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")


def value_of(text: str) -> Value:
    """Return the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _BROKEN.fullmatch(text) else text
