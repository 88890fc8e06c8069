"""Go-template conditions: `{{ gt .count 5 }}`, `{{ and (eq .a 1) (ne .b "x") }}`, `{{ .count | lt 5 }}`.

One action, nine functions, fields, literals, parentheses and pipes; everything else of Go templates is refused.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from lark import Token, Transformer_NonRecursive

from holdfast.errors import ExpressionError
from holdfast.expressions.building import Builder
from holdfast.expressions.characters import unescape
from holdfast.expressions.reasons import Reason
from holdfast.expressions.syntax import END, VALUE, Grammar
from holdfast.expressions.tree import Constant, Node, Number, Operator, Variable

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

CONSTANTS: Final = {"true": True, "false": False, "nil": None}

GRAMMAR: Final = Grammar(
    r"""
    start: _OPEN pipeline _CLOSE
    pipeline: command ("|" command)*
    ?command: FUNCTION operand* -> call | operand
    ?operand: FIELD -> field | NUMBER -> number | STRING -> string | RAW -> raw | CONSTANT -> constant
            | "(" pipeline ")"

    _OPEN: /\{\{-?/
    _CLOSE: /-?\}\}/
    CONSTANT.2: /(true|false|nil)\b/
    FUNCTION: /[A-Za-z_][A-Za-z0-9_]*/
    FIELD: /(\.[A-Za-z_][A-Za-z0-9_]*)+/
    NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
    STRING: /"([^"\\\t\r\n]|\\.)*"/
    RAW: /`[^`]*`/
    %ignore /[ \t\r\n]+/
    """,
    words={
        "_OPEN": "'{{'",
        "FUNCTION": "a function",
        **dict.fromkeys(("FIELD", "NUMBER", "STRING", "RAW", "CONSTANT"), VALUE),
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


class _GoTree(Transformer_NonRecursive[Token, Node]):
    """What each rule of the grammar builds."""

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self.builder = builder

    def start(self, parts: list[Node]) -> Node:
        return parts[0]

    def field(self, parts: list[Token]) -> Variable:
        return self.builder.variable(parts[0].removeprefix("."), _at(parts[0]))

    def number(self, parts: list[Token]) -> Number:
        return self.builder.number(parts[0], _at(parts[0]))

    def string(self, parts: list[Token]) -> Constant:
        at = _at(parts[0])
        return Constant(value=unescape(parts[0][1:-1], at + 1), at=at)

    def raw(self, parts: list[Token]) -> Constant:
        return Constant(value=parts[0][1:-1], at=_at(parts[0]))

    def constant(self, parts: list[Token]) -> Constant:
        return Constant(value=CONSTANTS[parts[0]], at=_at(parts[0]))

    def call(self, parts: tuple[Token, *tuple[Node, ...]]) -> Call:
        name, *arguments = parts
        if name not in ARITY:
            raise ExpressionError(
                f"there is no function '{name}'; there are {', '.join(ARITY)}",
                reason=Reason.UNKNOWN_FUNCTION,
                position=_at(name),
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
        _check_arity(name, len(arguments))
        if name == "not":
            return self.builder.negation(arguments[0], _at(name))
        if name == "and":
            return self.builder.conjunction(arguments)
        if name == "or":
            return self.builder.disjunction(arguments)
        first, *others = arguments
        operator = COMPARISONS[name]
        return self.builder.disjunction([self.builder.comparison(operator, first, each, _at(name)) for each in others])


def _check_arity(name: Token, count: int) -> None:
    least, most = ARITY[name]
    if not least <= count <= most:
        wanted = f"{least} or more" if most > least else f"exactly {least}"
        raise ExpressionError(f"'{name}' takes {wanted} values, not {count}", reason=Reason.SYNTAX, position=_at(name))


def _at(token: Token) -> int:
    return token.start_pos or 0
