"""A file as its author wrote it: values, and where each of them stands.

A tree has no circles, so the garbage collector need not look at its parts: large files have hundreds of thousands.

Which scalars are what: the rule of JSON, for YAML too.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

Value: TypeAlias = "str | int | float | bool | None"


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A place in a text, counted from 1 as editors do."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Scalar(msgspec.Struct, frozen=True, gc=False):
    """A value without parts."""

    value: Value
    text: str
    """As it was written, without its quotes."""
    at: Mark


class FileItems(msgspec.Struct, frozen=True, gc=False):
    """A list."""

    items: list[Tree]
    at: Mark


class FileField(msgspec.Struct, frozen=True, gc=False):
    """A name with its value."""

    name: Mark
    """Where the name stands."""
    tree: Tree


class Fields(msgspec.Struct, frozen=True, gc=False):
    """An object."""

    fields: dict[str, FileField]
    at: Mark


Tree: TypeAlias = Scalar | FileItems | Fields


def plain(tree: Tree) -> object:
    """The value without its places."""
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
    """What a scalar without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _BROKEN.fullmatch(text) else text
