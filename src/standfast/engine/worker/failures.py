"""Outcomes of failed work: a retry, a command to its instance, or a dead letter."""

from __future__ import annotations

from datetime import datetime, timedelta

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.work_rows import EffectOptions
from standfast.engine.common.clock import LATEST, later
from standfast.engine.common.handlers import Fail, Retry, UncalledError
from standfast.engine.common.work_errors import (
    RECALLED,
    GivenUpError,
    RecalledError,
    SpentError,
    UnreadableError,
    code_of,
    describe,
)
from standfast.errors import NotFoundError, PayloadError, RejectedError, ReusedIdError, StandfastError
from standfast.kernel.actor import partition_of
from standfast.kernel.decider import Failure
from standfast.kernel.retry import RetryPolicy
from standfast.store.records.instances import DeadLetterRecord, StoredEffect, StoredMessage, StoredTimer


class FailurePolicy:
    """Decides about failed work by its retry policies."""

    def __init__(self, shared: EngineContext) -> None:
        self._shared = shared

    def effect_policy(self, handler: str, options: EffectOptions) -> RetryPolicy:
        """Return the current retry policy of an effect: its own, its handler's or the engine's."""
        own = options.retry
        if own is None and handler in self._shared.handlers:
            own = self._shared.handlers.get(handler).retry
        return own or self._shared.settings.retry

    def retry_effect_at(self, effect: StoredEffect, options: EffectOptions, error: BaseException) -> datetime | None:
        """Return when to retry the effect. None means never."""
        policy = self.effect_policy(effect.handler, options)
        if isinstance(error, Fail | RecalledError) or options.once or not policy.allows_another(effect.attempts):
            return None
        return self._asked_at(error) or self._after(policy, effect.attempts)

    def retry_command_at(self, attempts: int, error: BaseException) -> datetime | None:
        """Return when to retry a timer or a message after `attempts` failures. None means never."""
        policy = self._shared.settings.command_retry
        if is_passing(error):
            return self._after(policy, max(1, attempts))
        if isinstance(error, RejectedError | PayloadError | NotFoundError | ReusedIdError) or not policy.allows_another(
            attempts
        ):
            return None
        return self._after(policy, attempts)

    def _asked_at(self, error: BaseException) -> datetime | None:
        """Return the retry time that the handler requests, or None.

        A time beyond the calendar falls back to the policy.
        """
        now = self._shared.clock.now()
        after = asked_for(error, now)
        return None if after is None else now + after

    def _after(self, policy: RetryPolicy, attempts: int) -> datetime:
        wait = policy.wait_after(attempts, self._shared.chance.share())
        return later(self._shared.clock.now(), wait) or LATEST


def is_passing(error: BaseException) -> bool:
    """Return whether a command was refused for a temporary reason outside it."""
    return isinstance(error, StandfastError) and error.retryable


def calls_of(effect: StoredEffect, error: BaseException) -> int:
    """Return the number of handler calls. The last claim does not count if it found that no call may follow."""
    return effect.attempts - isinstance(error, SpentError | RecalledError | UnreadableError)


def dead_effect(effect: StoredEffect, error: BaseException, now: datetime) -> DeadLetterRecord:
    """Build the dead letter of an effect."""
    return DeadLetterRecord(
        tenant=effect.tenant,
        source="effect",
        instance=effect.instance,
        definition=effect.definition,
        number=effect.number,
        name=effect.handler,
        language=effect.language,
        type=effect.type,
        version=effect.version,
        data=effect.data,
        options=effect.options,
        priority=effect.priority,
        attempts=calls_of(effect, error),
        fence=effect.fence,
        reason=_reason_of(effect, error),
        error=describe(error),
        created_at=now,
        context=effect.context,
        partition=partition_of(effect.context),
    )


def _reason_of(effect: StoredEffect, error: BaseException) -> str:
    if effect.stop_requested:
        return RECALLED  # The instance recalled the effect, whatever its last call returned.
    return "attempts_spent" if isinstance(error, SpentError) else code_of(error)


def dead_timer(timer: StoredTimer, *, error: BaseException, now: datetime) -> DeadLetterRecord:
    """Build the dead letter of a timer."""
    return DeadLetterRecord(
        tenant=timer.tenant,
        source="timer",
        instance=timer.instance,
        definition=timer.definition,
        number=timer.number,
        name=timer.key,
        language=timer.language,
        type=timer.type,
        version=timer.version,
        data=timer.data,
        attempts=timer.attempts + (not isinstance(error, UnreadableError)),
        reason=code_of(error),
        error=describe(error),
        created_at=now,
        context=timer.context,
        partition=partition_of(timer.context),
    )


def dead_message(message: StoredMessage, *, error: BaseException, now: datetime) -> DeadLetterRecord:
    """Build the dead letter of a message."""
    where = message.address
    return DeadLetterRecord(
        tenant=where.tenant,
        source="inbox",
        instance=where.instance,
        definition=where.definition,
        key=where.key,
        name=message.target,
        language=message.language,
        type=message.type,
        version=message.version,
        data=message.data,
        attempts=message.attempts + (not isinstance(error, GivenUpError | UnreadableError)),
        reason=code_of(error),
        error=describe(error),
        actor=message.actor,
        definition_version=message.definition_version,
        parent=message.parent,
        command_id=message.command_id,
        comment=message.comment,
        created_at=now,
        context=message.context,
        partition=where.partition,
    )


def asked_for(error: BaseException, now: datetime) -> timedelta | None:
    """Return the delay that a handler requests before a retry, or None. A delay beyond the calendar counts as None."""
    after = error.after if isinstance(error, Retry) else None
    return None if after is None or later(now, after) is None else after


def failure_of(error: BaseException, now: datetime) -> Failure:
    """Build the description of a failure for a decider."""
    return Failure(
        error=describe(error),
        is_final=isinstance(error, Fail),
        after=asked_for(error, now),
        was_called=error.was_called if isinstance(error, RecalledError) else not isinstance(error, UncalledError),
    )
