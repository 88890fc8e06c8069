"""How values become bytes and come back. Bytes are what is stored and hashed; nothing rewrites them on the way.

A codec turns one value into bytes and bytes into a value of a known type. `JsonCodec` is the default. Dataclasses, msgspec
Structs, pydantic models, typed dicts and plain data are understood; decimals, dates, UUIDs and bytes come back as what they were
when the field says so.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast, runtime_checkable

import msgspec

from standfast.errors import PayloadError, indefinite
from standfast.kernel.codec.defaults import Completion, completion
from standfast.kernel.codec.depth import TOO_DEEP
from standfast.kernel.codec.type_cache import TURN, settled
from standfast.kernel.codec.type_checks import Flaw, flaws

T = TypeVar("T")

Reader = Callable[[bytes], object]
"""Reads bytes as a value of one type."""

Upcaster = Callable[[dict[str, object]], dict[str, object]]
"""Turns the plain form of an event, a command or an effect of one version into that of the next version."""


class _Decoder(Protocol):
    def decode(self, data: bytes, /) -> object: ...


class Codec(Protocol):
    """Bytes for values and back. An engine uses one codec for everything it stores in a database."""

    name: str
    """Recorded in the database, so that another codec cannot open it by mistake."""

    def encode(self, value: object) -> bytes:
        """The bytes of `value`; PayloadError if it has none."""
        ...

    def decode(self, data: bytes, as_type: type[T]) -> T:
        """The value of these bytes as an `as_type`; PayloadError if they are not one."""
        ...


@runtime_checkable
class Swift(Protocol):
    """A codec whose inner functions may be called without it, by whoever goes back to it when they raise."""

    write: Callable[[object], bytes]

    def reader(self, as_type: object) -> Reader:
        """What reads bytes as a type."""
        ...


@runtime_checkable
class SelfCritical(Protocol):
    """A codec that knows in advance what it can never read. One of the user's own finds out by reading what it wrote."""

    def flaws(self, as_type: object) -> list[Flaw]:
        """Why values of a type can never be read, and where; nothing if they can."""
        ...


@runtime_checkable
class _PydanticModel(Protocol):
    def model_dump(self, *, mode: str, by_alias: bool, round_trip: bool) -> dict[str, object]: ...


def lowered(value: object) -> object:
    """What the encoder does not know, in words that it knows."""
    if isinstance(value, _PydanticModel):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, str):  # Of templates, which mark a text that needs no escaping any more, for example.
        return str.__str__(value)
    raise TypeError(
        f"{indefinite(type(value))} cannot be stored; use a dataclass, a Struct, a pydantic model or plain data"
    )


def raised_up(as_type: type[T], value: object) -> T:
    """A value of a type that the decoder does not know, a pydantic model, of what it has read. Raises what the model raises."""
    if as_type is object:  # A field of which nobody says what it holds.
        return cast("T", value)
    validate = getattr(as_type, "model_validate_json", None)
    if validate is None:
        raise TypeError(f"{as_type.__name__} cannot be read back; use a dataclass, a Struct or a pydantic model")
    # As JSON, because a strict model takes text for a date only from there.
    model: T = validate(msgspec.json.encode(value))
    return model


class _MsgspecCodec:
    """What both built-in codecs share: readers that are made once for each type."""

    def __init__(self, encode: Callable[[object], bytes], decoder: Callable[..., _Decoder]) -> None:
        self.write = encode
        """The bytes of a value; what they cannot say is not found out, and whatever goes wrong is raised as it comes."""
        self._decoder = decoder
        self._readers: dict[object, Reader] = {}

    def decode(self, data: bytes, as_type: type[T]) -> T:
        """The value of these bytes."""
        try:
            return (self._readers.get(as_type) or self.reader(as_type))(data)  # type: ignore[return-value]
        except Exception as error:  # A class of the user's own may raise anything.
            raise PayloadError(
                f"stored bytes are not {indefinite(as_type)}: {misfit(as_type, error) or error}"
            ) from error

    def flaws(self, as_type: object) -> list[Flaw]:
        """Why values of a type can never be read, and where."""
        return flaws(as_type, self.reader)

    def reader(self, as_type: object) -> Reader:
        """What reads bytes as a type; whatever goes wrong is raised as it comes."""
        read = self._readers.get(as_type)
        if read is None:
            with TURN:
                decoder = self._decoder(as_type, dec_hook=raised_up)
            read = self._readers[as_type] = _whole(decoder.decode, completion(as_type))
        return read


