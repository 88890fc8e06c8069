"""Work that this process cannot read. It is left to other code, and moved to the dead letters if there is none.

Work with an unknown message type is not claimed. An unreadable history or definition is found only at loading; the work
is then left to processes that can read it. In both cases newer code may be about to start. Work therefore waits for
`unreadable_after`, and for as long as recently seen code can read it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import NamedTuple

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.readable_types import REMEMBERED, Vocabularies
from standfast.engine.common.clock import LATEST, later
from standfast.engine.common.telemetry import HistoryUnreadable, WorkBuried, WorkUnreadable
from standfast.engine.common.work_errors import UnreadableError, describe
from standfast.engine.worker.failures import dead_effect, dead_message, dead_timer
from standfast.errors import DefinitionError, UnknownEventError
from standfast.expressions.model.suggestions import suggestion
from standfast.kernel.ids import WorkerId, effect_key
from standfast.store.ports.reading import Notes
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import (
    DeadLetterRecord,
    StoredEffect,
    StoredMessage,
    StoredTimer,
    Wanted,
    Word,
)
from standfast.store.records.queries import WaitingWord

_log = logging.getLogger("standfast")

_MOST = 200
"""Maximum number of dead-lettered pieces of work per round."""
_WHAT = {"effect": "an effect", "timer": "a timer", "inbox": "a message"}


def is_unreadable(error: BaseException) -> bool:
    """Return whether an error says that an instance or its definition cannot be read by this code."""
    return isinstance(error, UnknownEventError | DefinitionError)


class Throttle:
    """Limits repeated messages to one per interval, across threads."""

    def __init__(self, shared: EngineContext) -> None:
        self._shared = shared
        self._said_at: dict[Hashable, datetime] = {}
        self._lock = threading.Lock()

    def allows(self, what: Hashable) -> bool:
        """Return whether the message was not logged recently."""
        now = self._shared.clock.now()
        oldest = now - self._shared.settings.missing_handler_throttle
        with self._lock:
            self._said_at = {each: at for each, at in self._said_at.items() if at > oldest}
            if what in self._said_at:
                return False
            self._said_at[what] = now
            return True


class Unread(NamedTuple):
    """Work that has waited unread for too long."""

    waiting: WaitingWord
    why: str
    """Description of what it waits for."""

    @property
    def told(self) -> str:
        """Describe it in a sentence."""
        language, type_, version = self.waiting.word
        since = self.waiting.since.isoformat(timespec="seconds")
        return f"{_WHAT[self.waiting.kind]} {type_!r} version {version} for {language!r} has waited since {since}: {self.why}"


class UnreadWork:
    """Looks for work with message types unknown to this process. A single thread steps it."""

    def __init__(self, parts: StoreParts, shared: EngineContext, vocabularies: Vocabularies, worker: WorkerId) -> None:
        self._keeper = parts.keeper()
        self._inbox, self._timers, self._effects = parts.inbox(), parts.timers(), parts.effects()
        self._shared = shared
        self._vocabularies = vocabularies
        self._worker = worker
        self._throttle = Throttle(shared)
        self._begun_at = shared.clock.now()
        """Work that waited before this process began may have waited without any process running."""
        self.known: tuple[Unread, ...] = ()
        """Work that has waited for too long, as of the last check."""

    def look(self) -> list[WaitingWord]:
        """Return work that has waited for a while although this process runs.

        Work that no code can read is moved to the dead letters.
        """
        self._vocabularies.announce(self._keeper)
        settings, now = self._shared.settings, self._shared.clock.now()
        unread, late = self._waiting(settings.missing_handler_cooldown), list[Unread]()
        for each in unread:
            if self._throttle.allows((each.kind, each.word)):
                self._report(each)
            if self._late_at(each) <= now:
                late += self._judged(each)
        self.known = tuple(late)
        return unread

    def next_at(self) -> datetime | None:
        """Return when the next piece of work will have waited too long, or None."""
        now = self._shared.clock.now()
        late_at = [self._late_at(each) for each in self._waiting(timedelta(0))]
        return min((at for at in late_at if at > now), default=None)

    def _waiting(self, waited: timedelta) -> list[WaitingWord]:
        """Return the work that has waited this long with message types unknown to this process."""
        names = self._shared.handlers.names()
        return unread_words(
            self._keeper.waiting_words(names, waited=waited, now=self._shared.clock.judge()), self._shared
        )

    def _late_at(self, waiting: WaitingWord) -> datetime:
        """Return when a piece of work will have waited too long."""
        since = max(waiting.since, self._begun_at)
        return later(since, self._shared.settings.unreadable_after) or LATEST

    def _judged(self, waiting: WaitingWord) -> list[Unread]:
        """Judge a message type that has waited for too long.

        Return its description if the work stays, or nothing if it was dead-lettered.
        """
        vocabularies, word = self._vocabularies, waiting.word
        if not vocabularies.is_spoken(word.language):
            return [Unread(waiting, f"start a process that has the decider {word.language!r}, or find its sender")]
        if vocabularies.is_awaited(self._keeper, "effect" if waiting.kind == "effect" else "command", word):
            return [Unread(waiting, "start a worker with the code that can read it, which was here within a day")]
        guess = suggestion(word.type, vocabularies.suggestions(word.language))
        error = UnreadableError(
            f"no code can read {word.type!r} version {word.version} of {word.language!r}{guess}; correct its sender"
        )
        self._bury(waiting, error)
        return []

    def _bury(self, waiting: WaitingWord, error: UnreadableError) -> None:
        now, judged, hold = self._shared.clock.now(), self._shared.clock.judge(), self._shared.settings.lease
        words = [waiting.word]
        match waiting.kind:
            case "inbox":
                for message in self._inbox.claim(judged, words=words, hold=hold, limit=_MOST):
                    letter = dead_message(message, error=error, now=now)
                    self._told(letter, self._inbox.bury(message.claim, letter))
            case "timer":
                for timer in self._timers.claim(judged, words=words, hold=hold, limit=_MOST).timers:
                    letter = dead_timer(timer, error=error, now=now)
                    self._told(letter, self._timers.bury(timer.claim, letter))
            case "effect":
                wanted = [Wanted(waiting.handler, _MOST)]
                for effect in self._effects.claim(self._worker, wanted, _MOST, judged, words=words):
                    letter = dead_effect(effect, error, now)
                    self._told(letter, self._effects.bury(effect.claim, letter))

    def _told(self, letter: DeadLetterRecord, is_buried: bool) -> None:  # noqa: FBT001 - the store's answer
        if is_buried:
            tell_buried(self._shared, letter)

    def _report(self, waiting: WaitingWord) -> None:
        language, type_, version = waiting.word
        _log.warning(
            "work_unreadable kind=%r language=%r since=%s type=%r version=%d: "
            "start a process with code that reads it, or find its sender",
            waiting.kind,
            language,
            waiting.since.isoformat(timespec="seconds"),
            type_,
            version,
        )
        self._shared.telemetry.tell(
            WorkUnreadable(kind=waiting.kind, language=language, type=type_, version=version, since=waiting.since)
        )


def unread_words(waiting: list[WaitingWord], shared: EngineContext) -> list[WaitingWord]:
    """Return the message types that this process cannot read."""
    commands, effects = set(shared.languages.commands()), set(shared.languages.effects())
    return [each for each in waiting if each.word not in (effects if each.kind == "effect" else commands)]


def tell_buried(shared: EngineContext, letter: DeadLetterRecord) -> None:
    """Publish and log that a message, a timer or unreadable work was dead-lettered."""
    _log.error(
        "work_dead_lettered source=%s name=%s definition=%r: %s",
        letter.source,
        letter.name,
        letter.definition,
        letter.error,
    )
    shared.telemetry.tell(
        WorkBuried(
            source=letter.source,
            definition=letter.definition,
            tenant=letter.tenant,
            instance=letter.instance,
            reason=letter.reason,
            error=letter.error,
        )
    )


class _Left(NamedTuple):
    """Work that is left to other processes."""

    first: datetime
    last: datetime
    definition: str
    why: str


class UnreadableWork:
    """Logs periodically which work is left to other processes."""

    def __init__(self, shared: EngineContext) -> None:
        self._shared = shared
        self._throttle = Throttle(shared)

    def until(self) -> datetime:
        """Return until when such work is left to others before this process checks again."""
        return self._shared.clock.now() + self._shared.settings.lease

    def tell_stranded(self, effect: StoredEffect, error: BaseException) -> None:
        """Log that the result of a call could not be recorded and went through the inbox."""
        if is_unreadable(error):
            self.tell(effect.definition, error)
            return
        name = effect_key(effect.instance, effect.number)
        _log.error(
            "result_not_recorded effect=%s: it is sent through the inbox and not called again: %s",
            name,
            describe(error),
        )

    def tell(self, definition: str, error: BaseException) -> None:
        """Log work left to other processes, once per interval for each definition and reason."""
        reason = str(error)
        if not self._throttle.allows((definition, reason)):
            return
        _log.warning("work_left_to_newer_code definition=%r: %s", definition, reason)
        self._shared.telemetry.tell(HistoryUnreadable(definition=definition, error=reason))


class UnreadHistories(UnreadableWork):
    """Also tracks since when timers and messages are left to others, and when no known code can read their targets."""

    def __init__(self, shared: EngineContext, vocabularies: Vocabularies, notes: Notes) -> None:
        super().__init__(shared)
        self._vocabularies = vocabularies
        self._notes = notes
        self._left: dict[Hashable, _Left] = {}
        """Left work by identity. Entries that were not seen again are removed."""

    def is_hopeless(self, work: StoredMessage | StoredTimer, definition: str, error: BaseException) -> bool:
        """Return whether a piece of work was left to others for too long and no known code can read its target."""
        now, bound = self._shared.clock.now(), self._shared.settings.unreadable_after
        key: Hashable = work.id if isinstance(work, StoredMessage) else (work.instance, work.key, work.number)
        oldest = now - max(bound, 10 * self._shared.settings.lease)
        self._left = {name: each for name, each in self._left.items() if each.last >= oldest}
        first = self._left[key].first if key in self._left else now
        self._left[key] = _Left(first, now, definition, str(error))
        if now - first < bound or self._may_be_read(work.language, error, since=first):
            return False
        del self._left[key]
        return True

    def _may_be_read(self, language: str, error: BaseException, *, since: datetime) -> bool:
        """Return whether other code may be able to read what this process cannot.

        Processes do not announce which definitions they can read.
        """
        if not isinstance(error, UnknownEventError):
            return self._shared.clock.now() - since < REMEMBERED
        word = Word(language, error.event_type, error.version)
        return self._vocabularies.is_awaited(self._notes, "event", word)

    def told(self) -> list[str]:
        """Describe the work that was left to others for too long, once per definition and reason."""
        bound, found = self._shared.settings.unreadable_after, dict[tuple[str, str], datetime]()
        for each in list(self._left.values()):
            if each.last - each.first >= bound:
                key = (each.definition, each.why)
                found[key] = min(each.first, found.get(key, each.first))
        return [
            f"work of {definition!r} has waited since {since.isoformat(timespec='seconds')} for code that can read its history: {why}"
            for (definition, why), since in found.items()
        ]
