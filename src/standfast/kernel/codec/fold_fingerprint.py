"""Fingerprint of the code that folds a state.

A snapshot is a cache of the fold. It is invalid once the shape of the state or the code of the fold changes, and
authors forget to raise `state_version`. A snapshot therefore carries a fingerprint of both, and is ignored if it
differs.

The fingerprint covers the types of the state, the code of `evolve` and `initial`, and what these use in their class and
module. It does not follow code into other modules. Another Python release compiles different bytecode and thus changes
it.
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
"""Maximum number of parts to include. Further parts are ignored."""


def fold_fingerprint(decider: object, states: Iterable[object]) -> str:
    """Return a fingerprint of a decider's state types and fold code.

    It is equal in all processes with the same code.
    """
    walk = _Walk(type(decider))
    for each in states:
        walk.shape(each)
    for name in _FOLD:
        walk.look_at(inspect.getattr_static(decider, name, None))
    return walk.digest()


class _Walk:
    """Feeds each part to a hash once."""

    def __init__(self, owner: type) -> None:
        self._owner = owner
        self._hash = hashlib.blake2b(digest_size=12)
        self._seen: dict[int, object] = {}
        """Visited functions and classes by identity. The objects are kept, so that no identity is reused."""
        self._open = set[int]()
        """Collections being visited, because one may contain itself."""
        self._parts = 0

    def digest(self) -> str:
        return self._hash.hexdigest()

    def shape(self, declared: object) -> None:
        """Add the fields of all classes of a state, and the methods of these classes."""
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
        """Add a value: functions by their code, data by content, other objects by their type."""
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
        """Add data. Equal parts may be one object or several, so each occurrence is added."""
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
            except ValueError:  # The cell is empty.
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
        """Add the target of a name in a function's code: a method of the decider or an object of its module."""
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
        """Add the behaviour of a user's class.

        Generated methods, such as `__init__` of a dataclass, follow from its fields.
        """
        if not isinstance(cls, type) or cls.__module__ == "builtins" or not self._is_new(cls):
            return
        self._tell("class", cls.__name__, *vars(cls).get("__annotations__", ()))
        if issubclass(cls, enum.Enum):
            self._all((each.name, each.value) for each in cls)
        for name, field in getattr(cls, "model_fields", {}).items():  # Only pydantic knows the fields of its models.
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
    """Return the name of a type without its module."""
    cls = getattr(shape, "cls", None)
    values = getattr(shape, "values", ())
    return f"{type(shape).__name__} {cls.__name__ if isinstance(cls, type) else ''} {values!r}"


def _inner(shape: shapes.Type) -> Iterator[shapes.Type]:
    """Yield a type and its parts: `list[int]` yields the list and the integer."""
    yield shape
    for name in ("type", "item_type", "key_type", "value_type"):
        inner = getattr(shape, name, None)
        if isinstance(inner, shapes.Type):
            yield from _inner(inner)
    for each in (*getattr(shape, "types", ()), *getattr(shape, "item_types", ())):
        yield from _inner(each)
