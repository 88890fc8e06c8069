"""A commit taken apart: for each table that it touches, the columns of its rows.

Each function answers for one named part of `commits.sql` and gives the columns of that part, in the order of its placeholders, or
nothing when the commit has no such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from holdfast.store.postgres.columns import Blobs, Booleans, Column, Instants, Integers, Longs, Texts, Uuids
from holdfast.store.shapes import Change, Claim, EffectClaim, InboxClaim, Observation, StoredMessage, TimerClaim

T = TypeVar("T")

Columns = list[Column[Any]]


class Part(msgspec.Struct, frozen=True):
    """One part of a commit."""

    name: str
    columns: Columns
    now: datetime | None = None
    """The instant of the commit, for parts that write it down."""
    must_touch: int | None = None
    """How many rows it must touch for the commit to stand; None means any number."""


def parts_of(changes: Sequence[Change], now: datetime) -> Iterator[Part]:
    """The parts of a commit of these changes, each made when it is asked for."""
    for make in _GATES:  # First, because they lock the instances, which everybody locks first.
        if (part := make(changes, now)) is not None:
            yield part
    yield from consumed_parts([claim for change in changes for claim in change.consumed])
    for make in _MAKERS:
        if (part := make(changes, now)) is not None:
            yield part
    if any(change.recalls for change in changes):
        yield from _recall_parts(changes, now)


def _born(changes: Sequence[Change], now: datetime) -> Part | None:
    heads = [change.header for change in changes if change.expected == 0]
    if not heads:
        return None
    return Part(
        "born",
        [
            Uuids([head.id for head in heads]),
            Texts([head.tenant for head in heads]),
            Texts([head.definition for head in heads]),
            Texts([head.definition_version for head in heads]),
            Texts([head.key or None for head in heads]),
            Texts([head.status for head in heads]),
            Texts([head.reason for head in heads]),
            Integers([head.version for head in heads]),
            Integers([head.issued for head in heads]),
            Uuids([head.parent for head in heads]),
            Instants([head.ended_at for head in heads]),
        ],
        now,
    )


def _moved(changes: Sequence[Change], now: datetime) -> Part | None:
    moves = [change for change in changes if change.expected != 0]
    if not moves:
        return None
    heads = [change.header for change in moves]
    return Part(
        "moved",
        [
            Uuids([head.id for head in heads]),
            Texts([head.tenant for head in heads]),
            Integers([change.expected for change in moves]),
            Texts([head.status for head in heads]),
            Texts([head.reason for head in heads]),
            Integers([head.version for head in heads]),
            Integers([head.issued for head in heads]),
            Instants([head.ended_at for head in heads]),
        ],
        now,
        must_touch=len(moves),
    )


def effect_columns(claims: Sequence[EffectClaim]) -> Columns:
    """The columns by which a held effect is found."""
    return [
        Uuids([claim.instance for claim in claims]),
        Integers([claim.number for claim in claims]),
        Uuids([claim.worker for claim in claims]),
        Integers([claim.fence for claim in claims]),
    ]


def timer_columns(claims: Sequence[TimerClaim]) -> Columns:
    """The columns by which a set timer is found."""
    return [
        Uuids([claim.instance for claim in claims]),
        Texts([claim.key for claim in claims]),
        Integers([claim.number for claim in claims]),
    ]


def _claim_columns(claims: Sequence[Claim]) -> Iterator[tuple[str, Columns, int]]:
    """The claims by kind, as columns, and how many there are of each."""
    effects = [claim for claim in claims if isinstance(claim, EffectClaim)]
    timers = [claim for claim in claims if isinstance(claim, TimerClaim)]
    messages = [claim.id for claim in claims if isinstance(claim, InboxClaim)]
    if effects:
        yield "effects", effect_columns(effects), len(effects)
    if timers:
        yield "timers", timer_columns(timers), len(timers)
    if messages:
        yield "messages", [Longs(messages)], len(messages)


def consumed_parts(claims: Sequence[Claim]) -> Iterator[Part]:
    """What led to the changes is used up by them; if any of it is gone, they do not stand."""
    for kind, columns, count in _claim_columns(claims):
        yield Part(f"consumed_{kind}", columns, must_touch=count)


def finished_parts(claims: Sequence[Claim]) -> Iterator[Part]:
    """Work that ended without a change."""
    for kind, columns, _ in _claim_columns(claims):
        yield Part(f"finished_{kind}", columns)


def _withdrawn(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [(change.header.id, number) for change in changes for number in change.withdrawn]
    return Part("withdrawn", [Uuids([row[0] for row in rows]), Integers([row[1] for row in rows])]) if rows else None


def _recall_parts(changes: Sequence[Change], now: datetime) -> list[Part]:
    """Effects that are taken back, each with the message that says so, and those that are to be stopped otherwise."""
    rows = [(change.header.id, recall) for change in changes for recall in change.recalls]
    stops = [(identity, recall.number) for identity, recall in rows if recall.stop]
    parts = [
        Part(
            "recalled",
            [
                Uuids([row[0] for row in rows]),
                Integers([recall.number for _, recall in rows]),
                *message_columns([recall.message for _, recall in rows]),
            ],
            now,
        ),
    ]
    if stops:
        parts.append(Part("stopped", [Uuids([row[0] for row in stops]), Integers([row[1] for row in stops])]))
    return parts


def _cancelled(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [(change.header.id, key) for change in changes for key in change.cancelled]
    if not rows:
        return None
    return Part("cancelled", [Uuids([row[0] for row in rows]), Texts([row[1] for row in rows])], must_touch=len(rows))


def _events(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [event for change in changes for event in change.events]
    if not rows:
        return None
    return Part(
        "events",
        [
            Uuids([row.instance for row in rows]),
            Integers([row.sequence for row in rows]),
            Texts([row.tenant for row in rows]),
            Texts([row.type for row in rows]),
            Integers([row.version for row in rows]),
            Blobs([row.data for row in rows]),
            Texts([row.actor for row in rows]),
            Texts([row.comment for row in rows]),
            Texts([row.cause for row in rows]),
        ],
        now,
    )


def _effects(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [effect for change in changes for effect in change.effects]
    if not rows:
        return None
    return Part(
        "effects",
        [
            Uuids([row.instance for row in rows]),
            Integers([row.number for row in rows]),
            Texts([row.tenant for row in rows]),
            Texts([row.definition for row in rows]),
            Texts([row.handler for row in rows]),
            Texts([row.type for row in rows]),
            Integers([row.version for row in rows]),
            Blobs([row.data for row in rows]),
            Blobs([row.options for row in rows]),
            Integers([row.priority for row in rows]),
            Longs([row.rank for row in rows]),
            Instants([row.parked_until for row in rows]),
            Uuids([row.owner for row in rows]),
            Integers([row.fence for row in rows]),
            Integers([row.attempts for row in rows]),
        ],
        now,
    )


def _timers(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [timer for change in changes for timer in change.timers]
    if not rows:
        return None
    return Part(
        "timers",
        [
            Uuids([row.instance for row in rows]),
            Texts([row.key for row in rows]),
            Integers([row.number for row in rows]),
            Texts([row.tenant for row in rows]),
            Texts([row.definition for row in rows]),
            Texts([row.type for row in rows]),
            Integers([row.version for row in rows]),
            Blobs([row.data for row in rows]),
            Instants([row.due_at for row in rows]),
        ],
    )


def message_columns(rows: Sequence[StoredMessage]) -> Columns:
    """The columns of new inbox rows."""
    return [
        Texts([row.address.tenant for row in rows]),
        Texts([row.target for row in rows]),
        Texts([row.address.definition for row in rows]),
        Texts([row.address.key for row in rows]),
        Uuids([row.address.instance for row in rows]),
        Texts([row.type for row in rows]),
        Integers([row.version for row in rows]),
        Blobs([row.data for row in rows]),
        Texts([row.command_id for row in rows]),
        Texts([row.actor for row in rows]),
        Texts([row.comment for row in rows]),
        Texts([row.definition_version for row in rows]),
        Uuids([row.parent for row in rows]),
    ]


def _messages(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [message for change in changes for message in change.messages]
    return Part("messages", message_columns(rows), now) if rows else None


def _receipts(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [receipt for change in changes for receipt in change.receipts]
    if not rows:
        return None
    return Part(
        "receipts",
        [
            Texts([row.key.tenant for row in rows]),
            Texts([row.key.scope for row in rows]),
            Texts([row.key.key for row in rows]),
            Uuids([row.instance for row in rows]),
            Integers([row.version for row in rows]),
        ],
        now,
    )


def _snapshots(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [(change.header, change.snapshot) for change in changes if change.snapshot is not None]
    if not rows:
        return None
    return Part(
        "snapshots",
        [
            Uuids([head.id for head, _ in rows]),
            Texts([head.tenant for head, _ in rows]),
            Integers([kept.version for _, kept in rows]),
            Integers([kept.state_version for _, kept in rows]),
            Blobs([kept.data for _, kept in rows]),
        ],
    )


def observations_part(rows: Sequence[Observation]) -> Part:
    """Observed inputs."""
    return Part(
        "observations",
        [
            Texts([row.tenant for row in rows]),
            Uuids([row.instance for row in rows]),
            Texts([row.definition for row in rows]),
            Texts([row.input for row in rows]),
            Texts([row.from_status for row in rows]),
            Texts([row.to_status for row in rows]),
            Booleans([row.skipped for row in rows]),
            Instants([row.at for row in rows]),
        ],
    )


_Maker = Callable[[Sequence[Change], datetime], Part | None]
_GATES: tuple[_Maker, ...] = (_moved, _born)
_MAKERS: tuple[_Maker, ...] = (
    _withdrawn,
    _cancelled,
    _events,
    _effects,
    _timers,
    _messages,
    _receipts,
    _snapshots,
)
