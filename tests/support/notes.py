"""Two kinds of rows that only tests declare, with their tables, and a decider that writes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from standfast import Decider, Decision, Moment
from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare, forget
from standfast.store.ports.store import Store
from support.desks import Desk


class NoteOpened(Record, frozen=True, kw_only=True, gc=False):
    page: str
    number: int
    text: str
    colour: Literal["red", "blue"] = "blue"
    count: int | None = None
    is_loud: bool = False
    about: UUID | None = None
    due_at: datetime | None = None
    drawing: bytes | None = None
    verdict: str | None = None


class NoteChanged(Record, frozen=True, kw_only=True, gc=False):
    page: str
    number: int
    text: str | None = None
    is_loud: bool | None = None
    due_at: datetime | None = None
    verdict: str | None = None


class NoteEnded(Record, frozen=True, kw_only=True, gc=False):
    page: str
    number: int


class StoredNote(NoteOpened, frozen=True, kw_only=True, gc=False):
    instance: InstanceId
    opened_at: datetime
    moved_at: datetime
    closed_at: datetime | None


class Weight(Record, frozen=True, kw_only=True, gc=False):
    name: str
    grams: int


class WeightEnded(Record, frozen=True, kw_only=True, gc=False):
    name: str


class StoredWeight(Weight, frozen=True, kw_only=True, gc=False):
    instance: InstanceId
    opened_at: datetime
    moved_at: datetime


NOTES = RowKind(
    name="note",
    table="test_notes",
    row=NoteOpened,
    change=NoteChanged,
    end=NoteEnded,
    stored=StoredNote,
    key=("page", "number"),
    moved_at="moved_at",
    closed_at="closed_at",
    closed_by="verdict",
)
WEIGHTS = RowKind(
    name="weight",
    table="test_weights",
    row=Weight,
    end=WeightEnded,
    stored=StoredWeight,
    key=("name",),
    moved_at="moved_at",
    replaces=True,
)

_SQLITE = """
create table test_notes (
    instance text not null, tenant text not null check (tenant <> ''), page text not null, number integer not null,
    text text not null, colour text not null, count integer, is_loud integer not null, about text, due_at text, drawing blob,
    verdict text, opened_at text not null, moved_at text not null, closed_at text, primary key (instance, page, number)
) strict, without rowid;
create table test_weights (
    instance text not null, tenant text not null check (tenant <> ''), name text not null, grams integer not null,
    opened_at text not null, moved_at text not null, primary key (instance, name)
) strict, without rowid;
"""
_POSTGRES = """
create table standfast.test_notes (
    instance uuid not null, tenant text not null check (tenant <> ''), page text not null, number integer not null,
    text text not null, colour text not null, count integer, is_loud boolean not null, about uuid, due_at timestamptz,
    drawing bytea, verdict text, opened_at timestamptz not null, moved_at timestamptz not null, closed_at timestamptz,
    primary key (instance, page, number)
);
create table standfast.test_weights (
    instance uuid not null, tenant text not null check (tenant <> ''), name text not null, grams integer not null,
    opened_at timestamptz not null, moved_at timestamptz not null, primary key (instance, name)
);
select standfast.wall_off('test_notes'), standfast.wall_off('test_weights');
grant select on standfast.test_notes, standfast.test_weights to standfast_tenant;
"""


@contextmanager
def declared(store: Store) -> Iterator[None]:
    """Both kinds, for as long as the block lasts, with their tables in this store."""
    make_tables(store)
    declare(NOTES)
    declare(WEIGHTS)
    try:
        yield
    finally:
        forget(NOTES)
        forget(WEIGHTS)


def make_tables(store: Store) -> None:
    """What migrations would do."""
    with Desk(store).writer.unit() as unit:
        connection: Any = unit
        is_file = isinstance(connection.connection, sqlite3.Connection)
        for statement in filter(str.strip, (_SQLITE if is_file else _POSTGRES).split(";")):
            connection.connection.execute(statement)


@dataclass(frozen=True)
class Edit:
    """Lines such as `open 1 milk`, `say 1 cream`, `close 1`, `drop 1`, `weigh flour 500`, `unweigh flour` and `finish`."""

    workflow_id: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Edited:
    line: str


class Notebook(Decider[list[str], Edit, Edited, None]):
    """Its rows are what its lines say."""

    type = "notebook"

    def initial(self) -> list[str]:
        return []

    def evolve(self, state: list[str], event: Edited) -> list[str]:
        return [*state, event.line]

    def is_terminal(self, state: list[str]) -> bool:
        return state[-1:] == ["finish"]

    def decide(self, state: list[str], command: Edit, moment: Moment) -> Decision:
        events = tuple(Edited(line) for line in command.lines)
        return Decision(events=events, records=tuple(row for event in events for row in self.rows_of(state, event)))

    def rows_of(self, state: list[str], event: Edited) -> Sequence[Record]:
        match event.line.split():
            case ["open", number, text]:
                return [NoteOpened(page="a", number=int(number), text=text)]
            case ["say", number, text]:
                return [NoteChanged(page="a", number=int(number), text=text)]
            case ["close", number]:
                return [NoteChanged(page="a", number=int(number), verdict="done")]
            case ["drop", number]:
                return [NoteEnded(page="a", number=int(number))]
            case ["weigh", name, grams]:
                return [Weight(name=name, grams=int(grams))]
            case ["unweigh", name]:
                return [WeightEnded(name=name)]
            case _:
                return []
