"""Detection of duplicate names in JSON objects.

Readers differ in which of two equal names they use. A check and the code behind it could therefore see different
values.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import msgspec


class RepeatedNameError(ValueError):
    """An object has the same name twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} stands twice in one object; keep one of them")
        self.name = name


def distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object from its fields, as `object_pairs_hook` of json.

    Raises RepeatedNameError for a duplicate name.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RepeatedNameError(Counter(name for name, _ in pairs).most_common(1)[0][0])
    return found


_DISTINCT: Final = json.JSONDecoder(object_pairs_hook=distinct, parse_int=len)  # What numbers are does not matter here.


def check_names(text: bytes) -> None:
    """Raise RepeatedNameError if an object in valid JSON has a duplicate name."""
    if text.count(b":") > 1 and not _is_whole(text):
        _DISTINCT.decode(text.decode())


def _is_whole(text: bytes) -> bool:
    """Return whether the text re-encodes to itself, which proves that no name was dropped.

    Compact output of programs usually does.
    """
    return msgspec.json.encode(msgspec.json.decode(text)) == text
