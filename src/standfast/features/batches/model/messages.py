"""What is said to a batch, what happens to it, and where it stands."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from standfast.kernel.actor import NO_TERMS, Actor, Terms
from standfast.kernel.codec.message_types import message
from standfast.machine.model.commands.run_commands import EndChild

BATCH: Final = "$batch"
"""The decider of batches: every batch is an instance of it, and its id is the key."""

Data = dict[str, object]

Verb: TypeAlias = Literal["cancel", "abort", "pause", "resume", "requeue", "discard", "start"]
ItemStatus: TypeAlias = Literal["waiting", "accepted", "done", "failed", "refused", "dropped"]
"""Not tried yet; taken, and not yet what was wanted; what was wanted; taken, and come to something else; not taken; never tried, because the batch was cancelled."""

OPEN: Final = frozenset({"waiting", "accepted"})


class _Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is said to a batch, of it, and by it."""


class Item(_Word, frozen=True, kw_only=True):
    """One of those that something is done to."""

    number: int
    run: str = ""
    """The run that it is about; of a start, the one that is to be."""
    letter: int = 0
    """Of what gave up: its dead letter, with what it is of."""
    source: str = ""
    name: str = ""
    number_of: int = 0
    """The number of the step or effect, and for whose token the step was."""
    token: str = ""
    definition: str = ""
    key: str = ""
    mark: str = ""
    """Of a message: where it goes, and what tells it from others that go there."""
    behind: int = 0
    """Where it is looked for what became of it: of a timer the version of its instance, of a message the newest dead letter."""
    input: Data = {}
    status: ItemStatus = "waiting"
    detail: str = ""


class Order(_Word, frozen=True, kw_only=True):
    """What is to be done to all of them."""

    verb: Verb
    reason: str = ""
    definition: str = ""
    version: str = ""
    """What is started, if something is."""
    cause: str = ""
    """What the dead letters have in common that it is about, if that is how they were chosen."""
    per_second: float = 0
    """How many are tried in a second; 0 means as many as there is time for."""
    said: str = ""
    """A hash of all that was said when it was begun, by which a call that is repeated is told; empty if it cannot be."""
    follow_ms: int = 0
    """How long it is looked, after the last one was tried, what those come to that were taken."""


class ItemOutcome(_Word, frozen=True, kw_only=True):
    """What became of an item."""

    number: int
    status: ItemStatus
    detail: str = ""


# -- commands


@message(name="BeginBatch")
class BeginBatch(_Word, frozen=True, kw_only=True):
    """Do it."""

    id: str
    order: Order
    items: list[Item]


@message(name="CancelBatch")
class CancelBatch(_Word, frozen=True, kw_only=True):
    """Try no more of them, and look no longer."""

    id: str
    reason: str = ""


@message(name="TryMore")
class TryMore(_Word, frozen=True, kw_only=True):
    """It is time for the next ones."""

    id: str


@message(name="LookAgain")
class LookAgain(_Word, frozen=True, kw_only=True):
    """It is time to look what became of those that were taken."""

    id: str


@message(name="NoteOutcomes")
class NoteOutcomes(_Word, frozen=True, kw_only=True):
    """The engine has tried some of them, or has looked; it tells of those of which there is something to tell."""

    id: str
    outcomes: list[ItemOutcome] = []
    last: int
    """The number of the last one of them."""
    is_look: bool = False


Command: TypeAlias = BeginBatch | CancelBatch | TryMore | LookAgain | NoteOutcomes | EndChild


# -- events


@message(name="batch_begun")
class BatchBegun(_Word, frozen=True, kw_only=True):
    """Somebody wants this."""

    id: str
    order: Order
    items: list[Item]
    owner: Actor | None = None
    """On whose behalf it is done, with what came with their request; None if that is the engine itself. What else they may do is looked up then."""
    terms: Terms = NO_TERMS
    """What they must be allowed each time, and what their roles stood for at the front end."""


@message(name="items_tried")
class ItemsTried(_Word, frozen=True, kw_only=True):
    """The next ones are being tried."""

    first: int
    last: int
    next_at: datetime | None = None
    """Not before then are more of them."""


@message(name="items_looked_at")
class ItemsLookedAt(_Word, frozen=True, kw_only=True):
    """It is being looked what became of some that were taken."""

    last: int


@message(name="items_moved")
class ItemsMoved(_Word, frozen=True, kw_only=True):
    """This became of some of them."""

    outcomes: list[ItemOutcome] = []
    is_answer: bool = False
    """Whether nothing is being tried or looked at any more."""


@message(name="batch_tried")
class BatchTried(_Word, frozen=True, kw_only=True):
    """All of them were tried; so long it is looked what they come to."""

    until: datetime


@message(name="batch_cancelled")
class BatchCancelled(_Word, frozen=True, kw_only=True):
    """No more of them are tried."""

    by: str
    reason: str = ""


@message(name="batch_ended")
class BatchEnded(_Word, frozen=True, kw_only=True):
    """There is nothing left to do, or to wait for."""


Event: TypeAlias = BatchBegun | ItemsTried | ItemsLookedAt | ItemsMoved | BatchTried | BatchCancelled | BatchEnded


# -- effects


@message(name="TryItems")
class TryItems(_Word, frozen=True, kw_only=True):
    """The effect: do it to some of them."""

    id: str
    order: Order
    items: list[Item]
    owner: Actor | None = None
    terms: Terms = NO_TERMS


@message(name="LookAtItems")
class LookAtItems(_Word, frozen=True, kw_only=True):
    """The effect: look what became of some of them."""

    id: str
    order: Order
    items: list[Item]
    owner: Actor | None = None
    terms: Terms = NO_TERMS


Effect: TypeAlias = TryItems | LookAtItems


# -- where it stands


class BatchState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Where a batch stands."""

    id: str = ""
    order: Order | None = None
    items: list[Item] = []
    owner: Actor | None = None
    terms: Terms = NO_TERMS
    tried: int = 0
    """The number of the last one that was tried."""
    in_hand: int = 0
    """The number of the last one that is being tried or looked at; 0 if none is."""
    next_at: datetime | None = None
    looks: int = 0
    """How often all that were taken have been looked at."""
    follow_until: datetime | None = None
    cancelled_by: str = ""
    cancel_reason: str = ""
    is_over: bool = False
