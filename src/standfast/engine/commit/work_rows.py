"""The rows of the work that a decision asks for: effects, timers and messages."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from standfast.engine.common.handlers import Fail
from standfast.errors import CommandError, PayloadError
from standfast.kernel.actor import SYSTEM, context_bytes, partition_of
from standfast.kernel.codec.message_types import Encoded
from standfast.kernel.decision import Decision, Effect, Message, Recall, Timer
from standfast.kernel.ids import WorkerId
from standfast.kernel.program import Program, Programs
from standfast.kernel.retry import NO_RETRY, RetryPolicy
from standfast.store.ports.maintenance import LongCall
from standfast.store.records.claim_order import rank_of
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    InstanceHeader,
    StoredEffect,
    StoredMessage,
    StoredRecall,
    StoredTimer,
)


class EffectOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Delivery options of an effect that differ from the defaults, as they are stored with it."""

    once: bool = False
    transactional: bool = False
    timeout: float | None = None
    """Seconds."""
    retry: RetryPolicy | None = None


_encode_options = msgspec.json.Encoder().encode
_decode_options = lru_cache(1024)(msgspec.json.Decoder(EffectOptions).decode)
_PLAIN = EffectOptions()


class Lessee(Protocol):
    """Who can run effects right away: the commit that asks for one also claims it for him."""

    identity: WorkerId

    def reserve(self, handler: str) -> bool:
        """Take a slot for an effect of this handler; False if there is none, or no such handler here."""
        ...

    def release(self, handler: str) -> None:
        """Give a slot back that was not used."""
        ...


def effect_row(  # noqa: PLR0913 - all that can be said about a row, by name
    header: InstanceHeader,
    effect: Effect,
    encoded: Encoded,
    *,
    program: Program,
    number: int,
    owner: WorkerId | None,
    context: bytes | None,
    now: datetime,
    ageing: float,
    late: timedelta,
) -> StoredEffect:
    """A new effect, owned by this process if it can run it right away; it stands in line as if it had come later by `late`."""
    ready_at = now + effect.delay if effect.delay else now
    return StoredEffect(
        instance=header.id,
        number=number,
        tenant=header.tenant,
        definition=header.definition,
        language=program.language,
        handler=effect.handler or program.type,
        type=encoded.type,
        version=encoded.version,
        data=encoded.data,
        options=_options(effect),
        priority=effect.priority,
        rank=rank_of(ready_at + late if late else ready_at, effect.priority, ageing=ageing),
        parked_until=ready_at if effect.delay else None,
        owner=owner,
        claimed_at=None if owner is None else now,
        fence=0,  # Claims count from 1.
        attempts=0 if owner is None else 1,
        created_at=now,
        context=context,
    )


def timer_row(
    header: InstanceHeader,
    timer: Timer,
    encoded: Encoded,
    *,
    language: str,
    key: str,
    number: int,
    context: bytes | None,
    now: datetime,
) -> StoredTimer:
    """A new timer."""
    return StoredTimer(
        instance=header.id,
        key=key,
        number=number,
        tenant=header.tenant,
        definition=header.definition,
        language=language,
        type=encoded.type,
        version=encoded.version,
        data=encoded.data,
        due_at=timer.due(now),
        context=context,
    )


def restored_timer(header: InstanceHeader, letter: DeadLetterRecord, now: datetime) -> StoredTimer:
    """A timer that gave up, due now."""
    return StoredTimer(
        instance=header.id,
        key=letter.name,
        number=letter.number,
        tenant=header.tenant,
        definition=header.definition,
        language=letter.language,
        type=letter.type,
        version=letter.version,
        data=letter.data,
        due_at=now,
        context=letter.context,
    )


class ExtraWork(NamedTuple):
    """What few decisions ask for."""

    context: bytes | None
    """What it follows from."""
    timers: list[Encoded]
    recalls: list[StoredRecall]
    messages: list[StoredMessage]


