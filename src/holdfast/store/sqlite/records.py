"""Writing the inline projections: a function per kind of record, found in a table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

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
from holdfast.store.shapes import Change, DeadLetter, Header
from holdfast.store.sqlite.rows import text, text_or_none
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    open_step: str
    move_step: str
    open_task: str
    close_task: str
    raise_letter: str
    settle_letter: str
    open_subscription: str
    close_subscription: str


_sql = read_statements(_Sql, __package__, "records.sql")

Values = tuple[object, ...]


def write_records(connection: sqlite3.Connection, named: Sequence[tuple[str, Change]], now: str) -> None:
    """Write the records of changes, each with the name of its instance; one kind after the other."""
    rows: dict[type[Record], list[Values]] = {kind: [] for kind in _WAYS}
    for name, change in named:
        for record in change.records:
            kind = type(record)
            rows[kind].append(_WAYS[kind][1](name, change.header, record, now))
    for kind, values in rows.items():
        if values:
            connection.executemany(_WAYS[kind][0], values)


def bury(connection: sqlite3.Connection, letter: DeadLetter) -> None:
    """Write a dead letter."""
    connection.execute(_sql.raise_letter, _letter(letter))


def _letter(each: DeadLetter) -> Values:
    return (
        each.tenant, each.source, None if each.instance is None else str(each.instance), each.definition, each.key, each.number,
        each.name, each.language, each.type, each.version, each.data, each.options, each.priority, each.attempts, each.fence,
        each.reason, each.error, each.actor, each.definition_version, None if each.parent is None else str(each.parent),
        each.command_id, each.comment, text(each.created_at), each.context,
    )  # fmt: skip


def _open_step(name: str, header: Header, each: StepOpened, now: str) -> Values:
    return (
        name, each.number, header.tenant, each.node, each.token, each.visit, each.kind, each.status, each.compensates,
        each.retry_of, each.wait_kind, each.attempts, each.outcome, each.error, each.input, each.output, now, now,
    )  # fmt: skip


def _move_step(name: str, _header: Header, each: StepMoved, now: str) -> Values:
    return (
        each.status, each.attempts, each.output, each.error, each.outcome, each.wait_kind, text_or_none(each.started_at), now,
        name, each.number,
    )  # fmt: skip


def _open_task(name: str, header: Header, each: TaskOpened, now: str) -> Values:
    closed_at = None if each.outcome is None else now
    return (
        name, each.number, header.tenant, each.subject, each.role, text_or_none(each.due_at), each.data, each.outcome, each.actor,
        each.comment, now, closed_at,
    )  # fmt: skip


def _close_task(name: str, _header: Header, each: TaskClosed, now: str) -> Values:
    return (each.outcome, each.actor, each.comment, now, name, each.number)


def _raise_letter(name: str, header: Header, each: DeadLetterRaised, now: str) -> Values:
    return (
        header.tenant, each.source, name, header.definition, header.key, each.number, each.name, "", each.type, 1, each.payload, b"", 0,
        each.attempts, 0, each.reason, each.error, "", header.definition_version, None, "", "", now, None,
    )  # fmt: skip


def _settle_letter(name: str, _header: Header, each: DeadLetterSettled, _now: str) -> Values:
    return (name, each.source, each.number)


def _open_subscription(name: str, header: Header, each: SubscriptionOpened, now: str) -> Values:
    return (name, each.number, header.tenant, each.signal, each.correlation, text_or_none(each.expires_at), now)


def _close_subscription(name: str, _header: Header, each: SubscriptionClosed, _now: str) -> Values:
    return (name, each.number)


_WAYS: dict[type[Record], tuple[str, Callable[[str, Header, Any, str], Values]]] = {
    StepOpened: (_sql.open_step, _open_step),
    StepMoved: (_sql.move_step, _move_step),
    TaskOpened: (_sql.open_task, _open_task),
    TaskClosed: (_sql.close_task, _close_task),
    DeadLetterSettled: (_sql.settle_letter, _settle_letter),
    DeadLetterRaised: (_sql.raise_letter, _raise_letter),  # After the one that it may take the place of.
    SubscriptionOpened: (_sql.open_subscription, _open_subscription),
    SubscriptionClosed: (_sql.close_subscription, _close_subscription),
}
