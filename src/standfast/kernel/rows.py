"""Kinds of rows that a commit writes with its events. A store derives all handling of a kind from its declaration.

A row belongs to an instance and has a key that is unique within it. The events remain the source of truth: every row
can be rebuilt from them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType, NoneType, UnionType
from typing import Final, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from standfast.errors import indefinite


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of one row in a decision: it opens, changes or ends."""


S_co = TypeVar("S_co", bound=Record, covariant=True)
Act = Literal["end", "change", "open"]
"""In the order of writing, because an ended row may make room for a new one."""

ACTS: Final[tuple[Act, ...]] = ("end", "change", "open")
TYPES: Final = (int, str, bytes, bool, datetime, UUID)
"""The types that a column can hold. Other values are encoded by the code that creates the record."""

_MOST = 2**31 - 1
_SET_BY_STORE = ("instance", "tenant")


class Column(NamedTuple):
    """A column, derived from its annotation."""

    name: str
    type: type
    may_be_none: bool
    words: tuple[str, ...] = ()
    """The allowed texts. Empty means any."""


class RowKind(msgspec.Struct, Generic[S_co], frozen=True, kw_only=True, eq=False, dict=True):
    """A kind of row: its table, which every driver creates in a migration, and the records that change it."""

    name: str
    """Name of one row."""
    table: str
    row: type[Record]
    """Record that opens a row. Its fields are columns."""
    stored: type[S_co]
    """The row as it is read: `row` with `instance` and the columns that the commit fills in."""
    change: type[Record] | None = None
    """Record that changes a row: its key and columns. A field that is None leaves its column unchanged."""
    end: type[Record] | None = None
    """Record that removes a row: its key."""
    key: tuple[str, ...] = ("number",)
    """Columns that identify a row within its instance."""
    opened_at: str = "opened_at"
    """Column for the time of the opening commit."""
    moved_at: str = ""
    """Column for the time of the last commit that changed the row. Empty without one."""
    closed_at: str = ""
    """Column for the time of the commit that set `closed_by`. Empty without one."""
    closed_by: str = ""
    while_zero: Mapping[str, str] = MappingProxyType({})
    """Columns that a change sets only while the named other column is 0."""
    replaces: bool = False
    """Whether a row that is opened again replaces the old one. Otherwise the commit fails."""
    of_instance: tuple[str, ...] = ()
    """Columns that repeat values of the instance's row."""
    shared_by: str = ""
    """Column that distinguishes these rows from others in the same table by its values. Empty if the table is not
    shared."""
    fading: tuple[str, ...] = ()
    """JSON columns as bytes whose old values a driver may compress. Readers see no difference."""
    goes_with_instance: bool = True
    """Whether the rows are deleted with their instance. Otherwise they prevent its deletion, and the driver's
    queries check it."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are read, in this order. The tenant is part of every query."""
        return columns_of(self.stored)

    @cached_property
    def own_words(self) -> tuple[str, ...]:
        """The values of `shared_by` for this kind."""
        return next((each.words for each in columns_of(self.row) if each.name == self.shared_by), ())

    @cached_property
    def key_of(self) -> Callable[[object], object]:
        """Returns the key of a record or of a stored row."""
        return attrgetter(*self.key)

    def class_of(self, act: Act) -> type[Record] | None:
        """Return the record class of an act."""
        return {"open": self.row, "change": self.change, "end": self.end}[act]


class Writing(NamedTuple):
    """How records of one class are written."""

    kind: RowKind[Record]
    act: Act
    place: int
    """Position in the writing order of a commit."""


_kinds: dict[str, RowKind[Record]] = {}
_writings: dict[type, Writing] = {}
_keys: dict[type, Callable[[object], object]] = {}
"""Functions that return the key, by record class. The classes of a kind share one function, so that it also
identifies the kind."""


def declare(kind: RowKind[S_co]) -> RowKind[S_co]:
    """Register a kind for all code that writes, reads, deletes and verifies rows.

    Raises TypeError if its classes do not match.
    """
    flaws = _flaws(kind)
    if flaws:
        raise TypeError(f"the rows {kind.table!r} cannot be declared: {'; '.join(flaws)}")
    first = 1 + max((each.place for each in _writings.values()), default=0)
    _kinds[kind.table] = kind
    for place, act in enumerate(ACTS):
        cls = kind.class_of(act)
        if cls is not None:
            _writings[cls] = Writing(kind, act, first + place)
            _keys[cls] = kind.key_of
    return kind


def forget(kind: RowKind[S_co]) -> None:
    """Unregister a kind, for tests."""
    del _kinds[kind.table]
    for cls in filter(None, map(kind.class_of, ACTS)):
        del _writings[cls], _keys[cls]


def kinds() -> tuple[RowKind[Record], ...]:
    """Return all registered kinds."""
    return tuple(_kinds.values())


def writing_of(cls: type) -> Writing:
    """Return how records of a class are written. Raises KeyError for a class without a registered kind."""
    return _writings[cls]


def columns_of(cls: type[msgspec.Struct]) -> tuple[Column, ...]:
    """Return the fields of a class as columns. Raises TypeError if a field has an unsupported type."""
    hints = typing.get_type_hints(cls)
    return tuple(_column(name, hints[name]) for name in cls.__struct_fields__)


