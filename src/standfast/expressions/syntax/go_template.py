"""Go-template conditions: `{{ gt .count 5 }}`, `{{ and (eq .a 1) (ne .b "x") }}`, `{{ .count | lt 5 }}`.

It supports one action with a few functions, fields, literals, parentheses and pipes, and refuses the rest of Go
templates. `index` reads names that are not allowed after a dot: `{{ index .input "ship-to" }}`.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple, TypeAlias

from lark import Token

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import mention
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.tree import Constant, Node, Operator, Variable
from standfast.expressions.syntax.grammar import END, VALUE, Grammar
from standfast.expressions.syntax.literals import TERMINALS, LiteralTree
from standfast.expressions.syntax.tree_builder import Builder

COMPARISONS: Final[dict[str, Operator]] = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "contains": "contains",
    "hasPrefix": "starts_with",
    "hasSuffix": "ends_with",
}
MANY: Final = 1000
ARITY: Final = {
    **dict.fromkeys(COMPARISONS, (2, 2)),
    "eq": (2, MANY),
    "and": (2, MANY),
    "or": (2, MANY),
    "not": (1, 1),
    "index": (2, MANY),
}
"""The functions with their minimum and maximum number of arguments. `eq` compares the first with any of the others."""

GRAMMAR: Final = Grammar(
    r"""
    start: _OPEN pipeline _CLOSE
    pipeline: command ("|" command)*
    ?command: FUNCTION operand* -> call | operand
    ?operand: FIELD -> field | NUMBER -> number | CONSTANT -> constant | DOUBLE_QUOTED -> string | RAW -> raw
            | DOT -> whole | "(" pipeline ")"

    _OPEN: /\{\{-?/
    _CLOSE: /-?\}\}/
    CONSTANT.2: /(true|false|nil)\b/
    FUNCTION: /[A-Za-z_][A-Za-z0-9_]*/
    FIELD: /(\.[A-Za-z_][A-Za-z0-9_]*)+/
    DOT: "."
    RAW: /`[^`]*`/
    """
    + TERMINALS,
    words={
        "_OPEN": "'{{'",
        "FUNCTION": "a function",
        **dict.fromkeys(("FIELD", "NUMBER", "CONSTANT"), VALUE),
        "VBAR": "'|'",
        "RPAR": "')'",
        "_CLOSE": "'}}'",
        "$END": END,
    },
    hints={},
)


class Whole(NamedTuple):
    """The whole data, as an argument of `index` only."""

    at: int


Argument: TypeAlias = Node | Whole


class TemplateCall(NamedTuple):
    """A function call. A pipe may add a further argument."""

    name: Token
    arguments: list[Argument]


Command: TypeAlias = TemplateCall | Argument


def read_go(source: str, builder: Builder) -> Node:
    """Return the tree of a Go-template condition."""
    return GRAMMAR.read(source, _GoTree(builder))


class _GoTree(LiteralTree):
    """Builds the tree from the grammar's rules."""

    constants: ClassVar = {"true": True, "false": False, "nil": None}

    def start(self, parts: list[Node]) -> Node:
        return parts[0]

    def field(self, parts: list[Token]) -> Variable:
        return self.builder.variable(parts[0].removeprefix("."), self.at(parts[0]))

    def raw(self, parts: list[Token]) -> Constant:
        return Constant(value=parts[0][1:-1], at=self.at(parts[0]))

    def whole(self, parts: list[Token]) -> Whole:
        return Whole(self.at(parts[0]))

    def call(self, parts: tuple[Token, *tuple[Argument, ...]]) -> TemplateCall:
        name, *arguments = parts
        if name not in ARITY:
            raise ExpressionError(
                f"there is no function {mention(name)}; there are {', '.join(ARITY)}",
                reason=ExpressionErrorCode.UNKNOWN_FUNCTION,
                position=self.at(name),
            )
        return TemplateCall(name, arguments)

    def pipeline(self, parts: list[Command]) -> Node:
        """Pass the value of each command as the last argument of the next, as Go does."""
        value: list[Node] = []
        for part in parts:
            if isinstance(part, TemplateCall):
                value = [self._applied(part.name, [*part.arguments, *value])]
            elif value:
                raise ExpressionError(
                    "only a function can follow '|'", reason=ExpressionErrorCode.SYNTAX, position=part.at
                )
            else:
                value = [_valued(part)]
        return value[0]

    def _applied(self, name: Token, given: list[Argument]) -> Node:
        at = self.at(name)
        _check_arity(name, len(given), at)
        if name == "index":
            return self._indexed(given)
        arguments = [_valued(each) for each in given]
        if name == "not":
            return self.builder.negation(arguments[0], at)
        if name == "and":
            return self.builder.conjunction(arguments)
        if name == "or":
            return self.builder.disjunction(arguments)
        first, *others = arguments
        return self.builder.disjunction(
            [self.builder.comparison(COMPARISONS[name], first, each, at) for each in others]
        )

    def _indexed(self, arguments: list[Argument]) -> Variable:
        """Return a field by names that are not allowed after a dot."""
        first, *others = arguments
        names: list[str] = []
        for each in others:
            if not isinstance(each, Constant) or not isinstance(each.value, str):
                message = "'index' takes a field and then names in quotes; there is no other indexing"
                raise ExpressionError(message, reason=ExpressionErrorCode.SYNTAX, position=each.at)
            names.append(each.value)
        if isinstance(first, Whole):
            return self.builder.variable_of(tuple(names), first.at)
        if isinstance(first, Variable):
            return self.builder.below(first, tuple(names))
        raise ExpressionError(
            "'index' looks into a field, or into '.'", reason=ExpressionErrorCode.SYNTAX, position=first.at
        )


def _valued(argument: Argument) -> Node:
    """Return an argument as a node. Raises for the whole data."""
    if isinstance(argument, Whole):
        message = "'.' alone is the whole data; name a field of it, or look into it with 'index'"
        raise ExpressionError(message, reason=ExpressionErrorCode.SYNTAX, position=argument.at)
    return argument


def _check_arity(name: Token, count: int, at: int) -> None:
    least, most = ARITY[name]
    if not least <= count <= most:
        wanted = f"{least} or more" if most > least else f"exactly {least}"
        raise ExpressionError(
            f"'{name}' takes {wanted} values, not {count}", reason=ExpressionErrorCode.SYNTAX, position=at
        )
