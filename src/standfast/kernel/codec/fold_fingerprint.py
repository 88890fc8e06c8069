"""Fingerprints of the code that folds a state.

A snapshot is a cache of the fold. It is worth nothing once the shape of the state or the code of the fold is another one, and authors
forget to raise `state_version`. So a snapshot carries a fingerprint of both, and one with another fingerprint is ignored.

The fingerprint covers the types that the state is made of, the code of `evolve` and `initial`, and whatever these use of their class and
their module. It does not follow code into other modules. Another release of Python compiles to other code, and so has other fingerprints.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping

from msgspec import inspect as shapes

from standfast.kernel.codec.type_checks import shapes_of

_FOLD = ("initial", "evolve")
_SCALARS = (bool, int, float, complex, str, bytes, type(None), type(...))
_CODE = (types.FunctionType, staticmethod, classmethod, property)
_MOST_PARTS = 10_000
"""Parts that are looked at; what lies behind them does not count."""


def fold_fingerprint(decider: object, states: Iterable[object]) -> str:
    """Return a fingerprint of the types of a decider's state and of the code that folds it, the same in every process with that code."""
    walk = _Walk(type(decider))
    for each in states:
        walk.shape(each)
    for name in _FOLD:
        walk.look_at(inspect.getattr_static(decider, name, None))
    return walk.digest()


class _Walk:
    """Tells one part after the other to a hash, each once."""

    def __init__(self, owner: type) -> None:
        self._owner = owner
        self._hash = hashlib.blake2b(digest_size=12)
        self._seen: dict[int, object] = {}
        """Functions and classes that were told, by identity, with the objects themselves, so that no identity is used twice."""
        self._open = set[int]()
        """Collections that are being told: one may hold itself."""
        self._parts = 0

    def digest(self) -> str:
        return self._hash.hexdigest()

    def shape(self, declared: object) -> None:
        """Tell the fields of all classes that a state is made of, and the methods of those classes."""
        found = list(shapes_of(declared))
        for shape in found:
            self._tell("shape", _kind(shape))
            for field in getattr(shape, "fields", ()):
                self._tell("field", field.name, field.encode_name, field.required, *map(_kind, _inner(field.type)))
                self.look_at(field.default)
                self.look_at(field.default_factory)
            self._class(getattr(shape, "cls", None))
        if not found:
            self._class(declared)

    def look_at(self, value: object) -> None:
        """Tell a value: code by what it does, data by what it is, anything else by its type."""
        match value:
            case types.FunctionType():
                if self._is_new(value):
                    self._function(value)
            case staticmethod() | classmethod() | types.MethodType():
                self.look_at(value.__func__)
            case property():
                self.look_at(value.fget)
            case functools.singledispatchmethod():
                self._all(value.dispatcher.registry.values())
            case functools.partial() | functools.partialmethod():
                self._all([value.func, value.args, value.keywords])
            case _:
                self._data(value)

    def _data(self, value: object) -> None:
        """Tell data. Equal parts of it may be one object or several, so that none may be left out because it was told before."""
        if isinstance(value, _SCALARS):
            self._tell("value", type(value).__name__, repr(value))
        elif id(value) in self._open or self._parts >= _MOST_PARTS:
            return
        elif isinstance(value, Mapping | list | tuple):
            self._open.add(id(value))
            self._tell("data", type(value).__name__, len(value))
            self._all(part for pair in value.items() for part in pair) if isinstance(value, Mapping) else self._all(
                value
            )
            self._open.discard(id(value))
        elif isinstance(value, set | frozenset):
            self._tell("set", *sorted(map(repr, value)))
        elif isinstance(value, enum.Enum):
            self._tell("member", value.name)
        else:
            self._tell("object", type(value).__name__)

    def _all(self, parts: Iterable[object]) -> None:
        for each in parts:
            self.look_at(each)

    def _function(self, function: types.FunctionType) -> None:
        self._code(function.__code__, function.__globals__)
        self._all([function.__defaults__, function.__kwdefaults__])
        for cell in function.__closure__ or ():
            try:
                self.look_at(cell.cell_contents)
            except ValueError:  # It is empty.
                continue
        if hasattr(function, "__wrapped__"):
            self.look_at(function.__wrapped__)

    def _code(self, code: types.CodeType, scope: Mapping[str, object]) -> None:
        self._tell("code", code.co_code.hex(), code.co_argcount, code.co_varnames, code.co_names, code.co_freevars)
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._code(const, scope)
            else:
                self.look_at(const)
        for name in code.co_names:
            self._named(name, scope)

    def _named(self, name: str, scope: Mapping[str, object]) -> None:
        """Follow a name of a function's code to a method of the decider or to what its own module defines."""
        if name not in _FOLD:
            self._own(inspect.getattr_static(self._owner, name, None), scope)
        self._own(scope.get(name), scope)

    def _own(self, value: object, scope: Mapping[str, object]) -> None:
        if isinstance(value, types.ModuleType) or value is None:
            return
        if isinstance(value, type):
            if value.__module__ == scope.get("__name__"):
                self._class(value)
        elif not isinstance(value, types.FunctionType) or value.__globals__ is scope:
            self.look_at(value)

    def _class(self, cls: object) -> None:
        """Tell what a class of the user's own does; what is made for it, such as `__init__` of a dataclass, follows from its fields."""
        if not isinstance(cls, type) or cls.__module__ == "builtins" or not self._is_new(cls):
            return
        self._tell("class", cls.__name__, *vars(cls).get("__annotations__", ()))
        if issubclass(cls, enum.Enum):
            self._all((each.name, each.value) for each in cls)
        for name, field in getattr(cls, "model_fields", {}).items():  # Of pydantic, whose shapes only it knows.
            self._tell("field", name, field.is_required(), getattr(field.annotation, "__name__", str(field.annotation)))
            self._all([field.default, field.default_factory])
            self._class(field.annotation)
        for name, value in vars(cls).items():
            if not name.startswith("__") or name == "__post_init__":
                self._tell("attribute", name)
                if isinstance(value, _CODE + _SCALARS):
                    self.look_at(value)

    def _is_new(self, part: object) -> bool:
        if id(part) in self._seen:
            return False
        self._seen[id(part)] = part
        return True

    def _tell(self, *parts: object) -> None:
        self._parts += 1
        self._hash.update(repr(parts).encode("utf-8", "surrogatepass"))


def _kind(shape: shapes.Type) -> str:
    """What a type is called, without the module that it lives in."""
    cls = getattr(shape, "cls", None)
    values = getattr(shape, "values", ())
    return f"{type(shape).__name__} {cls.__name__ if isinstance(cls, type) else ''} {values!r}"


def _inner(shape: shapes.Type) -> Iterator[shapes.Type]:
    """A type and those that it is written with: `list[int]` is a list and a whole number."""
    yield shape
    for name in ("type", "item_type", "key_type", "value_type"):
        inner = getattr(shape, name, None)
        if isinstance(inner, shapes.Type):
            yield from _inner(inner)
    for each in (*getattr(shape, "types", ()), *getattr(shape, "item_types", ())):
        yield from _inner(each)
