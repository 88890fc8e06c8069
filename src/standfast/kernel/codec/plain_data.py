"""Complete and unambiguous conversion of objects to plain data.

Plain data is merged into other data, where omitted fields keep their old values. An object therefore writes all its
fields, including those at their defaults. Two keys that are equal as plain data are refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta
from typing import NamedTuple, cast

import msgspec

from standfast.errors import PayloadError
from standfast.kernel.codec.unique_keys import RepeatedNameError, check_names

_MANY = (list, tuple, set, frozenset)


class Review(NamedTuple):
    """Properties of a value that matter for its conversion."""

    leaves_out: bool
    """Whether a class in it omits fields when it is written."""
    has_odd_keys: bool
    """Whether a dict in it has keys that are no text."""


def review(value: object) -> Review:
    """Inspect a value. Raises PayloadError if the text form of a time in it would be a different instant."""
    pending, leaves_out, has_odd_keys = [value], False, False
    while pending:
        item = pending.pop()
        if isinstance(item, datetime | time):
            _check_offset(item)
            continue
        leaves_out = leaves_out or _leaves_out(item)
        has_odd_keys = has_odd_keys or (isinstance(item, dict) and any(type(key) is not str for key in item))
        pending += _inner(item)
    return Review(leaves_out, has_odd_keys)


def told_whole(item: object) -> object:
    """Convert the value to dicts and lists with all fields."""
    if isinstance(item, dict):
        return {key: told_whole(each) for key, each in item.items()}
    if isinstance(item, _MANY):
        return [told_whole(each) for each in cast("Iterable[object]", item)]
    fields = {name: told_whole(each) for name, each in _fields(item)}
    if not isinstance(item, msgspec.Struct):
        return fields or item
    config = item.__struct_config__
    tag = {} if config.tag_field is None else {config.tag_field: config.tag}
    told = {**tag, **fields}
    return list(told.values()) if config.array_like else told


def refuse_equal_keys(data: bytes) -> None:
    """Raise PayloadError if an object in this JSON has a key twice."""
    try:
        check_names(data)
    except RepeatedNameError as error:
        raise PayloadError(
            f"two keys of a dict would both be stored as {error.name!r}; keys are stored as text, so give them different texts"
        ) from None


def _check_offset(item: datetime | time) -> None:
    """Raise if the offset of a time has seconds. The text form keeps only hours and minutes."""
    offset = item.utcoffset()
    if offset is not None and offset % timedelta(minutes=1):
        raise PayloadError(f"{item!r} has seconds in its offset, which cannot be stored; convert it to UTC")


def _leaves_out(item: object) -> bool:
    if isinstance(item, msgspec.Struct):
        return item.__struct_config__.omit_defaults
    if dataclasses.is_dataclass(item):  # A decoded object may lack fields whose defaults its class supplies.
        own = getattr(item, "__dict__", None)
        return own is not None and any(each.name not in own for each in dataclasses.fields(item))
    return False


def _inner(item: object) -> Iterable[object]:
    """Return the parts of a value. A pydantic model converts itself completely."""
    if isinstance(item, dict):
        return [*item, *item.values()]
    if isinstance(item, _MANY):
        return item
    return [each for _, each in _fields(item)]


def _fields(item: object) -> Iterator[tuple[str, object]]:
    """Yield the fields of an object by their stored names. Empty for objects without fields."""
    names: Iterable[tuple[str, str]] = ()
    if isinstance(item, msgspec.Struct):
        names = zip(item.__struct_fields__, item.__struct_encode_fields__, strict=True)
    elif dataclasses.is_dataclass(item):
        names = ((each.name, each.name) for each in dataclasses.fields(item))
    elif hasattr(type(item), "__attrs_attrs__"):
        names = ((each.name, each.name) for each in type(item).__attrs_attrs__)  # type: ignore[attr-defined]
    for name, stored in names:
        own = getattr(item, name, msgspec.UNSET)
        if own is not msgspec.UNSET:
            yield stored, own
