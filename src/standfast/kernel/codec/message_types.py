"""Message types of a decider: the types of its commands, events and effects, with their stored names and versions.

Each value is decoded right after it is encoded, and the engine continues with the decoded one. Nothing is stored that
cannot be read, memory and history cannot differ, and the engine keeps no object of the user.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from standfast.errors import CommandError, Diagnostic, PayloadError, UnknownEventError, indefinite
from standfast.kernel.codec.codecs import (
    Codec,
    JsonCodec,
    Reader,
    SelfCritical,
    Swift,
    Upcaster,
    convert,
    lowered,
    misfit,
)
from standfast.kernel.codec.defaults import completion
from standfast.kernel.codec.depth import TOO_DEEP, Depth
from standfast.kernel.codec.equality import difference
from standfast.kernel.codec.type_checks import compares_all, has_untyped_parts, is_exact, omitting

T = TypeVar("T")

DEFAULT_LIMIT = 1024 * 1024
"""Default limit of a stored value in bytes."""

LONGEST_NAME = 512
"""Maximum length of a name or key in bytes. Longer ones do not fit into every index."""

SYSTEM_PREFIX = "$"
"""Prefix of the events that the kernel itself writes. `evolve` never sees them."""

Upcasters = Mapping[tuple[str, int], Upcaster]
"""Maps a stored name and version to the function that upgrades the plain form to the next version."""

Keep = Callable[[object], "tuple[Encoded, object] | None"]

_LAST_VERSION = 2**15 - 1
_WIRE = "__standfast_wire__"
_UNTYPED = "give the field its type, because in an untyped one only text, numbers, true, false, None, lists and dicts stay what they are"


def message(*, name: str = "", version: int = 1) -> Callable[[type[T]], type[T]]:
    """Class decorator that sets the stored name and version of a class. The default is the class name and version 1."""

    def mark(cls: type[T]) -> type[T]:
        setattr(cls, _WIRE, (name or cls.__name__, version))
        return cls

    return mark


def wire_name(cls: type) -> tuple[str, int]:
    """Return the stored name and version of `cls`."""
    marked: tuple[str, int] = cls.__dict__.get(_WIRE, (cls.__name__, 1))
    return marked


def stored_name(value: object) -> str:
    """Return the stored name of a command, event or effect. It is also the name to display."""
    return wire_name(type(value))[0]


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """An encoded value."""

    type: str
    version: int
    data: bytes


class MessageTypeSet:
    """The types of one kind (commands, events or effects) of one decider. Encodes and decodes their values."""

    _must_prove = True

    def __init__(
        self,
        members: Sequence[type],
        *,
        kind: str,
        decider: str,
        codec: Codec,
        upcasters: Upcasters = types.MappingProxyType({}),
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.kind = kind
        self.decider = decider
        self._codec = codec
        self._limit = limit
        self._upcasters = upcasters
        proved = members if self._must_prove else ()
        self._wire = {cls: (*wire_name(cls), completion(cls) if self._must_prove else None) for cls in members}
        self.classes = frozenset(members)
        self._classes = {name: cls for cls, (name, _, _) in self._wire.items()}
        self._versions = {name: version for name, version, _ in self._wire.values()}
        self._exact = frozenset(cls for cls in proved if is_exact(cls))
        self._depth = Depth(proved, is_json=isinstance(codec, JsonCodec), lower=lowered)
        self._untyped = frozenset(cls for cls in proved if has_untyped_parts(cls))
        self._blind = frozenset(cls for cls in proved if cls in self._untyped and not compares_all(cls))
        """Classes whose equality ignores some of their content, and whose content only equality could verify."""
        self._keepers = {cls: keep for cls in members if (keep := self._keeper(cls)) is not None}
        self._readers: dict[tuple[str, int], Reader | None] = {}
        """Decoders of the current versions, created on first use, because most of the engine's own are never used."""

    @property
    def names(self) -> tuple[str, ...]:
        """The stored names in the order of declaration."""
        return tuple(self._classes)

    def readable(self) -> frozenset[tuple[str, int]]:
        """The names and versions that can be read: those of the classes, and older ones with upcasters."""
        known = set(self._versions.items())
        for name, version in sorted(self._upcasters, key=lambda each: -each[1]):
            if (name, version + 1) in known:
                known.add((name, version))
        return frozenset(known)

    def __contains__(self, value: object) -> bool:
        return type(value) in self._wire

    def stranger(self, value: object) -> str:
        """Describe a value of an undeclared type."""
        cls = type(value)
        namesake = next((each for each in self._wire if each.__name__ == cls.__name__), None)
        if namesake is None:
            told, known = cls.__name__, f"it has {', '.join(self._classes) or 'none'}"
        elif full_name(namesake) != full_name(cls):
            told, known = full_name(cls), f"it has {full_name(namesake)}, another class of that name"
        else:
            told, known = (
                full_name(cls),
                "it has another class of that name and place: the module was loaded twice, or reloaded",
            )
        return f"{self.decider!r} does not declare {told} as one of its {self.kind}s; {known}"

    def encode(self, value: object) -> Encoded:
        """Encode `value`.

        Raises CommandError for an undeclared type, and PayloadError if the value does not survive a round trip.
        """
        return self.keep(value)[0]

    def keep(self, value: object) -> tuple[Encoded, object]:
        """Encode a value, and return the bytes with the decoded copy, which belongs to the engine."""
        keep = self._keepers.get(type(value))
        if keep is not None and (kept := keep(value)) is not None:
            return kept
        encoded = self.write(value)
        return encoded, self._read_again(value, encoded)

    def own(self, value: object) -> object:
        """Return the decoded copy of a value, for a command that is not stored itself."""
        return self.keep(value)[1]

    def encode_for(self, decider: str, value: object) -> Encoded:
        """Encode a message of another decider whose code is in another process, by the same rules as an own one."""
        theirs = MessageTypeSet((type(value),), kind=self.kind, decider=decider, codec=self._codec, limit=self._limit)
        return theirs.encode(value)

    def decode(self, name: str, version: int, data: bytes) -> object:
        """Decode a stored value, and upgrade it to the current version."""
        try:
            read = self._readers[name, version]
        except KeyError:
            read = self._prepared(name, version)
        if read is not None:
            try:
                return read(data)
            except Exception:  # noqa: BLE001, S110 - the codec reports the error below
                pass
        cls, current = self._classes.get(name), self._versions.get(name)
        if cls is not None and version == current:
            return self._codec.decode(data, cls)
        return self._upcast(name, version, self._plain(data))

    def from_plain(self, name: str, value: Mapping[str, object]) -> object:
        """Build a value from plain data, as sent by a caller without the classes."""
        cls = self._classes.get(name)
        if cls is None:
            raise PayloadError(
                f"{self.decider!r} has no {self.kind} {name!r}; it has {', '.join(self._classes) or 'none'}"
            )
        return convert(value, cls)

    def write(self, value: object) -> Encoded:
        """Encode `value` without verifying the round trip."""
        try:
            name, version, make_whole = self._wire[type(value)]
        except KeyError:
            raise CommandError(self.stranger(value), decider=self.decider) from None
        if make_whole is not None:
            make_whole(value)
        data = self._codec.encode(value)
        if len(data) > self._limit:
            raise PayloadError(
                f"{self.kind} {name} of {self.decider!r} takes {len(data)} bytes and the limit is {self._limit}: "
                "keep large data elsewhere and pass a reference, or raise max_payload_bytes"
            )
        if self._depth.is_exceeded(value, data):
            raise PayloadError(f"{self.kind} {name} of {self.decider!r} cannot be kept: {TOO_DEEP}")
        return Encoded(name, version, data)

    def _keeper(self, cls: type) -> Keep | None:
        """Return the fast path of `keep` for a class, which most values take because they survive the round trip equal.

        The fast path returns None for other values. The slow path then reports the error.
        """
        read = _reader(self._codec, cls)
        if read is None or not isinstance(self._codec, Swift) or cls in self._blind:
            return None
        name, version, make_whole = self._wire[cls]
        write, limit, is_too_deep = self._codec.write, self._limit, self._depth.judge(cls)
        # Equality may be too lenient there. Equal bytes are a stronger proof, except for a NaN.
        must_compare = cls not in self._exact

        def keep(value: object) -> tuple[Encoded, object] | None:
            try:
                if make_whole is not None:
                    make_whole(value)
                data = write(value)
                if len(data) > limit or (is_too_deep is not None and is_too_deep(value, data)):
                    return None
                back = read(data)
                if back == value and not (must_compare and (b"null" in data or write(back) != data)):
                    return Encoded(name, version, data), back
            except Exception:  # noqa: BLE001, S110 - the slow path raises and reports it again
                pass
            return None

        return keep

    def _prepared(self, name: str, version: int) -> Reader | None:
        """Create the decoder of a version, or return None for an older one."""
        if self._versions.get(name) != version:
            return None
        read = self._readers[name, version] = _reader(self._codec, self._classes[name])
        return read

    def _read_again(self, value: object, encoded: Encoded) -> object:
        """Decode the bytes just written. Raises if the result differs from the original."""
        cls, data = type(value), encoded.data
        try:
            back = self._codec.decode(data, cls)
        except PayloadError as error:
            told = misfit(cls, error.__cause__) or f"{self._told(encoded)} could be written but never read: {error}"
            raise PayloadError(told) from error
        try:
            # Nearly always the values are equal and, where equality may be too lenient, have the same bytes.
            if cls not in self._blind and back == value and (cls in self._exact or self._codec.encode(back) == data):
                return back
        except Exception:  # noqa: BLE001, S110 - a user's class may raise in its comparison
            pass
        is_typed = cls not in self._untyped
        found = difference(back, value, may_retype=is_typed)
        if found:
            remedy = "give the field a value of its type" if is_typed else _UNTYPED
            raise PayloadError(f"{self._told(encoded)} would come back as another value: {found}; {remedy}")
        return back

    def _told(self, encoded: Encoded) -> str:
        return f"{self.kind} {encoded.type} of {self.decider!r}"

    def _upcast(self, name: str, stored: int, value: dict[str, object]) -> object:
        version = stored
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
            raise self._unknown(name, stored)
        try:  # The upcasters return plain data of the codec, so the codec builds the class.
            return self._codec.decode(self._codec.encode(value), cls)
        except PayloadError as error:
            raise PayloadError(
                f"the upcasters of {name!r} of {self.decider!r} made something else of it: {error}"
            ) from error

    def _unknown(self, name: str, version: int) -> UnknownEventError | PayloadError:
        if self.kind == "event":
            return UnknownEventError(decider=self.decider, event_type=name, version=version)
        known = ", ".join(self._classes) or "none"
        return PayloadError(f"{self.decider!r} has no {self.kind} {name!r} version {version}; it has {known}")

    def _plain(self, data: bytes) -> dict[str, object]:
        return self._codec.decode(data, dict)


