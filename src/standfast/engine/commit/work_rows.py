"""Builds the rows of the work that a decision requests: effects, timers and messages."""

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
    """Delivery options of an effect that differ from the defaults. They are stored with it."""

    once: bool = False
    transactional: bool = False
    timeout: float | None = None
    """Seconds."""
    retry: RetryPolicy | None = None


_encode_options = msgspec.json.Encoder().encode
_decode_options = lru_cache(1024)(msgspec.json.Decoder(EffectOptions).decode)
_PLAIN = EffectOptions()


class Lessee(Protocol):
    """A worker that can run effects immediately. The commit that requests an effect also claims it for this worker."""

    identity: WorkerId

    def reserve(self, handler: str) -> bool:
        """Reserves a slot for an effect of this handler.

        Returns False if there is no slot or no such handler in this process.
        """
        ...

    def release(self, handler: str) -> None:
        """Releases an unused slot."""
        ...


def effect_row(  # noqa: PLR0913 - the fields of a row, by name
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
    """Build the row of a new effect, claimed by this process if it can run it immediately.

    `late` delays its place in the claim order.
    """
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
    """Build the row of a new timer."""
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
    """Restore a dead-lettered timer, due now."""
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
    """Rarely used parts of a decision."""

    context: bytes | None
    """The request context that the work follows from."""
    timers: list[Encoded]
    recalls: list[StoredRecall]
    messages: list[StoredMessage]


def rest_of(
    decision: Decision, program: Program, header: InstanceHeader, *, trace: str, programs: Programs
) -> ExtraWork | None:
    """Encode the rarely used parts of a decision, or return None if there are none."""
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
    # Follow-up work belongs to the instance itself, with the same trace and partition.
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
    """Build a message for another instance. The target's program determines how its commands are encoded; `where` is the sender.

    If the target's code is in another process, the command is encoded as that code would encode it.
    """
    key = message.key
    if message.elsewhere:
        language, encoded = message.decider, sender.commands.encode_for(message.decider, message.command)
        if not key and message.instance is None:
            raise CommandError(
                f"a message to {message.decider!r}, whose code is in another process, must name its target: give key or instance",
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
    """Build a message of the engine to an instance, encoded by its program.

    Raises StandfastError if its program does not have the command.
    """
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
    """Build the row of an effect's recall, with the command for its instance."""
    program.check_own(recall.command, header.key, f"a recall of {program.type!r}")
    address = Address(tenant=header.tenant, definition=header.definition, instance=header.id)
    told = own_message(address, recall.command, program, context)
    return StoredRecall(number=recall.effect, message=told, stop=recall.stop)


def result_of(effect: StoredEffect, result: object, program: Program, partition: str) -> tuple[Address, object]:
    """Return the command that a handler returned, and its target: the instance it names, or the one that requested the effect.

    Raises Fail if the result is not a command of the decider or cannot be stored. That is a programming error, which a
    retry cannot repair.
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
    """Return the delivery options of a stored effect."""
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
"""The options of nearly every workflow step, encoded once."""
