"""Columns of a batch in Postgres' binary array format, packed in one go.

A commit sends each column of each table as one array. Packing whole columns costs a fraction of adapting every element by itself,
and that is most of what a commit costs on the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct, pack
from uuid import UUID

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from holdfast.errors import PayloadError

_HEADER = Struct("!iiIii")
_EMPTY = Struct("!iiI")
_LENGTH = Struct("!i")
_SMALL = [_LENGTH.pack(number) for number in range(2048)]
"""Small numbers, which most integers and lengths are: looking one up is cheaper than packing it."""
_NULL = b"\xff\xff\xff\xff"
_FOUR, _EIGHT, _SIXTEEN = _SMALL[4], _SMALL[8], _SMALL[16]
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Packed(bytes):
    """A value that is already in Postgres' binary format; the subclass tells the type."""

    __slots__ = ()
    array_oid = 0
    element_oid = 0


class Uuids(Packed):
    """uuid[]."""

    __slots__ = ()
    array_oid, element_oid = 2951, 2950


class Texts(Packed):
    """text[]."""

    __slots__ = ()
    array_oid, element_oid = 1009, 25


class Blobs(Packed):
    """bytea[]."""

    __slots__ = ()
    array_oid, element_oid = 1001, 17


class Integers(Packed):
    """int4[]."""

    __slots__ = ()
    array_oid, element_oid = 1007, 23


class Longs(Packed):
    """int8[]."""

    __slots__ = ()
    array_oid, element_oid = 1016, 20


class Instants(Packed):
    """timestamptz[]."""

    __slots__ = ()
    array_oid, element_oid = 1185, 1184


class Booleans(Packed):
    """bool[]."""

    __slots__ = ()
    array_oid, element_oid = 1000, 16


def uuids(values: Sequence[UUID | None]) -> Uuids:
    """A column of ids."""
    if values and all(value is values[0] for value in values):  # To compare two ids takes longer than to pack them.
        first = values[0]
        return Uuids(_repeated(Uuids, None if first is None else first.bytes, len(values)))
    if None in values:
        return Uuids(_assemble(Uuids, [None if value is None else value.bytes for value in values]))
    return Uuids(_joined(Uuids, [value.int.to_bytes(16, "big") for value in values], _SIXTEEN))  # type: ignore[union-attr]


def texts(values: Sequence[str | None]) -> Texts:
    """A column of text."""
    try:
        if _is_constant(values):
            return Texts(_repeated(Texts, None if values[0] is None else values[0].encode(), len(values)))
        return Texts(_assemble(Texts, [None if value is None else value.encode() for value in values]))
    except UnicodeEncodeError as error:
        raise PayloadError(f"a text cannot be stored: {error}") from error


def blobs(values: Sequence[bytes | None]) -> Blobs:
    """A column of bytes."""
    return Blobs(_repeated(Blobs, values[0], len(values)) if _is_constant(values) else _assemble(Blobs, values))


def integers(values: Sequence[int | None]) -> Integers:
    """A column of 32-bit integers."""
    if _is_constant(values):
        return Integers(_repeated(Integers, None if values[0] is None else _LENGTH.pack(values[0]), len(values)))
    if None in values:
        return Integers(_assemble(Integers, [None if value is None else _LENGTH.pack(value) for value in values]))
    few = len(_SMALL)
    packed = [_SMALL[value] if 0 <= value < few else _LENGTH.pack(value) for value in values]  # type: ignore[operator,index]
    return Integers(_joined(Integers, packed, _FOUR))


def longs(values: Sequence[int]) -> Longs:
    """A column of 64-bit integers."""
    return Longs(_joined(Longs, [pack("!q", value) for value in values], _EIGHT))


def instants(values: Sequence[datetime | None]) -> Instants:
    """A column of instants."""
    if _is_constant(values):
        return Instants(_repeated(Instants, None if values[0] is None else _instant(values[0]), len(values)))
    return Instants(_assemble(Instants, [None if value is None else _instant(value) for value in values]))


def booleans(values: Sequence[bool]) -> Booleans:
    """A column of truth values."""
    return Booleans(_assemble(Booleans, [b"\x01" if value else b"\x00" for value in values]))


def _instant(at: datetime) -> bytes:
    return pack("!q", (at - _POSTGRES_EPOCH) // _MICROSECOND)


def _is_constant(values: Sequence[object]) -> bool:
    """Whether a column says the same in every row, as most columns of a batch do: then it is packed once."""
    return bool(values) and values.count(values[0]) == len(values)


def _header(kind: type[Packed], count: int, *, has_nulls: bool = False) -> bytes:
    return _HEADER.pack(1, has_nulls, kind.element_oid, count, 1) if count else _EMPTY.pack(0, 0, kind.element_oid)


def _assemble(kind: type[Packed], elements: Sequence[bytes | None]) -> bytes:
    body = b"".join([_NULL if each is None else _length(each) + each for each in elements])
    return _header(kind, len(elements), has_nulls=None in elements) + body


def _joined(kind: type[Packed], elements: Sequence[bytes], length: bytes) -> bytes:
    """Elements of one length, none of them null."""
    return _header(kind, len(elements)) + (length + length.join(elements) if elements else b"")


def _repeated(kind: type[Packed], element: bytes | None, count: int) -> bytes:
    body = _NULL if element is None else _length(element) + element
    return _header(kind, count, has_nulls=element is None) + body * count


def _length(element: bytes) -> bytes:
    return _SMALL[len(element)] if len(element) < len(_SMALL) else _LENGTH.pack(len(element))


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj


def register(connection: Connection[tuple[object, ...]]) -> None:
    """Teach a connection the packed columns."""
    for kind in (Uuids, Texts, Blobs, Integers, Longs, Instants, Booleans):
        dumper = type(f"{kind.__name__}Dumper", (_PackedDumper,), {"oid": kind.array_oid})
        connection.adapters.register_dumper(kind, dumper)
