"""Checks a tree against a schema: names, types, and texts that stand for times.

The rules equal those of the evaluation (`types`): what certainly fails, or can never be equal, is refused. The result
is the tree with ISO texts typed by the schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, assert_never

from msgspec.structs import replace

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import mention, visible
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.paths import path_text
from standfast.expressions.model.schema import ANY, BOOL, Type
from standfast.expressions.model.suggestions import suggestion
from standfast.expressions.model.temporal import read_time
from standfast.expressions.model.tree import (
    ORDERINGS,
    PARTS_OF_TEXT,
    And,
    Comparison,
    Constant,
    Items,
    Node,
    Not,
    Number,
    Or,
    Temporal,
    TextTemplate,
    Variable,
)
from standfast.expressions.model.types import EQUATED, KINDS, ORDERED, TEXTS, Kind

_EQUATED_PAIRS: Final = {*ORDERED, *((kind, kind) for kind in (*EQUATED, "list"))}


class Typed(NamedTuple):
    """A node with its known type."""

    node: Node
    type: Type


class Checker:
    """Checks one tree, and collects all errors."""

    def __init__(self, schema: Type) -> None:
        self.schema = schema
        self.problems: list[ExpressionError] = []

    def visit(self, node: Node) -> Typed:
        """Return the node with its type. ISO texts below it are typed."""
        match node:
            case Constant(value=value):
                return Typed(node, Type(KINDS[type(value)]))
            case Number():
                return Typed(node, Type("number"))
            case Variable():
                return self._variable(node)
            case Items(items=items):
                return Typed(replace(node, items=tuple(self.visit(each).node for each in items)), Type("list"))
            case Comparison():
                return self._comparison(node)
            case Not(part=part):
                return Typed(replace(node, part=self._truth(part)), BOOL)
            case And(parts=parts) | Or(parts=parts):
                return Typed(replace(node, parts=tuple(map(self._truth, parts))), BOOL)
            case TextTemplate(parts=parts):
                return Typed(replace(node, parts=tuple(map(self._hole, parts))), Type("string"))
            case _:
                assert_never(node)

    def expect(self, typed: Typed, name: Kind) -> None:
        """Record an error unless the node can be of this kind."""
        if typed.type.kind not in {name, "any"}:
            reason = ExpressionErrorCode.NOT_BOOLEAN if name == "bool" else ExpressionErrorCode.TYPE_MISMATCH
            wanted = "true or false is needed here" if name == "bool" else f"a {name} is needed here"
            self._note(f"{wanted}, and this is of type {typed.type}", typed.node, reason)

    def _truth(self, node: Node) -> Node:
        typed = self.visit(node)
        self.expect(typed, "bool")
        return typed.node

    def _hole(self, part: Constant | Variable) -> Node:
        typed = self.visit(part)
        if typed.type.kind not in {*TEXTS, "any"}:
            self._note(f"a text cannot show a value of type {typed.type}", part)
        return typed.node

    def _variable(self, variable: Variable) -> Typed:
        found = self.schema
        for depth, name in enumerate(variable.path):
            if found.kind == "any" or (found.kind == "object" and found.fields is None):
                return Typed(variable, ANY)
            parent = path_text(variable.path[:depth]) if depth else ""
            if found.fields is None:
                self._note(
                    f"'{parent}' is of type {found} and has no fields", variable, ExpressionErrorCode.NOT_AN_OBJECT
                )
                return Typed(variable, ANY)
            if name not in found.fields:
                place = f" in '{parent}'" if parent else ""
                message = f"there is no '{visible(name)}'{place}{suggestion(name, found.fields)}"
                self._note(message, variable, ExpressionErrorCode.UNKNOWN_NAME)
                return Typed(variable, ANY)
            found = found.fields[name]
        return Typed(replace(variable, read_as=_temporal(found)), found)

    def _comparison(self, node: Comparison) -> Typed:
        left, right = self.visit(node.left), self.visit(node.right)
        if node.operator in ORDERINGS:
            self._check_order(left, right, node)
        elif node.operator == "in":
            self.expect(right, "list")
            self._check_membership(left, right, node)
        elif node.operator == "contains":
            self._check_contains(left, right, node)
        elif node.operator in PARTS_OF_TEXT:
            self.expect(left, "string")
            self.expect(right, "string")
        else:
            self._check_equality(left, right, node)
            return Typed(replace(node, left=_or_null(left, right), right=_or_null(right, left)), BOOL)
        return Typed(replace(node, left=left.node, right=right.node), BOOL)

    def _check_order(self, left: Typed, right: Typed, node: Comparison) -> None:
        kinds = left.type.kind, right.type.kind
        if "null" in kinds:
            self._note(
                "null has no place in an order; test for null with == or !=", node, ExpressionErrorCode.NULL_ORDER
            )
        elif not _is_possible(kinds, ORDERED):
            self._note(f"there is no order between {left.type} and {right.type}", node)
        else:
            self._check_texts(left, right)

    def _check_equality(self, left: Typed, right: Typed, node: Comparison) -> None:
        kinds = left.type.kind, right.type.kind
        if "null" in kinds or "any" in kinds:
            return
        if not _is_possible(kinds, _EQUATED_PAIRS):
            self._note(f"{left.type} and {right.type} are never equal", node)
        else:
            self._check_texts(left, right)

    def _check_membership(self, needle: Typed, haystack: Typed, node: Comparison) -> None:
        if isinstance(haystack.node, Items):
            for item in haystack.node.items:
                # Errors of the item itself were recorded with the list.
                self._check_equality(needle, Checker(self.schema).visit(item), node)
        elif haystack.type.items is not None:
            self._check_equality(needle, Typed(haystack.node, haystack.type.items), node)

    def _check_contains(self, left: Typed, right: Typed, node: Comparison) -> None:
        if left.type.kind == "string":
            self.expect(right, "string")
        elif left.type.kind not in {"list", "any"}:
            self._note(f"'contains' needs a list or a string on its left, not {left.type}", node)
        else:
            self._check_membership(right, left, node)

    def _check_texts(self, left: Typed, right: Typed) -> None:
        """Check that a literal is a possible value of the other side."""
        for literal, other in ((left, right), (right, left)):
            if isinstance(literal.node, Number) and other.type.name == "money" and "." in literal.node.text:
                message = "money is counted in minor units, so this must be a whole number"
                self._note(message, literal.node, ExpressionErrorCode.NOT_MINOR_UNITS)
            if isinstance(literal.node, Constant) and isinstance(literal.node.value, str):
                self._check_text(literal.node, literal.node.value, other.type)

    def _check_text(self, node: Constant, text: str, beside: Type) -> None:
        if beside.values and text not in beside.values:
            self._note(
                f"{mention(text)} is not possible here{suggestion(text, beside.values)}",
                node,
                ExpressionErrorCode.UNKNOWN_VALUE,
            )
        kind = _temporal(beside)
        if kind is not None:
            try:
                read_time(text, kind)
            except ExpressionError as error:
                self._note(str(error), node, ExpressionErrorCode.BAD_TIME)

    def _note(self, message: str, node: Node, reason: ExpressionErrorCode = ExpressionErrorCode.TYPE_MISMATCH) -> None:
        self.problems.append(ExpressionError(message, reason=reason, position=node.at))


def _or_null(side: Typed, other: Typed) -> Node:
    """Read a declared null field as null beside the word `null`, because the author tests for it."""
    is_asked = isinstance(other.node, Constant) and other.node.value is None
    node = side.node
    if is_asked and isinstance(node, Variable) and node.absent == "error" and side.type is not ANY:
        return replace(node, absent="null")
    return node


def _temporal(declared: Type) -> Temporal | None:
    match declared.name:
        case "date" | "datetime" | "duration":
            return declared.name
        case _:
            return None


def _is_possible(kinds: tuple[str, str], pairs: Iterable[tuple[str, str]]) -> bool:
    """Return whether some pair of kinds fits. An unknown kind fits every one."""
    return any(kinds[0] in {first, "any"} and kinds[1] in {second, "any"} for first, second in pairs)
