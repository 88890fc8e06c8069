"""The inline projections of a commit, as parts of its statement: a maker per kind of record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
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
from holdfast.store.postgres.arrays import blobs, instants, integers, texts, uuids
from holdfast.store.postgres.parts import Arguments, Part
from holdfast.store.shapes import Change, DeadLetter, Header

R = TypeVar("R", bound=Record)

Owned = list[tuple[Header, R]]


def record_parts(changes: Sequence[Change], now: datetime) -> list[Part]:
    """The parts that write the records of these changes."""
    kinds: defaultdict[type[Record], Owned[Record]] = defaultdict(list)
    for change in changes:
        for record in change.records:
            kinds[type(record)].append((change.header, record))
    return [_MAKERS[kind](rows, now) for kind, rows in sorted(kinds.items(), key=lambda each: _ORDER[each[0]])]


def _keys(rows: Owned[R]) -> Arguments:
    return [uuids([head.id for head, _ in rows]), integers([row.number for _, row in rows])]


def _opened_steps(rows: Owned[StepOpened], now: datetime) -> Part:
    arguments = [
        *_keys(rows),
        texts([head.tenant for head, _ in rows]),
        texts([row.node for _, row in rows]),
        texts([row.token for _, row in rows]),
        integers([row.visit for _, row in rows]),
        texts([row.kind for _, row in rows]),
        texts([row.status for _, row in rows]),
        integers([row.compensates for _, row in rows]),
        integers([row.retry_of for _, row in rows]),
        texts([row.wait_kind for _, row in rows]),
        integers([row.attempts for _, row in rows]),
        texts([row.outcome for _, row in rows]),
        texts([row.error for _, row in rows]),
        blobs([row.input for _, row in rows]),
        blobs([row.output for _, row in rows]),
        now,
    ]
    return Part("opened_steps", arguments)


def _moved_steps(rows: Owned[StepMoved], now: datetime) -> Part:
    arguments = [
        *_keys(rows),
        texts([row.status for _, row in rows]),
        integers([row.attempts for _, row in rows]),
        blobs([row.output for _, row in rows]),
        texts([row.error for _, row in rows]),
        texts([row.outcome for _, row in rows]),
        texts([row.wait_kind for _, row in rows]),
        now,
    ]
    return Part("moved_steps", arguments)


def _opened_tasks(rows: Owned[TaskOpened], now: datetime) -> Part:
    arguments = [
        *_keys(rows),
        texts([head.tenant for head, _ in rows]),
        texts([row.subject for _, row in rows]),
        texts([row.role for _, row in rows]),
        instants([row.due_at for _, row in rows]),
        blobs([row.data for _, row in rows]),
        texts([row.outcome for _, row in rows]),
        texts([row.actor for _, row in rows]),
        texts([row.comment for _, row in rows]),
        now,
    ]
    return Part("opened_tasks", arguments)


def _closed_tasks(rows: Owned[TaskClosed], now: datetime) -> Part:
    arguments = [
        *_keys(rows),
        texts([row.outcome for _, row in rows]),
        texts([row.actor for _, row in rows]),
        texts([row.comment for _, row in rows]),
        now,
    ]
    return Part("closed_tasks", arguments)


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


def letter_columns(letters: Sequence[DeadLetter]) -> Arguments:
    """The columns of new dead letters."""
    return [
        texts([each.tenant for each in letters]),
        texts([each.source for each in letters]),
        uuids([each.instance for each in letters]),
        texts([each.definition for each in letters]),
        texts([each.key for each in letters]),
        integers([each.number for each in letters]),
        texts([each.name for each in letters]),
        texts([each.type for each in letters]),
        integers([each.version for each in letters]),
        blobs([each.data for each in letters]),
        blobs([each.options for each in letters]),
        integers([each.priority for each in letters]),
        integers([each.attempts for each in letters]),
        integers([each.fence for each in letters]),
        texts([each.reason for each in letters]),
        texts([each.error for each in letters]),
        texts([each.actor for each in letters]),
        texts([each.definition_version for each in letters]),
        uuids([each.parent for each in letters]),
        instants([each.created_at for each in letters]),
    ]


def _settled_letters(rows: Owned[DeadLetterSettled], _now: datetime) -> Part:
    arguments = [
        uuids([head.id for head, _ in rows]),
        texts([row.source for _, row in rows]),
        integers([row.number for _, row in rows]),
    ]
    return Part("settled_letters", list(arguments))


def _opened_subscriptions(rows: Owned[SubscriptionOpened], now: datetime) -> Part:
    arguments = [
        *_keys(rows),
        texts([head.tenant for head, _ in rows]),
        texts([row.signal for _, row in rows]),
        texts([row.correlation for _, row in rows]),
        instants([row.expires_at for _, row in rows]),
        now,
    ]
    return Part("opened_subscriptions", arguments)


def _closed_subscriptions(rows: Owned[SubscriptionClosed], _now: datetime) -> Part:
    return Part("closed_subscriptions", _keys(rows))


_MAKERS: dict[type[Record], Callable[..., Part]] = {
    StepOpened: _opened_steps,
    StepMoved: _moved_steps,
    TaskOpened: _opened_tasks,
    TaskClosed: _closed_tasks,
    DeadLetterRaised: _raised_letters,
    DeadLetterSettled: _settled_letters,
    SubscriptionOpened: _opened_subscriptions,
    SubscriptionClosed: _closed_subscriptions,
}
_ORDER = {kind: place for place, kind in enumerate(_MAKERS)}
"""The parts always come in this order, so that there are few different statements."""
