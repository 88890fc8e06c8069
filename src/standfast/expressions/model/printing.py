"""Prints a tree in the native syntax. Parsing the text returns the same tree."""

from __future__ import annotations

from typing import assert_never

from standfast.expressions.model.characters import inside_quotes, quoted
from standfast.expressions.model.tree import (
    And,
    Comparison,
    Constant,
    Items,
    Node,
    Not,
    Number,
    Or,
    TextTemplate,
    Variable,
)

WORDS = {None: "null", True: "true", False: "false"}

_LOOSE = (Comparison, And, Or)
"""Nodes that need parentheses as an operand."""


def printed(node: Node) -> str:
    """Return the native text of a tree. For a template, the quoted text of a mapping."""
    match node:
        case Constant() | Number() | Variable() | Items():
            return _atom(node)
        case Comparison(operator=operator, left=left, right=right):
            return f"{_operand(left)} {operator} {_operand(right)}"
        case Not(part=part):
            return f"!{_operand(part)}"
        case And(parts=parts):
            return " && ".join(f"({printed(part)})" if isinstance(part, Or) else printed(part) for part in parts)
        case Or(parts=parts):
            return " || ".join(map(printed, parts))
        case TextTemplate(parts=parts):
            return f"'{''.join(map(_piece, parts))}'"
        case _:
            assert_never(node)


def _atom(node: Constant | Number | Variable | Items) -> str:
    match node:
        case Constant(value=value):
            return quoted(value) if isinstance(value, str) else WORDS[value]
        case Number(text=text):
            return text
        case Variable():
            return _reference(node)
        case Items(items=items):
            return f"[{', '.join(map(_atom, items))}]"
        case _:
            assert_never(node)


def _operand(node: Node) -> str:
    return f"({printed(node)})" if isinstance(node, _LOOSE) else printed(node)


def _reference(variable: Variable) -> str:
    return variable.name if variable.absent == "error" else f"{variable.name}?"


def _piece(part: Constant | Variable) -> str:
    return f"{{{_reference(part)}}}" if isinstance(part, Variable) else inside_quotes(str(part.value))
