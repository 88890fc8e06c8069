"""A commit taken apart: for each table that it touches, its rows.

Each function answers for one named part of `commits.sql` and gives rows with values in the order of its placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from holdfast.kernel.history import StoredEvent
from holdfast.store.postgres.columns import Row
from holdfast.store.shapes import (
    Change,
    Claim,
    EffectClaim,
    InboxClaim,
    Observation,
    Receipt,
    StoredEffect,
    StoredMessage,
    StoredTimer,
    TimerClaim,
)


class Part(msgspec.Struct, frozen=True, gc=False):
    """One part of a commit."""

    name: str
    rows: list[Row]
    now: datetime | None = None
    """The instant of the commit, for parts that write it down."""
    must_touch: int | None = None
    """How many rows it must touch for the commit to stand; None means any number."""


def parts_of(changes: Sequence[Change], now: datetime) -> Iterator[Part]:
    """The parts of a commit of these changes, each made when it is asked for."""
    moves = [_move(change) for change in changes if change.expected != 0]
    if moves:  # First, because it locks the instances, which everybody locks first.
        yield Part("moved", moves, now, must_touch=len(moves))
    births = [_birth(change) for change in changes if change.expected == 0]
    if births:
        yield Part("born", births, now)
    yield from consumed_parts([claim for change in changes for claim in change.consumed])
    for name, rows_of, is_dated in _TABLE:
        rows = [row for change in changes for row in rows_of(change)]
        if rows:
            yield Part(name, rows, now if is_dated else None, must_touch=len(rows) if name == "cancelled" else None)
    if any(change.recalls for change in changes):
        yield from _recall_parts(changes, now)


def consumed_parts(claims: Sequence[Claim]) -> Iterator[Part]:
    """What led to the changes is used up by them; if any of it is gone, they do not stand."""
    for kind, rows in _sorted_claims(claims):
        yield Part(f"consumed_{kind}", rows, must_touch=len(rows))


def finished_parts(claims: Sequence[Claim]) -> Iterator[Part]:
    """Work that ended without a change."""
    for kind, rows in _sorted_claims(claims):
        yield Part(f"finished_{kind}", rows)


def observations_part(observations: Sequence[Observation]) -> Part:
    """Observed inputs."""
    return Part("observations", [_observation(each) for each in observations])


def _sorted_claims(claims: Sequence[Claim]) -> Iterator[tuple[str, list[Row]]]:
    """The claims by kind."""
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


def _recall_parts(changes: Sequence[Change], now: datetime) -> Iterator[Part]:
    """Effects that are taken back, each with the message that says so, and those that are to be stopped otherwise."""
    recalls = [(change.header.id, recall) for change in changes for recall in change.recalls]
    yield Part("recalled", [(identity, each.number, *message_row(each.message)) for identity, each in recalls], now)
    stops: list[Row] = [(identity, each.number) for identity, each in recalls if each.stop]
    if stops:
        yield Part("stopped", stops)


# -- rows


def effect_key(claim: EffectClaim) -> Row:
    """How a held effect is found."""
    return (claim.instance, claim.number, claim.worker, claim.fence)


def timer_key(claim: TimerClaim) -> Row:
    """How a set timer is found."""
    return (claim.instance, claim.key, claim.number)


def message_row(each: StoredMessage) -> Row:
    """A new inbox row."""
    where = each.address
    return (
        where.tenant, each.target, where.definition, where.key, where.instance, each.type, each.version, each.data, each.command_id,
        each.actor, each.comment, each.definition_version, each.parent,
    )  # fmt: skip


def _birth(change: Change) -> Row:
    head = change.header
    return (
        head.id, head.tenant, head.definition, head.definition_version, head.key or None, head.status, head.reason, head.version,
        head.issued, head.parent, head.ended_at,
    )  # fmt: skip


def _move(change: Change) -> Row:
    head = change.header
    return (
        head.id, head.tenant, change.expected, head.status, head.reason, head.version, head.issued, head.ended_at,
    )  # fmt: skip


def _event(each: StoredEvent) -> Row:
    return (
        each.instance, each.sequence, each.tenant, each.type, each.version, each.data, each.actor, each.comment, each.cause,
    )  # fmt: skip


def _effect(each: StoredEffect) -> Row:
    return (
        each.instance, each.number, each.tenant, each.definition, each.handler, each.type, each.version, each.data, each.options,
        each.priority, each.rank, each.parked_until, each.owner, each.fence, each.attempts,
    )  # fmt: skip


def _timer(each: StoredTimer) -> Row:
    return (
        each.instance, each.key, each.number, each.tenant, each.definition, each.type, each.version, each.data, each.due_at,
    )  # fmt: skip


def _receipt(each: Receipt) -> Row:
    return (*each.key, each.instance, each.version)


def _snapshot(change: Change) -> list[Row]:
    kept = change.snapshot
    if kept is None:
        return []
    return [(change.header.id, change.header.tenant, kept.version, kept.state_version, kept.data)]


def _observation(each: Observation) -> Row:
    return (
        each.tenant, each.instance, each.definition, each.input, each.from_status, each.to_status, each.skipped, each.at,
    )  # fmt: skip


_TABLE: tuple[tuple[str, Callable[[Change], Iterable[Row]], bool], ...] = (
    ("withdrawn", lambda change: [(change.header.id, number) for number in change.withdrawn], False),
    ("cancelled", lambda change: [(change.header.id, key) for key in change.cancelled], False),
    ("events", lambda change: map(_event, change.events), True),
    ("effects", lambda change: map(_effect, change.effects), True),
    ("timers", lambda change: map(_timer, change.timers), False),
    ("messages", lambda change: map(message_row, change.messages), True),
    ("receipts", lambda change: map(_receipt, change.receipts), True),
    ("snapshots", _snapshot, False),
)
"""The other parts, their rows, and whether they write the instant down. Of cancelled timers none may be gone: the history would lie."""
