"""The words of a decider: which types its commands, events and effects have, under which names and versions they are stored."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from holdfast.errors import CommandError, Diagnostic, PayloadError, UnknownEventError
from holdfast.kernel.wire import Codec, Upcaster, comes_back, convert, has_untyped_parts

T = TypeVar("T")

DEFAULT_LIMIT = 1024 * 1024
"""Largest stored value, in bytes, unless the engine is told otherwise."""

SYSTEM_PREFIX = "$"
"""Names of the events that the kernel itself writes begin with this; `evolve` never sees them."""

_WIRE = "__holdfast_wire__"


_PLAIN = "__holdfast_plain__"


def message(*, name: str = "", version: int = 1, is_plain: bool = False) -> Callable[[type[T]], type[T]]:
    """Class decorator: the name and version under which values of this class are stored. Default: the class name, version 1.

    `is_plain` promises that untyped fields hold only what comes back as it was, so that nobody has to check it each time.
    """

    def mark(cls: type[T]) -> type[T]:
        setattr(cls, _WIRE, (name or cls.__name__, version))
        setattr(cls, _PLAIN, is_plain)
        return cls

    return mark


def must_be_checked(cls: type) -> bool:
    """Whether values of `cls` may hold something that would come back as another value."""
    return has_untyped_parts(cls) and not cls.__dict__.get(_PLAIN, False)


def wire_name(cls: type) -> tuple[str, int]:
    """Name and version under which values of `cls` are stored."""
    marked: tuple[str, int] = cls.__dict__.get(_WIRE, (cls.__name__, 1))
    return marked


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A value on its way into a store."""

    type: str
    version: int
    data: bytes


class Vocabulary:
    """The types of one kind (commands, events or effects) of one decider, and their way to bytes and back."""

    def __init__(
        self,
        members: Sequence[type],
        *,
        kind: str,
        decider: str,
        codec: Codec,
        upcasters: Mapping[tuple[str, int], Upcaster] = types.MappingProxyType({}),
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.kind = kind
        self.decider = decider
        self._codec = codec
        self._limit = limit
        self._upcasters = upcasters
        self._wire = {cls: wire_name(cls) for cls in members}
        self._classes = {name: cls for cls, (name, _) in self._wire.items()}
        self._versions = dict(self._wire.values())
        self._untyped = {cls for cls in members if must_be_checked(cls)}

    @property
    def names(self) -> tuple[str, ...]:
        """The stored names, in the order of declaration."""
        return tuple(self._classes)

    def __contains__(self, value: object) -> bool:
        return type(value) in self._wire

    def encode(self, value: object) -> Encoded:
        """The stored form of `value`; CommandError if it is none of the declared types."""
        try:
            name, version = self._wire[type(value)]
        except KeyError:
            raise self._stranger(value) from None
        data = self._codec.encode(value)
        if self._untyped and type(value) in self._untyped and not comes_back(self._codec, data, value):
            raise PayloadError(
                f"{self.kind} {name} of {self.decider!r} holds a value that would come back as another one: give the field "
                "its type, because in an untyped one only text, numbers, true, false, None, lists and dicts stay what they are"
            )
        if len(data) > self._limit:
            raise PayloadError(
                f"{self.kind} {name} of {self.decider!r} takes {len(data)} bytes and the limit is {self._limit}: "
                "keep large data elsewhere and pass a reference, or raise max_payload_bytes"
            )
        return Encoded(name, version, data)

    def decode(self, name: str, version: int, data: bytes) -> object:
        """The value of a stored form, brought up to the present version."""
        cls, current = self._classes.get(name), self._versions.get(name)
        if cls is not None and version == current:
            return self._codec.decode(data, cls)
        return self._upcast(name, version, self._plain(data))

    def from_plain(self, name: str, value: Mapping[str, object]) -> object:
        """A value from plain data, as a caller without the classes sends it."""
        cls = self._classes.get(name)
        if cls is None:
            raise PayloadError(
                f"{self.decider!r} has no {self.kind} {name!r}; it has {', '.join(self._classes) or 'none'}"
            )
        return convert(value, cls)

    def _upcast(self, name: str, version: int, value: dict[str, object]) -> object:
        while (upcaster := self._upcasters.get((name, version))) is not None:
            try:
                value = upcaster(value)
            except Exception as error:
                raise PayloadError(
                    f"the upcaster of {name!r} version {version} of {self.decider!r} raised {error!r}"
                ) from error
            version += 1
        cls = self._classes.get(name)
        if cls is None or version != self._versions[name]:
            raise self._unknown(name, version)
        return convert(value, cls)

    def _unknown(self, name: str, version: int) -> UnknownEventError | PayloadError:
        if self.kind == "event":
            return UnknownEventError(decider=self.decider, event_type=name, version=version)
        known = ", ".join(self._classes) or "none"
        return PayloadError(f"{self.decider!r} has no {self.kind} {name!r} version {version}; it has {known}")

    def _plain(self, data: bytes) -> dict[str, object]:
        return self._codec.decode(data, dict)

    def _stranger(self, value: object) -> CommandError:
        return CommandError(
            f"{self.decider!r} does not declare {type(value).__name__} as one of its {self.kind}s; it has {', '.join(self._classes) or 'none'}",
            decider=self.decider,
        )


def names_nothing(declared: object) -> bool:
    """Whether a type parameter says that there is no class at all."""
    return declared is None or declared in {type(None), typing.Never, typing.NoReturn}


def members_of(declared: object) -> tuple[type, ...]:
    """The classes in a type parameter: one class, a union, an alias of a union, or None and Never for no class at all."""
    if names_nothing(declared):
        return ()
    alias = getattr(declared, "__value__", None)
    if alias is not None:
        return members_of(alias)
    if typing.get_origin(declared) in {typing.Union, types.UnionType}:
        return tuple(cls for part in typing.get_args(declared) for cls in members_of(part))
    return (declared,) if isinstance(declared, type) else ()


def diagnose_members(members: Sequence[type], kind: str) -> list[Diagnostic]:
    """What is wrong with these types as the words of a decider."""
    names = [wire_name(cls)[0] for cls in members]
    found = [
        Diagnostic(
            "duplicate_name", f"two {kind}s are stored as {name!r}; give one another name with @message(name=...)", kind
        )
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    found += [
        Diagnostic("reserved_name", f"{kind} name {name!r} begins with '$', which Holdfast keeps for itself", kind)
        for name in names
        if name.startswith(SYSTEM_PREFIX)
    ]
    return found
