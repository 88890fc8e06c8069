"""Whether a decision can be written: everything that a database would refuse is refused here, before a transaction is spoilt."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from holdfast.errors import CommandError, PayloadError
from holdfast.kernel.decision import Decision

LONGEST_KEY = 512
"""Bytes of a key; longer ones do not fit into every index."""


def check_decision(decision: Decision, now: datetime) -> None:
    """Raise if a text cannot be kept, or if an instant lies beyond the calendar or has no zone."""
    for effect in decision.effects:
        if effect.handler:
            _check_handler(effect.handler)
        if effect.delay:
            now + effect.delay
    for timer in decision.timers:
        if timer.key:
            check_key(timer.key, "timer key")
        if timer.due(now).tzinfo is None:
            raise CommandError(f"timer at {timer.due_at!r}: give a time with a zone", decider="")
    for message in decision.messages:
        check_key(message.key, "key of a message")
        check_key(message.command_id, "command id of a message")
        check_key(message.definition_version, "version of a definition")


@lru_cache(1024)
def _check_handler(name: str) -> None:
    """Definitions name few handlers, and every step names one of them."""
    check_key(name, "name of a handler")


def check_key(text: str, what: str) -> None:
    """Raise unless the text can be kept in an index."""
    check_text(text, what)
    if len(text.encode()) > LONGEST_KEY:
        raise PayloadError(f"the {what} is longer than {LONGEST_KEY} bytes")


def check_text(text: str, what: str) -> None:
    """Raise unless every database can keep the text."""
    if "\x00" in text:
        raise PayloadError(f"the {what} holds a NUL character, which cannot be stored")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PayloadError(f"the {what} holds half a character: {error}") from error
