"""Statements for rows of declared kinds, derived from their declarations: write with a commit, read, delete.

Statement and value function of a kind are generated once on first use. The function is compiled, because it runs for
every step of a saga.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from standfast.kernel.rows import Act, Record, RowKind, columns_of, kinds, writing_of
from standfast.store.ports.maintenance import unpacked
from standfast.store.postgres.connection.commit_parts import TablePart
from standfast.store.postgres.connection.packing import Row
from standfast.store.records.instances import DeadLetterRecord, InstanceChange, InstanceHeader

S = TypeVar("S", bound=Record)
Told = tuple[InstanceHeader, Record]

STATEMENTS: dict[str, str] = {}
"""The generated parts of commits by name, with `?` placeholders as in the files."""

_AT = ", (select ?::timestamptz as at) as t"


class _Way(NamedTuple):
    """How records of one class are written."""

    place: int
    """The first field, because parts are sorted by it."""
    part: str
    is_dated: bool
    rows: Callable[[Sequence[Told]], list[Row]]


class _Ways(dict[type[Record], _Way]):
    """The writer of each class, generated on first use."""

    def __missing__(self, cls: type[Record]) -> _Way:
        kind, act, place = writing_of(cls)
        part = f"{kind.table}.{act}"
        STATEMENTS[part] = statement = _MAKERS[act](kind)
        told = [
            *(f"head.{each}" for each in _heads(kind, act).values()),
            *(f"each.{each}" for each in _said(kind, act)),
        ]
        rows = eval(f"lambda told: [({', '.join(told)},) for head, each in told]")  # noqa: S307 - built from names that the declaration has checked
        self[cls] = way = _Way(place, part, _AT in statement, rows)
        return way


def record_parts(changes: Sequence[InstanceChange], now: datetime) -> Iterator[TablePart]:
    """Yield the parts that write the records of these changes, each built on demand."""
    told: defaultdict[type[Record], list[Told]] = defaultdict(list)
    for change in changes:
        for record in change.records:
            told[type(record)].append((change.header, record))
    for cls in sorted(told, key=_ways.__getitem__) if len(told) > 1 else told:
        _, part, is_dated, rows = _ways[cls]
        yield TablePart(part, rows(told[cls]), now if is_dated else None)


def letter_row(each: DeadLetterRecord) -> Row:
    """Build the row of a dead letter."""
    return (
        each.tenant, each.source, each.instance, each.definition, each.key, each.number, each.name, each.language, each.type,
        each.version, each.data, each.options, each.priority, each.attempts, each.fence, each.reason, each.error, each.actor,
        each.definition_version, each.parent, each.command_id, each.comment, each.created_at, each.context, each.partition,
    )  # fmt: skip


_SEEN = (
    "($3::text = '' or exists (select 1 from standfast.instances p where p.id = $1::uuid and p.partition = $3::text))"
)
"""Condition that the instance is in the reader's partition."""


@cache
def selecting(kind: RowKind[Record]) -> str:
    """Return the statement that reads the rows of an instance."""
    words = ", ".join(f"'{word}'" for word in kind.own_words)
    only = f" and {kind.shared_by} in ({words})" if words else ""
    names = ", ".join(column.name for column in kind.columns)
    found = f"instance = $1::uuid and tenant = $2::text{only} and {_SEEN}"
    return f"select {names} from standfast.{kind.table} where {found} order by {', '.join(kind.key)}"  # noqa: S608 - all text is the engine's


@cache
def selecting_page(kind: RowKind[Record]) -> str:
    """Return the same statement for a page after a number, with which the key begins."""
    behind = f" and {kind.key[0]} > $4::int8 order by "
    return f"{selecting(kind).replace(' order by ', behind)} limit $5::int8"


@cache
def selecting_many(kind: RowKind[Record]) -> str:
    """Return the statement that reads the rows of several instances, each looked up by its id. See `surveying.sql`."""
    words = ", ".join(f"'{word}'" for word in kind.own_words)
    only = f" and {kind.shared_by} in ({words})" if words else ""
    names = ", ".join(f"s.{column.name}" for column in kind.columns)
    found = f"select * from standfast.{kind.table} where instance = u.instance and tenant = $1::text{only} offset 0"  # noqa: S608 - all text is the engine's
    order = ", ".join(f"s.{each}" for each in ("instance", *kind.key))
    return f"select {names} from unnest($2::uuid[]) as u (instance) cross join lateral ({found}) as s order by {order}"  # noqa: S608 - all text is the engine's


