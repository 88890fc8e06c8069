"""Detects effects whose handler no live worker has.

They stay untouched; log, telemetry and their instances are notified periodically.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.submission import CommandOutcome, Submission
from standfast.engine.common.telemetry import HandlerMissingObserved
from standfast.engine.concurrency.loop import IsolatedTasks
from standfast.errors import StandfastError
from standfast.kernel.actor import following
from standfast.kernel.ids import effect_key
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import Address, StoredEffect, Word
from standfast.store.records.queries import Unhandled

_log = logging.getLogger("standfast.housekeeping")

SHORTEST_PAUSE = timedelta(seconds=0.5)
"""Minimum interval between two checks, and between two reports of a handler, whatever the settings."""

_MOST_TOLD = 100
"""Effects of one handler whose instances are notified in one round."""


class MissingHandlers:
    """Looks for handlers that no live worker has. A single thread steps it."""

    def __init__(self, parts: StoreParts, shared: EngineContext) -> None:
        self._keeper = parts.keeper()
        self._effects = parts.effects()
        self._workers = parts.workers()
        self._shared = shared
        self._reported_at: dict[str, datetime] = {}

    def look(self) -> list[Unhandled]:
        """Return the missing handlers. Each is reported at most once per interval."""
        settings, clock = self._shared.settings, self._shared.clock
        missing = self._keeper.unhandled(waited=settings.missing_handler_cooldown, now=clock.judge())
        oldest = clock.now() - self._window
        self._reported_at = {name: at for name, at in self._reported_at.items() if at > oldest}
        turns = IsolatedTasks()
        for each in missing:
            if each.handler not in self._reported_at:
                self._reported_at[each.handler] = clock.now()
                turns.take(partial(self._report, each), None)
        turns.end()
        return missing

    def next_at(self) -> datetime | None:
        """Return when an instance must be notified next, unless a worker with the handler starts.

        None if no instance waits.
        """
        settings = self._shared.settings
        due_at = list[datetime]()
        for each in self._keeper.unhandled(waited=timedelta(0), now=self._shared.clock.judge()):
            if self._told(each.handler, waited=timedelta(0)):
                reported_at = self._reported_at.get(each.handler)
                missed_at = each.since + settings.missing_handler_cooldown
                due_at.append(missed_at if reported_at is None else max(missed_at, reported_at + self._window))
        return min(due_at, default=None)

    @property
    def _window(self) -> timedelta:
        """Return the interval between two reports of a handler."""
        return max(self._shared.settings.missing_handler_throttle, SHORTEST_PAUSE)

    def _report(self, missing: Unhandled) -> None:
        name, count = missing.handler, missing.waiting
        _log.warning("handler_missing handler=%r effects=%d: no live worker has it", name, count)
        self._shared.telemetry.tell(HandlerMissingObserved(handler=name, waiting=count))
        settings, now = self._shared.settings, self._shared.clock.judge()
        told = self._told(name, waited=settings.missing_handler_cooldown)
        # Many processes check; one of them notifies the instances.
        if told and self._workers.announce(name, every=settings.missing_handler_throttle, now=now):
            for effect, command in told:
                self._tell(effect, command)

    def _told(self, handler: str, *, waited: timedelta) -> list[tuple[StoredEffect, object]]:
        """Return the effects that have waited this long and whose instances want a command about it, each with that command."""
        found = self._effects.waiting(handler, waited=waited, now=self._shared.clock.judge(), limit=_MOST_TOLD)
        return [(effect, command) for effect in found if (command := self._command(effect)) is not None]

    def _command(self, effect: StoredEffect) -> object:
        """Return the command for the instance.

        None if the instance does not want one, or if this process cannot read it.
        """
        languages = self._shared.languages
        word = Word(effect.language, effect.type, effect.version)
        if word not in languages.effects():
            return None
        try:
            program = languages.speaker(effect.language)
            body = program.effects.decode(effect.type, effect.version, effect.data)
            return program.handler_missing(body, effect.handler)
        except StandfastError as error:
            _log.warning("effect_unreadable effect=%s: %s", effect_key(effect.instance, effect.number), error)
        except BaseException:  # noqa: BLE001 - a failing decider must not affect the others
            _log.exception(
                "decider_failed decider=%r event=handler_missing handler=%r", effect.definition, effect.handler
            )
        return None

    def _tell(self, effect: StoredEffect, command: object) -> None:
        name = effect_key(effect.instance, effect.number)

        def settled(_outcome: CommandOutcome | None, error: BaseException | None) -> None:
            if error is not None:
                _log.warning("instance_not_notified effect=%s event=handler_missing: %s", name, error)

        clock = self._shared.clock
        self._shared.submit(
            Submission(
                address=Address(tenant=effect.tenant, definition=effect.definition, instance=effect.instance),
                command=command,
                cause=f"missing:{self._shared.chance.new_id(clock.now())}",
                request=following(effect.context),
                is_own=True,
                settled=settled,
            )
        )
