"""Objects of JSON in which no name stands twice.

Readers differ in which of two such fields counts, so that whoever checks a text and whoever acts on it may have read two different things.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import msgspec


class RepeatedNameError(ValueError):
    """A name stands twice in one object."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} stands twice in one object; keep one of them")
        self.name = name


def distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object that these are the fields of, for `object_pairs_hook` of json; RepeatedNameError if two have one name."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RepeatedNameError(Counter(name for name, _ in pairs).most_common(1)[0][0])
    return found


_DISTINCT: Final = json.JSONDecoder(object_pairs_hook=distinct, parse_int=len)  # What numbers are does not matter here.


def check_names(text: bytes) -> None:
    """RepeatedNameError if a name stands twice in one object of a text that is known to be JSON."""
    if text.count(b":") > 1 and not _is_whole(text):
        _DISTINCT.decode(text.decode())


def _is_whole(text: bytes) -> bool:
    """Whether all that was written is there when it is read, as a glance tells: what programs write without blanks comes out as it was."""
    return msgspec.json.encode(msgspec.json.decode(text)) == text
