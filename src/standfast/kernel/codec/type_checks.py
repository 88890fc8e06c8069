"""What types promise before there is any value of them.

Whether a codec can read them at all, whether they leave anything open, and whether two values of them that are equal are the same.
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
"""Makes the reader of a type, or raises."""

_OPEN = (shapes.AnyType, shapes.CustomType, shapes.RawType, shapes.ExtType)


class Flaw(typing.NamedTuple):
    """Why values of a type could be written but never read."""

    place: str
    """The class, and the field of it if it is one, such as `Placed.amount`."""
    reason: str


class _Promise(typing.NamedTuple):
    """What a type says of all its values."""

    is_exact: bool
    is_open: bool
    compares_all: bool


_promises: WeakKeyDictionary[type, _Promise] = WeakKeyDictionary()
"""What classes promise, as long as they live: to find it out takes longer than all else that an engine does with them at its start."""


def flaws(declared: object, build: Build) -> list[Flaw]:
    """What can never be read in a type, each at the place that declares it."""
    return list(_flaws(declared, _name(declared), build, set()))


def has_untyped_parts(declared: object) -> bool:
    """Whether a value may hold something whose type nobody declared: then the codec cannot know what to read back."""
    return _promise_of(declared).is_open


def is_exact(declared: object) -> bool:
    """Whether a value that came back and is equal to the one that was written is also as good as it, as far as types can tell."""
    return _promise_of(declared).is_exact


def compares_all(declared: object) -> bool:
    """Whether equality of two values looks at every field of every class in them; a class may leave some out, or say what it likes."""
    return _promise_of(declared).compares_all


def is_bounded(declared: object) -> bool:
    """Whether the type says how deep its values are: it holds nothing untyped, and none of its classes holds itself."""
    try:
        return _is_bounded(shapes.type_info(typing.cast("type", declared)), ())
    except Exception:  # noqa: BLE001 - a type without a shape says nothing
        return False


def omitting(declared: object) -> list[str]:
    """The Structs in a type that leave out what is equal to its default when they are written."""
    return [
        shape.cls.__name__
        for shape in shapes_of(declared)
        if isinstance(shape, shapes.StructType)
        and shape.cls.__struct_config__.omit_defaults
        and not all(each.required for each in shape.fields)
    ]


# -- what can be read


def _flaws(declared: object, place: str, build: Build, seen: set[type]) -> Iterator[Flaw]:
    """The flaws of the parts; if they have none, that of the whole."""
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
    """The types that a type is made of, with the places that declare them."""
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
    except Exception:  # noqa: BLE001 - then no reader can be made of the class either, and that says why
        return []
    return [(hints[name], f"{_name(declared)}.{name}") for name in hints if name in names]


def _flaw(declared: object, build: Build) -> str:
    try:
        build(declared)
        shape = shapes.type_info(typing.cast("type", declared))
    except Exception as error:  # noqa: BLE001 - whatever stands in the way of reading it
        return str(error)
    if isinstance(shape, shapes.CustomType) and not _reads_itself(shape.cls):
        return f"{shape.cls.__name__} cannot be read back; use a dataclass, a Struct, a pydantic model or plain data"
    if inspect.isabstract(declared):
        return f"{_name(declared)} is abstract; declare the classes that there are, as a union of tagged Structs"
    return ""


def _reads_itself(cls: type) -> bool:
    return cls is object or hasattr(cls, "model_validate_json")


def _stored_names(cls: type) -> set[str]:
    """The fields of a class that a codec looks into; one of somebody else, such as a pydantic model, reads its own."""
    if issubclass(cls, msgspec.Struct):
        return set(cls.__struct_fields__)
    if dataclasses.is_dataclass(cls):
        return {each.name for each in dataclasses.fields(cls)}
    if typing.is_typeddict(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return set(cls.__annotations__)
    return set()


# -- what types are made of


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
    )
    if found and isinstance(declared, type):  # One that has no shape yet may get one, when the names in it are known.
        _promises[declared] = promise
    return promise


def shapes_of(declared: object) -> Iterator[shapes.Type]:
    """The shape of a type and of all that it is made of; nothing for a type that has none."""
    try:
        shape = shapes.type_info(typing.cast("type", declared))
    except Exception:  # noqa: BLE001 - such a type is told of as a flaw, or it is for a codec of the user's own
        return
    yield from shapes_in(shape)


def shapes_in(whole: shapes.Type) -> Iterator[shapes.Type]:
    """A shape and those of all that it is made of."""
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
    """Whether equality leaves nothing out. A Decimal is equal to an int and a float."""
    if isinstance(shape, shapes.StructType):
        cls: type[msgspec.Struct] = (
            typing.get_origin(shape.cls) or shape.cls
        )  # A generic one is given with its arguments.
        return cls.__struct_config__.eq and cls.__eq__ is msgspec.Struct.__eq__
    if isinstance(shape, shapes.DataclassType):
        return _has_generated_eq(shape.cls)
    return not isinstance(shape, (*_OPEN, shapes.DecimalType))


def _has_generated_eq(cls: type) -> bool:
    """Whether a dataclass is compared by all of its fields. What `dataclass` generates comes from no file."""
    code = getattr(cls.__eq__, "__code__", None)
    is_generated = code is not None and code.co_filename == "<string>"
    return is_generated and dataclasses.is_dataclass(cls) and all(each.compare for each in dataclasses.fields(cls))


def _name(declared: object) -> str:
    return getattr(declared, "__name__", str(declared))
