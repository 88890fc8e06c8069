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
_NULL = b"\xff\xff\xff\xff"
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
    return Uuids(_assemble(Uuids, [None if value is None else value.bytes for value in values]))


def texts(values: Sequence[str | None]) -> Texts:
    """A column of text. Most columns of a batch say the same in every row, and then it is packed once."""
    try:
        if values and values[0] is not None and values.count(values[0]) == len(values):
            return Texts(_repeated(Texts, values[0].encode(), len(values)))
        return Texts(_assemble(Texts, [None if value is None else value.encode() for value in values]))
    except UnicodeEncodeError as error:
        raise PayloadError(f"a text cannot be stored: {error}") from error


def blobs(values: Sequence[bytes | None]) -> Blobs:
    """A column of bytes."""
    return Blobs(_assemble(Blobs, values))


def integers(values: Sequence[int | None]) -> Integers:
    """A column of 32-bit integers."""
    if None in values:
        return Integers(_assemble(Integers, [None if value is None else pack("!i", value) for value in values]))
    return Integers(_fixed(Integers, values, 4, "i"))


def longs(values: Sequence[int]) -> Longs:
    """A column of 64-bit integers."""
    return Longs(_fixed(Longs, values, 8, "q"))


def instants(values: Sequence[datetime | None]) -> Instants:
    """A column of instants."""
    packed = [None if value is None else pack("!q", (value - _POSTGRES_EPOCH) // _MICROSECOND) for value in values]
    return Instants(_assemble(Instants, packed))


def booleans(values: Sequence[bool]) -> Booleans:
    """A column of truth values."""
    return Booleans(_assemble(Booleans, [b"\x01" if value else b"\x00" for value in values]))


def _assemble(kind: type[Packed], elements: Sequence[bytes | None]) -> bytes:
    if not elements:
        return _EMPTY.pack(0, 0, kind.element_oid)
    length = _LENGTH.pack
    body = b"".join([_NULL if each is None else length(len(each)) + each for each in elements])
    return _HEADER.pack(1, 1 if None in elements else 0, kind.element_oid, len(elements), 1) + body


def _repeated(kind: type[Packed], element: bytes, count: int) -> bytes:
    return _HEADER.pack(1, 0, kind.element_oid, count, 1) + (_LENGTH.pack(len(element)) + element) * count


def _fixed(kind: type[Packed], values: Sequence[int | None], width: int, letter: str) -> bytes:
    if not values:
        return _EMPTY.pack(0, 0, kind.element_oid)
    flat = [part for value in values for part in (width, value)]
    body = pack("!" + f"i{letter}" * len(values), *flat)
    return _HEADER.pack(1, 0, kind.element_oid, len(values), 1) + body


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj


def register(connection: Connection[tuple[object, ...]]) -> None:
    """Teach a connection the packed columns."""
    for kind in (Uuids, Texts, Blobs, Integers, Longs, Instants, Booleans):
        dumper = type(f"{kind.__name__}Dumper", (_PackedDumper,), {"oid": kind.array_oid})
        connection.adapters.register_dumper(kind, dumper)
