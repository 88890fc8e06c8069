"""Paths: sequences of names that lead to a value.

Words are joined by dots, and other names are quoted in brackets: `input.order["ship-to"].city`. A path has one printed
form, however it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from standfast.expressions.model.characters import escaped, is_hidden, unescape

NAME_PATTERN: Final = "[A-Za-z_][A-Za-z0-9_]*"
"""A name without quotes: ASCII only, so that names cannot look alike."""

_QUOTED = r"""\[(?:"(?:[^"\\\t\r\n]|\\.)*"|'(?:[^'\\\t\r\n]|\\.)*')\]"""

PATH_PATTERN: Final = rf"{NAME_PATTERN}(?:\.{NAME_PATTERN}|{_QUOTED})*"
"""A whole path without the optional mark."""

_PATH = re.compile(PATH_PATTERN)
_NAME = re.compile(rf"({NAME_PATTERN})|({_QUOTED})")
_WORD = re.compile(NAME_PATTERN)
_SPECIAL: Final = frozenset("\"'\\{}")
"""Characters with a meaning in one of the syntaxes inside a text."""


def read_path(text: str, at: int = 0) -> tuple[str, ...] | None:
    """Return the names of a path, or None for other texts.

    Errors in quoted names point at `at`, the start of the path.
    """
    if _PATH.fullmatch(text) is None:
        return None
    return tuple(word or unescape(quoted[2:-2], lambda _index: at) for word, quoted in _NAME.findall(text))


def path_text(names: Sequence[str]) -> str:
    """Return the printed form of a path, which every syntax can read back."""
    first, *others = names
    return first + "".join(f".{name}" if is_word(name) else f'["{_safe(name)}"]' for name in others)


def is_word(name: str) -> bool:
    """Return whether a name needs no quotes."""
    return _WORD.fullmatch(name) is not None


def _safe(name: str) -> str:
    return "".join(escaped(each) if each in _SPECIAL or is_hidden(each) else each for each in name)
