"""The one tree that every spelling becomes: frozen nodes that are plain data and know nothing of their meaning.

`at` is the character of the source a node came from. It is carried for messages and is no part of what an expression
means: the canonical form and the hash leave it out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Final, Literal, TypeAlias, assert_never

import msgspec
from msgspec import Meta

from standfast.expressions.model.paths import path_text

Name: TypeAlias = Annotated[str, Meta(min_length=1)]
Operator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "ends_with"]
ORDERINGS: Final[frozenset[Operator]] = frozenset({"<", "<=", ">", ">="})
PARTS_OF_TEXT: Final[frozenset[Operator]] = frozenset({"starts_with", "ends_with"})
Absent: TypeAlias = Literal["error", "null", "zero", "alike", "false", "list", "text"]
"""What an absent value counts as; `alike` is zero beside a number and null beside anything else, which only the data tells."""
Temporal: TypeAlias = Literal["date", "datetime", "duration"]


Plain: TypeAlias = "bool | str | list[Plain] | dict[str, Plain] | None"
"""What the canonical form is made of. It has no numbers: those are text, so that no platform rounds them."""


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
"""Canonical JSON (RFC 8785) of what has no numbers and only names of fields for keys."""


class Located(msgspec.Struct, frozen=True, kw_only=True, tag_field="node", omit_defaults=True):
    """What all nodes share."""

    at: int = 0
    """The character of the source that messages point at."""


class Constant(Located, frozen=True, kw_only=True, tag="constant"):
    """A text, a truth value or null. Numbers have a node of their own, since `True == 1` in Python."""

    value: str | bool | None


class Number(Located, frozen=True, kw_only=True, tag="number"):
    """A number, as canonical decimal text: hashing needs a form that no platform rounds."""

    text: Annotated[str, Meta(pattern=r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")]


class Variable(Located, frozen=True, kw_only=True, tag="variable"):
    """A value to be read from the data, by names alone."""

    path: Annotated[tuple[Name, ...], Meta(min_length=1)]
    absent: Absent = "error"
    """What stands in when nothing, or null, is there; `error` for a variable that must exist."""
    read_as: Temporal | None = None
    """What the schema says an ISO string in this place is; None leaves strings alone."""

    @property
    def name(self) -> str:
        """The path as it is written."""
        return path_text(self.path)


class Items(Located, frozen=True, kw_only=True, tag="list"):
    """A list written in the expression."""

    items: tuple[Constant | Number | Variable, ...]


class Comparison(Located, frozen=True, kw_only=True, tag="compare"):
    """Two operands and what is asked about them; `at` is the operator."""

    operator: Operator
    left: Node
    right: Node


class Not(Located, frozen=True, kw_only=True, tag="not"):
    """The opposite of a truth value."""

    part: Node


class And(Located, frozen=True, kw_only=True, tag="all"):
    """True when every part is. Flat, so that a long chain is not a deep one.

    One part alone stands for "this must be a truth value": so a condition that is a bare variable differs from the
    mapping that reads the same variable.
    """

    parts: Annotated[tuple[Node, ...], Meta(min_length=1)]


class Or(Located, frozen=True, kw_only=True, tag="any"):
    """True when at least one part is."""

    parts: Annotated[tuple[Node, ...], Meta(min_length=2)]


class TextTemplate(Located, frozen=True, kw_only=True, tag="template"):
    """A text with holes; only ever the whole of an expression."""

    parts: tuple[Constant | Variable, ...]


Node: TypeAlias = Constant | Number | Variable | Items | Comparison | Not | And | Or | TextTemplate


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, in the order they are written."""
    match node:
        case Constant() | Number() | Variable():
            return ()
        case Items(items=items):
            return items
        case Comparison(left=left, right=right):
            return (left, right)
        case Not(part=part):
            return (part,)
        case And(parts=parts) | Or(parts=parts) | TextTemplate(parts=parts):
            return parts
        case _:
            assert_never(node)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def depth(node: Node) -> int:
    """How many nodes lie on the longest way down, this one included."""
    return 1 + max(map(depth, children(node)), default=0)


def variables(node: Node) -> Iterator[Variable]:
    """Every place where the expression reads the data."""
    return (each for each in walk(node) if isinstance(each, Variable))


def canonical(node: Node) -> dict[str, Plain]:
    """The tree as plain JSON without positions: what two spellings of one condition have in common."""
    stripped = _without_positions(msgspec.to_builtins(node))
    assert isinstance(stripped, dict)
    return stripped


def digest(node: Node) -> str:
    """SHA-256 over the canonical JSON (RFC 8785) of the canonical form, in hexadecimal."""
    return hashlib.sha256(_encode(canonical(node)).encode()).hexdigest()


def _without_positions(form: Plain) -> Plain:
    if isinstance(form, dict):
        return {key: _without_positions(value) for key, value in form.items() if key != "at"}
    if isinstance(form, list | tuple):
        return [_without_positions(each) for each in form]
    return form
