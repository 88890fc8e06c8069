"""Claims effects for the worker, and handles failed ones."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import msgspec

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.submission import CommandOutcome, Submission
from standfast.engine.commit.work_rows import options_of, own_message
from standfast.engine.common.handlers import Fail
from standfast.engine.common.pauses import ActivePauses
from standfast.engine.common.telemetry import EffectBuried, WorkRetried
from standfast.engine.common.work_errors import (
    RecalledError,
    SpentError,
    describe,
    is_stranded,
    outcome_of,
)
from standfast.engine.concurrency.loop import Chores, pause_after
from standfast.engine.worker.failures import FailurePolicy, dead_effect, failure_of, is_passing
from standfast.engine.worker.pause_filter import PauseFilter
from standfast.engine.worker.slots import ReservedSlots
from standfast.engine.worker.unreadable_work import UnreadableWork
from standfast.engine.worker.worker import Worker
from standfast.errors import StandfastError
from standfast.kernel.actor import following, following_bytes
from standfast.kernel.ids import effect_key
from standfast.store.ports.store import LostRaceError, StoreParts
from standfast.store.records.instances import Address, EffectClaim, StoredEffect, Wanted

_log = logging.getLogger("standfast.intake")

_SHORT = 500
"""Characters of an error to keep if the whole error cannot be stored."""
_FEWEST, _MOST = 60, 500
"""Effects of one handler per claim."""


_ROUNDS = 10
"""Claims in a row that return only paused work, before other tasks of the thread run."""
_MOST_LIMITS = 1024


class Claimer:
    """The claiming side of a worker. A single thread steps it; any thread may report failures."""

    def __init__(
        self,
        parts: StoreParts,
        worker: Worker,
        shared: EngineContext,
        chores: Chores,
        *,
        standing: ActivePauses,
        parked: Callable[[datetime], None],
        claim_lost: Callable[[], None],
    ) -> None:
        self._effects = parts.effects()
        self._writer = parts.writer()
        self._worker = worker
        self._shared = shared
        self._gate = PauseFilter(parts.pauses(), standing, shared)
        self._failures = FailurePolicy(shared)
        self._unreadable = UnreadableWork(shared)
        self._failing: set[EffectClaim] = set()
        self._limits: dict[tuple[str, bytes, int], int] = {}
        self.claiming = threading.Lock()
        """Held while effects pass from the database to the worker. Neither of them lists these effects meanwhile."""
        self._most = _FEWEST
        """Effects of a handler to claim. Commits cannot use the reserved slots for a direct handover, so the number
        is small and grows only with the backlog."""
        self._look_every = shared.settings.unhealthy_after.total_seconds() / 4
        """Seconds between two searches for starved effects."""
        self._look_at = 0.0
        """Monotonic time of the next search."""
        self._is_blind = False
        """Whether a claim got no answer. No further claim is made until its effects are released."""
        self._claim_lost = claim_lost
        """Requests a lease recovery from the committer, which then calls `see`."""
        self._parked = parked
        """Schedules the release of a parked effect."""
        self.chores = chores

    def report(self, effect: StoredEffect, error: BaseException, *, may_retry: bool = True) -> None:
        """Report a failed call. The next step handles it. `may_retry` is False if the instance asked for its end."""
        if not may_retry:
            effect = msgspec.structs.replace(effect, stop_requested=True)
        self._add(
            effect,
            partial(self._settle, effect, error, may_retry=may_retry),
            otherwise=partial(self._bury, effect, error),
        )

    def give_back(self, effect: StoredEffect) -> None:
        """Release an effect whose call was not made to other workers."""
        self._add(effect, lambda: self._release(effect))

    def hand_on(self, effect: StoredEffect, address: Address, command: object, error: BaseException) -> None:
        """Send the result of a call through the inbox, because it cannot be committed here and a retry would have the same result."""
        self._add(effect, partial(self._hand_on, effect, address, command, error))

    def hand_in_again(
        self, effect: StoredEffect, hand_in: Callable[[], None], error: BaseException, *, tries: int
    ) -> None:
        """Submit the result of a call again later, after `tries` refusals for a temporary reason."""
        name = effect_key(effect.instance, effect.number)
        _log.warning("result_refused effect=%s: it is submitted again: %s", name, error)
        self._add(effect, hand_in, after=pause_after(tries))

    def failing(self) -> list[EffectClaim]:
        """Return the claims of failed effects that are not handled yet."""
        return list(self._failing.copy())

    def see(self) -> None:
        """Continue to claim after a lease recovery."""
        self._is_blind = False
        self.chores.wake()

    def step(self) -> float:
        """Handle failures, then claim as much as the free slots allow."""
        self.chores.run()
        with self.claiming:
            taken = self._claim()
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + self._look_every
            self._worker.jams.look(self._waits)
        return 0.0 if taken else self.chores.rest(self._shared.settings.poll_interval.total_seconds())

    def is_wanted(self, effect: StoredEffect) -> bool:
        """Return whether to call the handler of a claimed effect. If not, the failure is reported."""
        try:
            self._check_wanted(effect)
        except BaseException as error:  # noqa: BLE001 - unreadable work must not hold back other work
            self.report(effect, error)
            return False
        return True

    def claim(self, wanted: list[Wanted], limit: int) -> list[StoredEffect]:
        """The most urgent effects of these handlers that this process can read, now ours."""
        if self._worker.switch.is_off:
            return []
        words, now = self._shared.languages.effects(), self._shared.clock.judge()
        for _ in range(_ROUNDS):
            found = self._effects.claim(self._worker.identity, wanted, limit, now, words=words)
            open_to = self._gate.open_to(found)
            if open_to or not found:
                return open_to
        self.chores.wake()
        return []

    def _add(
        self,
        effect: StoredEffect,
        chore: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
        *,
        after: float = 0.0,
    ) -> None:
        self._failing.add(effect.claim)

        def do(what: Callable[[], None]) -> None:
            what()
            self._failing.discard(effect.claim)

        instead = None if otherwise is None else partial(do, otherwise)
        self.chores.add(partial(do, chore), otherwise=instead, after=after)

    def _release(self, effect: StoredEffect) -> None:
        self._effects.release([effect.claim])

    def _claim(self) -> int:
        if self._is_blind:
            return 0
        room = self._worker.reserve_room(self._most)
        if not room.wanted:
            return 0
        with self._worker.expecting():
            return self._take(room)

    def _take(self, room: ReservedSlots) -> int:
        found: list[StoredEffect] = []
        try:
            found = self.claim(room.wanted, room.limit)
        except Exception:  # Some of them may be claimed by this worker, and the outcome is unknown.
            self._is_blind = True
            self._claim_lost()
            raise
        finally:
            used = Counter(effect.handler for effect in found)
            self._worker.leave_room(room, used)
        is_full = any(used[each.handler] == each.limit for each in room.wanted)
        self._most = min(2 * self._most, _MOST) if is_full else _FEWEST
        self._worker.run([effect for effect in found if self._is_taken(effect)])
        return len(found)

    def _waits(self, handler: str) -> bool:
        """Return whether an effect of this handler waits for a slot. In maintenance none does."""
        now = self._shared.clock.judge()
        return not self._worker.switch.is_off and bool(
            self._effects.waiting(handler, waited=timedelta(0), now=now, limit=1)
        )

    def _is_taken(self, effect: StoredEffect) -> bool:
        """Return whether the effect is called. If not, its slot is released."""
        if not effect.stop_requested and effect.attempts <= self._limit_of(effect):
            return True
        is_wanted = self.is_wanted(effect)
        if not is_wanted:
            self._worker.release(effect.handler)
        return is_wanted

    def _check_wanted(self, effect: StoredEffect) -> None:
        """Raise if the effect has no attempts left.

        A call that never returned counts: it killed its worker, or may have done its work.
        """
        if effect.attempts > self._limit_of(effect):
            raise SpentError(effect.error)
        if effect.stop_requested:
            raise RecalledError(effect.attempts)

    def _limit_of(self, effect: StoredEffect) -> int:
        """Return the maximum number of attempts. The result is cached until a handler is added."""
        key = (effect.handler, effect.options, self._shared.handlers.count)
        limit = self._limits.get(key)
        if limit is None:
            options = options_of(effect)
            limit = 1 if options.once else self._failures.effect_policy(effect.handler, options).max_attempts
            if len(self._limits) >= _MOST_LIMITS:
                self._limits.clear()
            self._limits[key] = limit
        return limit

    def _settle(self, effect: StoredEffect, error: BaseException, *, may_retry: bool) -> None:
        is_last = isinstance(error, SpentError) or not may_retry
        at = None if is_last else self._failures.retry_effect_at(effect, options_of(effect), error)
        if at is None:
            self._give_up(effect, error)
            return
        until = at if at > self._shared.clock.now() else None
        self._effects.retry(effect.claim, error=describe(error), until=until)
        self._shared.telemetry.tell(
            WorkRetried(
                definition=effect.definition,
                tenant=effect.tenant,
                instance=effect.instance,
                number=effect.number,
                is_step=False,
                error=describe(error),
            )
        )
        if until is None:
            self.chores.wake()
        else:
            self._parked(until)

    def _give_up(
        self, effect: StoredEffect, error: BaseException, *, plainly: Fail | None = None, tries: int = 0
    ) -> None:
        """Tell the instance that its effect failed. If it cannot accept the command, retry once with a plain error.

        If only other transactions prevent it, retry as often as necessary.
        """
        command, is_kept = self._told(effect, plainly or error)
        if command is None or is_kept:
            self._bury(effect, error, command)
            return

        def settled(_outcome: CommandOutcome | None, refusal: BaseException | None) -> None:
            if refusal is None:
                return
            if is_stranded(refusal):
                self.hand_on(effect, address, command, refusal)
                return
            name = effect_key(effect.instance, effect.number)
            if is_passing(refusal):
                again = partial(self._give_up, effect, error, plainly=plainly, tries=tries + 1)
                self.hand_in_again(effect, again, refusal, tries=tries + 1)
                return
            _log.warning("instance_not_notified effect=%s event=effect_failed: %s", name, refusal)
            if plainly is None and isinstance(refusal, StandfastError):
                said = (
                    f"{describe(error)[:_SHORT]} (as it was, this could not be recorded: {describe(refusal)[:_SHORT]})"
                )
                self._add(effect, partial(self._give_up, effect, error, plainly=Fail(said)))
            else:
                self._add(effect, partial(self._bury, effect, error))

        address = Address(tenant=effect.tenant, definition=effect.definition, instance=effect.instance)
        cause = effect_key(effect.instance, effect.number)
        self._shared.submit(
            Submission(
                address=address,
                command=command,
                cause=cause,
                request=following(effect.context),
                claim=effect.claim,
                taken_at=effect.taken_at,
                settled=settled,
                is_own=True,
            )
        )

    def _told(self, effect: StoredEffect, error: BaseException) -> tuple[object, bool]:
        """Return the command that reports the effect's failure, and whether the effect also becomes a dead letter.

        The command is None if the instance does not want one or cannot be read.
        """
        try:
            program = self._shared.languages.speaker(effect.language)
            body = program.effects.decode(effect.type, effect.version, effect.data)
        except Exception:  # noqa: BLE001 - it becomes a dead letter for an operator
            return None, False
        try:
            return program.effect_failed(body, failure_of(error, self._shared.clock.now())), program.keeps_letter(body)
        except BaseException:  # noqa: BLE001 - it becomes a dead letter for an operator
            _log.exception("decider_failed decider=%r event=effect_failed", effect.definition)
            return None, False

    def _hand_on(self, effect: StoredEffect, address: Address, command: object, error: BaseException) -> None:
        """Send the command through the inbox, and consume the effect.

        The command waits there for a process that can read the instance, or becomes a dead letter.
        """
        try:
            message = own_message(
                address,
                command,
                self._shared.languages.speaker(effect.language),
                following_bytes(effect.context),
            )
        except StandfastError as wrong:
            self._settle(effect, outcome_of(wrong), may_retry=True)
            return
        try:
            with self._writer.unit() as unit:
                unit.consume([effect.claim])
                unit.accept([message], self._shared.clock.now())
        except LostRaceError:
            return  # Another worker has taken the effect over.
        self._unreadable.tell_stranded(effect, error)

    def _bury(self, effect: StoredEffect, error: BaseException, command: object = None) -> None:
        """Move the effect to the dead letters.

        A command for its instance goes through the inbox in the same transaction.
        """
        letter = dead_effect(effect, error, self._shared.clock.now())
        told = None
        if command is not None:
            address = Address(tenant=effect.tenant, definition=effect.definition, instance=effect.instance)
            speaker = self._shared.languages.speaker(effect.language)
            told = own_message(address, command, speaker, following_bytes(effect.context))
        if not self._effects.bury(effect.claim, letter, told):
            return
        _log.error("effect_dead_lettered effect=%s: %s", effect_key(effect.instance, effect.number), letter.error)
        self._shared.telemetry.tell(
            EffectBuried(
                definition=effect.definition,
                tenant=effect.tenant,
                instance=effect.instance,
                number=effect.number,
                handler=effect.handler,
                attempts=letter.attempts,
                error=letter.error,
            )
        )
