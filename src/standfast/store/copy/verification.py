"""Transfer of rows between two databases: their conversion on the way, and the checksums that verify it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, cast

import msgspec

from standfast.store.copy.port import Columns, Row, Tables, Value

FACTS: Final = "meta"
"""The table of facts that a database stores about itself."""
FACTS_OF_THE_PLACE: Final = frozenset(
    {"note:copying", "note:copied", "maintenance", "codec", "identity", "position_base"}
)
_SAID: Final = "unhandled:"
"""Prefix of the facts that record reports about missing handlers. The new database reports them again."""
JSON: Final = frozenset({("instances", "attributes")})
"""Columns that Postgres stores as JSON values. They are compared by value."""
_MASK: Final = (1 << 128) - 1


class Sum:
    """Checksum of rows, independent of their order: their number and the sum of their hashes."""

    def __init__(self, table: str, columns: Columns) -> None:
        self.table = table
        self.columns = columns
        self.count = 0
        self.total = 0
        self._said = [place for place, name in enumerate(columns) if (table, name) in JSON]

    def add(self, row: Row) -> None:
        """Add a row."""
        told = _told(row, self._said) if self._said else row
        digest = blake2b(msgspec.msgpack.encode(told), digest_size=16).digest()
        self.count += 1
        self.total = (self.total + int.from_bytes(digest, "big")) & _MASK

    def __eq__(self, other: object) -> bool:
        """Compare two checksums."""
        return isinstance(other, Sum) and (self.count, self.total) == (other.count, other.total)

    __hash__ = None  # type: ignore[assignment]


class CopyTransfer:
    """Transfers the rows from one database to another, with the state of the copy."""

    def __init__(self, source: Tables, target: Tables, tables: Mapping[str, Columns]) -> None:
        self._source = source
        self._target = target
        self._tables = tables
        self._readers = sorted({int(cast("int", each)) for (each,) in source.rows("projections", ("position",))})
        self._moved: dict[int, int] = {}
        """New feed positions of readers, if events before them were renumbered."""
        self._months: set[str] = set()
        self.tenants: set[str] = set()

    def copy(self, table: str, told: Callable[[Iterable[Row]], Iterator[Row]]) -> Sum:
        """Copy a table through a progress reporter, and return the checksum of the sent rows."""
        columns = self._tables[table]
        if table == "events":
            self._target.make_room(self._months)
        rows: Iterable[Row] = carried(table, self._source.rows(table, columns))
        if change := self._changes(table, columns):
            rows = map(change, rows)
        found = Sum(table, columns)
        self._target.put(table, columns, _summed(told(rows), found))
        return found

    def _changes(self, table: str, columns: Columns) -> Callable[[Row], Row] | None:
        """Return the conversion of a table's rows, or None for an unchanged copy."""
        places = {name: place for place, name in enumerate(columns)}
        match table:
            case "instances":
                return partial(self._born, places)
            case "events" if self._target.has_unique_positions:
                return _Renumbering(places["position"], self._readers, self._moved)
            case "effects":
                return partial(_freed, places)
            case "timers" | "inbox":
                return partial(_unclaimed, places)
            case "projections":
                return partial(self._read, places)
            case _:
                return None

    def _born(self, places: Mapping[str, int], row: Row) -> Row:
        self.tenants.add(str(row[places["tenant"]]))
        self._months.add(str(row[places["created_at"]])[:7])
        return row

    def _read(self, places: Mapping[str, int], row: Row) -> Row:
        position = cast("int", row[places["position"]])
        return _with(row, {places["position"]: self._moved.get(position, position)})


class _Renumbering:
    """Assigns unique positions in the same order. Positions that are already unique stay unchanged."""

    def __init__(self, place: int, readers: Sequence[int], moved: dict[int, int]) -> None:
        self._place = place
        self._readers = readers
        self._moved = moved
        self._last = 0

    def __call__(self, row: Row) -> Row:
        position = cast("int", row[self._place])
        self._last = max(position, self._last + 1)
        if self._last == position:
            return row
        for reader in self._readers:
            if reader >= position:  # The reader has read this event and must not read it again.
                self._moved[reader] = max(reader, self._last)
        return _with(row, {self._place: self._last})


def _freed(places: Mapping[str, int], row: Row) -> Row:
    """Return an effect without its claim. Its new fence makes the old owner's claim void."""
    if row[places["owner"]] is None:
        return row
    fence = cast("int", row[places["fence"]]) + 1
    return _with(row, {places["owner"]: None, places["claimed_at"]: None, places["fence"]: fence})


def _unclaimed(places: Mapping[str, int], row: Row) -> Row:
    return _with(row, {places["claimed_until"]: None})


def _with(row: Row, values: Mapping[int, Value]) -> Row:
    return tuple(values.get(place, value) for place, value in enumerate(row))


def carried(table: str, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows that belong to the data and not to the database itself."""
    return (row for row in rows if is_carried(str(row[0]))) if table == FACTS else rows


def is_carried(fact: str) -> bool:
    """Return whether a fact is copied."""
    return fact not in FACTS_OF_THE_PLACE and not fact.startswith(_SAID)


def _summed(rows: Iterable[Row], into: Sum) -> Iterator[Row]:
    for row in rows:
        into.add(row)
        yield row


def _told(row: Row, places: Sequence[int]) -> list[Value]:
    """Return a row with its JSON in canonical form, for comparison."""
    values = list(row)
    for place in places:
        if isinstance(text := values[place], str):
            values[place] = json.dumps(_plain(json.loads(text)), sort_keys=True)
    return values


def _plain(said: object) -> object:
    if isinstance(said, dict):
        return {name: _plain(value) for name, value in said.items()}
    if isinstance(said, list):
        return [_plain(each) for each in said]
    return int(said) if isinstance(said, float) and said.is_integer() else said
