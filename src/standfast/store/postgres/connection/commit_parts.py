"""Splits a commit into its rows for each table.

Each function builds one named part of `commits.sql`, with values in the order of its placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.store.ports.facts import Gate
from standfast.store.postgres.connection.packing import Row
from standfast.store.records.instances import (
    Claim,
    EffectClaim,
    InboxClaim,
    InstanceChange,
    InstanceHeader,
    LetterClaim,
    ObservationRecord,
    Receipt,
    Snapshot,
    StoredEffect,
    StoredMessage,
    StoredTimer,
    TimerClaim,
)


class TablePart(msgspec.Struct, frozen=True, gc=False):
    """One part of a commit."""

    name: str
    rows: list[Row]
    now: datetime | None = None
    """Time of the commit, for parts that store it."""
    must_touch: int | None = None
    """Number of rows that the part must change for the commit to succeed. None means any."""


def parts_of(changes: Sequence[InstanceChange], now: datetime) -> Iterator[TablePart]:
    """Yield the parts of a commit, each built on demand."""
    moves = [_move(change) for change in changes if change.expected != 0]
    if moves:  # First, because it locks the instances, which are always locked first.
        yield TablePart("moved", moves, now, must_touch=len(moves))
    marks = [_mark(change) for change in changes if change.moves_marks]
    if marks:
        yield TablePart("marked", marks)
    births = [_birth(change) for change in changes if change.expected == 0]
    if births:
        yield TablePart("born", births, now)
    yield from consumed_parts([claim for change in changes for claim in change.consumed])
    if any(change.withdrawn or change.cancelled for change in changes):
        yield from _removals(changes)
    for name, new_of, row_of, is_dated in _TABLE:
        rows = [row_of(each) for change in changes for each in new_of(change)]
        if rows:
            yield TablePart(name, rows, now if is_dated else None)
    snapshots = [_snapshot(change.header, change.snapshot) for change in changes if change.snapshot is not None]
    if snapshots:
        yield TablePart("snapshots", snapshots)
    if any(change.recalls or change.held_effects or change.held_timers for change in changes):
        yield from _held_parts(changes, now)
        yield from _recall_parts(changes, now)


def consumed_parts(claims: Sequence[Claim]) -> Iterator[TablePart]:
    """Yield the parts that consume the causes of the changes. If one is gone, the commit fails."""
    for kind, rows in _sorted_claims(claims):
        yield TablePart(f"consumed_{kind}", rows, must_touch=len(rows))


def finished_parts(claims: Sequence[Claim]) -> Iterator[TablePart]:
    """Yield the parts for work that ended without a change."""
    for kind, rows in _sorted_claims(claims):
        yield TablePart(f"finished_{kind}", rows)


def receipts_part(receipts: Sequence[Receipt], now: datetime) -> TablePart:
    """Build the part for receipts of commands that changed nothing."""
    return TablePart("receipts", [_receipt(each) for each in receipts], now)


def gates_part(gates: Sequence[Gate]) -> TablePart:
    """Build the part that checks the facts of decisions. If one has another version, the commit fails."""
    return TablePart("gates", [(*each,) for each in gates])


def observations_part(observations: Sequence[ObservationRecord]) -> TablePart:
    """Build the part for observed inputs."""
    return TablePart("observations", [_observation(each) for each in observations])


def _sorted_claims(claims: Sequence[Claim]) -> Iterator[tuple[str, list[Row]]]:
    """Group the claims by kind."""
    if not claims:
        return
    effects = [effect_key(claim) for claim in claims if isinstance(claim, EffectClaim)]
    if effects:
        yield "effects", effects
    timers = [timer_key(claim) for claim in claims if isinstance(claim, TimerClaim)]
    if timers:
        yield "timers", timers
    messages: list[Row] = [(claim.id,) for claim in claims if isinstance(claim, InboxClaim)]
    if messages:
        yield "messages", messages
    letters: list[Row] = [(claim.id,) for claim in claims if isinstance(claim, LetterClaim)]
    if letters:
        yield "letters", letters


def _removals(changes: Sequence[InstanceChange]) -> Iterator[TablePart]:
    """Yield the removals. They precede all insertions, because a timer may replace another."""
    withdrawn: list[Row] = [(change.header.id, number) for change in changes for number in change.withdrawn]
    if withdrawn:
        yield TablePart("withdrawn", withdrawn)
        yield TablePart("withdrawn_letters", withdrawn)
    cancelled: list[Row] = [(change.header.id, key) for change in changes for key in change.cancelled]
    if cancelled:  # If one of them is gone, the history would be wrong.
        yield TablePart("cancelled", cancelled, must_touch=len(cancelled))


def _held_parts(changes: Sequence[InstanceChange], now: datetime) -> Iterator[TablePart]:
    """Yield the parts that mark new work under a pause as held."""
    effects: list[Row] = [(change.header.id, number) for change in changes for number in change.held_effects]
    if effects:
        yield TablePart("held_effects", effects, now)
    timers: list[Row] = [(change.header.id, *each) for change in changes for each in change.held_timers]
    if timers:
        yield TablePart("held_timers", timers, now)


def _recall_parts(changes: Sequence[InstanceChange], now: datetime) -> Iterator[TablePart]:
    """Yield the parts that recall effects, each with its message, and those that request a stop."""
    recalls = [(change.header.id, recall) for change in changes for recall in change.recalls]
    rows: list[Row] = [(identity, each.number, *message_row(each.message)) for identity, each in recalls]
    if rows:
        yield TablePart("recalled", rows, now)
        yield TablePart("recalled_letters", rows, now)
    stops: list[Row] = [(identity, each.number) for identity, each in recalls if each.stop]
    if stops:
        yield TablePart("stopped", stops)


# -- rows


def effect_key(claim: EffectClaim) -> Row:
    """Return the key of a claimed effect."""
    return (claim.instance, claim.number, claim.worker, claim.fence)


def timer_key(claim: TimerClaim) -> Row:
    """Return the key of a pending timer."""
    return (claim.instance, claim.key, claim.number)


def message_row(each: StoredMessage) -> Row:
    """Build an inbox row."""
    where = each.address
    return (
        where.tenant, each.target, where.definition, where.key, where.instance, each.language, each.type, each.version, each.data,
        each.command_id, each.actor, each.comment, each.definition_version, each.parent, each.context, where.partition,
    )  # fmt: skip


def _birth(change: InstanceChange) -> Row:
    head = change.header
    return (
        head.id, head.tenant, head.definition, head.definition_version, head.kind, head.key or None, head.status, head.reason,
        head.begun, head.version, head.issued, head.commits, head.parent, head.ended_at, head.partition or None, head.started_by,
        head.paused_at, head.deadline_at, head.search or None, head.next_step or None,
    )  # fmt: skip


def _move(change: InstanceChange) -> Row:
    head = change.header
    return (
        head.id, head.tenant, change.expected, head.status, head.reason, head.begun, head.version, head.issued, head.commits,
        head.ended_at,
    )  # fmt: skip


def _mark(change: InstanceChange) -> Row:
    head = change.header
    return (head.id, head.paused_at, head.deadline_at, head.search or None, head.next_step or None)


def _event(each: StoredEvent) -> Row:
    return (
        each.instance, each.sequence, each.tenant, each.type, each.version, each.data, each.actor, each.comment, each.cause,
        each.on_behalf_of or None, each.trace or None,
    )  # fmt: skip


def _effect(each: StoredEffect) -> Row:
    return (
        each.instance, each.number, each.tenant, each.definition, each.language, each.handler, each.type, each.version, each.data,
        each.options, each.priority, each.rank, each.parked_until, each.owner, each.fence, each.attempts, each.context,
    )  # fmt: skip


def _timer(each: StoredTimer) -> Row:
    return (
        each.instance, each.key, each.number, each.tenant, each.definition, each.language, each.type, each.version, each.data,
        each.due_at, each.context,
    )  # fmt: skip


def _receipt(each: Receipt) -> Row:
    return (*each.key, each.instance, each.version, each.digest)


def _snapshot(head: InstanceHeader, kept: Snapshot) -> Row:
    return (head.id, head.tenant, kept.version, kept.state_version, kept.data, kept.fingerprint)


def _observation(each: ObservationRecord) -> Row:
    return (
        each.tenant, each.instance, each.definition, each.input, each.from_status, each.to_status, each.skipped, each.at,
    )  # fmt: skip


_TABLE: tuple[tuple[str, Callable[[InstanceChange], Sequence[Any]], Callable[[Any], Row], bool], ...] = (
    ("events", attrgetter("events"), _event, True),
    ("effects", attrgetter("effects"), _effect, True),
    ("timers", attrgetter("timers"), _timer, False),
    ("messages", attrgetter("messages"), message_row, True),
    ("receipts", attrgetter("receipts"), _receipt, True),
)
"""Parts that only insert rows: their source, their conversion, and whether they store the time."""
