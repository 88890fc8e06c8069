"""The words of a decider: which types its commands, events and effects have, under which names and versions they are stored.

What is written is read again at once, and what comes back is what everybody goes on with. So nothing is ever stored that could not be
read, memory and history cannot differ, and no object of the user's stays in the engine.
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
"""Largest stored value, in bytes, unless the engine is told otherwise."""

LONGEST_NAME = 512
"""Bytes of a name or a key; longer ones do not fit into every index."""

SYSTEM_PREFIX = "$"
"""Names of the events that the kernel itself writes begin with this; `evolve` never sees them."""

Upcasters = Mapping[tuple[str, int], Upcaster]
"""From the stored name and version to what brings the plain form to the next version."""

Keep = Callable[[object], "tuple[Encoded, object] | None"]

_LAST_VERSION = 2**15 - 1
_WIRE = "__standfast_wire__"
_UNTYPED = "give the field its type, because in an untyped one only text, numbers, true, false, None, lists and dicts stay what they are"


def message(*, name: str = "", version: int = 1) -> Callable[[type[T]], type[T]]:
    """Class decorator: the name and version under which values of this class are stored. Default: the class name, version 1."""

    def mark(cls: type[T]) -> type[T]:
        setattr(cls, _WIRE, (name or cls.__name__, version))
        return cls

    return mark


def wire_name(cls: type) -> tuple[str, int]:
    """Name and version under which values of `cls` are stored."""
    marked: tuple[str, int] = cls.__dict__.get(_WIRE, (cls.__name__, 1))
    return marked


def stored_name(value: object) -> str:
    """Return the name under which a command, an event or an effect is stored: the one to show, too."""
    return wire_name(type(value))[0]


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A value on its way into a store."""

    type: str
    version: int
    data: bytes


class MessageTypeSet:
    """The types of one kind (commands, events or effects) of one decider, and their way to bytes and back."""

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
        """Classes whose equality does not see all that they hold, and that hold what only equality could vouch for."""
        self._keepers = {cls: keep for cls in members if (keep := self._keeper(cls)) is not None}
        self._readers: dict[tuple[str, int], Reader | None] = {}
        """What reads the present version of a word, from the first time that one is read: most of the engine's own never are."""

    @property
    def names(self) -> tuple[str, ...]:
        """The stored names, in the order of declaration."""
        return tuple(self._classes)

    def readable(self) -> frozenset[tuple[str, int]]:
        """The names and versions that can be read: those of the classes, and the older ones that upcasters bring up to them."""
        known = set(self._versions.items())
        for name, version in sorted(self._upcasters, key=lambda each: -each[1]):
            if (name, version + 1) in known:
                known.add((name, version))
        return frozenset(known)

    def __contains__(self, value: object) -> bool:
        return type(value) in self._wire

    def stranger(self, value: object) -> str:
        """What is said of a value that is none of the declared types."""
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
        """The stored form of `value`; CommandError if it is none of the declared types, PayloadError if it would not come back."""
        return self.keep(value)[0]

    def keep(self, value: object) -> tuple[Encoded, object]:
        """The stored form of `value`, and the value as it comes back from it, which is the engine's own."""
        keep = self._keepers.get(type(value))
        if keep is not None and (kept := keep(value)) is not None:
            return kept
        encoded = self.write(value)
        return encoded, self._read_again(value, encoded)

    def own(self, value: object) -> object:
        """The value as it would come back, for a command that is not stored itself."""
        return self.keep(value)[1]

    def encode_for(self, decider: str, value: object) -> Encoded:
        """The stored form of a word of another decider, whose code is elsewhere, by the rules for a word of its own."""
        theirs = MessageTypeSet((type(value),), kind=self.kind, decider=decider, codec=self._codec, limit=self._limit)
        return theirs.encode(value)

    def decode(self, name: str, version: int, data: bytes) -> object:
        """The value of a stored form, brought up to the present version."""
        try:
            read = self._readers[name, version]
        except KeyError:
            read = self._prepared(name, version)
        if read is not None:
            try:
                return read(data)
            except Exception:  # noqa: BLE001, S110 - the codec says below what is wrong
                pass
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

    def write(self, value: object) -> Encoded:
        """The stored form of `value`; whether it comes back is not proved."""
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
        """The short way of `keep` for the values of a class: nearly all of them come back equal and leave nothing to be found out.

        It gives None for any other, which then goes the long way, and there it is said what is wrong with it.
        """
        read = _reader(self._codec, cls)
        if read is None or not isinstance(self._codec, Swift) or cls in self._blind:
            return None
        name, version, make_whole = self._wire[cls]
        write, limit, is_too_deep = self._codec.write, self._limit, self._depth.judge(cls)
        must_compare = cls not in self._exact  # Equality may be too kind there; the same bytes say more, but for a NaN.

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
            except Exception:  # noqa: BLE001, S110 - the long way meets it again, and says it
                pass
            return None

        return keep

    def _prepared(self, name: str, version: int) -> Reader | None:
        """What reads a version of a word, from now on; None for an older one."""
        if self._versions.get(name) != version:
            return None
        read = self._readers[name, version] = _reader(self._codec, self._classes[name])
        return read

    def _read_again(self, value: object, encoded: Encoded) -> object:
        """The value of what was just written; refused if it is not the one that was given."""
        cls, data = type(value), encoded.data
        try:
            back = self._codec.decode(data, cls)
        except PayloadError as error:
            told = misfit(cls, error.__cause__) or f"{self._told(encoded)} could be written but never read: {error}"
            raise PayloadError(told) from error
        try:
            # Nearly always it is equal and, where that may be too kind, has the same bytes.
            if cls not in self._blind and back == value and (cls in self._exact or self._codec.encode(back) == data):
                return back
        except Exception:  # noqa: BLE001, S110 - classes of the user's own compare as they like
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
        try:  # What was read is in the codec's own plain words, so the codec turns it into the class.
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
    """What reads values of a class without asking the codec each time; None if the codec offers nothing, or cannot read them."""
    if not isinstance(codec, Swift):
        return None
    try:
        return codec.reader(cls)
    except Exception:  # noqa: BLE001 - whoever reads such a value is told why it cannot be read
        return None


