"""How long a regular expression can take: patterns in forms come from whoever writes definitions, and texts from whoever answers.

Python looks for a match by trying one way after the other. How many ways there are follows from the pattern and the length of the text, so
a pattern is taken as far as that number stays small, and each has a longest text that it is tried on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from re import _constants as codes
from re import _parser as parser
from typing import TypeAlias, cast

MOST_WAYS = 2_000_000
"""Ways that may be tried for one text: about a tenth of a second."""
LONGEST_TEXT = 100_000
"""Characters of a text that any pattern is tried on."""
LEAST_TEXT = 64
"""A pattern that is not quick on a text of this length is refused."""

_REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}
_SINGLE = {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.AT}


_Tree: TypeAlias = "Sequence[tuple[object, object]]"
"""A pattern as Python has read it: what is to be found, one after the other, each with what its code needs."""


class SlowPatternError(ValueError):
    """A pattern can take too long, or cannot be judged; says why."""


def longest_text(pattern: str) -> int:
    """The longest text that a pattern may be tried on; SlowPatternError if it can be slow on short ones, re.error if it is none."""
    re.compile(pattern)
    tree = cast("_Tree", parser.parse(pattern))
    is_anchored = len(tree) > 0 and tree[0][0] is codes.AT and tree[0][1] is codes.AT_BEGINNING
    length = LONGEST_TEXT
    while length >= LEAST_TEXT:
        if _ways(tree, length) * (1 if is_anchored else length) <= MOST_WAYS:
            return length
        length = length * 3 // 4
    raise SlowPatternError("it repeats too much in a row; use fewer *, +, ? and {…}, or begin it with ^")


def _ways(tree: _Tree, length: int) -> int:
    """In how many ways a text of this length can be tried against a sequence, at most."""
    ways = 1
    for code, argument in tree:
        ways *= _ways_of(code, argument, length)
        if ways > MOST_WAYS:
            break
    return ways


def _ways_of(code: object, argument: object, length: int) -> int:
    if code in _SINGLE:
        return 1
    if code is codes.SUBPATTERN:
        return _ways(cast("tuple[_Tree, ...]", argument)[-1], length)
    if code is codes.BRANCH:
        return sum(_ways(each, length) for each in cast("tuple[object, list[_Tree]]", argument)[1])
    if code in _REPEATS:
        return _ways_of_repeat(argument, length)
    raise SlowPatternError("it looks around or back; use plain characters, classes, groups and repeats")


def _ways_of_repeat(argument: object, length: int) -> int:
    least, most, inner = cast("tuple[int, int, _Tree]", argument)
    ways, most = _ways(inner, length), min(most, length)
    if ways == 1:
        return max(1, most - least + 1)
    if most > _FEW:
        raise SlowPatternError(
            "it repeats something that itself repeats or has alternatives; write it without one of the two"
        )
    return int(ways**most) * (most - least + 1)


_FEW = 8
"""Times that something may be repeated that can be tried in several ways."""
