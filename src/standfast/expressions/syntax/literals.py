"""Literals, common to the text syntaxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from lark import Token, Transformer_NonRecursive

from standfast.expressions.model.characters import unescape
from standfast.expressions.model.tree import Constant, Node, Number
from standfast.expressions.syntax.grammar import Locate, unmoved
from standfast.expressions.syntax.tree_builder import Builder

TERMINALS: Final = r"""
    NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
    DOUBLE_QUOTED: /"([^"\\\t\r\n]|\\.)*"/
    SINGLE_QUOTED: /'([^'\\\t\r\n]|\\.)*'/
    %ignore /[ \t\r\n]+/
"""
"""Grammar terminals of numbers, strings and white space."""


class LiteralTree(Transformer_NonRecursive[Token, Node]):
    """Builds the nodes of literals. Syntaxes add their rules."""

    constants: ClassVar[Mapping[str, bool | None]]
    """The words for true, false and null."""

    def __init__(self, builder: Builder, locate: Locate = unmoved) -> None:
        super().__init__()
        self.builder = builder
        self.locate = locate

    def number(self, parts: list[Token]) -> Number:
        """Build a number."""
        return self.builder.number(parts[0], self.at(parts[0]))

    def string(self, parts: list[Token]) -> Constant:
        """Build a quoted text."""
        token = parts[0]
        inside = (token.start_pos or 0) + 1
        return Constant(value=unescape(token[1:-1], lambda index: self.locate(inside + index)), at=self.at(token))

    def constant(self, parts: list[Token]) -> Constant:
        """Build true, false or null."""
        return Constant(value=self.constants[parts[0]], at=self.at(parts[0]))

    def at(self, token: Token) -> int:
        """Return the position of a token in the user's source."""
        return self.locate(token.start_pos or 0)