def full_name(cls: type) -> str:
    """The name of a class with that of its module."""
    return f"{cls.__module__}.{cls.__qualname__}"


class PlainMessageTypeSet(MessageTypeSet):
    """Words of which nothing has to be proved: their values were made plain and measured before, and nobody else holds them.

    So the shapes of their classes are not looked into, which would be most of what an engine does at its start.
    """

    _must_prove = False

    def _keeper(self, cls: type) -> None:  # noqa: ARG002 - none of the classes has anything to prove
        return None

    def write(self, value: object) -> Encoded:
        """The stored form of `value`."""
        known = self._wire.get(type(value))
        data = self._codec.encode(value) if known is not None else b""
        if known is None or len(data) > self._limit:
            return super().write(value)  # Which says what is wrong with it.
        return Encoded(known[0], known[1], data)

    encode = write

    def keep(self, value: object) -> tuple[Encoded, object]:
        """The stored form of `value`, and the value itself."""
        return self.write(value), value

    def own(self, value: object) -> object:
        """The value itself."""
        return value


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


def union_of(declared: object) -> tuple[type, ...]:
    """The classes of a union, None among them; nothing for what is no union, or a union of something else than classes."""
    alias = getattr(declared, "__value__", None)
    if alias is not None:
        return union_of(alias)
    parts = typing.get_args(declared) if typing.get_origin(declared) in {typing.Union, types.UnionType} else ()
    return tuple(parts) if all(isinstance(part, type) for part in parts) else ()


def allows_none(declared: object) -> bool:
    """Whether None is a value of a type, or the type does not tell."""
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
    # What is of `typing` itself, be it a class, stands for anything.
    return not isinstance(declared, type) or declared in {object, type(None)} or declared.__module__ == "typing"


def name_flaw(name: object) -> str:
    """Why a name cannot be stored and claimed by, as the end of a sentence; empty if it can."""
    if not isinstance(name, str) or not name:
        return "is not a non-empty text"
    if not name.isprintable():
        return "holds a character that cannot be printed"
    return f"is longer than {LONGEST_NAME} bytes" if len(name.encode()) > LONGEST_NAME else ""


def is_whole(number: object, *, least: int, most: int) -> bool:
    """Whether it is a whole number between these two."""
    return isinstance(number, int) and least <= number <= most


def diagnose_members(members: Sequence[type], kind: str, codec: object = None) -> list[Diagnostic]:
    """What is wrong with these types as the words of a decider, and, if the codec can say so, as something to be read."""
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
    """Upcasters of the wrong shape, those that nothing would ever pass through, and gaps, which show only when old values are read."""
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
