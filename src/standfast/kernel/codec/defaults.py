"""Default values of fields: omits them for comparisons, and adds them to objects that lack them.

A command stays equal when its class gets a new field with a default, because an earlier caller does not send that
field. The form for comparisons therefore omits fields at their defaults.

msgspec compares defaults by identity. `with_default_texts` turns that into a comparison by value, for data that is
hashed. `complete` sets missing fields from the defaults of the class.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import msgspec
from msgspec import inspect as shapes

from standfast.kernel.codec.type_checks import shapes_in, shapes_of

T = TypeVar("T")

_NUMBERS = frozenset({int, float, bool, type(None)})
_SCALARS = _NUMBERS | {str, bytes}
"""What holds nothing."""
_NONE = object()
"""Marks a field without a default. No value is equal to it."""


@runtime_checkable
class _PydanticModel(Protocol):
    def model_dump(
        self, *, mode: str, by_alias: bool, round_trip: bool, exclude_defaults: bool
    ) -> dict[str, object]: ...


class _Field(NamedTuple):
    """Description of a class's field."""

    name: str
    wire: str
    """Stored name of the field."""
    default: object
    is_deep: bool
    """Whether values of its type can contain objects with defaults. Plain data cannot, however large it is."""


def beyond_defaults(value: object) -> object:
    """Return the value as plain data without the fields at their defaults.

    It is for comparisons and cannot be decoded.
    """
    cls: type = type(value)
    fields = _fields_of(cls)
    if fields is not None:
        told = dict(_tag_of(cls))
        for name, wire, default, is_deep in fields:
            item = getattr(value, name)
            if not _is_default(item, default):
                told[wire] = beyond_defaults(item) if is_deep else item
        return told
    if isinstance(value, dict):
        return {key: beyond_defaults(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [beyond_defaults(item) for item in value]
    if isinstance(value, _PydanticModel):
        return value.model_dump(mode="json", by_alias=True, round_trip=True, exclude_defaults=True)
    return value


def with_default_texts(value: T) -> T:
    """Replace each text that equals the default of its field by the default object, and return the value.

    Only texts need this: Python shares the literals of a program but no strings that it reads. Other values are never
    the same object as the default.
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, msgspec.Struct):
        changed = {}
        for name, default in _plain_defaults(type(value)):
            item = getattr(value, name)
            if item is default or type(item) in _NUMBERS:
                continue
            new = default if isinstance(item, str) and item == default else with_default_texts(item)
            if new is not item:
                changed[name] = new
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        named = {key: with_default_texts(item) for key, item in value.items()}
        return cast("T", named) if any(item is not value[key] for key, item in named.items()) else value
    if isinstance(value, list | tuple):
        items = [with_default_texts(item) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else cast("T", type(value)(items))
    return value


@lru_cache(1024)
def _plain_defaults(cls: type[msgspec.Struct]) -> tuple[tuple[str, object], ...]:
    """Return the fields of a Struct that matter, with the objects that msgspec compares them with.

    These have a text as their default, or may hold other values.
    """
    return tuple(
        (each.name, each.default)
        for each in msgspec.structs.fields(cls)
        if isinstance(each.default, str) or not _is_scalar(each.type)
    )


def _is_scalar(hint: object) -> bool:
    """Return whether no value of a type holds other values."""
    inner = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return _SCALARS.issuperset(inner)


def _is_default(item: object, default: object) -> bool:
    try:
        return bool(item == default)
    except Exception:  # noqa: BLE001 - a user's class may raise in its comparison
        return False


@lru_cache(1024)
def _fields_of(cls: type) -> tuple[_Field, ...] | None:
    """Return the fields of a dataclass or Struct, or None for any other class."""
    if issubclass(cls, msgspec.Struct):
        return tuple(_struct_fields(cls))
    return tuple(_dataclass_fields(cls)) if dataclasses.is_dataclass(cls) else None


def _struct_fields(cls: type[msgspec.Struct]) -> Iterator[_Field]:
    for each in msgspec.structs.fields(cls):
        default = each.default if each.default is not msgspec.NODEFAULT else _made(each.default_factory)
        yield _Field(each.name, each.encode_name, default, _holds_classes(each.type))


def _dataclass_fields(cls: type) -> Iterator[_Field]:
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # noqa: BLE001 - an unresolved name may be any type
        hints = {}
    for each in dataclasses.fields(cls):
        default = each.default if each.default is not dataclasses.MISSING else _made(each.default_factory)
        yield _Field(each.name, each.name, default, _holds_classes(hints.get(each.name, cls)))


def _made(factory: object) -> object:
    """Return the result of a default factory, or the marker for a field without a default."""
    if factory is dataclasses.MISSING or factory is msgspec.NODEFAULT or not callable(factory):
        return _NONE
    return cast("object", factory())


def _holds_classes(hint: object) -> bool:
    """Return whether a value of this type can contain objects whose fields have defaults."""
    alias = getattr(hint, "__value__", None) or getattr(hint, "__supertype__", None)
    if alias is not None:
        return _holds_classes(alias)
    origin = typing.get_origin(hint) or hint
    if isinstance(origin, type) and (
        dataclasses.is_dataclass(origin) or issubclass(origin, msgspec.Struct) or hasattr(origin, "model_dump")
    ):
        return True
    return any(_holds_classes(each) for each in typing.get_args(hint))


def _tag_of(cls: type) -> Iterator[tuple[str, object]]:
    """Yield the tag of a class in a tagged union."""
    config = cls.__struct_config__ if issubclass(cls, msgspec.Struct) else None
    if config is not None and config.tag_field is not None:
        yield config.tag_field, config.tag


Completion = Callable[[object], None]
"""Completes a value and its parts in place."""

_WITH_FIELDS = (shapes.StructType, shapes.DataclassType, shapes.NamedTupleType)
_MANY_TYPES = 1024
_NOTHING = object()


class _Part(NamedTuple):
    """The completion of the objects of one class."""

    defaults: tuple[tuple[str, object], ...]
    """The fields with class-level defaults, with the defaults."""
    nested: tuple[str, ...]
    """The fields that may contain such objects."""


def complete(value: T) -> T:
    """Complete a value in place, and return it."""
    make_whole = completion(cast("object", type(value)))
    if make_whole is not None:
        make_whole(value)
    return value


@lru_cache(_MANY_TYPES)
def completion(declared: object) -> Completion | None:
    """Return the completion of a type, or None if its values are always complete, as those of Structs and of classes with slots."""
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
        if inner and id(each) not in seen:  # A value that contains itself is refused by the codec.
            seen.add(id(each))
            pending += inner


def _items(value: object) -> Iterable[object]:
    """Return the elements of a collection."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple | set | frozenset) else ()


def _parts(declared: object) -> dict[type, _Part]:
    """Return the completions by class, empty if no class has class-level defaults."""
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
    """Yield the fields of a dataclass with class-level defaults. Classes with slots have none."""
    if not isinstance(shape, shapes.DataclassType):
        return
    for each in shape.fields:
        default = inspect.getattr_static(shape.cls, each.name, _NOTHING)
        if default is not _NOTHING and not hasattr(type(default), "__get__"):
            yield each.name, default