@cache
def reading(kind: RowKind[S]) -> Callable[[Sequence[Any]], S]:
    """Return the function that converts a row to its record. The values are in declaration order."""
    make: Callable[..., S] = kind.stored
    names = [column.name for column in kind.columns]
    if not kind.fading:
        return lambda row: make(**dict(zip(names, row, strict=True)))

    def read(row: Sequence[Any]) -> S:
        values = dict(zip(names, row, strict=True))
        return make(**values | {name: unpacked(values[name]) for name in kind.fading})

    return read


def deleting() -> str:
    """Return the statement that deletes all rows of an instance of the kinds that go with it."""
    tables = [kind.table for kind in kinds() if kind.goes_with_instance]
    parts = [f"{each} as (delete from standfast.{each} where instance = $1::uuid)" for each in tables]  # noqa: S608 - all text is the engine's
    return f"with {_joined(parts)} select 1"


def emptying(kind: RowKind[Record]) -> str:
    """Return the statement that deletes an instance's rows of one kind."""
    return f"delete from standfast.{kind.table} where instance = $1::uuid"  # noqa: S608 - all text is the engine's


def _opening(kind: RowKind[Record]) -> str:
    names = [*_heads(kind, "open"), *_said(kind, "open")]
    dates = {kind.opened_at: "t.at"} | ({kind.moved_at: "t.at"} if kind.moved_at else {})
    if kind.closed_at:
        dates[kind.closed_at] = f"case when u.{kind.closed_by} is null then null else t.at end"
    places, given = _joined([*names, *dates]), _joined(dates.values())
    statement = f"insert into standfast.{kind.table} ({places}) select u.*, {given} from {_rows(kind, 'open')}{_AT}"  # noqa: S608 - all text is the engine's
    if kind.replaces:
        place = ("instance", *kind.key)
        kept = {*place, "tenant", kind.opened_at}
        told = _joined(f"{name} = excluded.{name}" for name in (*names, *dates) if name not in kept)
        statement += f" on conflict ({_joined(place)}) do update set {told}"
    return statement


def _changing(kind: RowKind[Record]) -> str:
    assert kind.change is not None
    told = dict[str, str]()
    for name, _, may_be_none, _ in columns_of(kind.change):
        if name not in kind.key:
            given = f"coalesce(u.{name}, s.{name})" if may_be_none else f"u.{name}"
            first = kind.while_zero.get(name)
            told[name] = f"case when s.{first} = 0 then {given} else s.{name} end" if first else given
    dates = {kind.moved_at: "t.at"} if kind.moved_at else {}
    if kind.closed_by in told:
        dates[kind.closed_at] = f"case when u.{kind.closed_by} is null then s.{kind.closed_at} else t.at end"
    changes = _joined(f"{name} = {value}" for name, value in (told | dates).items())
    rows = f"{_rows(kind, 'change')}{_AT if dates else ''}"
    return f"update standfast.{kind.table} s set {changes} from {rows} where {_found(kind)}"  # noqa: S608 - all text is the engine's


def _ending(kind: RowKind[Record]) -> str:
    return f"delete from standfast.{kind.table} s using {_rows(kind, 'end')} where {_found(kind)}"  # noqa: S608 - all text is the engine's


def _heads(kind: RowKind[Record], act: Act) -> dict[str, str]:
    """Return the columns that come from the instance's row, with their names there."""
    more = ("tenant", *kind.of_instance) if act == "open" else ()
    return {"instance": "id"} | {each: each for each in more}


def _said(kind: RowKind[Record], act: Act) -> tuple[str, ...]:
    """Return the columns that come from the record."""
    cls = kind.class_of(act)
    return () if cls is None else cls.__struct_fields__


def _rows(kind: RowKind[Record], act: Act) -> str:
    """Return the rows of a part as typed columns."""
    cls = kind.class_of(act)
    assert cls is not None
    types = [
        *(_HEAD_TYPES.get(each, "text") for each in _heads(kind, act)),
        *(_TYPES[each.type] for each in columns_of(cls)),
    ]
    arrays = _joined(f"?::{each}[]" for each in types)
    return f"unnest({arrays}) as u ({_joined([*_heads(kind, act), *_said(kind, act)])})"


def _found(kind: RowKind[Record]) -> str:
    """Return the key condition. It uses `any`, as everywhere in commits; see `commits.sql`."""
    return " and ".join(["s.instance = any (array[u.instance])", *(f"s.{name} = u.{name}" for name in kind.key)])


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


_TYPES = {int: "int4", str: "text", bytes: "bytea", bool: "bool", datetime: "timestamptz", UUID: "uuid"}
_HEAD_TYPES = {"instance": "uuid"}
_MAKERS: dict[Act, Callable[[RowKind[Record]], str]] = {"open": _opening, "change": _changing, "end": _ending}
_ways = _Ways()
