"""Limits of a decision. Values that a database would refuse are refused here, before they spoil a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isfinite

from standfast.errors import CommandError, PayloadError
from standfast.kernel.codec.message_types import LONGEST_NAME
from standfast.kernel.decision import Decision, Timer

LONGEST_COMMENT = 64 * 1024
"""Maximum size of a comment or reason in bytes. Every event of a command carries its comment, whatever the payload
limit."""

UNNAMED = "#"
"""Prefix of the keys of unnamed timers."""

_WIDEST = 2**63

_BEYOND = "outside of the years 1 to 9999, counted in UTC; give an instant that a calendar has"


def check_decision(decision: Decision, now: datetime) -> None:
    """Raise if a text cannot be stored, or if a time is out of range or has no zone."""
    for effect in decision.effects:
        if effect.handler:
            _check_handler(effect.handler)
        if effect.delay:
            _check_delay(effect.delay, now)
    for timer in decision.timers:
        _check_timer(timer, now)
    if decision.attributes:
        check_attributes(decision.attributes)
    for message in decision.messages:
        check_key(message.key, "key of a message")
        check_key(message.command_id, "command id of a message")
        check_key(message.definition_version, "version of a definition")


def check_attributes(attributes: Mapping[str, object]) -> None:
    """Raise unless every database can store the values and search by them."""
    for name, value in attributes.items():
        check_key(name, "name of a search attribute")
        if isinstance(value, str):
            check_key(value, f"search attribute {name!r}")
        elif isinstance(value, float):
            if not isfinite(value):
                raise PayloadError(f"the search attribute {name!r} is {value!r}: give a finite number")
        elif isinstance(value, int) and not isinstance(value, bool):
            if not -_WIDEST <= value < _WIDEST:
                raise PayloadError(f"the search attribute {name!r} does not fit into 64 bits: {value}")
        elif value is not None and not isinstance(value, bool):
            raise PayloadError(f"the search attribute {name!r} must be text, a number or a truth value, not {value!r}")


def _check_delay(delay: timedelta, now: datetime) -> None:
    try:
        now + delay
    except OverflowError:
        raise CommandError(f"the effect with a delay of {delay} is due {_BEYOND}", decider="") from None


def _check_timer(timer: Timer, now: datetime) -> None:
    if timer.key:
        check_key(timer.key, "timer key")
        if timer.key.startswith(UNNAMED):
            raise PayloadError(
                f"the timer key {timer.key!r} begins with {UNNAMED!r}, which marks timers without a key; give another one"
            )
    try:
        due = timer.due(now)
        if due.utcoffset() is not None:
            due.astimezone(UTC)
            return
    except (OverflowError, ValueError):
        when = timer.due_at if timer.due_at is not None else f"{timer.after} from now"
        raise CommandError(f"the timer at {when} is due {_BEYOND}", decider="") from None
    raise CommandError(f"timer at {timer.due_at!r}: give a time with a zone", decider="")


@lru_cache(1024)
def _check_handler(name: str) -> None:
    """Raise if the handler's name cannot be stored. The result is cached, because definitions name few handlers."""
    check_key(name, "name of a handler")


def check_key(text: str, what: str) -> None:
    """Raise unless the text can be stored in an index."""
    check_text(text, what, limit=LONGEST_NAME)


def check_text(text: str, what: str, *, limit: int = LONGEST_COMMENT) -> None:
    """Raise unless every database can store the text and it is within the limit."""
    if "\x00" in text:
        raise PayloadError(f"the {what} holds a NUL character, which cannot be stored")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise PayloadError(f"the {what} holds half a character: {error}") from error
    if size > limit:
        raise PayloadError(f"the {what} is longer than {limit} bytes")
