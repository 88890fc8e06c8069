"""A commit taken apart: for each table that it touches, the columns of its rows.

Each function answers for one named part of `commits.sql` and gives the arguments of that part, in the order of its placeholders, or
nothing when the commit has no such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from holdfast.store.postgres.arrays import blobs, booleans, instants, integers, longs, texts, uuids
from holdfast.store.shapes import Change, Claim, EffectClaim, InboxClaim, Observation, StoredMessage, TimerClaim

T = TypeVar("T")

Arguments = list[object]


class Part(msgspec.Struct, frozen=True):
    """One part of the statement, and how many rows it must touch for the commit to stand; None means any number."""

    name: str
    arguments: Arguments
    must_touch: int | None = None


def parts_of(changes: Sequence[Change], now: datetime) -> list[Part]:
    """The parts of a commit of these changes."""
    found = [make(changes, now) for make in _MAKERS]
    claims = [claim for change in changes for claim in change.consumed]
    parts = [*consumed_parts(claims), *(part for part in found if part is not None)]
    if any(change.recalls for change in changes):
        parts += _recall_parts(changes, now)
    return parts


def _born(changes: Sequence[Change], now: datetime) -> Part | None:
    heads = [change.header for change in changes if change.expected == 0]
    if not heads:
        return None
    return Part(
        "born",
        [
            uuids([head.id for head in heads]),
            texts([head.tenant for head in heads]),
            texts([head.definition for head in heads]),
            texts([head.definition_version for head in heads]),
            texts([head.key or None for head in heads]),
            texts([head.status for head in heads]),
            texts([head.reason for head in heads]),
            integers([head.version for head in heads]),
            integers([head.issued for head in heads]),
            uuids([head.parent for head in heads]),
            instants([head.ended_at for head in heads]),
            now,
        ],
    )


def _moved(changes: Sequence[Change], now: datetime) -> Part | None:
    moves = [change for change in changes if change.expected != 0]
    if not moves:
        return None
    heads = [change.header for change in moves]
    return Part(
        "moved",
        [
            uuids([head.id for head in heads]),
            texts([head.tenant for head in heads]),
            integers([change.expected for change in moves]),
            texts([head.status for head in heads]),
            texts([head.reason for head in heads]),
            integers([head.version for head in heads]),
            integers([head.issued for head in heads]),
            instants([head.ended_at for head in heads]),
            now,
        ],
        must_touch=len(moves),
    )


def effect_columns(claims: Sequence[EffectClaim]) -> Arguments:
    """The columns by which a held effect is found."""
    return [
        uuids([claim.instance for claim in claims]),
        integers([claim.number for claim in claims]),
        uuids([claim.worker for claim in claims]),
        integers([claim.fence for claim in claims]),
    ]


def timer_columns(claims: Sequence[TimerClaim]) -> Arguments:
    """The columns by which a set timer is found."""
    return [
        uuids([claim.instance for claim in claims]),
        texts([claim.key for claim in claims]),
        integers([claim.number for claim in claims]),
    ]


def _claim_columns(claims: Sequence[Claim]) -> list[tuple[str, Arguments, int]]:
    """The claims by kind, as columns, and how many there are of each."""
    effects = [claim for claim in claims if isinstance(claim, EffectClaim)]
    timers = [claim for claim in claims if isinstance(claim, TimerClaim)]
    messages = [claim.id for claim in claims if isinstance(claim, InboxClaim)]
    found: list[tuple[str, Arguments, int]] = []
    if effects:
        found.append(("effects", effect_columns(effects), len(effects)))
    if timers:
        found.append(("timers", timer_columns(timers), len(timers)))
    if messages:
        found.append(("messages", [longs(messages)], len(messages)))
    return found


def consumed_parts(claims: Sequence[Claim]) -> list[Part]:
    """What led to the changes is used up by them; if any of it is gone, they do not stand."""
    return [Part(f"consumed_{kind}", columns, must_touch=count) for kind, columns, count in _claim_columns(claims)]


def finished_parts(claims: Sequence[Claim]) -> list[Part]:
    """Work that ended without a change."""
    return [Part(f"finished_{kind}", columns) for kind, columns, _ in _claim_columns(claims)]


def _withdrawn(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [(change.header.id, number) for change in changes for number in change.withdrawn]
    return Part("withdrawn", [uuids([row[0] for row in rows]), integers([row[1] for row in rows])]) if rows else None


def _recall_parts(changes: Sequence[Change], now: datetime) -> list[Part]:
    """Effects that are taken back, each with the message that says so, and those that are to be stopped otherwise."""
    rows = [(change.header.id, recall) for change in changes for recall in change.recalls]
    stops = [(identity, recall.number) for identity, recall in rows if recall.stop]
    parts = [
        Part("recalled", [uuids([row[0] for row in rows]), integers([recall.number for _, recall in rows])]),
        Part("recall_messages", message_columns([recall.message for _, recall in rows], now)),
    ]
    if stops:
        parts.append(Part("stopped", [uuids([row[0] for row in stops]), integers([row[1] for row in stops])]))
    return parts


def _cancelled(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [(change.header.id, key) for change in changes for key in change.cancelled]
    if not rows:
        return None
    return Part("cancelled", [uuids([row[0] for row in rows]), texts([row[1] for row in rows])], must_touch=len(rows))


def _events(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [event for change in changes for event in change.events]
    if not rows:
        return None
    return Part(
        "events",
        [
            uuids([row.instance for row in rows]),
            integers([row.sequence for row in rows]),
            texts([row.tenant for row in rows]),
            texts([row.type for row in rows]),
            integers([row.version for row in rows]),
            blobs([row.data for row in rows]),
            texts([row.actor for row in rows]),
            texts([row.comment for row in rows]),
            texts([row.cause for row in rows]),
            now,
        ],
    )


def _effects(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [effect for change in changes for effect in change.effects]
    if not rows:
        return None
    return Part(
        "effects",
        [
            uuids([row.instance for row in rows]),
            integers([row.number for row in rows]),
            texts([row.tenant for row in rows]),
            texts([row.definition for row in rows]),
            texts([row.handler for row in rows]),
            texts([row.type for row in rows]),
            integers([row.version for row in rows]),
            blobs([row.data for row in rows]),
            blobs([row.options for row in rows]),
            integers([row.priority for row in rows]),
            longs([row.rank for row in rows]),
            instants([row.parked_until for row in rows]),
            uuids([row.owner for row in rows]),
            integers([row.fence for row in rows]),
            integers([row.attempts for row in rows]),
            now,
        ],
    )


def _timers(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [timer for change in changes for timer in change.timers]
    if not rows:
        return None
    return Part(
        "timers",
        [
            uuids([row.instance for row in rows]),
            texts([row.key for row in rows]),
            integers([row.number for row in rows]),
            texts([row.tenant for row in rows]),
            texts([row.definition for row in rows]),
            texts([row.type for row in rows]),
            integers([row.version for row in rows]),
            blobs([row.data for row in rows]),
            instants([row.due_at for row in rows]),
        ],
    )


def message_columns(rows: Sequence[StoredMessage], now: datetime) -> Arguments:
    """The columns of new inbox rows."""
    return [
        texts([row.address.tenant for row in rows]),
        texts([row.target for row in rows]),
        texts([row.address.definition for row in rows]),
        texts([row.address.key for row in rows]),
        uuids([row.address.instance for row in rows]),
        texts([row.type for row in rows]),
        integers([row.version for row in rows]),
        blobs([row.data for row in rows]),
        texts([row.command_id for row in rows]),
        texts([row.actor for row in rows]),
        texts([row.comment for row in rows]),
        texts([row.definition_version for row in rows]),
        uuids([row.parent for row in rows]),
        now,
    ]


def _messages(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [message for change in changes for message in change.messages]
    return Part("messages", message_columns(rows, now)) if rows else None


def _receipts(changes: Sequence[Change], now: datetime) -> Part | None:
    rows = [receipt for change in changes for receipt in change.receipts]
    if not rows:
        return None
    return Part(
        "receipts",
        [
            texts([row.key.tenant for row in rows]),
            texts([row.key.scope for row in rows]),
            texts([row.key.key for row in rows]),
            uuids([row.instance for row in rows]),
            integers([row.version for row in rows]),
            now,
        ],
    )


def _snapshots(changes: Sequence[Change], _now: datetime) -> Part | None:
    rows = [(change.header, change.snapshot) for change in changes if change.snapshot is not None]
    if not rows:
        return None
    return Part(
        "snapshots",
        [
            uuids([head.id for head, _ in rows]),
            texts([head.tenant for head, _ in rows]),
            integers([kept.version for _, kept in rows]),
            integers([kept.state_version for _, kept in rows]),
            blobs([kept.data for _, kept in rows]),
        ],
    )


def observations_part(rows: Sequence[Observation]) -> Part:
    """Observed inputs."""
    return Part(
        "observations",
        [
            texts([row.tenant for row in rows]),
            uuids([row.instance for row in rows]),
            texts([row.definition for row in rows]),
            texts([row.input for row in rows]),
            texts([row.from_status for row in rows]),
            texts([row.to_status for row in rows]),
            booleans([row.skipped for row in rows]),
            instants([row.at for row in rows]),
        ],
    )


_MAKERS: tuple[Callable[[Sequence[Change], datetime], Part | None], ...] = (
    _born,
    _moved,
    _withdrawn,
    _cancelled,
    _events,
    _effects,
    _timers,
    _messages,
    _receipts,
    _snapshots,
)
