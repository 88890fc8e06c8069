"""Objects that leave a field to its default, made whole.

A reader sets only what it has read. In a dataclass without slots a field with a plain default is then answered for by the class and is
no part of the object, and a writer writes only what is. Stored like that it would say nothing of the field, and another default in later
code would change what has happened. So such an object is given the value that it shows anyway, when it is read and when it is written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar, cast

from msgspec import inspect as shapes

from standfast.kernel.codec.type_checks import shapes_in, shapes_of

T = TypeVar("T")

Completion = Callable[[object], None]
"""Makes a value whole, in place, with all that it is made of."""

_WITH_FIELDS = (shapes.StructType, shapes.DataclassType, shapes.NamedTupleType)
_MANY_TYPES = 1024
_NOTHING = object()


class _Part(NamedTuple):
    """What is to do for the objects of one class."""

    defaults: tuple[tuple[str, object], ...]
    """The fields that the class may answer for, with what it answers."""
    nested: tuple[str, ...]
    """The fields that may hold such objects."""


def complete(value: T) -> T:
    """The same value, whole."""
    make_whole = completion(cast("object", type(value)))
    if make_whole is not None:
        make_whole(value)
    return value


@lru_cache(_MANY_TYPES)
def completion(declared: object) -> Completion | None:
    """What makes values of a type whole; None if they always are, as those of Structs and of classes with slots."""
    parts = _parts(declared)
    if not parts:
        return None

    def make_whole(value: object) -> None:
        part = parts.get(type(value))
        if part is None or part.nested:
            _make_all_whole(value, parts)
            return
        own = value.__dict__
        for name, default in part.defaults:
            if name not in own:
                own[name] = default

    return make_whole


def _make_all_whole(value: object, parts: dict[type, _Part]) -> None:
    pending, seen = [value], set[int]()
    while pending:
        each = pending.pop()
        part = parts.get(type(each))
        if part is None:
            inner = _items(each)
        else:
            inner = [getattr(each, name, None) for name in part.nested]
            for name, default in part.defaults:
                each.__dict__.setdefault(name, default)
        if inner and id(each) not in seen:  # A value that holds itself is the codec's to refuse.
            seen.add(id(each))
            pending += inner


def _items(value: object) -> Iterable[object]:
    """What a collection holds."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple | set | frozenset) else ()


def _parts(declared: object) -> dict[type, _Part]:
    """What is to do, by class; nothing if no class answers for a field."""
    found = {shape.cls: shape for shape in shapes_of(declared) if isinstance(shape, _WITH_FIELDS)}
    defaults = {cls: answered for cls, shape in found.items() if (answered := tuple(_answered(shape)))}
    if not defaults:
        return {}

    def may_hold(shape: shapes.Type) -> bool:
        return any(getattr(each, "cls", None) in defaults for each in shapes_in(shape))

    parts = {
        cls: _Part(defaults.get(cls, ()), tuple(each.name for each in shape.fields if may_hold(each.type)))
        for cls, shape in found.items()
    }
    return {cls: part for cls, part in parts.items() if part.defaults or part.nested}


def _answered(shape: shapes.Type) -> Iterator[tuple[str, object]]:
    """The fields of a dataclass for which the class answers where an object does not. One with slots never does."""
    if not isinstance(shape, shapes.DataclassType):
        return
    for each in shape.fields:
        default = inspect.getattr_static(shape.cls, each.name, _NOTHING)
        if default is not _NOTHING and not hasattr(type(default), "__get__"):
            yield each.name, default
