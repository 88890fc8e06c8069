"""Paths: the names that lead to a value, as people write them.

Names that are words are joined by dots; any other name stands in quotes and brackets: `input.order["ship-to"].city`.
A path has one printed form, whichever way it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from standfast.expressions.model.characters import escaped, is_hidden, unescape

NAME_PATTERN: Final = "[A-Za-z_][A-Za-z0-9_]*"
"""A name that needs no quotes: ASCII only, so that no name can look like another."""

_QUOTED = r"""\[(?:"(?:[^"\\\t\r\n]|\\.)*"|'(?:[^'\\\t\r\n]|\\.)*')\]"""

PATH_PATTERN: Final = rf"{NAME_PATTERN}(?:\.{NAME_PATTERN}|{_QUOTED})*"
"""A whole path, without the mark of an optional one."""

_PATH = re.compile(PATH_PATTERN)
_NAME = re.compile(rf"({NAME_PATTERN})|({_QUOTED})")
_WORD = re.compile(NAME_PATTERN)
_SPECIAL: Final = frozenset("\"'\\{}")
"""What means something to one of the spellings, inside of a text."""


def read_path(text: str, at: int = 0) -> tuple[str, ...] | None:
    """The names of a path; None if it is none. Errors in its quotes point at `at`, where the path begins."""
    if _PATH.fullmatch(text) is None:
        return None
    return tuple(word or unescape(quoted[2:-2], lambda _index: at) for word, quoted in _NAME.findall(text))


def path_text(names: Sequence[str]) -> str:
    """A path as it is printed. It reads back in every spelling, whatever the names hold."""
    first, *others = names
    return first + "".join(f".{name}" if is_word(name) else f'["{_safe(name)}"]' for name in others)


def is_word(name: str) -> bool:
    """Whether a name needs no quotes."""
    return _WORD.fullmatch(name) is not None


def _safe(name: str) -> str:
    return "".join(escaped(each) if each in _SPECIAL or is_hidden(each) else each for each in name)
