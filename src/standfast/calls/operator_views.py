"""What the engine shows to those who operate it: instances of any kind, work that waits or gave up, who does it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeVar

import msgspec

from standfast.errors import Diagnostic, PayloadError
from standfast.kernel.codec.codecs import Codec
from standfast.kernel.decision import Attribute
from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.store.records import instances as shapes

V = TypeVar("V", bound=msgspec.Struct)


class InstanceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One instance in a list of all kinds."""

    id: InstanceId
    tenant: str
    kind: str
    """Which front end its definition was written for; `decider` for a class of the code."""
    definition: str
    definition_version: str
    key: str
    """Business key; empty means none."""
    status: str
    reason: str
    version: int
    """How many events it has."""
    parent: InstanceId | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    partition: str
    """The part of the tenant that it belongs to; empty if it belongs to none."""
    started_by: str
    """Id of the actor whose command was its first."""
    paused_at: datetime | None
    """Since when it is paused; None while it is not."""
    deadline_at: datetime | None
    """When it will be stopped if it has not ended by then."""
    attributes: Mapping[str, Attribute]
    """Values that it is found by."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """Something that gave up and waits for an operator."""

    id: int
    """Names it in calls such as `requeue`."""
    tenant: str
    source: DeadLetterSource
    instance: InstanceId | None
    definition: str
    definition_version: str
    key: str
    """Business key of the instance."""
    number: int
    """Of the step, effect or timer, in its instance."""
    name: str
    """Handler of an effect or step, key of a timer, target of a message."""
    type: str
    """Name of the effect, or of the command of a timer or message."""
    version: int
    """Version of that."""
    payload: object
    """What it worked on, as plain data; as the bytes that are stored if they cannot be read."""
    priority: int
    attempts: int
    reason: str
    """Why it gave up, as a word."""
    error: str
    """The same as a sentence."""
    actor: str
    comment: str
    command_id: str
    """Of a message: who sent it, and what was given with it."""
    created_at: datetime


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was accepted and waits for its turn."""

    id: int
    """Order of acceptance; names it in `bury`."""
    tenant: str
    definition: str
    key: str
    instance: InstanceId | None
    """The instance it is for, if it is named by its id."""
    type: str
    """Name of the command."""
    version: int
    """Version of the command."""
    payload: object
    """The command as plain data; as the bytes that are stored if they cannot be read."""
    command_id: str
    actor: str
    comment: str
    attempts: int
    error: str
    """What the last attempt to carry it out said."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """How much work waits, by what would do it."""

    kind: Literal["effect", "timer", "inbox"]
    name: str
    """Handler of effects, definition of timers and messages."""
    count: int
    taken: int = 0
    """How many of them a worker has in hand."""
    abandoned: int = 0
    """How many of those were taken by a worker that is not alive any more: they come back by themselves, and should within a minute."""
    waits_since: datetime | None = None
    """Since when the oldest waits that could be done now; None if nothing could. Timers that are not due do not wait."""


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """How many dead letters a tenant has."""

    tenant: str
    count: int


class MissingHandler(msgspec.Struct, frozen=True, kw_only=True):
    """A handler that no live worker has, although work waits for it."""

    handler: str
    waiting: int
    """How many effects wait."""
    since: datetime
    """When the oldest of these was written."""


class IncidentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not go on by itself, and that somebody should look at."""

    kind: Literal["no_approver", "refused_schedule", "hung_call", "unreadable", "directory_unreachable"]
    """Nobody can decide a question, the last time of a schedule was refused, a call of a handler may hang, no code here can read a piece of work, or the directory of the host cannot be asked."""
    told: str
    """The same as a sentence."""
    remedy: str
    """What to do about it."""
    since: datetime
    tenant: str = ""
    """Empty where it is not known whose it is."""
    partition: str = ""
    """Of a schedule: the part of the tenant that it belongs to, which a request has to name to change it; empty for none."""
    instance: InstanceId | None = None


class PauseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A pause of more than one run: whose work is held back, and what became of it."""

    id: int
    tenant: str
    """`*` for all tenants."""
    definition: str
    version: str
    step: str
    """Empty means all of them."""
    clock: Literal["run_on", "stand_still"]
    """Whether timers keep their instants, or get the time back that they were held."""
    reason: str
    paused_by: str
    paused_at: datetime
    until: datetime | None
    """When it ends by itself; None if somebody has to resume."""
    ended_at: datetime | None
    ended_by: str
    ended_why: str
    """Empty while it stands."""
    held_effects: int
    held_timers: int
    """How many are held that it covers, by whichever pause."""
    is_settled: bool
    """Whether all that is to be held is, or, of one that has ended, all that can be let go is."""


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A pause that holds up a run."""

    pause: int
    """Its id; see `pauses.get`."""
    scope: str
    """What is paused, in words."""
    paused_by: str
    paused_at: datetime
    reason: str
    until: datetime | None


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A live worker."""

    id: WorkerId
    name: str
    handlers: list[str]
    started_at: datetime
    alive_until: datetime


class ProjectionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How far a projection has read."""

    name: str
    position: int
    """Place, in the order of all events, of the last event that it has read; 0 if it has read none."""
    lag: int
    """Events that it has not read yet, counted up to a limit."""
    updated_at: datetime | None
    """When it last moved on or failed; None if it never did."""
    error: str
    """Why it does not go on; empty while it does."""
    failed_at: datetime | None
    """Since when it does not go on."""


class DefinitionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A published version of a workflow, in a list."""

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


class ArchivedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow that is out of use."""

    tenant: str
    """Whose it is; `*` for one that all tenants share."""
    name: str
    version: str
    archived_by: str = ""
    archived_at: datetime | None = None
    archived_why: str = ""


class DefinitionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a workflow that somebody wants to publish."""

    name: str
    version: str
    """Empty if it cannot be published."""
    is_valid: bool
    findings: list[Diagnostic]
    """What is wrong with it."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """That a command arrived, and what it did to the status."""

    tenant: str
    instance: InstanceId
    definition: str
    input: str
    from_status: str
    to_status: str
    skipped: bool
    at: datetime


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """An observed move, and how often it was seen."""

    from_status: str
    input: str
    to_status: str
    count: int


def shown(row: object, view: type[V]) -> V:
    """A stored row as callers see it: the fields that the view has."""
    return view(**{name: getattr(row, name) for name in view.__struct_fields__})


def dead_letter(letter: shapes.DeadLetterRecord, codec: Codec) -> DeadLetter:
    """A stored letter, with what it worked on in plain words."""
    fields = {name: getattr(letter, name) for name in DeadLetter.__struct_fields__ if name != "payload"}
    is_step = letter.source in {"step", "compensation"}
    return DeadLetter(payload=_step_data(letter.data) if is_step else _plain(letter.data, codec), **fields)


def inbox_message(message: shapes.StoredMessage, codec: Codec) -> InboxMessage:
    """A stored message, with its command in plain words."""
    address = message.address
    return InboxMessage(
        id=message.id,
        tenant=address.tenant,
        definition=address.definition,
        key=address.key,
        instance=address.instance,
        type=message.type,
        version=message.version,
        payload=_plain(message.data, codec),
        command_id=message.command_id,
        actor=message.actor,
        comment=message.comment,
        attempts=message.attempts,
        error=message.error,
    )


def _plain(data: bytes, codec: Codec) -> object:
    """What the engine's codec wrote."""
    try:
        return codec.decode(data, object)
    except PayloadError:
        return data


def _step_data(data: bytes) -> object:
    """What a step works on, which is JSON whatever the codec."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data
