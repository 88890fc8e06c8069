"""What is found by those who look: rows of the projections, due work, news of the heartbeat, work that nobody can do, backlogs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

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


class StoredStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step row."""

    instance: InstanceId
    number: int
    node: str
    token: str
    visit: int
    kind: str
    status: str
    compensates: int | None
    retry_of: int | None
    wait_kind: str
    attempts: int
    outcome: str
    error: str
    input: bytes | None
    output: bytes | None
    opened_at: datetime
    moved_at: datetime


class TaskPlace(NamedTuple):
    """Where a question stands in the list of open ones, which is in the order of asking."""

    opened_at: datetime
    instance: InstanceId
    number: int


class StoredTask(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a person, with the answer once there is one."""

    instance: InstanceId
    number: int
    subject: str
    role: str
    due_at: datetime | None
    data: bytes | None
    outcome: str | None
    actor: str
    comment: str
    opened_at: datetime
    closed_at: datetime | None

    @property
    def place(self) -> TaskPlace:
        """Give it as `after` for the page that follows this question."""
        return TaskPlace(self.opened_at, self.instance, self.number)


class Backlog(msgspec.Struct, frozen=True):
    """How much work waits, by what would do it."""

    kind: Literal["effect", "timer", "inbox"]
    name: str
    """Handler of effects, definition of timers and messages."""
    count: int


class Transition(msgspec.Struct, frozen=True):
    """An observed move, and how often it was seen."""

    from_status: str
    input: str
    to_status: str
    count: int
