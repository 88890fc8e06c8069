"""The tree of an expression, common to all syntaxes: immutable nodes of plain data.

`at` is the source position of a node, for messages. The canonical form and the hash ignore it.
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
"""Substitute for an absent value. `alike` is zero beside a number and null otherwise, which depends on the data."""
Temporal: TypeAlias = Literal["date", "datetime", "duration"]


Plain: TypeAlias = "bool | str | list[Plain] | dict[str, Plain] | None"
"""Data of the canonical form. Numbers are texts, so that no platform rounds them."""


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
"""Canonical JSON (RFC 8785) for data without numbers."""


class Located(msgspec.Struct, frozen=True, kw_only=True, tag_field="node", omit_defaults=True):
    """Base of all nodes."""

    at: int = 0
    """Source position for messages."""


class Constant(Located, frozen=True, kw_only=True, tag="constant"):
    """A text, boolean or null. Numbers have their own node, because `True == 1` in Python."""

    value: str | bool | None


class Number(Located, frozen=True, kw_only=True, tag="number"):
    """A number as canonical decimal text, which no platform rounds before hashing."""

    text: Annotated[str, Meta(pattern=r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")]


class Variable(Located, frozen=True, kw_only=True, tag="variable"):
    """A value read from the data by a path."""

    path: Annotated[tuple[Name, ...], Meta(min_length=1)]
    absent: Absent = "error"
    """Substitute for a missing or null value. `error` for a required variable."""
    read_as: Temporal | None = None
    """Time type of an ISO text by the schema. None leaves texts unchanged."""

    @property
    def name(self) -> str:
        """The path as text."""
        return path_text(self.path)


class Items(Located, frozen=True, kw_only=True, tag="list"):
    """A list literal."""

    items: tuple[Constant | Number | Variable, ...]


class Comparison(Located, frozen=True, kw_only=True, tag="compare"):
    """A comparison of two operands. `at` is the operator."""

    operator: Operator
    left: Node
    right: Node


class Not(Located, frozen=True, kw_only=True, tag="not"):
    """A negation."""

    part: Node


class And(Located, frozen=True, kw_only=True, tag="all"):
    """A conjunction. It is flat, so that a long chain is not deep.

    A single part requires a boolean: a condition that is a bare variable differs from a mapping that reads it.
    """

    parts: Annotated[tuple[Node, ...], Meta(min_length=1)]


class Or(Located, frozen=True, kw_only=True, tag="any"):
    """A disjunction."""

    parts: Annotated[tuple[Node, ...], Meta(min_length=2)]


class TextTemplate(Located, frozen=True, kw_only=True, tag="template"):
    """A text with placeholders. It is always a whole expression."""

    parts: tuple[Constant | Variable, ...]


Node: TypeAlias = Constant | Number | Variable | Items | Comparison | Not | And | Or | TextTemplate


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct children in source order."""
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
    """Yield the node and all nodes below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def depth(node: Node) -> int:
    """Return the number of nodes on the longest path down, including this one."""
    return 1 + max(map(depth, children(node)), default=0)


def variables(node: Node) -> Iterator[Variable]:
    """Yield the variables of the expression."""
    return (each for each in walk(node) if isinstance(each, Variable))


def canonical(node: Node) -> dict[str, Plain]:
    """Return the tree as plain JSON without positions, equal for all syntaxes."""
    stripped = _without_positions(msgspec.to_builtins(node))
    assert isinstance(stripped, dict)
    return stripped


def digest(node: Node) -> str:
    """Return the SHA-256 of the canonical JSON (RFC 8785), in hexadecimal."""
    return hashlib.sha256(_encode(canonical(node)).encode()).hexdigest()


def _without_positions(form: Plain) -> Plain:
    if isinstance(form, dict):
        return {key: _without_positions(value) for key, value in form.items() if key != "at"}
    if isinstance(form, list | tuple):
        return [_without_positions(each) for each in form]
    return form
