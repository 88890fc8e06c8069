"""Kinds of rows that a commit writes with its events. Each is declared once, and a store learns from the declaration all it does to them.

A row belongs to an instance and is found by a key that is unique within it. The events stay the truth: every row can be made again
from them.
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
    """What a decision says about one row: that it opens, changes or ends."""


S_co = TypeVar("S_co", bound=Record, covariant=True)
Act = Literal["end", "change", "open"]
"""In the order of writing: a row that ends may make room for one that opens."""

ACTS: Final[tuple[Act, ...]] = ("end", "change", "open")
TYPES: Final = (int, str, bytes, bool, datetime, UUID)
"""What a column can hold. Everything else is encoded by whoever names the row."""

_MOST = 2**31 - 1
_SET_BY_STORE = ("instance", "tenant")


class Column(NamedTuple):
    """A column as its annotation tells it."""

    name: str
    type: type
    may_be_none: bool
    words: tuple[str, ...] = ()
    """The only texts that it can hold; empty means any."""


class RowKind(msgspec.Struct, Generic[S_co], frozen=True, kw_only=True, eq=False, dict=True):
    """One kind of row: its table, which every driver has in a migration, and what can be said about it."""

    name: str
    """What one row is called."""
    table: str
    row: type[Record]
    """Opens a row. Its fields are columns."""
    stored: type[S_co]
    """The row as it is read: `row`, with `instance` and the columns that the commit fills in."""
    change: type[Record] | None = None
    """Changes a row: its key, and columns. A field that is None leaves its column as it is."""
    end: type[Record] | None = None
    """Removes a row: its key."""
    key: tuple[str, ...] = ("number",)
    """What finds a row within its instance."""
    opened_at: str = "opened_at"
    """The column for the time of the commit that opened the row."""
    moved_at: str = ""
    """The column for the time of the last commit that touched it; empty if there is none."""
    closed_at: str = ""
    """The column for the time of the commit that set `closed_by`; empty if there is none."""
    closed_by: str = ""
    while_zero: Mapping[str, str] = MappingProxyType({})
    """Columns that a change sets only as long as another one, which is named here, is 0."""
    replaces: bool = False
    """Whether a row that is opened again takes the place of the old one; otherwise the commit does not stand."""
    of_instance: tuple[str, ...] = ()
    """Columns that repeat what the row of the instance says."""
    shared_by: str = ""
    """The column that tells these rows from others in the same table, by its words; empty if the table is theirs alone."""
    fading: tuple[str, ...] = ()
    """Columns of bytes, JSON all of them, whose old values a driver may keep packed; whoever reads them sees no difference."""
    goes_with_instance: bool = True
    """Whether the rows are deleted with their instance; otherwise they keep it from being deleted, and the driver's queries say so."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What is read, in this order; the tenant is a part of every question."""
        return columns_of(self.stored)

    @cached_property
    def own_words(self) -> tuple[str, ...]:
        """What `shared_by` holds in rows of this kind."""
        return next((each.words for each in columns_of(self.row) if each.name == self.shared_by), ())

    @cached_property
    def key_of(self) -> Callable[[object], object]:
        """The key of a record, or of a stored row."""
        return attrgetter(*self.key)

    def class_of(self, act: Act) -> type[Record] | None:
        """How an act is said."""
        return {"open": self.row, "change": self.change, "end": self.end}[act]


class Writing(NamedTuple):
    """What records of one class do."""

    kind: RowKind[Record]
    act: Act
    place: int
    """Tells the order in which the records of a commit are written."""


_kinds: dict[str, RowKind[Record]] = {}
_writings: dict[type, Writing] = {}
_keys: dict[type, Callable[[object], object]] = {}
"""For each class of records the way to its key. All classes of a kind share one, so that it stands for the kind too."""


def declare(kind: RowKind[S_co]) -> RowKind[S_co]:
    """Make a kind known to everything that writes, reads, deletes and verifies rows. TypeError if its classes do not fit together."""
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
    """Take a declaration back, for tests with kinds of their own."""
    del _kinds[kind.table]
    for cls in filter(None, map(kind.class_of, ACTS)):
        del _writings[cls], _keys[cls]


def kinds() -> tuple[RowKind[Record], ...]:
    """All that are declared."""
    return tuple(_kinds.values())


def writing_of(cls: type) -> Writing:
    """What records of a class do; KeyError if it is of no declared kind."""
    return _writings[cls]


def columns_of(cls: type[msgspec.Struct]) -> tuple[Column, ...]:
    """The fields of a class as columns; TypeError if there is one that no column can hold."""
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
    """Why the parts of a declaration do not fit together."""
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
            f"{odd} are in {kind.stored.__name__} and are not said or dated by anybody, or the other way round"
        )
    if (row | change) & {*_SET_BY_STORE, *dated}:
        found.append(f"{sorted((row | change) & {*_SET_BY_STORE, *dated})} are filled in by the commit")
    if bool(kind.closed_at) != bool(kind.closed_by) or not {kind.closed_by} <= row | {""}:
        found.append("closed_at needs a column of the row that closes it")
    return found + _change_flaws(kind, change - row) + _type_flaws(kind)


def _change_flaws(kind: RowKind[S_co], wider: set[str]) -> list[str]:
    """A commit that opens and changes a row writes one record, that of `row`: what only the change has would be lost."""
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
    """The same rows with at most one record each: what a commit does to a row, it does at once.

    Several commands may be decided before anything is written, so a row can open and change, or open and end, in one commit. Only a
    row that ends and is opened again has two records.
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
            continue  # It came and went. One that may have taken the place of another goes like that one.
        rows[row] = record if before is None else _merged(before, record)
    return list(rows.values())


def _merged(before: Record, after: Record) -> Record:
    """One record for two that follow one another on the same row."""
    if _writings[type(after)].act != "change":
        return after
    if _writings[type(before)].act == "end":
        return before
    told = {name: getattr(after, name) for name in after.__struct_fields__ if name in before.__struct_fields__}
    return msgspec.structs.replace(before, **{name: value for name, value in told.items() if value is not None})


def flaw_of(record: object) -> str:
    """Why no store could write a record; empty if it can be written."""
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
