"""A kind of row is declared once, and its declaration is refused where its parts do not fit together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Column, Record, RowKind, columns_of, declare, forget, kinds, merge
from support.notes import NOTES, WEIGHTS, NoteChanged, NoteEnded, NoteOpened, StoredNote, Weight, WeightEnded


class Odd(Record, frozen=True, kw_only=True):
    number: int
    parts: list[str]


class StoredOdd(Odd, frozen=True, kw_only=True):
    instance: InstanceId
    opened_at: datetime


class Keyless(Record, frozen=True, kw_only=True):
    page: str


class Wider(NoteChanged, frozen=True, kw_only=True):
    mood: str | None = None


class StoredWider(StoredNote, frozen=True, kw_only=True):
    mood: str | None = None


class Forward(Record, frozen=True, kw_only=True):
    page: str
    number: int
    opened_at: datetime | None = None


def kind(**rest: Any) -> RowKind[Any]:
    """The notes under another name, otherwise declared."""
    told: dict[str, Any] = {name: getattr(NOTES, name) for name in RowKind.__struct_fields__}
    return RowKind(**(told | {"table": "others"} | rest))


@pytest.mark.parametrize(
    ("wrong", "flaw"),
    [
        (kind(table="steps"), "there is a table of this name"),
        (kind(table="no name"), "no name is no name"),
        (kind(key=("page", "line")), "NoteOpened lacks a part of the key"),
        (kind(change=Keyless), "Keyless lacks a part of the key"),
        (kind(end=NoteOpened), "NoteOpened has other fields than the key"),
        (kind(moved_at=""), "['moved_at'] are fields of StoredNote that no record sets and no commit dates"),
        (kind(opened_at="born_at"), "['born_at', 'opened_at'] are fields of StoredNote"),
        (kind(change=Forward), "['opened_at'] are filled in by the commit"),
        (kind(change=Wider, stored=StoredWider), "['mood'] can be changed and are no fields of NoteOpened"),
        (kind(closed_by=""), "closed_at needs a column of the row that closes it"),
        (kind(row=Odd, stored=StoredOdd, change=None, end=None, key=("number",), moved_at="", closed_at="", closed_by=""), "parts is list"),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_is_refused(wrong: RowKind[Any], flaw: str) -> None:
    """Each flaw is told in words, before anything is written by it, and nothing is declared."""
    known = kinds()
    with pytest.raises(TypeError) as refused:
        declare(wrong)
    assert flaw in str(refused.value)
    assert kinds() == known


def test_columns_follow_from_annotations() -> None:
    """Type, whether it may be None, and the words of a Literal; an id is a UUID."""
    found = {each.name: each for each in columns_of(StoredNote)}
    assert found["colour"] == Column("colour", str, may_be_none=False, words=("red", "blue"))
    assert found["due_at"] == Column("due_at", datetime, may_be_none=True)
    assert found["instance"].type.__name__ == "UUID"
    assert found["is_loud"].type is bool


@pytest.fixture
def declared() -> Any:
    """The kinds that only tests declare."""
    declare(NOTES)
    declare(WEIGHTS)
    yield
    forget(NOTES)
    forget(WEIGHTS)


OPENED = NoteOpened(page="a", number=1, text="x")
OTHER = NoteOpened(page="b", number=1, text="x")
ENDED = NoteEnded(page="a", number=1)


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(
    ("records", "merged"),
    [
        ([OPENED, OTHER], [OPENED, OTHER]),
        ([OPENED, ENDED, OTHER], [OTHER]),
        ([ENDED, OPENED, ENDED], [ENDED]),
        ([ENDED, OPENED, NoteChanged(page="a", number=1, text="y")], [ENDED, NoteOpened(page="a", number=1, text="y")]),
        ([NoteChanged(page="a", number=1, text="y"), ENDED], [ENDED]),
        ([ENDED, NoteChanged(page="a", number=1, text="y")], [ENDED]),
        ([Weight(name="a", grams=1), Weight(name="a", grams=2)], [Weight(name="a", grams=2)]),
        ([Weight(name="a", grams=1), WeightEnded(name="a")], [WeightEnded(name="a")]),
        ([WeightEnded(name="a"), Weight(name="a", grams=1), WeightEnded(name="a")], [WeightEnded(name="a")]),
    ],
)
def test_records_of_any_kind_are_merged(records: list[Record], merged: list[Record]) -> None:
    """By what they do to a row: one that may have replaced another still ends it, one that came and went was never there."""
    assert merge(records) == merged
