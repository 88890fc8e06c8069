"""Go-template conditions: `{{ gt .count 5 }}`, `{{ and (eq .a 1) (ne .b "x") }}`, `{{ .count | lt 5 }}`.

One action, nine functions, fields, literals, parentheses and pipes; everything else of Go templates is refused.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple, TypeAlias

from lark import Token

from holdfast.errors import ExpressionError
from holdfast.expressions.building import Builder
from holdfast.expressions.characters import mention
from holdfast.expressions.literals import TERMINALS, LiteralTree
from holdfast.expressions.reasons import Reason
from holdfast.expressions.syntax import END, VALUE, Grammar
from holdfast.expressions.tree import Constant, Node, Operator, Variable

COMPARISONS: Final[dict[str, Operator]] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
MANY: Final = 1000
ARITY: Final = {
    **dict.fromkeys(COMPARISONS, (2, 2)),
    "eq": (2, MANY),
    "and": (2, MANY),
    "or": (2, MANY),
    "not": (1, 1),
}
"""Every function, with the least and the most values it takes. `eq` asks whether the first equals any other."""

GRAMMAR: Final = Grammar(
    r"""
    start: _OPEN pipeline _CLOSE
    pipeline: command ("|" command)*
    ?command: FUNCTION operand* -> call | operand
    ?operand: FIELD -> field | NUMBER -> number | CONSTANT -> constant | DOUBLE_QUOTED -> string | RAW -> raw
            | "(" pipeline ")"

    _OPEN: /\{\{-?/
    _CLOSE: /-?\}\}/
    CONSTANT.2: /(true|false|nil)\b/
    FUNCTION: /[A-Za-z_][A-Za-z0-9_]*/
    FIELD: /(\.[A-Za-z_][A-Za-z0-9_]*)+/
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


class Call(NamedTuple):
    """A function with the arguments that stand beside it; a pipe may still add one."""

    name: Token
    arguments: list[Node]


Command: TypeAlias = Call | Node


def read_go(source: str, builder: Builder) -> Node:
    """The tree of a Go-template condition."""
    return GRAMMAR.read(source, _GoTree(builder))


class _GoTree(LiteralTree):
    """What each rule of the grammar builds."""

    constants: ClassVar = {"true": True, "false": False, "nil": None}

    def start(self, parts: list[Node]) -> Node:
        return parts[0]

    def field(self, parts: list[Token]) -> Variable:
        return self.builder.variable(parts[0].removeprefix("."), self.at(parts[0]))

    def raw(self, parts: list[Token]) -> Constant:
        return Constant(value=parts[0][1:-1], at=self.at(parts[0]))

    def call(self, parts: tuple[Token, *tuple[Node, ...]]) -> Call:
        name, *arguments = parts
        if name not in ARITY:
            raise ExpressionError(
                f"there is no function {mention(name)}; there are {', '.join(ARITY)}",
                reason=Reason.UNKNOWN_FUNCTION,
                position=self.at(name),
            )
        return Call(name, arguments)

    def pipeline(self, parts: list[Command]) -> Node:
        """Each command's value becomes the last argument of the next, as in Go."""
        value: list[Node] = []
        for part in parts:
            if isinstance(part, Call):
                value = [self._applied(part.name, [*part.arguments, *value])]
            elif value:
                raise ExpressionError("only a function can follow '|'", reason=Reason.SYNTAX, position=part.at)
            else:
                value = [part]
        return value[0]

    def _applied(self, name: Token, arguments: list[Node]) -> Node:
        at = self.at(name)
        _check_arity(name, len(arguments), at)
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


def _check_arity(name: Token, count: int, at: int) -> None:
    least, most = ARITY[name]
    if not least <= count <= most:
        wanted = f"{least} or more" if most > least else f"exactly {least}"
        raise ExpressionError(f"'{name}' takes {wanted} values, not {count}", reason=Reason.SYNTAX, position=at)
