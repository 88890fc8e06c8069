"""Allowed characters of a source, and escapes for all others.

Invisible characters, and those that reorder text on screen, could make an expression look different from its meaning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode

LAYOUT = frozenset(" \t\r\n")
"""White space between words."""

HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that are refused: controls, format and bidi marks, surrogates, line separators."""

SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors."""

BLANK = SELECTORS | frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks without a visible shape."""

JOINERS = SELECTORS | frozenset("\u200c\u200d")
"""Invisible characters that some scripts and many emoji need. They are allowed in texts for people."""

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "'": "'", '"': '"', "\\": "\\", "{": "{", "}": "}"}
"""Characters after a backslash in a string, besides `uXXXX` and `UXXXXXXXX`."""

ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))", re.DOTALL)

LONGEST_MENTION = 40

_LAST_CODE_POINT = 0x10FFFF
_ASTRAL = 0x10000


def check_characters(source: str, allowed: AbstractSet[str] = frozenset()) -> None:
    """Refuse a source with a hidden character. The error names it and its position."""
    if source.isascii() and source.isprintable():
        return
    for position, character in enumerate(source):
        if is_hidden(character) and character not in LAYOUT and character not in allowed:
            raise ExpressionError(
                f"{describe(character)} may not stand in an expression; inside quotes write {escaped(character)}",
                reason=ExpressionErrorCode.FORBIDDEN_CHARACTER,
                position=position,
            )


def is_hidden(character: str) -> bool:
    """Return whether the character is invisible."""
    return character in BLANK or unicodedata.category(character) in HIDDEN_CATEGORIES


def describe(character: str) -> str:
    """Describe a character for a message: its shape if visible, and beyond ASCII its number and name."""
    shape = "" if is_hidden(character) else f"'{character}'"
    if character.isascii() and shape:
        return shape
    name = unicodedata.name(character, "control character")
    return f"{shape} (U+{ord(character):04X} {name})".strip()


def escaped(character: str) -> str:
    r"""Return the character as `\uXXXX`, or `\UXXXXXXXX` beyond the basic plane."""
    code = ord(character)
    return f"\\u{code:04x}" if code < _ASTRAL else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return the text with all hidden characters and unusual spaces escaped."""
    return "".join(escaped(each) if is_hidden(each) or _is_odd_space(each) else each for each in text)


def mention(text: str) -> str:
    """Return an external word for a message: quoted, visible and shortened."""
    return f"'{visible(text[:LONGEST_MENTION])}{'…' if len(text) > LONGEST_MENTION else ''}'"


def quoted(text: str) -> str:
    """Return the text as a string of the native syntax.

    Braces are escaped, so that no syntax takes them for a template.
    """
    return f"'{inside_quotes(text)}'"


def inside_quotes(text: str) -> str:
    """Return the text for use between single quotes."""
    return visible(re.sub(r"[\\'{}]", r"\\\g<0>", text))


def unescape(body: str, locate: Callable[[int], int]) -> str:
    """Return the text of a string's body. `locate` maps positions in the body to the source."""
    return ESCAPE.sub(lambda match: _unescape_one(match, locate(match.start())), body)


def _unescape_one(match: re.Match[str], at: int) -> str:
    short, long, single = match.groups()
    if single is None:
        return _code_point(int(short or long, 16), at)
    if single in ESCAPES:
        return ESCAPES[single]
    known = " ".join(f"\\{each}" for each in ESCAPES)
    raise ExpressionError(
        f"this escape is not known; there are {known} \\uXXXX \\UXXXXXXXX",
        reason=ExpressionErrorCode.BAD_STRING,
        position=at,
    )


def _code_point(code: int, at: int) -> str:
    if code > _LAST_CODE_POINT or unicodedata.category(chr(code)) == "Cs":
        raise ExpressionError(
            "this escape is not a character: surrogates and numbers beyond U+10FFFF are refused",
            reason=ExpressionErrorCode.BAD_STRING,
            position=at,
        )
    return chr(code)


def _is_odd_space(character: str) -> bool:
    return character != " " and unicodedata.category(character) == "Zs"
