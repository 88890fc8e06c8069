"""Properties of types that hold for all their values.

They tell whether a codec can decode a type, whether it has untyped parts, and whether equal values are identical.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

import msgspec
from msgspec import inspect as shapes

Build = Callable[[object], object]
"""Creates the decoder of a type, or raises."""

_OPEN = (shapes.AnyType, shapes.CustomType, shapes.RawType, shapes.ExtType)


class Flaw(typing.NamedTuple):
    """A reason why values of a type can be encoded but not decoded."""

    place: str
    """The class, and its field if there is one, such as `Placed.amount`."""
    reason: str


class _Promise(typing.NamedTuple):
    """The properties of a type."""

    is_exact: bool
    is_open: bool
    compares_all: bool
    has_unknown: bool


_promises: WeakKeyDictionary[type, _Promise] = WeakKeyDictionary()
"""Cache of the properties by class. Computing them takes longer than all other work on a class at start-up."""


def flaws(declared: object, build: Build) -> list[Flaw]:
    """Return the undecodable parts of a type, each with its place."""
    return list(_flaws(declared, _name(declared), build, set()))


def has_untyped_parts(declared: object) -> bool:
    """Return whether a value may contain an untyped part, whose type the codec cannot know."""
    return _promise_of(declared).is_open


def is_exact(declared: object) -> bool:
    """Return whether a decoded value that equals the original is as good as it, as far as types can tell."""
    return _promise_of(declared).is_exact


def compares_all(declared: object) -> bool:
    """Return whether equality compares all fields of all classes in the type.

    A class may ignore fields or define its own equality.
    """
    return _promise_of(declared).compares_all


def has_unknown_classes(declared: object) -> bool:
    """Whether a decoder has to ask what to make of a class, as far as anybody knows. What is declared as `object` stays as it comes."""
    return _promise_of(declared).has_unknown


def is_bounded(declared: object) -> bool:
    """Return whether the type limits the depth of its values: it has no untyped part and no recursive class."""
    try:
        return _is_bounded(shapes.type_info(typing.cast("type", declared)), ())
    except Exception:  # noqa: BLE001 - a type without a shape has no known properties
        return False


def omitting(declared: object) -> list[str]:
    """Return the Structs in a type that omit fields at their defaults."""
    return [
        shape.cls.__name__
        for shape in shapes_of(declared)
        if isinstance(shape, shapes.StructType)
        and shape.cls.__struct_config__.omit_defaults
        and not all(each.required for each in shape.fields)
    ]


# -- decodability


def _flaws(declared: object, place: str, build: Build, seen: set[type]) -> Iterator[Flaw]:
    """Yield the flaws of the parts, or else that of the whole type."""
    if isinstance(declared, type):
        if declared in seen:
            return
        seen.add(declared)
    inner = [flaw for part, where in _parts(declared, place) for flaw in _flaws(part, where, build, seen)]
    yield from inner
    reason = "" if inner else _flaw(declared, build)
    if reason:
        yield Flaw(place, reason)


def _parts(declared: object, place: str) -> list[tuple[object, str]]:
    """Return the parts of a type with the places that declare them."""
    if (alias := getattr(declared, "__value__", None)) is not None:
        return [(alias, place)]
    origin = typing.get_origin(declared)
    if origin is typing.Literal:
        return []
    if origin is not None:
        arguments = typing.get_args(declared)[: 1 if origin is typing.Annotated else None]
        return [(each, place) for each in arguments if each is not Ellipsis]
    names = _stored_names(declared) if isinstance(declared, type) else set()
    if not names:
        return []
    try:
        hints = typing.get_type_hints(declared, include_extras=True)
    except Exception:  # noqa: BLE001 - the decoder of the class then fails too and gives the reason
        return []
    return [(hints[name], f"{_name(declared)}.{name}") for name in hints if name in names]


def _flaw(declared: object, build: Build) -> str:
    try:
        build(declared)
        shape = shapes.type_info(typing.cast("type", declared))
    except Exception as error:  # noqa: BLE001 - any reason why it cannot be decoded
        return str(error)
    if isinstance(shape, shapes.CustomType) and not _reads_itself(shape.cls):
        return f"{shape.cls.__name__} cannot be read back; use a dataclass, a Struct, a pydantic model or plain data"
    if inspect.isabstract(declared):
        return f"{_name(declared)} is abstract; declare the classes that there are, as a union of tagged Structs"
    return ""


def _reads_itself(cls: type) -> bool:
    return cls is object or hasattr(cls, "model_validate_json")


def _stored_names(cls: type) -> set[str]:
    """Return the fields of a class that the codec decodes.

    Foreign classes, such as pydantic models, decode themselves.
    """
    if issubclass(cls, msgspec.Struct):
        return set(cls.__struct_fields__)
    if dataclasses.is_dataclass(cls):
        return {each.name for each in dataclasses.fields(cls)}
    if typing.is_typeddict(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return set(cls.__annotations__)
    return set()


# -- structure of types


def _promise_of(declared: object) -> _Promise:
    known = _promises.get(declared) if isinstance(declared, type) else None
    if known is not None:
        return known
    found = list(shapes_of(declared))
    promise = _Promise(
        is_exact=bool(found) and all(map(_compares_exactly, found)),
        is_open=any(isinstance(each, shapes.AnyType) or getattr(each, "cls", None) is object for each in found),
        compares_all=bool(found)
        and all(isinstance(each, (*_OPEN, shapes.DecimalType)) or _compares_exactly(each) for each in found),
        has_unknown=not found or any(isinstance(each, shapes.CustomType) and each.cls is not object for each in found),
    )
    if found and isinstance(declared, type):  # A class without a shape may get one when its forward references resolve.
        _promises[declared] = promise
    return promise


def shapes_of(declared: object) -> Iterator[shapes.Type]:
    """Yield the shape of a type and of all its parts. Empty for a type without a shape."""
    try:
        shape = shapes.type_info(typing.cast("type", declared))
    except Exception:  # noqa: BLE001 - such a type is reported as a flaw, or is for a user's codec
        return
    yield from shapes_in(shape)


def shapes_in(whole: shapes.Type) -> Iterator[shapes.Type]:
    """Yield a shape and the shapes of all its parts."""
    pending = [whole]
    seen = set[object]()
    while pending:
        shape = pending.pop()
        cls = getattr(shape, "cls", None)
        if cls is not None:
            if cls in seen:
                continue
            seen.add(cls)
        yield shape
        pending += _inner(shape)


def _inner(shape: shapes.Type) -> list[shapes.Type]:
    if isinstance(shape, shapes.StructType | shapes.DataclassType | shapes.TypedDictType | shapes.NamedTupleType):
        return [each.type for each in shape.fields]
    if isinstance(shape, shapes.UnionType):
        return list(shape.types)
    if isinstance(shape, shapes.TupleType):
        return list(shape.item_types)
    if isinstance(shape, shapes.DictType):
        return [shape.key_type, shape.value_type]
    return [shape.item_type] if isinstance(shape, shapes.CollectionType) else []


def _is_bounded(shape: shapes.Type, around: tuple[object, ...]) -> bool:
    cls = getattr(shape, "cls", None)
    if isinstance(shape, _OPEN) or (cls is not None and cls in around):
        return False
    return all(_is_bounded(each, (*around, cls)) for each in _inner(shape))


def _compares_exactly(shape: shapes.Type) -> bool:
    """Return whether equality is exact. A Decimal, for example, equals an int and a float."""
    if isinstance(shape, shapes.StructType):
        cls: type[msgspec.Struct] = typing.get_origin(shape.cls) or shape.cls  # A generic type has its arguments.
        return cls.__struct_config__.eq and cls.__eq__ is msgspec.Struct.__eq__
    if isinstance(shape, shapes.DataclassType):
        return _has_generated_eq(shape.cls)
    return not isinstance(shape, (*_OPEN, shapes.DecimalType))


def _has_generated_eq(cls: type) -> bool:
    """Return whether a dataclass compares all its fields. Methods that `dataclass` generates come from no file."""
    code = getattr(cls.__eq__, "__code__", None)
    is_generated = code is not None and code.co_filename == "<string>"
    return is_generated and dataclasses.is_dataclass(cls) and all(each.compare for each in dataclasses.fields(cls))


def _name(declared: object) -> str:
    return getattr(declared, "__name__", str(declared))
