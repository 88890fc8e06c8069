"""Which scalars are what: the rule of JSON, for YAML too.

`null`, `true`, `false` and numbers as JSON writes them are what they look like; everything else, and whatever stands in quotes, is a
text. So `no`, `on`, `2026-01-01`, `1_000`, `0x1F`, `017`, `1:30` and `.5` are texts: nobody is surprised by a country that became false,
or by an order number that lost its zeros.
"""

from __future__ import annotations

import re
from typing import Final

from standfast.graph.source_files.tree import Value

_WORDS: Final[dict[str, Value]] = {"null": None, "~": None, "": None, "true": True, "false": False}
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_BROKEN: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")


def value_of(text: str) -> Value:
    """What a scalar without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _BROKEN.fullmatch(text) else text
