"""Timers that fire, messages whose turn has come, parked effects whose time has come."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial

from holdfast.runtime.giving_up import Verdicts, dead_message, dead_timer, describe
from holdfast.runtime.loops import Chores
from holdfast.runtime.shared import Shared
from holdfast.runtime.submissions import Outcome, Submission, digest_of, receipt_key
from holdfast.runtime.telemetry import TimerFired
from holdfast.store.port import Parts
from holdfast.store.shapes import Address, StoredMessage, StoredTimer

_log = logging.getLogger("holdfast.clockwork")

_MOST = 200


class Clockwork:
    """Hands in what is due. One thread steps it."""

    def __init__(self, parts: Parts, shared: Shared, *, effects_ready: Callable[[], None]) -> None:
        self._timers = parts.timers()
        self._inbox = parts.inbox()
        self._effects = parts.effects()
        self._shared = shared
        self._verdicts = Verdicts(shared)
        self._hold = shared.settings.lease
        """How long a timer or message stays with the process that took it."""
        self._effects_ready = effects_ready
        self._look_at: datetime | None = None
        """When something is known to be due; None means that it is time to look."""
        self.chores = Chores()

    def expect(self, at: datetime) -> None:
        """Something was just set that is due at this instant."""
        look_at = self._look_at
        if look_at is None or at < look_at:
            self._look_at = at
            self.chores.wake()

    def look(self) -> None:
        """There may be something to hand in."""
        self._look_at = None
        self.chores.wake()

    def step(self) -> float:
        """Hand in everything that is due; how long until the next thing is."""
        self.chores.run()
        look_at, now = self._look_at, self._shared.clock.now()
        if look_at is not None and now < look_at:
            return self._wait()
        self._look_at = now + self._shared.settings.timer_poll_interval
        fired, due_at = self.fire()
        delivered = self.deliver()
        _, wake_at = self.unpark()
        if fired >= _MOST or delivered >= _MOST:
            self._look_at = None
            return 0.0
        for at in (due_at, wake_at):
            if at is not None:
                self.expect(at)
        return self._wait()

    def _wait(self) -> float:
        look_at = self._look_at
        return 0.0 if look_at is None else max(0.0, (look_at - self._shared.clock.now()).total_seconds())

    def fire(self) -> tuple[int, datetime | None]:
        """Hand in the timers that are due; how many, and when the next one is."""
        known = sorted(self._shared.definitions())
        due = self._timers.claim(self._shared.clock.judge(), hold=self._hold, limit=_MOST, definitions=known)
        for timer in due.timers:
            self._fire(timer)
        return len(due.timers), due.next_at

    def deliver(self) -> int:
        """Hand in the messages whose turn has come; how many."""
        known = sorted(self._shared.definitions())
        messages = self._inbox.claim(self._shared.clock.judge(), hold=self._hold, limit=_MOST, definitions=known)
        lines: dict[tuple[str, str], deque[StoredMessage]] = {}
        for message in messages:
            lines.setdefault((message.address.tenant, message.target), deque()).append(message)
        for line in lines.values():
            self._deliver_next(line)
        return len(messages)

    def next_message(self) -> datetime | None:
        """When the next message that failed is due again."""
        return self._inbox.next_at(self._shared.clock.judge())

    def unpark(self) -> tuple[int, datetime | None]:
        """Let parked effects go whose time has come; for how many handlers, and when the next one's does."""
        handlers, next_at = self._effects.wake(self._shared.clock.judge())
        if handlers:
            self._effects_ready()
        return len(handlers), next_at

    def _fire(self, timer: StoredTimer) -> None:
        def settled(_outcome: Outcome | None, error: BaseException | None) -> None:
            if error is not None:
                self.chores.add(partial(self._timer_failed, timer, error))

        if self._shared.telemetry.is_heard:
            late_by = self._shared.clock.now() - timer.due_at
            self._shared.telemetry.tell(TimerFired(instance=timer.instance, key=timer.key, late_by=late_by))
        try:
            command = self._shared.programs(timer.definition).commands.decode(timer.type, timer.version, timer.data)
        except Exception as error:  # noqa: BLE001 - what cannot be read must not hold back the others
            self._timer_failed(timer, error)
            return
        address = Address(tenant=timer.tenant, definition=timer.definition, instance=timer.instance)
        cause = f"timer:{timer.instance}:{timer.number}"
        self._shared.submit(
            Submission(address=address, command=command, cause=cause, claim=timer.claim, settled=settled)
        )

    def _timer_failed(self, timer: StoredTimer, error: BaseException) -> None:
        at = self._verdicts.retry_command_at(timer.attempts + 1, error)
        if at is not None:
            self._timers.retry(timer.claim, error=describe(error), until=at)
        elif self._timers.bury(timer.claim, dead_timer(timer, error=error, now=self._shared.clock.now())):
            _log.error("timer %s of %s gave up: %s", timer.key, timer.instance, describe(error))

    def _deliver_next(self, line: deque[StoredMessage]) -> None:
        """Hand in the first message of a target; the next one follows when it is carried out, so that none overtakes another."""
        if not line:
            return
        message = line.popleft()

        def settled(_outcome: Outcome | None, error: BaseException | None) -> None:
            if error is None:
                self._deliver_next(line)
            else:
                self.chores.add(partial(self._message_failed, message, error, line))

        where = message.address
        try:
            program = self._shared.programs(where.definition, message.definition_version)
            command = program.commands.decode(message.type, message.version, message.data)
            if where.instance is None and not where.key:
                where = Address(tenant=where.tenant, definition=where.definition, key=program.key_of(command))
        except Exception as error:  # noqa: BLE001 - what cannot be read must not hold back the others
            self.chores.add(partial(self._message_failed, message, error, line))
            return
        self._shared.submit(
            Submission(
                address=where,
                command=command,
                cause=f"inbox:{message.id}",
                actor=message.actor,
                comment=message.comment,
                claim=message.claim,
                receipt=receipt_key(where, message.command_id),
                digest=digest_of(where, command) if message.command_id else b"",
                definition_version=message.definition_version,
                # An id that nobody knows is a mistake, unless it was made for the instance that the message starts.
                may_create=where.instance is None or message.parent is not None,
                parent=message.parent,
                settled=settled,
            )
        )

    def _message_failed(self, message: StoredMessage, error: BaseException, behind: deque[StoredMessage]) -> None:
        at = self._verdicts.retry_command_at(message.attempts + 1, error)
        if at is not None:
            self._inbox.retry(message.claim, error=describe(error), until=at)  # Those behind it wait with it.
            return
        if self._inbox.bury(message.claim, dead_message(message, error=error, now=self._shared.clock.now())):
            _log.error("message %s for %s gave up: %s", message.id, message.target, describe(error))
        self._deliver_next(behind)
