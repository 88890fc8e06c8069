"""The inline projections of a commit, as parts of it: the rows of each kind of record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

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
from holdfast.store.postgres.commit_parts import Part
from holdfast.store.postgres.packing import Row
from holdfast.store.shapes import Change, DeadLetter, Header


def record_parts(changes: Sequence[Change], now: datetime) -> Iterator[Part]:
    """The parts that write the records of these changes, each made when it is asked for."""
    kinds: defaultdict[type[Record], list[tuple[Header, Record]]] = defaultdict(list)
    for change in changes:
        for record in change.records:
            kinds[type(record)].append((change.header, record))
    for kind, (name, row_of, is_dated) in _TABLE.items():
        if kind in kinds:
            yield Part(name, [row_of(head, record) for head, record in kinds[kind]], now if is_dated else None)


def letter_row(each: DeadLetter) -> Row:
    """A new dead letter."""
    return (
        each.tenant, each.source, each.instance, each.definition, each.key, each.number, each.name, each.language, each.type,
        each.version, each.data, each.options, each.priority, each.attempts, each.fence, each.reason, each.error, each.actor,
        each.definition_version, each.parent, each.command_id, each.comment, each.created_at, each.context,
    )  # fmt: skip


def _opened_step(head: Header, each: StepOpened) -> Row:
    return (
        head.id, each.number, head.tenant, each.node, each.token, each.visit, each.kind, each.status, each.compensates, each.retry_of,
        each.wait_kind, each.attempts, each.outcome, each.error, each.input, each.output,
    )  # fmt: skip


def _moved_step(head: Header, each: StepMoved) -> Row:
    return (
        head.id, each.number, each.status, each.attempts, each.output, each.error, each.outcome, each.wait_kind, each.started_at,
    )  # fmt: skip


def _opened_task(head: Header, each: TaskOpened) -> Row:
    return (
        head.id, each.number, head.tenant, each.subject, each.role, each.due_at, each.data, each.outcome, each.actor, each.comment,
    )  # fmt: skip


def _closed_task(head: Header, each: TaskClosed) -> Row:
    return (head.id, each.number, each.outcome, each.actor, each.comment)


def _raised_letter(head: Header, each: DeadLetterRaised) -> Row:
    return (
        head.tenant, each.source, head.id, head.definition, head.key, each.number, each.name, "", each.type, 1, each.payload, b"", 0,
        each.attempts, 0, each.reason, each.error, "", head.definition_version, None, "", "", head.updated_at, None,
    )  # fmt: skip


def _settled_letter(head: Header, each: DeadLetterSettled) -> Row:
    return (head.id, each.source, each.number)


def _opened_subscription(head: Header, each: SubscriptionOpened) -> Row:
    return (head.id, each.number, head.tenant, each.signal, each.correlation, each.expires_at)


def _closed_subscription(head: Header, each: SubscriptionClosed) -> Row:
    return (head.id, each.number)


_TABLE: dict[type[Record], tuple[str, Callable[[Header, Any], Row], bool]] = {
    StepOpened: ("opened_steps", _opened_step, True),
    StepMoved: ("moved_steps", _moved_step, True),
    TaskOpened: ("opened_tasks", _opened_task, True),
    TaskClosed: ("closed_tasks", _closed_task, True),
    DeadLetterSettled: ("settled_letters", _settled_letter, False),
    DeadLetterRaised: ("raised_letters", _raised_letter, False),  # After the one that it may take the place of.
    SubscriptionOpened: ("opened_subscriptions", _opened_subscription, True),
    SubscriptionClosed: ("closed_subscriptions", _closed_subscription, False),
}
"""The part of each kind of record, its row, and whether it writes the instant down."""
