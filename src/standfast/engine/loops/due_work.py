"""Submits due work: timers, inbox messages and parked effects."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.readable_types import Vocabularies
from standfast.engine.commit.submission import (
    CommandOutcome,
    Submission,
    digest_of,
    receipt_key,
    receipted,
)
from standfast.engine.common.operator_watch import WorkSwitch
from standfast.engine.common.pauses import ActivePauses
from standfast.engine.common.telemetry import TimerFired
from standfast.engine.common.work_errors import UnreadableError, describe
from standfast.engine.concurrency.loop import Chores, IsolatedTasks
from standfast.engine.worker.failures import FailurePolicy, dead_message, dead_timer, is_passing
from standfast.engine.worker.pause_filter import PauseFilter
from standfast.engine.worker.unreadable_work import UnreadHistories, is_unreadable, tell_buried
from standfast.kernel.actor import SYSTEM, Actor, RequestContext, following, request_of
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import Address, StoredMessage, StoredTimer

_log = logging.getLogger("standfast.due_work")

MOST = 200
"""Maximum number of timers or messages per round."""
_NOTHING: tuple[int, datetime | None] = (0, None)


def _nothing() -> None:
    """Do nothing: the caller does not wait."""


class DueWork:
    """Submits what is due. A single thread steps it."""

    def __init__(
        self,
        parts: StoreParts,
        shared: EngineContext,
        *,
        standing: ActivePauses,
        vocabularies: Vocabularies,
        switch: WorkSwitch,
        effects_ready: Callable[[], None],
    ) -> None:
        self._timers = parts.timers()
        self._inbox = parts.inbox()
        self._effects = parts.effects()
        self._shared = shared
        self._gate = PauseFilter(parts.pauses(), standing, shared)
        self._failures = FailurePolicy(shared)
        self.unreadable = UnreadHistories(shared, vocabularies, parts.keeper())
        self._hold = shared.settings.lease
        """How long a timer or message stays claimed by this process."""
        self._effects_ready = effects_ready
        self._planning = threading.Lock()
        """Held while `_look_at` changes, because several committers report new work."""
        self._look_at: datetime | None = None
        """When the next item is known to be due, at most one poll interval ahead. None means now."""
        self._switch = switch
        """Off in maintenance mode. Claimed messages that are not submitted yet are then released."""
        self.chores = Chores("failures of timers and messages", limit=shared.settings.unhealthy_after.total_seconds())

    def expect(self, at: datetime) -> None:
        """Note that an item was stored that is due at this time."""
        if self._plan(at):
            self.chores.wake()

    def look(self) -> None:
        """Check for due items now."""
        self._plan(None)
        self.chores.wake()

    def step(self) -> float:
        """Submit everything that is due. Return the seconds until the next item."""
        self.chores.run()
        if not self._is_time():
            return self._wait()
        turns = IsolatedTasks()
        fired, due_at = turns.take(self.fire, _NOTHING)
        delivered = turns.take(self.deliver, 0)
        _, wake_at = turns.take(self.unpark, _NOTHING)
        if fired >= MOST or delivered >= MOST or turns.error is not None:
            self._plan(None)
        for at in (due_at, wake_at):
            if at is not None:
                self._plan(at)
        turns.end()
        return self._wait()

    def _plan(self, at: datetime | None) -> bool:
        """Set the time of the next check, None for now. Return whether that is earlier than planned."""
        with self._planning:
            if self._look_at is None or (at is not None and at >= self._look_at):
                return False
            self._look_at = at
            return True

    def _is_time(self) -> bool:
        """Return whether to check now.

        If so, the next check is set one poll interval ahead, unless an earlier item is reported.
        """
        now, poll = self._shared.clock.now(), self._shared.settings.timer_poll_interval
        with self._planning:
            # A check further ahead than the poll interval was planned before the clock was set back.
            if self._look_at is not None and now < self._look_at <= now + poll:
                return False
            self._look_at = now + poll
            return True

    def _wait(self) -> float:
        """Return the seconds until the next check, at most the poll interval, because other processes store timers too."""
        look_at = self._look_at
        if look_at is None:
            return 0.0
        until = (look_at - self._shared.clock.now()).total_seconds()
        return self.chores.rest(min(max(0.0, until), self._shared.settings.timer_poll_interval.total_seconds()))

    def fire(self, then: Callable[[], None] = _nothing) -> tuple[int, datetime | None]:
        """Submit the due timers.

        Return their number and the time of the next one. `then` is called as each timer settles.
        """
        if self._switch.is_off:
            return _NOTHING
        words = self._shared.languages.commands()
        due = self._timers.claim(self._shared.clock.judge(), words=words, hold=self._hold, limit=MOST)
        opened = self._gate.open_to_timers(due.timers)
        for timer in opened:
            self._fire(timer, then)
        for _ in range(len(due.timers) - len(opened)):
            then()
        return len(due.timers), due.next_at

    def deliver(self) -> int:
        """Submit the messages that are due, and return their number."""
        if self._switch.is_off:
            return 0
        words = self._shared.languages.commands()
        messages = self._inbox.claim(self._shared.clock.judge(), words=words, hold=self._hold, limit=MOST)
        lines: dict[tuple[str, str], deque[StoredMessage]] = {}
        for message in messages:
            lines.setdefault((message.address.tenant, message.target), deque()).append(message)
        for line in lines.values():
            self._deliver_next(line)
        return len(messages)

    def next_message(self) -> datetime | None:
        """Return when the next failed message is due for a retry."""
        return self._inbox.next_at(self._shared.clock.judge())

    def unpark(self) -> tuple[int, datetime | None]:
        """Release parked effects whose time has come.

        Return the number of handlers concerned and the time of the next release.
        """
        if self._switch.is_off:
            return _NOTHING
        handlers, next_at = self._effects.wake(self._shared.clock.judge())
        if handlers:
            self._effects_ready()
        return len(handlers), next_at

    def _fire(self, timer: StoredTimer, then: Callable[[], None]) -> None:
        def settled(_outcome: CommandOutcome | None, error: BaseException | None) -> None:
            if error is not None:
                self.chores.add(partial(self._timer_failed, timer, error), otherwise=partial(_leave, timer.key))
            then()

        if self._shared.telemetry.is_heard:
            late_by = self._shared.clock.now() - timer.due_at
            self._shared.telemetry.tell(
                TimerFired(
                    definition=timer.definition,
                    tenant=timer.tenant,
                    instance=timer.instance,
                    key=timer.key,
                    late_by=late_by,
                )
            )
        try:
            speaker = self._shared.languages.speaker(timer.language)
            command = speaker.commands.decode(timer.type, timer.version, timer.data)
        except BaseException as error:  # noqa: BLE001 - unreadable work must not hold back other work
            settled(None, error)
            return
        address = Address(tenant=timer.tenant, definition=timer.definition, instance=timer.instance)
        cause = f"timer:{timer.instance}:{timer.number}"
        self._shared.submit(
            Submission(
                address=address,
                command=command,
                cause=cause,
                request=following(timer.context),
                claim=timer.claim,
                settled=settled,
            )
        )

    def _timer_failed(self, timer: StoredTimer, error: BaseException) -> None:
        if is_unreadable(error):
            if not self.unreadable.is_hopeless(timer, timer.definition, error):
                self._timers.retry(timer.claim, error=describe(error), until=self.unreadable.until(), counts=False)
                self.unreadable.tell(timer.definition, error)
                return
            error = UnreadableError(str(error))
        at = self._retry_at(timer.attempts + 1, error)
        if at is not None:
            self._timers.retry(timer.claim, error=describe(error), until=at, counts=not is_passing(error))
            return
        letter = dead_timer(timer, error=error, now=self._shared.clock.now())
        if self._timers.bury(timer.claim, letter):
            tell_buried(self._shared, letter)

    def _retry_at(self, attempts: int, error: BaseException) -> datetime | None:
        """Return the time of the next attempt after this many failures. None means never."""
        return None if isinstance(error, UnreadableError) else self._failures.retry_command_at(attempts, error)

    def _deliver_next(self, line: deque[StoredMessage]) -> None:
        """Submit the first message of a target. The next one follows after its commit, which preserves the order."""
        if not line:
            return
        if self._switch.is_off:
            self.chores.add(partial(self._give_back, line[0]), otherwise=partial(_leave, line[0].id))
            return
        message = line.popleft()

        def settled(_outcome: CommandOutcome | None, error: BaseException | None) -> None:
            if error is None:
                self._deliver_next(line)
            else:
                failed = partial(self._message_failed, message, error, line)
                self.chores.add(failed, otherwise=partial(_leave, message.id))

        where = message.address
        try:
            speaker = self._shared.languages.speaker(message.language)
            command = speaker.commands.decode(message.type, message.version, message.data)
            if where.instance is None and not where.key:
                where = replace(where, key=speaker.key_of(command))
        except BaseException as error:  # noqa: BLE001 - unreadable work must not hold back other work
            settled(None, error)
            return
        receipt = receipt_key(where, message.command_id)
        self._shared.submit(
            Submission(
                address=where,
                command=command,
                cause=receipted(f"inbox:{message.id}", receipt),
                request=_asking(message),
                comment=message.comment,
                claim=message.claim,
                receipt=receipt,
                digest=digest_of(where, command) if message.command_id else b"",
                definition_version=message.definition_version,
                # An unknown id is an error, unless it was generated for the instance that the message starts.
                may_create=where.instance is None or message.parent is not None,
                parent=message.parent,
                settled=settled,
            )
        )

    def _give_back(self, message: StoredMessage) -> None:
        """Release a message, and those queued behind it, to any process."""
        self._inbox.retry(message.claim, error=message.error, until=self._shared.clock.now(), counts=False)

    def _message_failed(self, message: StoredMessage, error: BaseException, behind: deque[StoredMessage]) -> None:
        if is_unreadable(error):
            if not self.unreadable.is_hopeless(message, message.address.definition, error):
                self._inbox.retry(message.claim, error=describe(error), until=self.unreadable.until(), counts=False)
                self.unreadable.tell(message.address.definition, error)
                return
            error = UnreadableError(str(error))
        at = self._retry_at(message.attempts + 1, error)
        if at is not None:
            # The messages behind it wait with it.
            self._inbox.retry(message.claim, error=describe(error), until=at, counts=not is_passing(error))
            return
        letter = dead_message(message, error=error, now=self._shared.clock.now())
        if self._inbox.bury(message.claim, letter):
            tell_buried(self._shared, letter)
        self._deliver_next(behind)


def _asking(message: StoredMessage) -> RequestContext:
    """Return the request of a message. A message inserted with SQL has only the id of its actor."""
    if message.context is None and message.actor != SYSTEM.id:
        return RequestContext(actor=Actor(id=message.actor))
    return request_of(message.context)


def _leave(what: object) -> None:
    """Log that a failure cannot be recorded. The claim expires, and the next process retries the work."""
    _log.error("failure_not_recorded work=%s: the work is retried when its claim expires", what)
