"""Cursors of pages, opaque to clients. A cursor holds a position and no tenant: the credential selects the list."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

import msgspec

from standfast.calls.paging import unwritten, written
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.kernel.codec.type_cache import settled

__all__ = ["Listing", "counted", "listing", "named", "read", "resting", "sliced", "written"]

T = TypeVar("T")
P = TypeVar("P")

_LONGEST = 1024
_BEYOND = 2**63
_BEYOND_SEQUENCES = 2**31


class Listing(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list."""

    items: list[T]
    next: str | None
    """Give it as `cursor` for the next page; null if this is the last one."""


def read(cursor: str, kind: type[P]) -> P | None:
    """The place that a cursor stands for; None for an empty one, which is the beginning."""
    if not cursor:
        return None
    refused = EdgeError(EdgeCode.BAD_CURSOR, "the cursor is not one that this list has given")
    if len(cursor) > _LONGEST:
        raise refused
    try:
        place = msgspec.json.decode(unwritten(cursor), type=settled(kind))
        _check_parts(place)
    except (ValueError, OverflowError, msgspec.MsgspecError):
        raise refused from None
    return place


def _check_parts(place: object) -> None:
    """ValueError or OverflowError for an instant that nothing can have been written at, or a number that nothing has; a database would fail on it."""
    for each in msgspec.structs.astuple(place) if isinstance(place, msgspec.Struct) else ():
        if isinstance(each, datetime) and (each.tzinfo is None or each.astimezone(UTC) != each):
            raise ValueError("an instant has a time zone")
        if isinstance(each, int) and not 0 <= each < _BEYOND_SEQUENCES:
            raise ValueError("no history is so long")


def counted(cursor: str) -> int:
    """The number that a cursor stands for; 0 for an empty one."""
    found = read(cursor, int) or 0
    if not 0 <= found < _BEYOND:
        raise EdgeError(EdgeCode.BAD_CURSOR, "the cursor is not one that this list has given")
    return found


def listing(items: Sequence[T], limit: int, place: Callable[[T], object]) -> Listing[T]:
    """Return a page of a list that was read with one item more than the page has."""
    shown = list(items[:limit])
    return Listing(items=shown, next=written(place(shown[-1])) if len(items) > limit else None)


def sliced(items: Sequence[T], cursor: str, limit: int) -> Listing[T]:
    """A page of a short list that is always read as a whole, and grows at its end alone; the cursor counts."""
    begin = counted(cursor)
    end = begin + limit
    return Listing(items=list(items[begin:end]), next=written(end) if end < len(items) else None)


class _Last(msgspec.Struct, frozen=True, array_like=True):
    number: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    mark: str


def named(items: Sequence[T], cursor: str, limit: int, name: Callable[[T], object]) -> Listing[T]:
    """Return a page of a short list that is read as a whole and may change anywhere; the cursor names the last item of the previous page.

    `name` is unique in the list. If that item is gone, its position counts.
    """
    last = read(cursor, _Last)
    begin = 0 if last is None else _behind([_mark(name(each)) for each in items], last)
    shown = list(items[begin : begin + limit])
    end = begin + len(shown)
    return Listing(items=shown, next=written([end - 1, _mark(name(shown[-1]))]) if 0 < end < len(items) else None)


def _behind(marks: Sequence[str], last: _Last) -> int:
    return marks.index(last.mark) + 1 if last.mark in marks else last.number


def _mark(name: object) -> str:
    """A name that is short however long it is: it may be a whole sentence."""
    return hashlib.blake2b(msgspec.json.encode(name), digest_size=12).hexdigest()


def resting(kind: type[T], **known: object) -> T:
    """The last thing of a page as far as its place tells it, for calls that go on behind a thing."""
    fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    return kind(**{name: known.get(name) for name in fields})
