"""Several records on one row become one: what a commit does to a row, it does at once, and the row ends up the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.kernel.row_kinds.steps import (
    DeadLetterRaised,
    DeadLetterSettled,
    StepMoved,
    StepOpened,
    StepStatus,
    SubscriptionClosed,
    SubscriptionOpened,
    TaskChanged,
    TaskOpened,
)
from standfast.kernel.rows import Record, merge, writing_of
from support.untimed import untimed

Key: TypeAlias = tuple[str, object]
Rows: TypeAlias = dict[Key, object]

STATUSES: list[StepStatus] = ["pending", "running", "completed"]
NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


def apply(rows: Rows, record: Record) -> Rows:
    """The rows after one record, written by itself. A row that begins twice, or is not there, is a mistake."""
    left = dict(rows)
    match record:
        case StepOpened() | TaskOpened() | SubscriptionOpened() | DeadLetterRaised():
            assert key_of(record) not in left, f"{record} begins a row that is there"
            left[key_of(record)] = record
        case StepMoved() | TaskChanged():
            told = {name: value for name, value in msgspec.structs.asdict(record).items() if value is not None}
            left[key_of(record)] = msgspec.structs.replace(_row(left, record), **told)
        case _:
            del left[key_of(record)]
    return left


def _row(rows: Rows, record: Record) -> msgspec.Struct:
    row = rows[key_of(record)]
    assert isinstance(row, msgspec.Struct)
    return row


def key_of(record: Record) -> Key:
    """The row that a record is about."""
    kind = writing_of(type(record)).kind
    return kind.table, kind.key_of(record)


def one_after_another(rows: Rows, records: Iterable[Record]) -> Rows:
    """The rows after records that are written in their order."""
    for record in records:
        rows = apply(rows, record)
    return rows


def at_once(rows: Rows, records: Iterable[Record]) -> Rows:
    """The rows after one statement: what goes and moves is what was there before, and what comes is added."""
    told = list(records)
    begins = StepOpened | TaskOpened | SubscriptionOpened | DeadLetterRaised
    others = [record for record in told if not isinstance(record, begins)]
    left = one_after_another(rows, others)
    return one_after_another(left, (record for record in told if isinstance(record, begins)))


class Story:
    """Makes a random course of events on a few rows that a decider could have asked for."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._rows: Rows = {}
        self._used: set[Key] = set()

    def tell(self, length: int) -> list[Record]:
        """The next records, each possible after those before it."""
        told: list[Record] = []
        for _ in range(length):
            record = self._draw(st.sampled_from(self._possible()))
            self._rows = apply(self._rows, record)
            self._used.add(key_of(record))
            told.append(record)
        return told

    def _possible(self) -> list[Record]:
        text = self._draw(st.sampled_from(["", "a", "b"]))
        count = self._draw(st.integers(0, 9))
        return [record for number in (1, 2) for record in self._about(number, text, count) if self._fits(record)]

    def _about(self, number: int, text: str, count: int) -> list[Record]:
        status: StepStatus = self._draw(st.sampled_from(STATUSES))
        blob = self._draw(st.none() | st.just(text.encode()))
        maybe = self._draw(st.none() | st.just(text))
        return [
            StepOpened(number=number, node=text, attempts=count, status="running"),
            StepMoved(number=number, status=status, attempts=count or None, output=blob, error=maybe, outcome=maybe),
            StepMoved(number=number, status="failed", wait_kind=maybe),
            TaskOpened(number=number, subject=text, due_at=NOON, data=blob),
            TaskChanged(number=number, outcome=text, actor="ada"),
            SubscriptionOpened(number=number, signal=text),
            SubscriptionClosed(number=number),
            DeadLetterRaised(source="step", number=number, name=text, reason=f"{count}", error=""),
            DeadLetterSettled(source="step", number=number),
            DeadLetterRaised(source="compensation", number=number, name=text, reason=f"{count}", error=""),
            DeadLetterSettled(source="compensation", number=number),
        ]

    def _fits(self, record: Record) -> bool:
        """Steps, questions and waits begin once; letters come and go; only what is there can move or go."""
        key, row = key_of(record), self._rows.get(key_of(record))
        match record:
            case DeadLetterRaised():
                return row is None
            case StepOpened() | TaskOpened() | SubscriptionOpened():
                return key not in self._used
            case TaskChanged():
                return isinstance(row, TaskOpened) and row.outcome is None
            case _:
                return row is not None


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Record], list[Record]]:
    """What earlier commits wrote, and what the commands of one commit ask for."""
    story = Story(draw)
    return story.tell(draw(st.integers(0, 6))), story.tell(draw(st.integers(0, 10)))


@untimed
@given(stories())
def test_merging_changes_nothing(story: tuple[list[Record], list[Record]]) -> None:
    """Merged records leave the same rows as the records one after another, in order and all at once."""
    before, asked = story
    rows = one_after_another({}, before)
    expected = one_after_another(rows, asked)
    assert one_after_another(rows, merge(asked)) == expected
    assert at_once(rows, merge(asked)) == expected


@untimed
@given(stories())
def test_a_row_is_touched_once(story: tuple[list[Record], list[Record]]) -> None:
    """After merging there is one record to a row; only a letter can go and another one come in its place."""
    merged = merge(story[1])
    others = [key_of(record) for record in merged if not isinstance(record, DeadLetterSettled)]
    assert len(others) == len(set(others))
    settled = [key_of(record) for record in merged if isinstance(record, DeadLetterSettled)]
    assert len(settled) == len(set(settled))


@untimed
@given(stories())
def test_merging_again_changes_nothing(story: tuple[list[Record], list[Record]]) -> None:
    """What is merged is merged."""
    merged = merge(story[1])
    assert merge(merged) == merged


def test_a_letter_that_came_and_went_leaves_the_old_one_gone() -> None:
    """Settled, raised and settled again in one commit: the old letter goes and no new one stays."""
    settled = DeadLetterSettled(source="step", number=1)
    raised = DeadLetterRaised(source="step", number=1, name="charge", reason="r", error="e")
    assert merge([settled, raised, settled]) == [settled]
    assert merge([settled, raised, settled, raised]) == [settled, raised]


@pytest.mark.parametrize(
    ("records", "merged"),
    [
        (
            [StepOpened(number=1, node="a"), StepMoved(number=1, status="completed", output=b"x", outcome="ok")],
            [StepOpened(number=1, node="a", status="completed", output=b"x", outcome="ok")],
        ),
        (
            [StepMoved(number=1, status="running", attempts=1), StepMoved(number=1, status="failed", error="no")],
            [StepMoved(number=1, status="failed", attempts=1, error="no")],
        ),
        (
            [
                TaskOpened(number=1, subject="ok?"),
                TaskChanged(number=1, outcome="approved", actor="ada", comment="yes"),
            ],
            [TaskOpened(number=1, subject="ok?", outcome="approved", actor="ada", comment="yes")],
        ),
        ([SubscriptionOpened(number=1, signal="paid"), SubscriptionClosed(number=1)], []),
    ],
)
def test_examples(records: list[Record], merged: list[Record]) -> None:
    """A row that begins and moves in one commit begins where it ends up; one that begins and ends is never written."""
    assert merge(records) == merged
