"""Engines that only write down what is asked of them: made from the real faces, so that a call that the real one does not have fails here too.

A recorded call answers with a sample of the type that the real one promises. What is proved with it is which calls are made, and with
what; what they do is proved by the tests of the calls.
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import enum
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from standfast.app.api import aio, namespaces, sync

MOST = 60
"""So many calls are enough to see of something that looks again and again."""
SEVERAL = 3
"""So many has each list, so that a page of two is less than all."""
_DEEPEST = 5
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SOME = UUID("0193a2b4-0000-7000-8000-000000000001")
_PLAIN: dict[object, object] = {
    int: 1,
    float: 1.0,
    str: "text",
    bytes: b"bytes",
    datetime: NOON,
    date: NOON.date(),
    timedelta: timedelta(hours=1),
    UUID: SOME,
    Path: Path("file"),
    type(None): None,
    None: None,
    object: {},
    Any: {},
}


class Style(NamedTuple):
    """How samples are, where their types leave a choice."""

    is_none: bool = False
    """Whether what may be None is."""
    is_true: bool = False
    """Whether what may be true is."""
    is_empty: bool = False
    """Whether lists have nothing in them."""
    has_next: bool = False
    """Whether a page leads to another one."""


STYLES = [Style(*each) for each in product((False, True), repeat=3)]
FULL = STYLES[0]


class EnoughError(Exception):
    """Something goes on asking."""


class Recorder:
    """What was asked, in order: the name of each call, and all that it was given."""

    def __init__(self, *modules: str, style: Style = FULL) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.style = style
        self._modules = modules
        """Where the faces are; what has a type of these is recorded too."""

    def of(self, face: type, name: str = "") -> Any:
        """A face like this one that only records."""
        return _Recorded(self, face, name)

    def note(self, call: str, given: Mapping[str, object]) -> None:
        """Write a call down."""
        if len(self.calls) >= MOST:
            raise EnoughError
        self.calls.append((call, {each: plain(value) for each, value in given.items()}))

    def sample(self, hint: object, name: str = "", depth: int = 0) -> object:
        """A value of a type; of a face, one that records."""
        if isinstance(hint, type) and self.is_face(hint):
            return self.of(hint, name)
        origin = get_origin(hint)
        if isinstance(origin, type) and self.is_face(origin):
            return self.of(origin, name)
        return _Sampling(self).of(hint, depth) if depth else _samples(hint, self._modules, self.style)()

    def is_face(self, kind: type) -> bool:
        """Whether a class is one whose calls are recorded."""
        return kind.__module__.startswith(self._modules) and not is_shape(kind)


class _Recorded:
    """A face that writes down what it is asked."""

    def __init__(self, recorder: Recorder, face: type, name: str) -> None:
        self.__dict__.update(_recorder=recorder, _face=face, _name=name)

    def __getattr__(self, name: str) -> Any:
        face, full = self._face, f"{self._name}.{name}".lstrip(".")
        found = inspect.getattr_static(face, name, None)
        if isinstance(found, property):
            return self._recorder.sample(hints_of(found.fget).get("return"), full)
        if found is None or not inspect.isfunction(found):
            hints = hints_of(face)
            if name not in hints:
                raise AttributeError(f"{face.__name__} has no {name}")
            return self._recorder.sample(hints[name], full)
        return self._call(found, full)

    def _call(self, function: Callable[..., object], full: str) -> Callable[..., object]:
        signature, answer = inspect.signature(function), hints_of(function).get("return")

        def call(*arguments: object, **options: object) -> object:
            bound = signature.bind(self, *arguments, **options)
            bound.apply_defaults()
            given = dict(list(bound.arguments.items())[1:])
            self._recorder.note(full, given)
            return self._recorder.sample(answer, full)

        async def awaited(*arguments: object, **options: object) -> object:
            return call(*arguments, **options)

        return awaited if inspect.iscoroutinefunction(function) else call

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""


class _Sampling:
    """Makes one value."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def of(self, hint: object, depth: int = 0) -> object:
        """A value of this type; below a certain depth as little as it allows."""
        if hint is bool:
            return self._recorder.style.is_true
        if hint in _PLAIN:
            return _PLAIN[hint]
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in {Union, types.UnionType}:
            rest = [each for each in arguments if each is not type(None)]
            is_none = len(rest) < len(arguments) and (depth > _DEEPEST or self._recorder.style.is_none)
            return None if is_none else self.of(rest[0], depth)
        if origin is Literal:
            return arguments[0]
        if origin is typing.Annotated or isinstance(hint, typing.NewType):
            return self.of(arguments[0] if arguments else hint.__supertype__, depth)  # type: ignore[attr-defined]
        if isinstance(hint, TypeVar):
            return {}
        return self._made(origin or hint, arguments, depth)

    def _made(self, kind: Any, arguments: tuple[Any, ...], depth: int) -> object:
        if kind is tuple and arguments and arguments[-1] is not ...:
            return tuple(self._recorder.sample(each, depth=depth + 1) for each in arguments)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return next(iter(kind))
        if is_shape(kind):
            return self._shape(kind, dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=False)), depth)
        if isinstance(kind, type) and issubclass(kind, collections.abc.Mapping):
            return (
                {}
                if depth > _DEEPEST or not arguments
                else {
                    self._recorder.sample(arguments[0], depth=depth + 1): self._recorder.sample(
                        arguments[1], depth=depth + 1
                    )
                }
            )
        if isinstance(kind, type) and issubclass(kind, collections.abc.Iterable):
            several = [self._recorder.sample(each, depth=depth + 1) for each in arguments[:1] * self._length(depth)]
            made = {tuple: tuple, frozenset: frozenset, set: set}.get(kind, list)(several)
            return iter(several) if issubclass(kind, collections.abc.Iterator) else made
        return self._recorder.sample(kind) if isinstance(kind, type) and self._recorder.is_face(kind) else {}

    def _length(self, depth: int) -> int:
        return 0 if depth > _DEEPEST or self._recorder.style.is_empty else SEVERAL

    def _shape(self, kind: Any, variables: dict[Any, Any], depth: int) -> object:
        hints = hints_of(kind)
        names = [each for each in fields_of(kind) if depth <= _DEEPEST or not _has_default(kind, each)]
        made = {each: self._recorder.sample(_filled(hints[each], variables), depth=depth + 1) for each in names}
        if type(None) in get_args(hints.get("next")) and not self._recorder.style.has_next:
            made["next"] = None
        return kind(**made)