def _reader(codec: Codec, cls: type) -> Reader | None:
    """Return a cached decoder of a class. None if the codec has none or cannot decode the class."""
    if not isinstance(codec, Swift):
        return None
    try:
        return codec.reader(cls)
    except Exception:  # noqa: BLE001 - the slow path reports why it cannot be read
        return None


def full_name(cls: type) -> str:
    """Return the name of a class with its module."""
    return f"{cls.__module__}.{cls.__qualname__}"


class PlainMessageTypeSet(MessageTypeSet):
    """Message types that need no verification: their values were checked before, and no other code refers to them.

    Their types are not analysed, which would be most of an engine's start-up time.
    """

    _must_prove = False

    def _keeper(self, cls: type) -> None:  # noqa: ARG002 - no class needs verification
        return None

    def write(self, value: object) -> Encoded:
        """Encode `value`."""
        known = self._wire.get(type(value))
        data = self._codec.encode(value) if known is not None else b""
        if known is None or len(data) > self._limit:
            return super().write(value)  # The slow path reports the error.
        return Encoded(known[0], known[1], data)

    encode = write

    def keep(self, value: object) -> tuple[Encoded, object]:
        """Encode a value, and return the bytes with the value itself."""
        return self.write(value), value

    def own(self, value: object) -> object:
        """Return the value itself."""
        return value


