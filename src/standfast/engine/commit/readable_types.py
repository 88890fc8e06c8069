"""Message types that the processes of a database can read. Each process announces its own types.

An unknown type that was never announced is a mistake of its sender. An announced one belongs to other code, which may
return.
"""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from typing import Final, Literal

from standfast.engine.commit.context import ReadableTypes
from standfast.engine.common.clock import Clock
from standfast.store.ports.reading import Notes
from standfast.store.records.instances import Word

Kind = Literal["command", "effect", "event"]

REMEMBERED: Final = timedelta(days=1)
"""How long a type counts as readable by other code after the last process that could read it was seen."""
_NAME: Final = "vocabularies"
_AGAIN: Final = timedelta(hours=6)
"""Interval between two announcements of a process."""
_SOON: Final = timedelta(seconds=10)
"""When a process verifies its announcement. Two concurrent announcements overwrite each other."""

Known = dict[str, dict[str, str]]
"""For each language its message types, each with the last day on which a process could read it."""


class Vocabularies:
    """The message types that this process and earlier ones can read."""

    def __init__(self, languages: ReadableTypes, clock: Clock) -> None:
        self._languages = languages
        self._clock = clock
        self._announced: object = None
        """The types announced last, compared by identity: each language replaces its tuple when it grows."""
        self._due_at: datetime | None = None

    @property
    def is_new(self) -> bool:
        """Whether this process can read a type that it has not announced. Checked for every commit."""
        return self._languages.commands() is not self._announced

    @property
    def is_due(self) -> bool:
        """Whether an announcement must be repeated or verified."""
        due_at, now = self._due_at, self._clock.now()
        return due_at is not None and not due_at - _AGAIN <= now < due_at

    def announce(self, notes: Notes) -> None:
        """Announce the types that this process can read, if they are unknown or the last announcement is old."""
        if not self.is_new and not self.is_due:
            return
        now, commands = self._clock.now(), self._languages.commands()
        known, today = _known(notes), now.date().isoformat()
        own = {language: dict.fromkeys(words, today) for language, words in self._own().items()}
        is_kept = all(words.items() <= known.get(language, {}).items() for language, words in own.items())
        if not is_kept:
            merged = {name: {**known.get(name, {}), **own.get(name, {})} for name in {*known, *own}}
            notes.note(_NAME, json.dumps(merged, sort_keys=True))
        self._announced, self._due_at = commands, now + (_AGAIN if is_kept else _SOON)

    def is_awaited(self, notes: Notes, kind: Kind, word: Word) -> bool:
        """Return whether other code that was seen recently can read a message type."""
        said = _known(notes).get(word.language, {}).get(_spelled(kind, word.type, word.version))
        return said is not None and self._clock.now().date() - date.fromisoformat(said) <= REMEMBERED

    def is_spoken(self, language: str) -> bool:
        """Return whether this process has the code of a language, whichever of its types it knows."""
        return any(each.language == language for each in self._languages.commands())

    def suggestions(self, language: str) -> list[str]:
        """Return the commands of a language that this process can read."""
        return sorted({each.type for each in self._languages.commands() if each.language == language})

    def _own(self) -> dict[str, set[str]]:
        """Return the types that this process can read, by language: graphs, built-in deciders and those of the application."""
        found: dict[str, set[str]] = {}
        words: tuple[tuple[Kind, Word], ...] = (
            *(("command", each) for each in self._languages.commands()),
            *(("effect", each) for each in self._languages.effects()),
        )
        for kind, (language, type_, version) in words:
            found.setdefault(language, set()).add(_spelled(kind, type_, version))
        for language in found:
            events = self._languages.speaker(language).events.readable()
            found[language] |= {_spelled("event", *each) for each in events}
        return found


def _known(notes: Notes) -> Known:
    said = notes.noted(_NAME)
    known: Known = json.loads(said) if said else {}
    return known


def _spelled(kind: Kind, type_: str, version: int) -> str:
    return f"{kind} {type_} {version}"