def is_shape(kind: object) -> bool:
    """Whether a type is made of named fields: data, and nothing to call."""
    return isinstance(kind, type) and (
        issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
    )


def fields_of(kind: Any) -> list[str]:
    """The names of its fields that can be given."""
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind) if each.init]
    return list(kind._fields)


def _has_default(kind: Any, name: str) -> bool:
    if issubclass(kind, msgspec.Struct):
        (found,) = (each for each in msgspec.structs.fields(kind) if each.name == name)
        return not found.required
    return name in getattr(kind, "_field_defaults", {})


def _filled(hint: Any, variables: dict[Any, Any]) -> Any:
    """A hint with what stands for its type variables."""
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(variables.get(each, Any) for each in parameters)] if parameters and variables else hint


@cache
def _samples(hint: object, modules: tuple[str, ...], style: Style) -> Callable[[], object]:
    """Gives samples of a type; one is enough for all, unless it records or is used up."""
    make = partial(_Sampling(Recorder(*modules, style=style)).of, hint)
    return make if get_origin(hint) in {Iterator, Generator} else partial(lambda made: made, make())


@cache
def hints_of(thing: Any) -> dict[str, Any]:
    """Type hints, each as the module that says it reads it; also of modules that import some for checkers alone."""
    if not isinstance(thing, type):
        return _read(thing, thing.__module__)
    found: dict[str, Any] = {}
    for each in reversed(thing.__mro__):
        said = {name: hint for name, hint in vars(each).get("__annotations__", {}).items() if not _is_of_class(hint)}
        found |= _read(types.SimpleNamespace(__annotations__=said), each.__module__)
    return found


def calls_by_subject() -> dict[str, type]:
    """The classes of the futures API, by the name that an engine has them under."""
    return {name: kind for name, kind in hints_of(namespaces.FutureCalls).items() if kind.__name__.startswith("Future")}


def _is_of_class(hint: object) -> bool:
    return str(hint).startswith(("ClassVar", "typing.ClassVar"))


def _read(thing: Any, module: str) -> dict[str, Any]:
    lent = {**vars(typing), **_known(), **vars(sys.modules[module])}
    return get_type_hints(thing, globalns=lent, include_extras=True)


@cache
def _known() -> dict[str, Any]:
    """Every name of the package that is a type, and what the APIs import for checkers alone."""
    checked: dict[str, Any] = {}
    for api in (namespaces, sync, aio):
        for node in ast.walk(ast.parse(inspect.getsource(api))):
            if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith("standfast."):
                module = importlib.import_module(f"{node.module}")
                checked |= {each.name: getattr(module, each.name) for each in node.names}
    return {
        name: value
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("standfast.")
        for name, value in vars(module).items()
        if issubclass(
            type(value), (type, typing.NewType)
        )  # `isinstance` would wake lazy objects, such as Django's settings.
    } | checked


def plain(value: object) -> object:
    """What a call was given, so that two can be compared: recorded faces by their names, others as they are written."""
    if isinstance(value, _Recorded):
        return f"<{value._name}>"
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return repr(value)
