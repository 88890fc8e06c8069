"""Shows an error in its source: the line, a caret under the character, the message."""

from __future__ import annotations

import unicodedata
from typing import Final

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import visible

CONTEXT: Final = 60
"""Characters shown before and after the mistake on a long line."""

_WIDE: Final = frozenset("WF")


def point(error: ExpressionError) -> str:
    """The message under its source, safe to print: hidden characters are shown as escapes."""
    if error.position is None or not error.source:
        return f"{error} [{error.reason}]"
    before, after = _line(error.source, error.position)
    return f"{before}{after}\n{' ' * _width(before)}^\n{error} [{error.reason}]"


def _line(source: str, position: int) -> tuple[str, str]:
    """What stands on the line of the position, before it and from it on, shortened and made visible."""
    head, tail = source[:position], source[position:]
    before = head.rsplit("\n", 1)[-1]
    after = tail.split("\n", 1)[0]
    shown_before = f"…{before[-CONTEXT:]}" if len(before) > CONTEXT else before
    shown_after = f"{after[:CONTEXT]}…" if len(after) > CONTEXT else after
    return visible(shown_before), visible(shown_after)


def _width(text: str) -> int:
    """Columns that a terminal gives the text; East Asian wide characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in _WIDE) for each in text)