def names_nothing(declared: object) -> bool:
    """Return whether a type parameter declares no class."""
    return declared is None or declared in {type(None), typing.Never, typing.NoReturn}


def members_of(declared: object) -> tuple[type, ...]:
    """Return the classes of a type parameter: one class, a union or an alias of one, or none for None and Never."""
    if names_nothing(declared):
        return ()
    alias = getattr(declared, "__value__", None)
    if alias is not None:
        return members_of(alias)
    if typing.get_origin(declared) in {typing.Union, types.UnionType}:
        return tuple(cls for part in typing.get_args(declared) for cls in members_of(part))
    return (declared,) if isinstance(declared, type) else ()


def union_of(declared: object) -> tuple[type, ...]:
    """Return the classes of a union, including None. Empty if the type is no union of classes."""
    alias = getattr(declared, "__value__", None)
    if alias is not None:
        return union_of(alias)
    parts = typing.get_args(declared) if typing.get_origin(declared) in {typing.Union, types.UnionType} else ()
    return tuple(parts) if all(isinstance(part, type) for part in parts) else ()


def allows_none(declared: object) -> bool:
    """Return whether None may be a value of the type, or the type is unknown."""
    alias = getattr(declared, "__value__", None)
    if alias is not None:
        return allows_none(alias)
    origin, parts = typing.get_origin(declared), typing.get_args(declared)
    if origin is typing.Annotated:
        return allows_none(parts[0])
    if origin in {typing.Union, types.UnionType}:
        return any(map(allows_none, parts))
    if origin is typing.Literal:
        return None in parts
    if origin is not None:
        return False
    # Types of `typing` itself, even classes, accept any value.
    return not isinstance(declared, type) or declared in {object, type(None)} or declared.__module__ == "typing"