def _column(name: str, hint: object) -> Column:
    members = typing.get_args(hint) if typing.get_origin(hint) in (UnionType, typing.Union) else (hint,)
    others = [each for each in members if each is not NoneType]
    if len(others) == 1:
        plain = getattr(others[0], "__supertype__", others[0])
        words = typing.get_args(plain) if typing.get_origin(plain) is Literal else ()
        plain = str if words and all(type(word) is str for word in words) else plain
        if plain in TYPES:
            return Column(name, typing.cast("type", plain), NoneType in members, words)
    allowed = ", ".join(each.__name__ for each in TYPES)
    raise TypeError(f"{name} is {hint}; a column holds one of {allowed}, or a Literal of texts, and may be None")


def _flaws(kind: RowKind[S_co]) -> list[str]:
    """Return why the classes of a declaration do not match."""
    row, stored = set(kind.row.__struct_fields__), set(kind.stored.__struct_fields__)
    change = set() if kind.change is None else set(kind.change.__struct_fields__)
    dated = {each for each in (kind.opened_at, kind.moved_at, kind.closed_at) if each}
    names = {kind.table, *row, *stored, *change}
    found = [f"{each} is no name" for each in sorted(names) if not each.isidentifier()]
    if kind.table in _kinds:
        found.append("there is a table of this name")
    if not set(kind.key) <= row:
        found.append(f"{kind.row.__name__} lacks a part of the key {kind.key}")
    if kind.change is not None and not set(kind.key) <= change:
        found.append(f"{kind.change.__name__} lacks a part of the key {kind.key}")
    if kind.end is not None and set(kind.end.__struct_fields__) != set(kind.key):
        found.append(f"{kind.end.__name__} has other fields than the key {kind.key}")
    if stored != {"instance"} | row | change | dated:
        odd = sorted(stored ^ ({"instance"} | row | change | dated))
        found.append(
            f"{odd} are fields of {kind.stored.__name__} that no record sets and no commit dates, or the other way round"
        )
    if (row | change) & {*_SET_BY_STORE, *dated}:
        found.append(f"{sorted((row | change) & {*_SET_BY_STORE, *dated})} are filled in by the commit")
    if bool(kind.closed_at) != bool(kind.closed_by) or not {kind.closed_by} <= row | {""}:
        found.append("closed_at needs a column of the row that closes it")
    return found + _change_flaws(kind, change - row) + _type_flaws(kind)


def _change_flaws(kind: RowKind[S_co], wider: set[str]) -> list[str]:
    """Return flaws of the change record.

    A commit that opens and changes a row writes only `row`, so fields that only the change has would be lost.
    """
    odd = sorted(wider - set(kind.while_zero))
    return [f"{odd} can be changed and are no fields of {kind.row.__name__}; give them a default there"] if odd else []


def _type_flaws(kind: RowKind[S_co]) -> list[str]:
    found = []
    for cls in (kind.row, kind.change or kind.row, kind.stored):
        try:
            columns_of(cls)
        except TypeError as error:
            found.append(f"{cls.__name__}: {error}")
    return found


def merge(records: Sequence[Record]) -> list[Record]:
    """Merge the records so that each row has at most one, because a commit changes each row once.

    Several commands may be decided before anything is written, so a row can open and change, or open and end, in one
    commit. Only a row that ends and is opened again keeps two records.
    """
    if len({(key := _keys[type(record)], key(record)) for record in records}) == len(records):
        return list(records)
    rows: dict[tuple[object, object, bool], Record] = {}
    for record in records:
        (kind, act, _), key = _writings[type(record)], _keys[type(record)]
        row, again = (key, key(record), False), (key, key(record), True)
        if again in rows or (act == "open" and row in rows and type(rows[row]) is kind.end):
            row = again
        before = rows.pop(row, None)
        if act == "end" and type(before) is kind.row and (row == again or not kind.replaces):
            continue  # It was opened and ended. If it could replace an old row, that row ends too.
        rows[row] = record if before is None else _merged(before, record)
    return list(rows.values())


def _merged(before: Record, after: Record) -> Record:
    """Merge two consecutive records of the same row."""
    if _writings[type(after)].act != "change":
        return after
    if _writings[type(before)].act == "end":
        return before
    told = {name: getattr(after, name) for name in after.__struct_fields__ if name in before.__struct_fields__}
    return msgspec.structs.replace(before, **{name: value for name, value in told.items() if value is not None})


def flaw_of(record: object) -> str:
    """Describe why no store could write a record. Empty if it can be written."""
    writing = _writings.get(type(record))
    if writing is None:
        return f"is {indefinite(type(record))}, which no kind of row declares"
    for column in columns_of(typing.cast("type[Record]", type(record))):
        flaw = _value_flaw(column, getattr(record, column.name))
        if flaw:
            return f"has {flaw} as {column.name!r} of {type(record).__name__}"
    return ""


def _value_flaw(column: Column, value: object) -> str:
    if value is None:
        return "" if column.may_be_none else "None"
    if not isinstance(value, column.type) or (isinstance(value, bool) and column.type is not bool):
        return f"{indefinite(type(value))}, where {column.type.__name__} is expected,"
    if isinstance(value, int) and not -_MOST <= value <= _MOST:
        return f"the number {value}, which has more than 32 bits,"
    if isinstance(value, datetime) and not _is_instant(value):
        return f"{value!r}, which has no zone or is beyond the calendar,"
    if isinstance(value, str):
        return _text_flaw(column, value)
    return ""


def _text_flaw(column: Column, value: str) -> str:
    if column.words and value not in column.words:
        return f"{value!r}, which is none of {', '.join(column.words)},"
    if "\x00" in value:
        return "a text with a NUL character, which cannot be stored,"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "a text with half a character, which cannot be stored,"
    return ""


def _is_instant(value: datetime) -> bool:
    try:
        return value.utcoffset() is not None and value.astimezone(UTC) is not None
    except (OverflowError, ValueError):
        return False
