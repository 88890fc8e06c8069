"""What is found by those who look: due work, news of the heartbeat, work that nobody can do, waits for signals."""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.kernel.ids import InstanceId
from holdfast.store.shapes import EffectClaim, Maintenance, StoredTimer


class Due(msgspec.Struct, frozen=True):
    """What is due now, and when the next thing will be."""

    timers: list[StoredTimer]
    next_at: datetime | None


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker learns from its own heartbeat."""

    now: datetime
    """The database's time."""
    lost: list[EffectClaim]
    """Claims that are void: stop working on them."""
    stopping: list[EffectClaim]
    """Claims that are good, of effects whose instances want them stopped; what comes of them still counts."""
    revived: list[str]
    """Handlers of effects that were taken from workers that died."""
    maintenance: Maintenance


class Unhandled(msgspec.Struct, frozen=True):
    """A handler that no live worker has, although work waits for it."""

    handler: str
    waiting: int
    """How many effects wait, up to the limit that was asked for."""
    since: datetime
    """When the oldest of these was written."""


class StoredSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A wait for a signal."""

    instance: InstanceId
    number: int
    signal: str
    correlation: str
    expires_at: datetime | None
    opened_at: datetime
