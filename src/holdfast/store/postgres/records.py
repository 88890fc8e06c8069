"""The inline projections of a commit, as parts of its statement: a maker per kind of record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from holdfast.kernel.records import (
    DeadLetterRaised,
    DeadLetterSettled,
    Record,
    StepMoved,
    StepOpened,
    SubscriptionClosed,
    SubscriptionOpened,
    TaskClosed,
    TaskOpened,
)
from holdfast.store.postgres.columns import Blobs, Instants, Integers, Texts, Uuids
from holdfast.store.postgres.parts import Columns, Part
from holdfast.store.shapes import Change, DeadLetter, Header

R = TypeVar("R", bound=Record)

Owned = list[tuple[Header, R]]


def record_parts(changes: Sequence[Change], now: datetime) -> Iterator[Part]:
    """The parts that write the records of these changes, each made when it is asked for."""
    kinds: defaultdict[type[Record], Owned[Record]] = defaultdict(list)
    for change in changes:
        for record in change.records:
            kinds[type(record)].append((change.header, record))
    for kind, rows in sorted(kinds.items(), key=lambda each: _ORDER[each[0]]):
        yield _MAKERS[kind](rows, now)


def _keys(rows: Owned[R]) -> Columns:
    return [Uuids([head.id for head, _ in rows]), Integers([row.number for _, row in rows])]


def _opened_steps(rows: Owned[StepOpened], now: datetime) -> Part:
    columns: Columns = [
        *_keys(rows),
        Texts([head.tenant for head, _ in rows]),
        Texts([row.node for _, row in rows]),
        Texts([row.token for _, row in rows]),
        Integers([row.visit for _, row in rows]),
        Texts([row.kind for _, row in rows]),
        Texts([row.status for _, row in rows]),
        Integers([row.compensates for _, row in rows]),
        Integers([row.retry_of for _, row in rows]),
        Texts([row.wait_kind for _, row in rows]),
        Integers([row.attempts for _, row in rows]),
        Texts([row.outcome for _, row in rows]),
        Texts([row.error for _, row in rows]),
        Blobs([row.input for _, row in rows]),
        Blobs([row.output for _, row in rows]),
    ]
    return Part("opened_steps", columns, now)


def _moved_steps(rows: Owned[StepMoved], now: datetime) -> Part:
    columns: Columns = [
        *_keys(rows),
        Texts([row.status for _, row in rows]),
        Integers([row.attempts for _, row in rows]),
        Blobs([row.output for _, row in rows]),
        Texts([row.error for _, row in rows]),
        Texts([row.outcome for _, row in rows]),
        Texts([row.wait_kind for _, row in rows]),
    ]
    return Part("moved_steps", columns, now)


def _opened_tasks(rows: Owned[TaskOpened], now: datetime) -> Part:
    columns: Columns = [
        *_keys(rows),
        Texts([head.tenant for head, _ in rows]),
        Texts([row.subject for _, row in rows]),
        Texts([row.role for _, row in rows]),
        Instants([row.due_at for _, row in rows]),
        Blobs([row.data for _, row in rows]),
        Texts([row.outcome for _, row in rows]),
        Texts([row.actor for _, row in rows]),
        Texts([row.comment for _, row in rows]),
    ]
    return Part("opened_tasks", columns, now)


def _closed_tasks(rows: Owned[TaskClosed], now: datetime) -> Part:
    columns: Columns = [
        *_keys(rows),
        Texts([row.outcome for _, row in rows]),
        Texts([row.actor for _, row in rows]),
        Texts([row.comment for _, row in rows]),
    ]
    return Part("closed_tasks", columns, now)


def _raised_letters(rows: Owned[DeadLetterRaised], now: datetime) -> Part:
    letters = [
        DeadLetter(
            tenant=head.tenant,
            source=row.source,
            instance=head.id,
            definition=head.definition,
            key=head.key,
            number=row.number,
            name=row.name,
            type=row.type,
            data=row.payload,
            attempts=row.attempts,
            reason=row.reason,
            error=row.error,
            created_at=now,
        )
        for head, row in rows
    ]
    return Part("raised_letters", letter_columns(letters))


def letter_columns(letters: Sequence[DeadLetter]) -> Columns:
    """The columns of new dead letters."""
    return [
        Texts([each.tenant for each in letters]),
        Texts([each.source for each in letters]),
        Uuids([each.instance for each in letters]),
        Texts([each.definition for each in letters]),
        Texts([each.key for each in letters]),
        Integers([each.number for each in letters]),
        Texts([each.name for each in letters]),
        Texts([each.type for each in letters]),
        Integers([each.version for each in letters]),
        Blobs([each.data for each in letters]),
        Blobs([each.options for each in letters]),
        Integers([each.priority for each in letters]),
        Integers([each.attempts for each in letters]),
        Integers([each.fence for each in letters]),
        Texts([each.reason for each in letters]),
        Texts([each.error for each in letters]),
        Texts([each.actor for each in letters]),
        Texts([each.definition_version for each in letters]),
        Uuids([each.parent for each in letters]),
        Instants([each.created_at for each in letters]),
    ]


def _settled_letters(rows: Owned[DeadLetterSettled], _now: datetime) -> Part:
    columns: Columns = [
        Uuids([head.id for head, _ in rows]),
        Texts([row.source for _, row in rows]),
        Integers([row.number for _, row in rows]),
    ]
    return Part("settled_letters", columns)


def _opened_subscriptions(rows: Owned[SubscriptionOpened], now: datetime) -> Part:
    columns: Columns = [
        *_keys(rows),
        Texts([head.tenant for head, _ in rows]),
        Texts([row.signal for _, row in rows]),
        Texts([row.correlation for _, row in rows]),
        Instants([row.expires_at for _, row in rows]),
    ]
    return Part("opened_subscriptions", columns, now)


def _closed_subscriptions(rows: Owned[SubscriptionClosed], _now: datetime) -> Part:
    return Part("closed_subscriptions", _keys(rows))


_MAKERS: dict[type[Record], Callable[..., Part]] = {
    StepOpened: _opened_steps,
    StepMoved: _moved_steps,
    TaskOpened: _opened_tasks,
    TaskClosed: _closed_tasks,
    DeadLetterSettled: _settled_letters,
    DeadLetterRaised: _raised_letters,  # After the one that it may take the place of.
    SubscriptionOpened: _opened_subscriptions,
    SubscriptionClosed: _closed_subscriptions,
}
_ORDER = {kind: place for place, kind in enumerate(_MAKERS)}
"""The parts come in this order."""