def rest_of(
    decision: Decision, program: Program, header: InstanceHeader, *, trace: str, programs: Programs
) -> ExtraWork | None:
    """What few decisions ask for, ready to be written; None if this one does not."""
    if not (
        decision.timers
        or decision.cancelled_timers
        or decision.withdrawn_effects
        or decision.recalls
        or decision.messages
    ):
        return None
    for timer in decision.timers:
        program.check_own(timer.command, header.key, f"a timer of {program.type!r}")
    # What follows from a command by itself is the instance's doing, under the same trace and in the same part of the tenant.
    context = context_bytes(trace=trace, partition=header.partition)
    sender = Address(tenant=header.tenant, instance=header.id, partition=header.partition)
    return ExtraWork(
        context=context,
        timers=[program.commands.encode(timer.command) for timer in decision.timers],
        recalls=[recall_row(each, program, header, context) for each in decision.recalls],
        messages=[message_row(each, program, programs, sender, context=context) for each in decision.messages],
    )


def message_row(
    message: Message, sender: Program, programs: Programs, where: Address, *, context: bytes | None
) -> StoredMessage:
    """A new message for another instance, whose program says how its commands are written; `where` is its sender.

    If that is elsewhere, the command is written as its own code would write it.
    """
    key = message.key
    if message.elsewhere:
        language, encoded = message.decider, sender.commands.encode_for(message.decider, message.command)
        if not key and message.instance is None:
            raise CommandError(
                f"a message to {message.decider!r}, whose code is elsewhere, must name its target: give key or instance",
                decider=sender.type,
            )
    else:
        program = programs(where.tenant, message.decider, message.definition_version)
        language, encoded = program.language, program.commands.encode(message.command)
        key = key if key or message.instance else program.key_of(message.command)
    return StoredMessage(
        address=Address(
            tenant=where.tenant,
            definition=message.decider,
            key=key,
            instance=message.instance,
            partition=where.partition if message.partition is None else message.partition,
        ),
        language=language,
        type=encoded.type,
        version=encoded.version,
        data=encoded.data,
        command_id=message.command_id,
        actor=SYSTEM.id,
        definition_version=message.definition_version,
        parent=message.parent,
        context=context,
    )


def own_message(address: Address, command: object, program: Program, context: bytes | None) -> StoredMessage:
    """A message of the engine's own to an instance, in the words of its program; StandfastError if the command is none of them."""
    encoded = program.commands.encode(command)
    return StoredMessage(
        address=msgspec.structs.replace(address, partition=partition_of(context)),
        language=program.language,
        type=encoded.type,
        version=encoded.version,
        data=encoded.data,
        actor=SYSTEM.id,
        context=context,
    )


def recall_row(recall: Recall, program: Program, header: InstanceHeader, context: bytes | None) -> StoredRecall:
    """An effect to be taken back, with what its instance is told then."""
    program.check_own(recall.command, header.key, f"a recall of {program.type!r}")
    address = Address(tenant=header.tenant, definition=header.definition, instance=header.id)
    told = own_message(address, recall.command, program, context)
    return StoredRecall(number=recall.effect, message=told, stop=recall.stop)


def result_of(effect: StoredEffect, result: object, program: Program, partition: str) -> tuple[Address, object]:
    """The command that a handler came back with, and where it goes: to the instance that it names, else to the one that asked.

    Fail if it is no command of the decider, or holds what none may hold: that is a mistake in the program, and no other call mends it.
    """
    commands = program.commands
    if type(result) not in commands.classes:
        raise Fail(f"the handler {effect.handler!r} must return a command or None: {commands.stranger(result)}")
    try:
        command = commands.own(result)
    except PayloadError as error:
        raise Fail(f"what the handler {effect.handler!r} returned cannot be kept: {error}") from error
    key = program.key_named_by(command)
    if not key:
        return Address(tenant=effect.tenant, definition=effect.definition, instance=effect.instance), command
    return Address(tenant=effect.tenant, definition=effect.definition, key=key, partition=partition), command


def options_of(effect: StoredEffect | LongCall) -> EffectOptions:
    """The delivery options of a stored effect."""
    return _decode_options(effect.options) if effect.options else _PLAIN


def _options(effect: Effect) -> bytes:
    if not (effect.once or effect.transactional or effect.timeout):
        if effect.retry is None:
            return b""
        if effect.retry is NO_RETRY:
            return _ONE_CALL
    timeout = None if effect.timeout is None else effect.timeout.total_seconds()
    return _encode_options(
        EffectOptions(once=effect.once, transactional=effect.transactional, timeout=timeout, retry=effect.retry)
    )


_ONE_CALL = _encode_options(EffectOptions(retry=NO_RETRY))
"""What nearly every step of a workflow has; not worth encoding each time."""
