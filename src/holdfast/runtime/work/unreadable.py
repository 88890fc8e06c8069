"""Work that this process cannot do, because newer code wrote what it would have to read first.

Work whose words it does not know is not even claimed; if it waits for long, that is said. What an instance's history or its definition
holds shows only when it is loaded: then the work goes to the processes that can read it, as often as need be, and never gives up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable
from datetime import datetime

from holdfast.errors import DefinitionError, UnknownEventError
from holdfast.runtime.context import EngineContext
from holdfast.runtime.telemetry import HistoryUnreadable, WorkUnreadable
from holdfast.store.findings import WaitingWord
from holdfast.store.port import Parts

_log = logging.getLogger("holdfast")


def is_unreadable(error: BaseException) -> bool:
    """Whether an error says that an instance, or the definition it runs, cannot be read by this code."""
    return isinstance(error, UnknownEventError | DefinitionError)


class Throttle:
    """Says the same thing once in a while, whichever thread wants to say it."""

    def __init__(self, shared: EngineContext) -> None:
        self._shared = shared
        self._said_at: dict[Hashable, datetime] = {}
        self._lock = threading.Lock()

    def allows(self, what: Hashable) -> bool:
        """Whether it was not said lately."""
        now = self._shared.clock.now()
        oldest = now - self._shared.settings.missing_handler_throttle
        with self._lock:
            self._said_at = {each: at for each, at in self._said_at.items() if at > oldest}
            if what in self._said_at:
                return False
            self._said_at[what] = now
            return True


class UnreadWork:
    """Looks for work whose words this process does not know. One thread steps it."""

    def __init__(self, parts: Parts, shared: EngineContext) -> None:
        self._keeper = parts.keeper()
        self._shared = shared
        self._throttle = Throttle(shared)

    def look(self) -> list[WaitingWord]:
        """What has waited for a while, although this process works; each word of it is reported once in a while."""
        languages, handlers = self._shared.languages, self._shared.handlers
        waited, now = self._shared.settings.missing_handler_cooldown, self._shared.clock.judge()
        commands, effects = set(languages.commands()), set(languages.effects())
        unread = [
            each
            for each in self._keeper.waiting_words(handlers.names(), waited=waited, now=now)
            if each.word not in (effects if each.kind == "effect" else commands)
        ]
        for each in unread:
            if self._throttle.allows((each.kind, each.word)):
                self._report(each)
        return unread

    def _report(self, waiting: WaitingWord) -> None:
        what = {"effect": "an effect", "timer": "a timer", "inbox": "a message"}[waiting.kind]
        language, type_, version = waiting.word
        _log.warning(
            "%s for %r has waited since %s, because this process does not know %r version %d; "
            "start a process with code that does, or find out who wrote it",
            what,
            language,
            waiting.since.isoformat(timespec="seconds"),
            type_,
            version,
        )
        self._shared.telemetry.tell(
            WorkUnreadable(kind=waiting.kind, language=language, type=type_, version=version, since=waiting.since)
        )


class Unreadable:
    """Says now and then what is left to others."""

    def __init__(self, shared: EngineContext) -> None:
        self._shared = shared
        self._throttle = Throttle(shared)

    def until(self) -> datetime:
        """For how long such work is left to others before this process would look again."""
        return self._shared.clock.now() + self._shared.settings.lease

    def tell(self, definition: str, error: BaseException) -> None:
        """Once in a while for each definition and reason."""
        reason = str(error)
        if not self._throttle.allows((definition, reason)):
            return
        _log.warning("work of %r is left to processes with newer code: %s", definition, reason)
        self._shared.telemetry.tell(HistoryUnreadable(definition=definition, error=reason))
