"""Packs columns of rows in Postgres' binary format.

Many rows are sent as one array per column. Packing whole columns costs a fraction of adapting single values. The
statement determines the types of the columns.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from struct import Struct
from types import NoneType
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from standfast.errors import PayloadError

T = TypeVar("T")

_HEADER = Struct("!iiIii")
_EMPTY = Struct("!iiI")
_INTEGER = Struct("!i")
_LONG = Struct("!q")
_SMALL = [_INTEGER.pack(number) for number in range(2048)]
"""Packed small numbers, because a lookup is cheaper than packing. Most integers and lengths are small."""
_NULL = b"\xff\xff\xff\xff"
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class PackedColumn(ABC, Generic[T]):
    """The values of one column, row by row."""

    __slots__ = ("values",)
    array_oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, values: Sequence[T | None]) -> None:
        self.values = values

    @staticmethod
    @abstractmethod
    def pack(value: T) -> bytes:
        """Pack one value."""

    def array(self) -> bytes:
        """Pack all values as an array."""
        values = self.values
        count = len(values)
        if not count:
            return _EMPTY.pack(0, 0, self.element_oid)
        if self._is_constant():
            body = _NULL if values[0] is None else _element(self.pack(values[0]))
            return _HEADER.pack(1, values[0] is None, self.element_oid, count, 1) + body * count
        if self._has_null():
            body = b"".join([_NULL if value is None else _element(self.pack(value)) for value in values])
            return _HEADER.pack(1, 1, self.element_oid, count, 1) + body
        return _HEADER.pack(1, 0, self.element_oid, count, 1) + self._body(values)  # type: ignore[arg-type]

    def _is_constant(self) -> bool:
        """Return whether all values are equal, as in most columns of a batch. The value is then packed once."""
        return self.values.count(self.values[0]) == len(self.values)

    def _has_null(self) -> bool:
        return None in self.values

    def _body(self, values: Sequence[T]) -> bytes:
        return _elements([*map(self.pack, values)])


class Uuids(PackedColumn[UUID]):
    """Values of type uuid."""

    __slots__ = ()
    array_oid, element_oid = 2951, 2950

    @staticmethod
    def pack(value: UUID) -> bytes:
        """Pack one id."""
        return value.int.to_bytes(16, "big")

    def _is_constant(self) -> bool:
        first = self.values[0]
        # Comparing two ids takes longer than packing them. Where values differ, the last one usually does.
        return first is self.values[-1] and all(value is first for value in self.values)

    def _has_null(self) -> bool:
        return NoneType in map(type, self.values)  # The same holds for comparing each with None.

    def _body(self, values: Sequence[UUID]) -> bytes:
        return _joined(16, [value.int.to_bytes(16, "big") for value in values])


class Texts(PackedColumn[str]):
    """Values of type text."""

    __slots__ = ()
    array_oid, element_oid = 1009, 25

    @staticmethod
    def pack(value: str) -> bytes:
        """Pack one text."""
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise PayloadError(f"a text cannot be stored: {error}") from error

    def _body(self, values: Sequence[str]) -> bytes:
        try:
            return _elements([value.encode() for value in values])
        except UnicodeEncodeError as error:
            raise PayloadError(f"a text cannot be stored: {error}") from error


class Blobs(PackedColumn[bytes]):
    """Values of type bytea."""

    __slots__ = ()
    array_oid, element_oid = 1001, 17

    @staticmethod
    def pack(value: bytes) -> bytes:
        """Return the value, which is already bytes."""
        return value

    def _body(self, values: Sequence[bytes]) -> bytes:
        return _elements(values)


class Integers(PackedColumn[int]):
    """Values of type int4."""

    __slots__ = ()
    array_oid, element_oid = 1007, 23

    @staticmethod
    def pack(value: int) -> bytes:
        """Pack one integer."""
        return _INTEGER.pack(value)

    def _body(self, values: Sequence[int]) -> bytes:
        few = len(_SMALL)
        return _joined(4, [_SMALL[value] if 0 <= value < few else _INTEGER.pack(value) for value in values])


class Longs(PackedColumn[int]):
    """Values of type int8."""

    __slots__ = ()
    array_oid, element_oid = 1016, 20

    @staticmethod
    def pack(value: int) -> bytes:
        """Pack one integer."""
        return pack_long(value)


class Instants(PackedColumn[datetime]):
    """Values of type timestamptz."""

    __slots__ = ()
    array_oid, element_oid = 1185, 1184

    @staticmethod
    def pack(value: datetime) -> bytes:
        """Pack one time."""
        return pack_instant(value)


class Booleans(PackedColumn[bool]):
    """Values of type bool."""

    __slots__ = ()
    array_oid, element_oid = 1000, 16

    @staticmethod
    def pack(value: bool) -> bytes:  # noqa: FBT001 - it is the value
        """Pack one boolean."""
        return b"\x01" if value else b"\x00"


def pack_long(value: int) -> bytes:
    """Pack a 64-bit integer."""
    return _LONG.pack(value)


def pack_instant(value: datetime) -> bytes:
    """Pack a time."""
    return _LONG.pack((value - _POSTGRES_EPOCH) // _MICROSECOND)


def _joined(length: int, elements: Sequence[bytes]) -> bytes:
    """Join elements of equal length."""
    return _SMALL[length] + _SMALL[length].join(elements)


def _element(packed: bytes) -> bytes:
    """Return an array element: its length and its value."""
    return (_SMALL[length] if (length := len(packed)) < len(_SMALL) else _INTEGER.pack(length)) + packed


def _elements(packed: Sequence[bytes]) -> bytes:
    """Join elements of different lengths."""
    small, few = _SMALL, len(_SMALL)
    return b"".join(
        [(small[length] if (length := len(each)) < few else _INTEGER.pack(length)) + each for each in packed]
    )


Kind = type[PackedColumn[Any]]
Row = tuple[object, ...]

_KINDS: dict[str, Kind] = {
    "uuid": Uuids,
    "text": Texts,
    "bytea": Blobs,
    "int4": Integers,
    "int8": Longs,
    "timestamptz": Instants,
    "bool": Booleans,
}
_ARRAY = re.compile(r"(?:\?|\$\d+)::(\w+)\[\]")


@cache
def kinds_of(statement: str) -> tuple[Kind, ...]:
    """Return the column types of a statement, in order."""
    return tuple(_KINDS[name] for name in _ARRAY.findall(statement))


def columns_of(statement: str, rows: Sequence[Row]) -> list[PackedColumn[Any]]:
    """Return the rows as columns for a statement."""
    kinds = kinds_of(statement)
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return [kind(values) for kind, values in zip(kinds, columns, strict=True)]


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: PackedColumn[object]) -> bytes:
        return obj.array()


_DUMPERS = {kind: type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": kind.array_oid}) for kind in _KINDS.values()}


def register(connection: Connection[tuple[object, ...]]) -> None:
    """Register the column types with a connection."""
    for kind, dumper in _DUMPERS.items():
        connection.adapters.register_dumper(kind, dumper)
