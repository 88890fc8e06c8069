"""What a value says beyond the defaults of its classes.

A command is the same before and after its class got another field with a default: whoever sends it again does not know of the field,
and has not used it. So the form by which commands are compared leaves out what is at its default.

msgspec decides by identity whether a field is at its default. `with_default_texts` makes that a decision by value, for what is hashed.

Objects that leave a field to its default, made whole.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import msgspec
from msgspec import inspect as shapes

from standfast.kernel.codec.type_checks import shapes_in, shapes_of

T = TypeVar("T")

_NONE = object()
"""Stands for the default of a field that has none: no value is equal to it."""


@runtime_checkable
class _PydanticModel(Protocol):
    def model_dump(
        self, *, mode: str, by_alias: bool, round_trip: bool, exclude_defaults: bool
    ) -> dict[str, object]: ...


class _Field(NamedTuple):
    """What is known of a field of a class."""

    name: str
    wire: str
    """How it is called where it is stored."""
    default: object
    is_deep: bool
    """Whether its type lets it hold objects with defaults of their own; what has no class holds none, however large it is."""


def beyond_defaults(value: object) -> object:
    """The value as plain data, without the fields that are at their defaults; for comparison, not to be read back."""
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
    """Return the same value, with the default's own object for every text that equals the default of its field.

    Texts are the only values that are one object or several by chance: Python shares the literals of a program and none that it reads
    from a file. A number, list or struct that was given is never the object of a default.
    """
    if isinstance(value, msgspec.Struct):
        changed = {}
        for name, default in _plain_defaults(type(value)):
            item = getattr(value, name)
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
    """Each field of a Struct with the object that msgspec compares it with."""
    return tuple((each.name, each.default) for each in msgspec.structs.fields(cls))


def _is_default(item: object, default: object) -> bool:
    try:
        return bool(item == default)
    except Exception:  # noqa: BLE001 - classes of the user's own compare as they like
        return False


@lru_cache(1024)
def _fields_of(cls: type) -> tuple[_Field, ...] | None:
    """The fields of a dataclass or a Struct; None for anything else."""
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
    except Exception:  # noqa: BLE001 - a name that cannot be found is anything
        hints = {}
    for each in dataclasses.fields(cls):
        default = each.default if each.default is not dataclasses.MISSING else _made(each.default_factory)
        yield _Field(each.name, each.name, default, _holds_classes(hints.get(each.name, cls)))


def _made(factory: object) -> object:
    """What a factory makes; nothing is equal to the default of a field without one."""
    if factory is dataclasses.MISSING or factory is msgspec.NODEFAULT or not callable(factory):
        return _NONE
    return cast("object", factory())


def _holds_classes(hint: object) -> bool:
    """Whether a value of this type can hold objects whose fields have defaults."""
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
    """What tells a class of a union from the others, where the bytes say so."""
    config = cls.__struct_config__ if issubclass(cls, msgspec.Struct) else None
    if config is not None and config.tag_field is not None:
        yield config.tag_field, config.tag


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