def name_flaw(name: object) -> str:
    """Describe why a name cannot be stored and indexed, as the end of a sentence. Empty if it can."""
    if not isinstance(name, str) or not name:
        return "is not a non-empty text"
    if not name.isprintable():
        return "holds a character that cannot be printed"
    return f"is longer than {LONGEST_NAME} bytes" if len(name.encode()) > LONGEST_NAME else ""


def is_whole(number: object, *, least: int, most: int) -> bool:
    """Return whether the value is an int within these bounds."""
    return isinstance(number, int) and least <= number <= most


def diagnose_members(members: Sequence[type], kind: str, codec: object = None) -> list[Diagnostic]:
    """Diagnose types as the message types of a decider, including whether the codec can decode them."""
    wire = [wire_name(cls) for cls in members]
    names = [name for name, _ in wire]
    found = [
        Diagnostic(
            "duplicate_name", f"two {kind}s are stored as {name!r}; give one another name with @message(name=...)", kind
        )
        for name in sorted({name for name in names if names.count(name) > 1}, key=str)
    ]
    found += [
        Diagnostic("reserved_name", f"{kind} name {name!r} begins with '$', which Standfast keeps for itself", kind)
        for name in names
        if str(name).startswith(SYSTEM_PREFIX)
    ]
    found += [
        Diagnostic("invalid_name", f"the {kind} name {name!r} {flaw}; give another one with @message(name=...)", kind)
        for name in names
        if (flaw := name_flaw(name))
    ]
    found += [
        Diagnostic("invalid_version", f"{kind} {name!r} has version {version!r}; give a whole number from 1", kind)
        for name, version in wire
        if not is_whole(version, least=1, most=_LAST_VERSION)
    ]
    if isinstance(codec, SelfCritical):
        found += _diagnose_types(members, kind, codec)
        found += _diagnose_defaults(members, kind)
    return found


def _diagnose_types(members: Sequence[type], kind: str, codec: SelfCritical) -> list[Diagnostic]:
    return [
        Diagnostic(
            "unreadable_type", f"{flaw.place} of {kind} {cls.__name__} could never be read back: {flaw.reason}", kind
        )
        for cls in members
        for flaw in codec.flaws(cls)
    ]


def _diagnose_defaults(members: Sequence[type], kind: str) -> list[Diagnostic]:
    return [
        Diagnostic(
            "omitted_defaults",
            f"{name} in {kind} {cls.__name__} would be stored without what is equal to its default, and another default later would "
            f"change what has happened; make {name} without omit_defaults",
            kind,
        )
        for cls in members
        for name in omitting(cls)
    ]


def diagnose_upcasters(members: Sequence[type], kind: str, upcasters: object) -> list[Diagnostic]:
    """Diagnose upcasters: wrong shapes, unreachable versions, and gaps that would show only when old values are read."""
    versions = dict(wire_name(cls) for cls in members)
    example = (next(iter(versions), "Name"), 1)
    where = "upcasters" if kind == "event" else f"{kind}_upcasters"
    if not isinstance(upcasters, Mapping):
        told = f"{where} is {indefinite(type(upcasters))}; give a dict from name and version, such as {example}, to a function"
        return [Diagnostic("invalid_upcaster", told, kind)]
    flaws = {key: _upcaster_flaw(where, key, upcaster, example) for key, upcaster in upcasters.items()}
    found = [Diagnostic("invalid_upcaster", flaw, kind) for flaw in flaws.values() if flaw]
    sound = [key for key, flaw in flaws.items() if not flaw]
    found += [
        Diagnostic(
            "idle_upcaster",
            f"there is an upcaster for {kind} {name!r} version {version}, but "
            + (f"{name!r} is stored as version {versions[name]}" if name in versions else f"no {kind} has that name"),
            kind,
        )
        for name, version in sound
        if not version < versions.get(name, 0)
    ]
    found += [
        Diagnostic(
            "missing_upcaster",
            f"{kind} {name!r} is stored as version {versions[name]} and there is an upcaster for version {version}, but none for "
            f"{name!r} version {version + 1}: add it, or nothing that is older can be read",
            kind,
        )
        for name, version in sound
        if version + 1 < versions.get(name, 0) and (name, version + 1) not in upcasters
    ]
    return found


def _upcaster_flaw(where: str, key: object, upcaster: object, example: tuple[str, int]) -> str:
    match key:
        case (str(), int()) if callable(upcaster):
            return ""
        case (str(), int()):
            return f"the upcaster of {key} is {indefinite(type(upcaster))}; give a function"
        case _:
            return f"{where} has the key {key!r}; give name and version, such as {example}"
