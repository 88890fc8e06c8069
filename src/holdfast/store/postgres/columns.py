"""Columns of rows in Postgres' binary format, packed in one go.

A commit sends the rows of each table as columns: as one array for each column, or, where there is one row, as plain values. Packing
whole columns costs a fraction of adapting every element by itself, and that is most of what a commit costs on the client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from holdfast.errors import PayloadError

T = TypeVar("T")

_HEADER = Struct("!iiIii")
_EMPTY = Struct("!iiI")
_INTEGER = Struct("!i")
_LONG = Struct("!q")
_SMALL = [_INTEGER.pack(number) for number in range(2048)]
"""Small numbers, which most integers and lengths are: looking one up is cheaper than packing it."""
_NULL = b"\xff\xff\xff\xff"
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Column(ABC, Generic[T]):
    """The values of one column, row by row."""

    __slots__ = ("values",)
    array_oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, values: Sequence[T | None]) -> None:
        self.values = values

    def array(self) -> bytes:
        """All values as an array."""
        values = self.values
        count = len(values)
        if not count:
            return _EMPTY.pack(0, 0, self.element_oid)
        if self._is_constant():
            element = self.single()
            body = _NULL if element is None else _length(element) + element
            return _HEADER.pack(1, element is None, self.element_oid, count, 1) + body * count
        if None in values:
            elements = [None if value is None else self.pack(value) for value in values]
            body = b"".join([_NULL if each is None else _length(each) + each for each in elements])
            return _HEADER.pack(1, 1, self.element_oid, count, 1) + body
        return _HEADER.pack(1, 0, self.element_oid, count, 1) + self._body(values)  # type: ignore[arg-type]

    def single(self) -> bytes | None:
        """The first value, which may stand for all."""
        return None if self.values[0] is None else self.pack(self.values[0])

    def elements(self) -> list[bytes | None]:
        """All values, each by itself."""
        return [None if value is None else self.pack(value) for value in self.values]

    @abstractmethod
    def pack(self, value: T) -> bytes:
        """One value."""

    def _is_constant(self) -> bool:
        """Whether all rows say the same, as in most columns of a batch: then it is packed once."""
        return self.values.count(self.values[0]) == len(self.values)

    def _body(self, values: Sequence[T]) -> bytes:
        return b"".join([_length(each) + each for each in map(self.pack, values)])


class Uuids(Column[UUID]):
    """uuid."""

    __slots__ = ()
    array_oid, element_oid = 2951, 2950

    def pack(self, value: UUID) -> bytes:
        """One id."""
        return value.int.to_bytes(16, "big")

    def _is_constant(self) -> bool:
        first = self.values[0]
        return all(value is first for value in self.values)  # To compare two ids takes longer than to pack them.

    def _body(self, values: Sequence[UUID]) -> bytes:
        return _joined(16, [value.int.to_bytes(16, "big") for value in values])


class Texts(Column[str]):
    """text."""

    __slots__ = ()
    array_oid, element_oid = 1009, 25

    def pack(self, value: str) -> bytes:
        """One text."""
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise PayloadError(f"a text cannot be stored: {error}") from error


class Blobs(Column[bytes]):
    """bytea."""

    __slots__ = ()
    array_oid, element_oid = 1001, 17

    def pack(self, value: bytes) -> bytes:
        """They are bytes already."""
        return value


class Integers(Column[int]):
    """int4."""

    __slots__ = ()
    array_oid, element_oid = 1007, 23

    def pack(self, value: int) -> bytes:
        """One integer."""
        return _INTEGER.pack(value)

    def _body(self, values: Sequence[int]) -> bytes:
        few = len(_SMALL)
        return _joined(4, [_SMALL[value] if 0 <= value < few else _INTEGER.pack(value) for value in values])


class Longs(Column[int]):
    """int8."""

    __slots__ = ()
    array_oid, element_oid = 1016, 20

    def pack(self, value: int) -> bytes:
        """One integer."""
        return pack_long(value)


class Instants(Column[datetime]):
    """timestamptz."""

    __slots__ = ()
    array_oid, element_oid = 1185, 1184

    def pack(self, value: datetime) -> bytes:
        """One instant."""
        return pack_instant(value)


class Booleans(Column[bool]):
    """bool."""

    __slots__ = ()
    array_oid, element_oid = 1000, 16

    def pack(self, value: bool) -> bytes:  # noqa: FBT001 - it is the value
        """One truth value."""
        return b"\x01" if value else b"\x00"


def pack_long(value: int) -> bytes:
    """A 64-bit integer."""
    return _LONG.pack(value)


def pack_instant(value: datetime) -> bytes:
    """An instant."""
    return _LONG.pack((value - _POSTGRES_EPOCH) // _MICROSECOND)


def _joined(length: int, elements: Sequence[bytes]) -> bytes:
    """Elements of one length."""
    return _SMALL[length] + _SMALL[length].join(elements)


def _length(element: bytes) -> bytes:
    return _SMALL[len(element)] if len(element) < len(_SMALL) else _INTEGER.pack(len(element))


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Column[object]) -> bytes:
        return obj.array()


def register(connection: Connection[tuple[object, ...]]) -> None:
    """Teach a connection to take columns as arrays."""
    for kind in (Uuids, Texts, Blobs, Integers, Longs, Instants, Booleans):
        dumper = type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": kind.array_oid})
        connection.adapters.register_dumper(kind, dumper)
