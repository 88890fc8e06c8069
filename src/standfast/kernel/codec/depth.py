"""Limit on the nesting depth of data.

Every encoder and decoder recurses once per level, and its limit depends on the current stack. Data that one part of the
engine could write might therefore be too deep for another to read. A low limit at the input avoids that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from standfast.kernel.codec.type_checks import is_bounded

DEEPEST = 100
"""Maximum number of nested lists and objects."""

TOO_DEEP = f"it is nested deeper than {DEEPEST} levels: make it flatter, or keep it elsewhere and pass a reference"

_SHORTEST = 2 * DEEPEST
"""JSON with a greater depth has more bytes than this, because each level has two brackets."""


def is_flat_json(data: bytes) -> bool:
    """Return whether JSON is certainly within the limit, by a quick test: most is short, or has few brackets."""
    return len(data) <= _SHORTEST or data.count(b"[") + data.count(b"{") <= DEEPEST


def is_deep(value: object) -> bool:
    """Return whether plain data exceeds the limit."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _items(each)]
        if not level:
            return False
    return True


def _items(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


class Depth:
    """Checks the depth of written values by class. Classes with a bounded depth cost nothing."""

    def __init__(self, classes: Iterable[type], *, is_json: bool, lower: Callable[[object], object]) -> None:
        self._unbounded = frozenset(each for each in classes if not is_bounded(each))
        self._is_json = is_json
        self._lower = lower

    def judge(self, cls: type) -> Callable[[object, bytes], bool] | None:
        """Return the depth check for values of a class, or None if none is needed."""
        return self.is_exceeded if cls in self._unbounded else None

    def is_exceeded(self, value: object, data: bytes) -> bool:
        """Return whether a value with these bytes exceeds the limit."""
        if type(value) not in self._unbounded or len(data) <= DEEPEST or (self._is_json and is_flat_json(data)):
            return False
        try:
            return is_deep(cast("object", msgspec.to_builtins(value, enc_hook=self._lower, str_keys=True)))
        except RecursionError:
            return True
        except Exception:  # noqa: BLE001 - a user's codec may write another format
            return False
