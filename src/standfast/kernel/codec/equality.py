"""Comparison of a decoded value with the original.

The engine continues with the decoded form of an event, command or effect, so it may have the declared type instead of a
related one. A state stays in memory. Its decoded form must therefore have exactly the same types and the same shared
references.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, time
from functools import cached_property
from itertools import zip_longest
from typing import cast

import msgspec

from standfast.errors import indefinite

_ORDERED, _UNORDERED, _BYTES = (list, tuple), (set, frozenset), (bytes, bytearray, memoryview)
_NOTHING = object()
_LONGEST_VALUE = 80


def difference(back: object, given: object, *, may_retype: bool = True) -> str:
    """Describe where and how a decoded value differs from the original. Empty if it does not.

    An int may become the float that its field declares. `may_retype` lets a tuple become a list and a frozenset become
    a set, for fields declared as Sequence or Set.
    """
    return _compared(_Comparison(may_retype=may_retype), back, given)


def strict_difference(back: object, given: object) -> str:
    """Like `difference`, but both values stay in use: types must be identical, and no part may occur twice."""
    return _compared(_StrictComparison(), back, given)


def _compared(comparison: _Comparison, back: object, given: object) -> str:
    try:
        return comparison.compare(back, given, "")
    except Exception as error:  # noqa: BLE001 - a user's class may raise in its comparison
        return f"it cannot be compared: {error!r}"


class _Comparison:
    """Compares two values recursively."""

    def __init__(self, *, may_retype: bool) -> None:
        self._families = (_ORDERED, _UNORDERED, _BYTES) if may_retype else ()

    def compare(self, back: object, given: object, path: str) -> str:
        """Return the first difference at this path or below it."""
        if back is given:
            return ""
        if back is _NOTHING or given is _NOTHING:
            return f"{_place(path)} would {'be lost' if back is _NOTHING else 'come from nowhere'}"
        if not self._is_kindred(back, given):
            return f"{_place(path)} is {indefinite(type(given))} and would come back as {indefinite(type(back))}"
        if isinstance(back, dict):
            return self._entries(back, cast("dict[object, object]", given), path)
        if isinstance(back, _ORDERED):
            return self._items(back, cast("Iterable[object]", given), path)
        names = _names(back)
        if names is not None:
            return self._parts(names, back, given, path)
        return "" if self._is_equal(back, given) else _changed(back, given, path)

    def _is_kindred(self, back: object, given: object) -> bool:
        ours, theirs = type(back), type(given)
        if ours is theirs:
            return True
        if _names(back) is not None:
            return False  # A subclass would lose its additions.
        if issubclass(theirs, ours) or issubclass(ours, theirs) or (ours is float and theirs is int):
            return True
        return any(issubclass(ours, family) and issubclass(theirs, family) for family in self._families)

    def _is_equal(self, back: object, given: object) -> bool:
        if isinstance(back, datetime) and isinstance(given, datetime):
            return _instant(back) == _instant(given)
        if back != back and given != given:  # noqa: PLR0124 - detects NaN in every class that has one
            return True
        return bool(back == given)

    def _entries(self, back: dict[object, object], given: dict[object, object], path: str) -> str:
        if len(back) != len(given):
            return f"{_place(path)} has {len(given)} keys and would come back with {len(back)}"
        for (key, value), (own_key, own_value) in zip(back.items(), given.items(), strict=True):
            found = self.compare(key, own_key, f"a key of {_place(path)}")
            found = found or self.compare(value, own_value, f"{path}[{own_key!r}]")
            if found:
                return found
        return ""

    def _items(self, back: Iterable[object], given: Iterable[object], path: str) -> str:
        for number, (value, own) in enumerate(zip_longest(back, given, fillvalue=_NOTHING)):
            found = self.compare(value, own, f"{path}[{number}]")
            if found:
                return found
        return ""

    def _parts(self, names: Iterable[str], back: object, given: object, path: str) -> str:
        for name in names:
            value, own = getattr(back, name, _NOTHING), getattr(given, name, _NOTHING)
            found = self.compare(value, own, f"{path}.{name}" if path else name)
            if found:
                return found
        if _is_model(back) and not self._is_equal(back, given):  # A model may hold more than its fields.
            return _changed(back, given, path)
        return ""


class _StrictComparison(_Comparison):
    """Accepts no difference except the order of sets."""

    def __init__(self) -> None:
        super().__init__(may_retype=False)
        self._seen: dict[int, str] = {}
        """Path of each mutable part, by identity."""

    def compare(self, back: object, given: object, path: str) -> str:
        """Return the first difference.

        A part that occurs twice is one, because the decoded copies would no longer change together.
        """
        if _can_change(given):
            before = self._seen.setdefault(id(given), path)
            if before != path:
                return f"{_place(path)} is the same object as {_place(before)} and would come back as another one"
        return super().compare(back, given, path)

    def _is_kindred(self, back: object, given: object) -> bool:
        return type(back) is type(given)

    def _is_equal(self, back: object, given: object) -> bool:
        if isinstance(back, datetime | time) and isinstance(given, datetime | time):
            return type(back.tzinfo) is type(given.tzinfo) and back == given
        if isinstance(back, _UNORDERED) and isinstance(given, _UNORDERED):
            return {(type(each), each) for each in back} == {(type(each), each) for each in given}
        return super()._is_equal(back, given)

    def _parts(self, names: Iterable[str], back: object, given: object, path: str) -> str:
        lost = next(_unstored(back, given), "")
        if lost:
            return f"{path}{'.' if path else ''}{lost} is no field of {type(given).__name__} and would be lost"
        return super()._parts(names, back, given, path)


def _names(value: object) -> Iterable[str] | None:
    """Return the field names of an object, or None if it has none."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return [each.name for each in dataclasses.fields(value)]
    return tuple(vars(value)) if _is_model(value) else None


def _is_model(value: object) -> bool:
    """Return whether the object is a pydantic model."""
    return hasattr(type(value), "model_fields")


def _unstored(back: object, given: object) -> Iterator[str]:
    """Yield attributes that are set on an object but are no fields. Recomputable values do not count."""
    own: dict[str, object] = getattr(given, "__dict__", {})
    for name in own.keys() - getattr(back, "__dict__", {}).keys():
        if not isinstance(getattr(type(given), name, None), cached_property):
            yield name


def _can_change(value: object) -> bool:
    if isinstance(value, list | dict | set | bytearray):
        return True
    if isinstance(value, msgspec.Struct):
        return not value.__struct_config__.frozen
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters is not None:
        return not parameters.frozen
    return _is_model(value) and not getattr(type(value), "model_config", {}).get("frozen", False)


def _instant(moment: datetime) -> datetime:
    """Return a time in UTC, because times in two zones are never equal in a repeated hour.

    A naive time stays unchanged.
    """
    try:
        return moment if moment.utcoffset() is None else moment.astimezone(UTC)
    except OverflowError:
        return moment


def _place(path: str) -> str:
    return path or "the value"


def _changed(back: object, given: object, path: str) -> str:
    return f"{_place(path)} is {_short(given)} and would come back as {_short(back)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
