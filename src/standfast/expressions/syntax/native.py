"""The native syntax: `entity.grand_total > 10000 && actor.roles contains 'finance_manager'`."""

from __future__ import annotations

from typing import ClassVar, Final, cast

from lark import Token

from standfast.expressions.model.paths import PATH_PATTERN
from standfast.expressions.model.tree import (
    Comparison,
    Constant,
    Items,
    Node,
    Not,
    Number,
    Operator,
    Variable,
)
from standfast.expressions.syntax.grammar import END, VALUE, Grammar, Locate, unmoved
from standfast.expressions.syntax.literals import TERMINALS, LiteralTree
from standfast.expressions.syntax.tree_builder import Builder

_CHAIN = "comparisons do not chain; join two with &&"
_ARITHMETIC = "there is no arithmetic"
_SMALL = "words of the language are written small"

GRAMMAR: Final = Grammar(
    r"""
    ?start: disjunction
    ?disjunction: conjunction (_OR conjunction)*
    ?conjunction: negation (_AND negation)*
    ?negation: NOT negation | comparison
    ?comparison: operand | operand OPERATOR operand -> compared
    ?operand: BANG operand -> negation | atom
    ?atom: scalar | OPEN [scalar ("," scalar)*] "]" -> items | "(" disjunction ")"
    ?scalar: PATH -> variable | NUMBER -> number | CONSTANT -> constant
           | (SINGLE_QUOTED | DOUBLE_QUOTED) -> string

    _OR: /\|\||or\b/
    _AND: /&&|and\b/
    NOT.2: /not\b/
    BANG: "!"
    OPEN: "["
    OPERATOR: /[=!<>]=|[<>]|in\b|contains\b|starts_with\b|ends_with\b/
    CONSTANT.2: /(true|false|null)\b/
    """
    rf"PATH: /{PATH_PATTERN}\??/" + TERMINALS,
    words={
        **dict.fromkeys(("PATH", "NUMBER", "CONSTANT"), VALUE),
        "OPERATOR": "a comparison",
        "_AND": "&&",
        "_OR": "||",
        "COMMA": "','",
        "RPAR": "')'",
        "RSQB": "']'",
        "$END": END,
    },
    hints={
        "=": "write == to compare",
        "&": "write && for and",
        "|": "write || for or",
        "+": "there is no arithmetic and no joining of texts",
        **dict.fromkeys("-*/%", _ARITHMETIC),
        **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "ends_with"), _CHAIN),
        **dict.fromkeys(("AND", "And", "OR", "Or", "IN", "In", "CONTAINS", "Contains"), _SMALL),
        "~": "there are no regular expressions",
        "(": "there are no function calls",
        "[": "there is no indexing; only a name in quotes stands in brackets, as in input['ship-to']",
        **dict.fromkeys(("startswith", "startsWith", "hasPrefix"), "write starts_with"),
        **dict.fromkeys(("endswith", "endsWith", "hasSuffix"), "write ends_with"),
        "!": "write !(a in b) for the opposite of a comparison",
        "not": "write !(a in b) for the opposite of a comparison",
        "?": "the mark of an optional variable stands right after its name",
    },
)


def read_native(source: str, builder: Builder, locate: Locate = unmoved) -> Node:
    """Return the tree of a native source. `locate` maps its positions if it is part of a larger text."""
    return GRAMMAR.read(source, _NativeTree(builder, locate), locate)


class _NativeTree(LiteralTree):
    """Builds the tree from the grammar's rules."""

    constants: ClassVar = {"true": True, "false": False, "null": None}

    def variable(self, parts: list[Token]) -> Variable:
        return self.builder.variable(parts[0], self.at(parts[0]))

    def items(self, parts: tuple[Token, *tuple[Constant | Number | Variable, ...]]) -> Items:
        bracket, *items = parts
        return self.builder.items(items, self.at(bracket))

    def compared(self, parts: tuple[Node, Token, Node]) -> Comparison:
        left, operator, right = parts
        return self.builder.comparison(cast("Operator", str(operator)), left, right, self.at(operator))

    def negation(self, parts: tuple[Token, Node]) -> Not:
        sign, part = parts
        return self.builder.negation(part, self.at(sign))

    def conjunction(self, parts: list[Node]) -> Node:
        return self.builder.conjunction(parts)

    def disjunction(self, parts: list[Node]) -> Node:
        return self.builder.disjunction(parts)
