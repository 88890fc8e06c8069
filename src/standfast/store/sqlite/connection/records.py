"""Statements for rows of declared kinds, derived from their declarations: write with a commit, read, delete.

Statement and value function of a kind are generated once on first use. The function is compiled, because it runs for
every step of a saga.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from standfast.kernel.rows import Column, Record, RowKind, columns_of, writing_of
from standfast.store.ports.maintenance import unpacked
from standfast.store.records.instances import DeadLetterRecord, InstanceChange, InstanceHeader
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection.session import (
    Row,
    instance_id,
    instance_or_none,
    instant,
    instant_or_none,
    text,
)


class _Sql(msgspec.Struct, frozen=True):
    raise_letter: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "records.sql")

S = TypeVar("S", bound=Record)
Values = tuple[object, ...]
Maker = Callable[[str, InstanceHeader, Record, str], Values]
"""Returns the values of a row from the instance's name and row, a record and the time of the commit."""


class _Way(NamedTuple):
    """How records of one class are written."""

    place: int
    """The first field, because parts are sorted by it."""
    statement: str
    values: Maker


class _Ways(dict[type[Record], _Way]):
    """The writer of each class, generated on first use."""

    def __missing__(self, cls: type[Record]) -> _Way:
        kind, act, place = writing_of(cls)
        self[cls] = way = _Way(place, *_MAKERS[act](kind))
        return way


def write_records(connection: sqlite3.Connection, named: Sequence[tuple[str, InstanceChange]], now: str) -> None:
    """Write the records of changes, each with its instance's name, class by class."""
    rows: defaultdict[type[Record], list[Values]] = defaultdict(list)
    for name, change in named:
        for record in change.records:
            cls = type(record)
            rows[cls].append(_ways[cls].values(name, change.header, record, now))
    for cls in sorted(rows, key=_ways.__getitem__) if len(rows) > 1 else rows:
        connection.executemany(_ways[cls].statement, rows[cls])


def bury(connection: sqlite3.Connection, letter: DeadLetterRecord) -> None:
    """Insert a dead letter."""
    connection.execute(_sql.raise_letter, _letter(letter))


def _letter(each: DeadLetterRecord) -> Values:
    return (
        each.tenant, each.source, None if each.instance is None else str(each.instance), each.definition, each.key, each.number,
        each.name, each.language, each.type, each.version, each.data, each.options, each.priority, each.attempts, each.fence,
        each.reason, each.error, each.actor, each.definition_version, None if each.parent is None else str(each.parent),
        each.command_id, each.comment, text(each.created_at), each.context, each.partition,
    )  # fmt: skip


_SEEN = "(:partition = '' or exists (select 1 from instances p where p.id = :instance and p.partition = :partition))"
"""Condition that the instance is in the reader's partition."""


@cache
def selecting(kind: RowKind[Record]) -> str:
    """Return the statement that reads the rows of an instance."""
    words = ", ".join(f"'{word}'" for word in kind.own_words)
    only = f" and {kind.shared_by} in ({words})" if words else ""
    names = ", ".join(column.name for column in kind.columns)
    return f"select {names} from {kind.table} where instance = :instance and tenant = :tenant{only} and {_SEEN} order by {', '.join(kind.key)}"  # noqa: S608 - all text is the engine's


@cache
def selecting_page(kind: RowKind[Record]) -> str:
    """Return the same statement for a page after a number, with which the key begins."""
    behind = f" and {kind.key[0]} > :after order by "
    return f"{selecting(kind).replace(' order by ', behind)} limit :limit"


@cache
def selecting_many(kind: RowKind[Record]) -> str:
    """Return the statement that reads the rows of several instances, each looked up by its id. See `surveying.sql`."""
    words = ", ".join(f"'{word}'" for word in kind.own_words)
    only = f" and +s.{kind.shared_by} in ({words})" if words else ""
    names = ", ".join(f"s.{column.name}" for column in kind.columns)
    order = ", ".join(f"s.{each}" for each in ("instance", *kind.key))
    found = f"json_each(:instances) as i cross join {kind.table} s on s.instance = i.value"
    return f"select {names} from {found} where +s.tenant = :tenant{only} order by {order}"  # noqa: S608 - all text is the engine's


