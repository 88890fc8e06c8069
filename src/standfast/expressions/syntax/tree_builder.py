"""Builds trees for all syntaxes, so that the same condition has the same tree.

Leniency is resolved here. The context of an optional variable determines its substitute: zero beside a number, false as
a condition, an empty list where one is searched, empty text in templates and prefix or suffix tests, and null
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.limits import check_depth, check_items
from standfast.expressions.model.numbers import canonical_number
from standfast.expressions.model.options import ExpressionOptions
from standfast.expressions.model.paths import is_word, read_path
from standfast.expressions.model.tree import (
    ORDERINGS,
    PARTS_OF_TEXT,
    Absent,
    And,
    Comparison,
    Constant,
    Items,
    Node,
    Not,
    Number,
    Operator,
    Or,
    TextTemplate,
    Variable,
)

RESERVED: Final = frozenset({"true", "false", "null", "and", "or", "not", "in", "contains", "starts_with", "ends_with"})
"""Reserved words. No variable begins with one, in any case."""

NOW: Final = ("now",)
"""The only variable with a type but no schema, because as a text it would be compared by characters."""

NodeT = TypeVar("NodeT", bound=Node)


class Builder:
    """Builds the nodes of one source and enforces the limits."""

    def __init__(self, options: ExpressionOptions, *, lenient: bool) -> None:
        self.options = options
        self.limits = options.limits
        self.lenient = lenient

    def number(self, text: str, at: int) -> Number:
        """Build a number literal."""
        return Number(text=canonical_number(text, self.limits.digits, at), at=at)

    def variable(self, text: str, at: int) -> Variable:
        """Build a variable from a path, with a final `?` if it may be absent."""
        written = text.removesuffix("?")
        names = read_path(written, at)
        if names is None:
            raise ExpressionError(
                "a path is names joined by dots; a name has letters A-Z, digits and underscores, or stands in quotes and "
                "brackets as in input['ship-to']",
                reason=ExpressionErrorCode.BAD_NAME,
                position=at,
            )
        _check_word(names[0], at)
        return self.variable_of(names, at, is_optional=written != text)

    def variable_of(self, names: tuple[str, ...], at: int, *, is_optional: bool = False) -> Variable:
        """Build a variable from names."""
        _check_names(names, at)
        if self.options.root and names[0] not in self.options.tops:
            names = (self.options.root, *names)
        if not is_word(names[0]):
            raise ExpressionError(
                "a path begins with a name of letters A-Z, digits and underscores",
                reason=ExpressionErrorCode.BAD_NAME,
                position=at,
            )
        return Variable(
            path=names,
            absent="null" if is_optional or self.lenient else "error",
            read_as="datetime" if names == NOW else None,
            at=at,
        )

    def below(self, variable: Variable, names: tuple[str, ...]) -> Variable:
        """Extend a variable by further names."""
        _check_names(names, variable.at)
        return replace(variable, path=(*variable.path, *names), read_as=None)

    def items(self, items: Iterable[Constant | Number | Variable], at: int) -> Items:
        """Build a list literal."""
        node = Items(items=tuple(items), at=at)
        check_items(node, self.limits)
        return self._grown(node)

    def comparison(self, operator: Operator, left: Node, right: Node, at: int) -> Comparison:
        """Build a comparison. `at` is the position of the operator."""
        return self._grown(
            Comparison(
                operator=operator,
                left=_settled(left, _absent_left(operator, right)),
                right=_settled(right, _absent_right(operator, left)),
                at=at,
            )
        )

    def negation(self, part: Node, at: int) -> Not:
        """Build a negation."""
        return self._grown(Not(part=_settled(part, "false"), at=at))

    def conjunction(self, parts: Sequence[Node]) -> Node:
        """Build a conjunction. A single part is returned unchanged."""
        flat = self._flattened(parts, And)
        return flat[0] if len(flat) == 1 else And(parts=flat, at=flat[0].at)

    def disjunction(self, parts: Sequence[Node]) -> Node:
        """Build a disjunction. A single part is returned unchanged."""
        flat = self._flattened(parts, Or)
        return flat[0] if len(flat) == 1 else Or(parts=flat, at=flat[0].at)

    def condition(self, root: Node) -> Node:
        """Build a whole condition. A bare variable must be a boolean."""
        return And(parts=(_settled(root, "false"),), at=root.at) if isinstance(root, Variable) else root

    def template(self, parts: Iterable[Constant | Variable], at: int) -> TextTemplate:
        """Build a template."""
        return self._grown(TextTemplate(parts=tuple(_settled(part, "text") for part in parts), at=at))

    def _flattened(self, parts: Sequence[Node], kind: type[And | Or]) -> tuple[Node, ...]:
        """Return the parts with nested ones of the same kind merged. Only the new node is checked."""
        flat: list[Node] = []
        for part in parts:
            if isinstance(part, kind):
                flat.extend(part.parts)
            else:
                check_depth(part, self.limits, above=1)
                flat.append(_settled(part, "false"))
        return tuple(flat)

    def _grown(self, node: NodeT) -> NodeT:
        check_depth(node, self.limits)
        return node


def _check_word(name: str, at: int) -> None:
    word = name.lower()
    if word in RESERVED:
        remedy = "is a word of the language, not a variable" if word == name else f"is written {word!r}"
        raise ExpressionError(f"{name!r} {remedy}", reason=ExpressionErrorCode.BAD_NAME, position=at)


def _check_names(names: tuple[str, ...], at: int) -> None:
    if not all(names):
        raise ExpressionError("no name is empty", reason=ExpressionErrorCode.BAD_NAME, position=at)
    if any(name.startswith("__") for name in names):
        raise ExpressionError("no name begins with two underscores", reason=ExpressionErrorCode.BAD_NAME, position=at)


def _absent_left(operator: Operator, right: Node) -> Absent:
    if operator == "contains":
        return "list"
    if operator in PARTS_OF_TEXT:
        return "text"
    return "null" if operator == "in" else _absent_beside(operator, right)


def _absent_right(operator: Operator, left: Node) -> Absent:
    if operator == "in":
        return "list"
    return "null" if operator in {"contains", *PARTS_OF_TEXT} else _absent_beside(operator, left)


def _absent_beside(operator: Operator, other: Node) -> Absent:
    """Return the substitute beside an operand.

    Ordering is numeric unless the other side is a text. Equality is numeric only beside a number.
    """
    if operator in ORDERINGS:
        return "null" if isinstance(other, Constant) else "zero"
    if isinstance(other, Variable):
        return "alike"
    return "zero" if isinstance(other, Number) else "null"


def _settled(node: NodeT, absent: Absent) -> NodeT:
    """Return the node with its substitute for an absent value, if it is an optional variable."""
    if isinstance(node, Variable) and node.absent != "error":
        return replace(node, absent=absent)
    return node
