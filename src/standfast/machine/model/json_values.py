"""A JSON merge patch: an object is laid over another name by name, null takes a name away, and anything else takes the place of what was there.

Values of expressions as they can be kept: instants are texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime

import msgspec

Data = dict[str, object]

_encode = msgspec.json.Encoder(order="sorted").encode


def patched(data: Data, patch: Mapping[str, object]) -> Data:
    """The data with a patch laid over it; neither of them is changed."""
    result = dict(data)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = patched(inner if isinstance(inner, dict) else {}, value)
        else:
            result[name] = value
    return result


def fingerprint(data: Data) -> str:
    """What tells whether two sets of data are the same: the SHA-256 of the JSON with sorted names."""
    return hashlib.sha256(_encode(data)).hexdigest()


def plain(value: object) -> object:
    """The same value in plain data."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case dict():
            return {str(name): plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return value
