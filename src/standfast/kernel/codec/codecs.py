"""Codecs: convert values to bytes and back. The bytes are stored and hashed unchanged.

A codec encodes any supported value, and decodes bytes as a known type. `JsonCodec` is the default. It supports
dataclasses, msgspec Structs, pydantic models, typed dicts and plain data. Decimals, dates, UUIDs and bytes keep their
types if the field declares them.
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
from standfast.kernel.codec.type_checks import Flaw, flaws, has_unknown_classes

T = TypeVar("T")

Reader = Callable[[bytes], object]
"""Decodes bytes as a value of one type."""

Upcaster = Callable[[dict[str, object]], dict[str, object]]
"""Converts the plain form of a message from one version to the next."""


class _Decoder(Protocol):
    def decode(self, data: bytes, /) -> object: ...


class Codec(Protocol):
    """Encodes and decodes values. An engine uses one codec for everything it stores in a database."""

    name: str
    """Recorded in the database, so that no other codec opens it by mistake."""

    def encode(self, value: object) -> bytes:
        """Return the bytes of `value`. Raises PayloadError if it cannot be encoded."""
        ...

    def decode(self, data: bytes, as_type: type[T]) -> T:
        """Decode bytes as `as_type`. Raises PayloadError if they do not match the type."""
        ...


@runtime_checkable
class Swift(Protocol):
    """A codec with fast paths for encoding and decoding.

    A caller that gets an exception from one repeats the call through the codec.
    """

    write: Callable[[object], bytes]

    def reader(self, as_type: object) -> Reader:
        """Return a decoder of a type."""
        ...


@runtime_checkable
class SelfCritical(Protocol):
    """A codec that can tell in advance which types it cannot decode. For other codecs a round trip finds out."""

    def flaws(self, as_type: object) -> list[Flaw]:
        """Return the reasons why values of a type cannot be decoded, with their places. Empty if they can."""
        ...


@runtime_checkable
class _PydanticModel(Protocol):
    def model_dump(self, *, mode: str, by_alias: bool, round_trip: bool) -> dict[str, object]: ...


def lowered(value: object) -> object:
    """Convert a value unknown to the encoder into plain data."""
    if isinstance(value, _PydanticModel):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, str):  # For example the strings of template engines, which mark text as escaped.
        return str.__str__(value)
    raise TypeError(
        f"{indefinite(type(value))} cannot be stored; use a dataclass, a Struct, a pydantic model or plain data"
    )


def raised_up(as_type: type[T], value: object) -> T:
    """Build a value of a type unknown to the decoder, such as a pydantic model. Raises what the model raises."""
    if as_type is object:  # An untyped field.
        return cast("T", value)
    validate = getattr(as_type, "model_validate_json", None)
    if validate is None:
        raise TypeError(f"{as_type.__name__} cannot be read back; use a dataclass, a Struct or a pydantic model")
    # Validated as JSON, because a strict model accepts text for a date only there.
    model: T = validate(msgspec.json.encode(value))
    return model


class _MsgspecCodec:
    """Common parts of the built-in codecs. Decoders are created once per type."""

    def __init__(self, encode: Callable[[object], bytes], decoder: Callable[..., _Decoder]) -> None:
        self.write = encode
        """Encodes a value without checks. Exceptions of the encoder pass through unchanged."""
        self._decoder = decoder
        self._readers: dict[object, Reader] = {}

    def decode(self, data: bytes, as_type: type[T]) -> T:
        """Decode bytes as `as_type`."""
        try:
            return (self._readers.get(as_type) or self.reader(as_type))(data)  # type: ignore[return-value]
        except Exception as error:  # A user's class may raise anything.
            raise PayloadError(
                f"stored bytes are not {indefinite(as_type)}: {misfit(as_type, error) or error}"
            ) from error

    def flaws(self, as_type: object) -> list[Flaw]:
        """Return the reasons why values of a type cannot be decoded, with their places."""
        return flaws(as_type, self.reader)

    def reader(self, as_type: object) -> Reader:
        """Return a decoder of a type. Its exceptions pass through unchanged."""
        read = self._readers.get(as_type)
        if read is None:
            # A hook would be called for each value that is declared as `object`, which makes reading twice as slow.
            with TURN:
                hook = raised_up if has_unknown_classes(as_type) else None
                decoder = self._decoder(as_type, dec_hook=hook)
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
    """JSON as UTF-8: readable in the database, and fast."""

    name = "json"

    def __init__(self) -> None:
        super().__init__(msgspec.json.Encoder(enc_hook=lowered).encode, msgspec.json.Decoder)

    def encode(self, value: object) -> bytes:
        """Encode `value` as JSON."""
        try:
            data = self.write(value)
            if b"null" in data:
                # The encoder writes NaN and infinity as null, so that only values with a null need this check.
                _refuse_nan(value)
        except PayloadError:
            raise
        except Exception as error:  # A user's class may raise anything.
            raise _unstorable(value, error) from error
        return data


class MessagePackCodec(_MsgspecCodec):
    """MessagePack: smaller and slightly faster than JSON, but not human-readable."""

    name = "msgpack"

    def __init__(self) -> None:
        super().__init__(msgspec.msgpack.Encoder(enc_hook=lowered).encode, msgspec.msgpack.Decoder)

    def encode(self, value: object) -> bytes:
        """Encode `value` as MessagePack."""
        try:
            return self.write(value)
        except Exception as error:  # A user's class may raise anything.
            raise _unstorable(value, error) from error


def convert(value: Mapping[str, object], as_type: type[T]) -> T:
    """Build a value of `as_type` from its plain form, as sent by a caller without the class."""
    try:
        made = msgspec.convert(value, settled(as_type), dec_hook=raised_up, str_keys=True)
        make_whole = completion(cast("object", as_type))
        if make_whole is not None:
            make_whole(made)
        return made
    except Exception as error:  # A user's class may raise anything.
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
    """Describe a type error as briefly as `Deposit.cents must be int, got str`. Empty if the error has another form."""
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
    """Return a short digest that is equal for equal values, whatever the order of their dicts and sets."""
    try:
        data = _stable(values)
    except Exception as error:  # A user's class may raise anything.
        raise PayloadError(f"a value cannot be compared: {error}") from error
    return hashlib.blake2b(data, digest_size=12).digest()
