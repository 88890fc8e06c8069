"""How deep data may be nested.

Every reader and writer goes down one call per level and has room for only so many, fewer the deeper the stack is already. So data that
one part of the engine could still write might be too deep for another, which would then fail for ever. A bound that is far below what
any of them can do, looked at where data comes in, leaves no such difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from standfast.kernel.codec.type_checks import is_bounded

DEEPEST = 100
"""Levels of lists and objects in each other that data may have."""

TOO_DEEP = f"it is nested deeper than {DEEPEST} levels: make it flatter, or keep it elsewhere and pass a reference"

_SHORTEST = 2 * DEEPEST
"""Bytes of JSON that nest any deeper have more than these: each level has two brackets."""


def is_flat_json(data: bytes) -> bool:
    """Whether JSON cannot be too deep, as far as a glance tells: nearly all of it is short, or has few brackets."""
    return len(data) <= _SHORTEST or data.count(b"[") + data.count(b"{") <= DEEPEST


def is_deep(value: object) -> bool:
    """Whether plain data is nested deeper than it may be."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _items(each)]
        if not level:
            return False
    return True


def _items(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


class Depth:
    """Finds out whether what was written of some classes is too deep. Classes that say how deep they are cost nothing."""

    def __init__(self, classes: Iterable[type], *, is_json: bool, lower: Callable[[object], object]) -> None:
        self._unbounded = frozenset(each for each in classes if not is_bounded(each))
        self._is_json = is_json
        self._lower = lower

    def judge(self, cls: type) -> Callable[[object, bytes], bool] | None:
        """What finds it out for values of a class; None if there is nothing to find out."""
        return self.is_exceeded if cls in self._unbounded else None

    def is_exceeded(self, value: object, data: bytes) -> bool:
        """Whether a value, of which these are the bytes, is too deep."""
        if type(value) not in self._unbounded or len(data) <= DEEPEST or (self._is_json and is_flat_json(data)):
            return False
        try:
            return is_deep(cast("object", msgspec.to_builtins(value, enc_hook=self._lower, str_keys=True)))
        except RecursionError:
            return True
        except Exception:  # noqa: BLE001 - written by a codec of the user's own, in ways that only it knows
            return False