def _whole(read: Reader, make_whole: Completion | None) -> Reader:
    if make_whole is None:
        return read

    def read_whole(data: bytes) -> object:
        value = read(data)
        make_whole(value)
        return value

    return read_whole


class JsonCodec(_MsgspecCodec):
    """JSON as UTF-8. Readable in the database, and fast."""

    name = "json"

    def __init__(self) -> None:
        super().__init__(msgspec.json.Encoder(enc_hook=lowered).encode, msgspec.json.Decoder)

    def encode(self, value: object) -> bytes:
        """The JSON of `value`."""
        try:
            data = self.write(value)
            if b"null" in data:
                # The encoder writes NaN and infinity as null; the rare value with a null in it pays for the search.
                _refuse_nan(value)
        except PayloadError:
            raise
        except Exception as error:  # A class of the user's own may raise anything.
            raise _unstorable(value, error) from error
        return data


class MessagePackCodec(_MsgspecCodec):
    """MessagePack: smaller and a little faster than JSON, not readable by eye."""

    name = "msgpack"

    def __init__(self) -> None:
        super().__init__(msgspec.msgpack.Encoder(enc_hook=lowered).encode, msgspec.msgpack.Decoder)

    def encode(self, value: object) -> bytes:
        """The MessagePack bytes of `value`."""
        try:
            return self.write(value)
        except Exception as error:  # A class of the user's own may raise anything.
            raise _unstorable(value, error) from error


def convert(value: Mapping[str, object], as_type: type[T]) -> T:
    """A value of `as_type` from its plain form, as a caller without the class would send it."""
    try:
        made = msgspec.convert(value, settled(as_type), dec_hook=raised_up, str_keys=True)
        make_whole = completion(cast("object", as_type))
        if make_whole is not None:
            make_whole(made)
        return made
    except Exception as error:  # A class of the user's own may raise anything.
        raise PayloadError(misfit(as_type, error) or f"this is not {indefinite(as_type)}: {error}") from error


def _unstorable(value: object, error: Exception) -> PayloadError:
    reason = TOO_DEEP if isinstance(error, RecursionError) else error
    return PayloadError(f"{type(value).__name__} cannot be stored: {reason}")


def _refuse_nan(value: object) -> None:
    pending = [msgspec.to_builtins(value, enc_hook=lowered)]
    while pending:
        item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise PayloadError(
                f"{type(value).__name__} holds {item!r}, which JSON cannot say; use a Decimal, a string or None"
            )
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            pending.extend(item)


_WRONG = re.compile(r"Expected `([^`]*)`, got `([^`]*)` - at `\$([^`]*)`")
_NULL = re.compile(r"\bnull\b")
_MISSING = re.compile(r"Object missing required field `([^`]*)`(?: - at `\$([^`]*)`)?")


def misfit(as_type: object, error: BaseException | None) -> str:
    """Why something is none of a type, as short as `Deposit.cents must be int, got str`; empty if the error does not tell it so."""
    if not isinstance(error, msgspec.ValidationError):
        return ""
    said, name = str(error), getattr(as_type, "__name__", str(as_type))
    if wrong := _WRONG.fullmatch(said):
        expected, got, place = wrong.groups()
        return f"{name}{place} must be {_NULL.sub('None', expected)}, got {_NULL.sub('None', got)}"
    if missing := _MISSING.fullmatch(said):
        field, place = missing.groups(default="")
        return f"{name}{place}.{field} is missing"
    return ""


_stable = msgspec.json.Encoder(enc_hook=lowered, order="deterministic").encode


def fingerprint(*values: object) -> bytes:
    """A few bytes that are the same for equal values, whatever order their dicts and sets happen to have."""
    try:
        data = _stable(values)
    except Exception as error:  # A class of the user's own may raise anything.
        raise PayloadError(f"a value cannot be compared: {error}") from error
    return hashlib.blake2b(data, digest_size=12).digest()