@cache
def reading(kind: RowKind[S]) -> Callable[[Row], S]:
    """Return the function that converts a row to its record. The values are in declaration order."""
    make: Callable[..., S] = kind.stored
    values = ", ".join(
        f"{column.name}={f'unpacked(row[{place}])' if column.name in kind.fading else _read(column, place)}"
        for place, column in enumerate(kind.columns)
    )
    known = {"make": make, "instant": instant, "instant_or_none": instant_or_none, "unpacked": unpacked}
    return _compiled(f"lambda row: make({values})", known | {"id": instance_id, "id_or_none": instance_or_none})


def deleting(kind: RowKind[Record]) -> str:
    """Return the statement that deletes the rows of an instance."""
    return f"delete from {kind.table} where instance = ?"  # noqa: S608 - all text is the engine's


def _opening(kind: RowKind[Record]) -> tuple[str, Maker]:
    heads = {"instance": "name", "tenant": "head.tenant"} | {each: f"head.{each}" for each in kind.of_instance}
    values = heads | {column.name: _written(column) for column in columns_of(kind.row)} | {kind.opened_at: "now"}
    if kind.moved_at:
        values[kind.moved_at] = "now"
    if kind.closed_at:
        values[kind.closed_at] = f"None if each.{kind.closed_by} is None else now"
    statement = f"insert into {kind.table} ({', '.join(values)}) values ({', '.join('?' * len(values))})"  # noqa: S608 - all text is the engine's
    if kind.replaces:
        place = ("instance", *kind.key)
        kept = {*place, "tenant", kind.opened_at}
        told = ", ".join(f"{name} = excluded.{name}" for name in values if name not in kept)
        statement += f" on conflict ({', '.join(place)}) do update set {told}"
    return statement, _values(values.values())


def _changing(kind: RowKind[Record]) -> tuple[str, Maker]:
    assert kind.change is not None
    told, values = dict[str, str](), list[str]()
    columns = {column.name: column for column in columns_of(kind.change)}
    for name, column in columns.items():
        if name in kind.key:
            continue
        given = f"coalesce(?, {name})" if column.may_be_none else "?"
        first = kind.while_zero.get(name)
        told[name] = f"case when {first} = 0 then {given} else {name} end" if first else given
        values.append(_written(column))
    if kind.moved_at:
        told[kind.moved_at] = "?"
        values.append("now")
    if kind.closed_by in columns:
        told[kind.closed_at] = f"coalesce(?, {kind.closed_at})"
        values.append(f"None if each.{kind.closed_by} is None else now")
    changes = ", ".join(f"{name} = {value}" for name, value in told.items())
    statement = f"update {kind.table} set {changes} where {_found(kind)}"  # noqa: S608 - all text is the engine's
    return statement, _values([*values, "name", *(_written(columns[name]) for name in kind.key)])


def _ending(kind: RowKind[Record]) -> tuple[str, Maker]:
    assert kind.end is not None
    columns = {column.name: column for column in columns_of(kind.end)}
    statement = f"delete from {kind.table} where {_found(kind)}"  # noqa: S608 - all text is the engine's
    return statement, _values(["name", *(_written(columns[name]) for name in kind.key)])


def _found(kind: RowKind[Record]) -> str:
    return " and ".join(f"{name} = ?" for name in ("instance", *kind.key))


def _written(column: Column) -> str:
    """Return the expression that stores a record's value in a column."""
    value = f"each.{column.name}"
    writer = {datetime: "text", UUID: "str"}.get(column.type, "")
    return f"None if {value} is None else {writer}({value})" if writer else value


def _read(column: Column, place: int) -> str:
    """Return the expression that restores a column's value."""
    if column.type is bool:
        return f"None if row[{place}] is None else bool(row[{place}])"
    reader = {datetime: "instant", UUID: "id"}.get(column.type, "")
    return f"{reader}{'_or_none' if reader and column.may_be_none else ''}(row[{place}])"


def _values(expressions: Iterable[str]) -> Maker:
    return _compiled(f"lambda name, head, each, now: ({', '.join(expressions)},)", {"text": text})


def _compiled(source: str, known: dict[str, Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = eval(source, known)  # noqa: S307 - built from names that the declaration has checked
    return made


_MAKERS = {"open": _opening, "change": _changing, "end": _ending}
_ways = _Ways()
