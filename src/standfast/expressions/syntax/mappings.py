"""Mapping expressions and `{path}` templates, for the input of a step.

A mapping is a native expression of any type (`workflow.order_id`, `5`, `entity.total > 10`), or a quoted text with
optional placeholders: `'pod:{entity.shipment_id}'`. Names must begin with a namespace, because a bare word is probably
an unquoted text. A mapping that is only a path reads null for a missing value. A template is a text with placeholders
and without quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import add

from msgspec.structs import replace

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import unescape
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.options import ExpressionOptions
from standfast.expressions.model.suggestions import suggestion
from standfast.expressions.model.tree import Constant, Node, Variable, variables
from standfast.expressions.syntax.native import read_native
from standfast.expressions.syntax.tree_builder import Builder

_QUOTED = re.compile(r"""[ \t\r\n]*('(?:[^'\\\t\r\n]|\\.)*'|"(?:[^"\\\t\r\n]|\\.)*")[ \t\r\n]*""")
_ESCAPE = re.compile(r"\\U[0-9A-Fa-f]{8}|\\u[0-9A-Fa-f]{4}|\\.")
_BRACES = r"\{\{|\}\}|\{[^{}]*\}|[{}]"
_PLAIN_PIECE = re.compile(rf"{_BRACES}|[^{{}}]+")
_QUOTED_PIECE = re.compile(rf"{_BRACES}|{_ESCAPE.pattern}|[^{{}}\\]+")


def read_mapping(source: str, builder: Builder) -> Node:
    """Return the tree of a mapping expression."""
    quoted = _QUOTED.fullmatch(source)
    if quoted and re.search("[{}]", _ESCAPE.sub("", quoted[1])):
        return _quoted_template(quoted, builder.options)
    tree = read_native(source, builder)
    _check_namespaces(tree, builder.options)
    if isinstance(tree, Variable) and builder.options.lenient is None:
        return replace(tree, absent="null")
    return tree


def read_template(source: str, options: ExpressionOptions, at: int = 0, *, is_quoted: bool = False) -> Node:
    """Return the tree of a template, or the constant of a text without placeholders. Doubled braces are literal.

    Leniency does not apply here, because an incomplete key or message is worse than a failed step. Only the mark `?`
    makes a placeholder optional.
    """
    builder = Builder(options, lenient=False)
    pieces = list(_pieces(source, builder, at, is_quoted=is_quoted))
    if not any(isinstance(piece, Variable) for piece in pieces):
        return Constant(value="".join(str(piece) for piece in pieces), at=at)
    return builder.template(_merged(pieces, at), at)


def _quoted_template(quoted: re.Match[str], options: ExpressionOptions) -> Node:
    at = quoted.start(1)
    if not options.templates:
        raise ExpressionError(
            "this place takes no text with holes; write \\{ for a brace",
            reason=ExpressionErrorCode.BAD_TEMPLATE,
            position=at,
        )
    return read_template(quoted[1][1:-1], options, at + 1, is_quoted=True)


def _pieces(source: str, builder: Builder, at: int, *, is_quoted: bool) -> Iterator[str | Variable]:
    for match in (_QUOTED_PIECE if is_quoted else _PLAIN_PIECE).finditer(source):
        piece, position = match[0], at + match.start()
        if piece in {"{{", "}}"}:
            yield piece[0]
        elif piece in {"{", "}"}:
            raise ExpressionError(
                f"this brace has no partner; write {piece * 2} for the character",
                reason=ExpressionErrorCode.BAD_TEMPLATE,
                position=position,
            )
        elif piece.startswith("{"):
            yield builder.variable(piece[1:-1], position + 1)
        else:
            yield unescape(piece, partial(add, position)) if is_quoted else piece


def _merged(pieces: list[str | Variable], at: int) -> Iterator[Constant | Variable]:
    """Yield the pieces with adjacent texts joined, so that the spelling of braces leaves no trace."""
    for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if is_text:
            yield Constant(value="".join(str(piece) for piece in group), at=at)
        else:
            yield from (piece for piece in group if isinstance(piece, Variable))


def _check_namespaces(tree: Node, options: ExpressionOptions) -> None:
    known = options.tops
    for variable in variables(tree):
        first = variable.path[0]
        if first not in known:
            hint = suggestion(first, sorted(known)) or "; a text is written in quotes"
            raise ExpressionError(
                f"'{first}' is not a namespace{hint}", reason=ExpressionErrorCode.UNKNOWN_NAME, position=variable.at
            )
