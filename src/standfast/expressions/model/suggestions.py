"""Suggestions for unknown words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_LONGEST: Final = 50
"""Maximum length of a compared word, which bounds the cost."""
_MOST: Final = 100
"""Maximum number of compared words. A file may contain thousands of words and of misspelt ones."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of a message: `; did you mean 'total'?`, or an empty text without a similar word."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the most similar known word, or an empty text."""
    if len(word) > _LONGEST:
        return ""
    compared = (each for each in known if len(each) <= _LONGEST)
    near = get_close_matches(word, list(islice(compared, _MOST)), n=1)
    return near[0] if near else ""
