"""JSON with positions, so that errors in a structured condition point into its text."""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias, cast

import msgspec
from lark import Token, Transformer_NonRecursive

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import is_hidden, mention
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.syntax.grammar import END, VALUE, Grammar
from standfast.expressions.syntax.literals import TERMINALS

GRAMMAR: Final = Grammar(
    r"""
    ?start: value
    ?value: DOUBLE_QUOTED -> string | NUMBER -> number | CONSTANT -> constant | array | object
    array: OPEN_LIST [value ("," value)*] "]"
    object: OPEN_OBJECT [pair ("," pair)*] "}"
    pair: DOUBLE_QUOTED ":" value

    OPEN_LIST: "["
    OPEN_OBJECT: "{"
    CONSTANT: /(true|false|null)\b/
    """
    + TERMINALS,
    words={
        **dict.fromkeys(("NUMBER", "CONSTANT", "OPEN_LIST", "OPEN_OBJECT"), VALUE),
        "DOUBLE_QUOTED": "a text in double quotes",
        "COMMA": "','",
        "COLON": "':'",
        "RSQB": "']'",
        "RBRACE": "'}'",
        "$END": END,
    },
    hints={},
)

_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.")
"""A character of a JSON text. One beyond the basic plane takes two escapes."""

CONSTANTS: Final = {"true": True, "false": False, "null": None}


class Numeral(str):
    """A number as written."""

    __slots__ = ()


class Spot(msgspec.Struct, frozen=True):
    """A JSON value with its position."""

    value: Content
    at: int
    depth: int = 1
    """Depth of lists and objects, including itself."""
    raw: str = ""
    """A text as written, with quotes and escapes."""


Content: TypeAlias = Numeral | str | bool | list[Spot] | dict[str, Spot] | None


def json_source(document: object) -> str:
    """Return the JSON text of a condition given as data, with hidden characters escaped."""
    try:
        text = json.dumps(document, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise ExpressionError(
            "a condition is plain JSON data: objects, lists, texts, numbers, true, false and null",
            reason=ExpressionErrorCode.BAD_CONDITION,
        ) from None
    if text.isascii() and text.isprintable():
        return text
    return "".join(json.dumps(each)[1:-1] if is_hidden(each) else each for each in text)


def read_json(source: str, deepest: int) -> Spot:
    """Parse a JSON text. Raises for repeated keys and for nesting beyond `deepest`."""
    return GRAMMAR.read(source, _Spots(deepest))


def text_places(spot: Spot) -> list[int]:
    """Return the source position of each character of a text and of its end."""
    body = spot.raw[1:-1]
    starts = [spot.at + 1 + match.start() for match in _CHARACTER.finditer(body)]
    return [*starts, spot.at + 1 + len(body)]


class _Spots(Transformer_NonRecursive[Token, Spot]):
    """Builds the values from the grammar's rules."""

    def __init__(self, deepest: int) -> None:
        super().__init__()
        self.deepest = deepest

    def string(self, parts: list[Token]) -> Spot:
        token = parts[0]
        return Spot(_text(token), _at(token), raw=token)

    def number(self, parts: list[Token]) -> Spot:
        return Spot(Numeral(parts[0]), _at(parts[0]))

    def constant(self, parts: list[Token]) -> Spot:
        return Spot(CONSTANTS[parts[0]], _at(parts[0]))

    def array(self, parts: tuple[Token, *tuple[Spot, ...]]) -> Spot:
        bracket, *items = parts
        return self._nested(bracket, items, items)

    def pair(self, parts: tuple[Token, Spot]) -> tuple[Token, Spot]:
        return parts

    def object(self, parts: tuple[Token, *tuple[tuple[Token, Spot], ...]]) -> Spot:
        brace, *pairs = parts
        members: dict[str, Spot] = {}
        for key, value in pairs:
            name = _text(key)
            if name in members:
                raise ExpressionError(
                    f"the key {mention(name)} stands here twice",
                    reason=ExpressionErrorCode.BAD_CONDITION,
                    position=_at(key),
                )
            members[name] = value
        return self._nested(brace, members, list(members.values()))

    def _nested(self, opening: Token, value: Content, below: list[Spot]) -> Spot:
        depth = 1 + max((each.depth for each in below), default=0)
        if depth > self.deepest:
            raise ExpressionError(
                "the condition is nested too deeply", reason=ExpressionErrorCode.TOO_DEEP, position=_at(opening)
            )
        return Spot(value, _at(opening), depth)


def _text(token: Token) -> str:
    """Return the text of a JSON string. Raises for a lone surrogate, which cannot be hashed."""
    try:
        text = cast("str", json.loads(token))
        text.encode()
    except ValueError:
        raise ExpressionError(
            "this text has an escape that is not a character",
            reason=ExpressionErrorCode.BAD_STRING,
            position=_at(token),
        ) from None
    return text


def _at(token: Token) -> int:
    return token.start_pos or 0
