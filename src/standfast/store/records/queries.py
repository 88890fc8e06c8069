"""Results of queries: rows of the feed, due work, heartbeats, work without a handler, and backlogs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import EffectClaim, Maintenance, StoredTimer, Word


class DueWorkRecord(msgspec.Struct, frozen=True):
    """The work that is due, and the time of the next item."""

    timers: list[StoredTimer]
    next_at: datetime | None


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a worker's heartbeat."""

    now: datetime
    """Return the database's time."""
    lost: list[EffectClaim]
    """Void claims: their calls must be cancelled."""
    stopping: list[EffectClaim]
    """Valid claims of effects that their instances want to stop. Their results still count."""
    unawaited: list[EffectClaim]
    """Those of them whose instances have ended, so that no result is expected."""
    revived: list[str]
    """Handlers of effects that were released from dead workers."""
    maintenance: Maintenance


class Unhandled(msgspec.Struct, frozen=True):
    """A handler without a live worker for which work waits."""

    handler: str
    waiting: int
    """Number of waiting effects, up to the requested limit."""
    since: datetime
    """When the oldest of these was written."""


class WaitingWord(msgspec.Struct, frozen=True):
    """A message type of waiting work, and since when the oldest item waits."""

    kind: Literal["effect", "timer", "inbox"]
    handler: str
    """Handler of effects. Empty for timers and messages."""
    word: Word
    since: datetime
    """Due time of the timer, or time at which the message or effect was written."""


class Remains(NamedTuple):
    """The dependents of an ended instance. None of them may be deleted implicitly."""

    effects: int
    """Number of pending effects."""
    letters: int
    """Number of dead letters."""
    messages: int
    """Number of accepted commands for it."""
    unread_by: list[str]
    """Projections that have not read its last event."""


class NeededError(Exception):
    """An ended instance was not deleted, because something still needs it."""

    def __init__(self, remains: Remains) -> None:
        self.remains = remains
        super().__init__(str(remains))


class PartError(Exception):
    """An ended instance was not deleted, because the instance that it is a part of may still compensate it."""

    def __init__(self, whole: InstanceId) -> None:
        self.whole = whole
        super().__init__(str(whole))


class StepName(NamedTuple):
    """The node of a step."""

    node: str
    compensates: int | None
    """Number of the step that it compensates."""


class FedEvent(StoredEvent, frozen=True, kw_only=True, gc=False):
    """An event of the feed, with immutable columns of its instance's row."""

    definition: str
    definition_version: str
    key: str


class Headline(NamedTuple):
    """An event of the feed without its content."""

    position: int
    tenant: str
    instance: InstanceId
    sequence: int
    type: str
    definition: str
    """Empty if the instance was just deleted."""


class ProjectionState(msgspec.Struct, frozen=True, kw_only=True):
    """Return how far a projection has read."""

    name: str
    position: int
    """Position of the last event that it has read. 0 without one."""
    lag: int
    """Number of unread events, counted up to a limit."""
    updated_at: datetime | None
    """Time of its last progress or failure. None without any."""
    error: str = ""
    """Its error. Empty while it progresses."""
    failed_at: datetime | None = None
    """Since when it does not progress."""


class Archived(NamedTuple):
    """An archived version of a definition."""

    tenant: str
    name: str
    version: str


class ArchivedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """An archived version, with actor, time and reason."""

    tenant: str
    name: str
    version: str
    archived_by: str
    archived_at: datetime | None
    archived_why: str

    @property
    def key(self) -> Archived:
        """The identity of the version."""
        return Archived(self.tenant, self.name, self.version)


class Archiving(NamedTuple):
    """Actor, time and reason of an archiving."""

    by: str
    at: datetime
    why: str


class PublishedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A published version of a definition, in a list."""

    tenant: str
    """Owner. `*` for one that all tenants share."""
    name: str
    version: str
    kind: str
    """Front end that it was written for."""
    hash: str
    """Hash of the content, to compare versions."""
    description: str
    """The author's description."""
    published_by: str
    published_at: datetime


class BacklogRecord(msgspec.Struct, frozen=True):
    """Pending work by handler or definition."""

    kind: Literal["effect", "timer", "inbox"]
    name: str
    """Handler of effects, or definition of timers and messages."""
    count: int
    taken: int = 0
    """Number of claimed items."""
    abandoned: int = 0
    """Number of items claimed by dead workers and not released yet."""
    waits_since: datetime | None = None
    """Since when the oldest executable item waits. None without one."""


class GivenUpRecord(msgspec.Struct, frozen=True):
    """The number of a tenant's dead letters."""

    tenant: str
    count: int


class TransitionRecord(msgspec.Struct, frozen=True):
    """An observed status transition and its count."""

    from_status: str
    input: str
    to_status: str
    count: int
