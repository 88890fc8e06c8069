"""What is found by those who look: rows of the projections, the feed, due work, news of the heartbeat, work that nobody can do, backlogs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import EffectClaim, Maintenance, StoredTimer, Word


class DueWorkRecord(msgspec.Struct, frozen=True):
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
    unawaited: list[EffectClaim]
    """Those of them whose instances have ended: nobody waits for what comes of them."""
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


class WaitingWord(msgspec.Struct, frozen=True):
    """A word that work waits with, and since when the first piece of it does."""

    kind: Literal["effect", "timer", "inbox"]
    handler: str
    """Of effects; empty for timers and messages."""
    word: Word
    since: datetime
    """When the timer was due, or the message or effect was written."""


class Remains(NamedTuple):
    """What an instance that has ended is still needed for; nothing of it may be deleted by the way."""

    effects: int
    """Work that it asked for and that is not done."""
    letters: int
    """What of it gave up and waits for an operator."""
    messages: int
    """Commands that were accepted for it."""
    unread_by: list[str]
    """Projections that have not read its last event."""


class NeededError(Exception):
    """An instance that has ended was not deleted, because of what remains of it."""

    def __init__(self, remains: Remains) -> None:
        self.remains = remains
        super().__init__(str(remains))


class PartError(Exception):
    """An instance that has ended was not deleted, because the one that it is a part of may still have it undone."""

    def __init__(self, whole: InstanceId) -> None:
        self.whole = whole
        super().__init__(str(whole))


class StepName(NamedTuple):
    """Which node a step is of."""

    node: str
    compensates: int | None
    """Number of the step that it undoes."""


class FedEvent(StoredEvent, frozen=True, kw_only=True, gc=False):
    """An event of the feed, with what its instance's row says for ever."""

    definition: str
    definition_version: str
    key: str


class Headline(NamedTuple):
    """That there is an event in the feed, without what it says."""

    position: int
    tenant: str
    instance: InstanceId
    sequence: int
    type: str
    definition: str
    """Empty if the instance has just gone."""


class ProjectionState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a projection has read."""

    name: str
    position: int
    """Place, in the order of all events, of the last event that it has read; 0 if it has read none."""
    lag: int
    """Events that it has not read yet, counted up to a limit."""
    updated_at: datetime | None
    """When it last moved on or failed; None if it never did."""
    error: str = ""
    """Why it does not go on; empty while it does."""
    failed_at: datetime | None = None
    """Since when it does not go on."""


class Archived(NamedTuple):
    """A version of a definition that is out of use."""

    tenant: str
    name: str
    version: str


class ArchivedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The same, with who took it out of use, when and why."""

    tenant: str
    name: str
    version: str
    archived_by: str
    archived_at: datetime | None
    archived_why: str

    @property
    def key(self) -> Archived:
        """Which one it is."""
        return Archived(self.tenant, self.name, self.version)


class Archiving(NamedTuple):
    """Who takes a version out of use, when and why."""

    by: str
    at: datetime
    why: str


class PublishedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A published version of a definition, in a list."""

    tenant: str
    """Whose it is; `*` for one that all tenants share."""
    name: str
    version: str
    kind: str
    """Which front end it was written for."""
    hash: str
    """Tells whether two versions say the same."""
    description: str
    """What it is for, in its author's words."""
    published_by: str
    published_at: datetime


class BacklogRecord(msgspec.Struct, frozen=True):
    """How much work waits, by what would do it."""

    kind: Literal["effect", "timer", "inbox"]
    name: str
    """Handler of effects, definition of timers and messages."""
    count: int
    taken: int = 0
    """How many of them somebody has taken in hand."""
    abandoned: int = 0
    """How many of those were taken by somebody who is not alive any more, and have not come back yet."""
    waits_since: datetime | None = None
    """Since when the oldest waits that could be done now; None if nothing could."""


class GivenUpRecord(msgspec.Struct, frozen=True):
    """How many dead letters a tenant has."""

    tenant: str
    count: int


class TransitionRecord(msgspec.Struct, frozen=True):
    """An observed move, and how often it was seen."""

    from_status: str
    input: str
    to_status: str
    count: int
