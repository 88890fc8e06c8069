"""The nearest known word to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_LONGEST: Final = 50
"""Characters of a word that is compared: two long ones take as long as a whole file."""
_MOST: Final = 100
"""Words that one is compared with: a file may hold thousands, and as many that are misspelt."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a message: `; did you mean 'total'?`, or nothing when no known word is near."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest; empty if none is near."""
    if len(word) > _LONGEST:
        return ""
    compared = (each for each in known if len(each) <= _LONGEST)
    near = get_close_matches(word, list(islice(compared, _MOST)), n=1)
    return near[0] if near else ""
