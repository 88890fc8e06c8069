"""Checks that a decider's answer has the types of the contract, before it reaches a database.

Decisions of the built-in machine are not checked, because only user code can be wrong here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from types import NoneType
from uuid import UUID

from standfast.errors import CommandError, indefinite
from standfast.kernel.decider import WORDS, Status
from standfast.kernel.decision import Answer, Decision, Effect, Ignored, Message, Recall, Rejection, Timer
from standfast.kernel.retry import RetryPolicy

_LAST_NUMBER = 2**31 - 1
"""Maximum number of effects of an instance."""

_TEXT, _FLAG, _NUMBER = (str,), (bool,), (int,)
_SPAN, _IDENTITY = (timedelta,), (UUID, NoneType)

_FIELDS: Mapping[type, Mapping[str, tuple[type, ...]]] = {
    Effect: {
        "handler": _TEXT,
        "priority": _NUMBER,
        "delay": _SPAN,
        "once": _FLAG,
        "transactional": _FLAG,
        "timeout": (timedelta, NoneType),
        "retry": (RetryPolicy, NoneType),
    },
    Timer: {"key": _TEXT, "due_at": (datetime, NoneType), "after": (timedelta, NoneType)},
    Message: {
        "decider": _TEXT,
        "key": _TEXT,
        "instance": _IDENTITY,
        "command_id": _TEXT,
        "definition_version": _TEXT,
        "parent": _IDENTITY,
        "elsewhere": _FLAG,
    },
    Recall: {"effect": _NUMBER, "stop": _FLAG},
    Rejection: {"code": _TEXT, "message": _TEXT},
    Ignored: {"reason": _TEXT},
    Status: {"reason": _TEXT},
}
"""The allowed types of each field. Subclasses of text and numbers, such as enumerations, are refused too, because
databases write them differently."""

_VALUES = {kind: attrgetter(*fields) for kind, fields in _FIELDS.items()}
_SOUND: dict[type, set[tuple[type, ...]]] = {kind: set() for kind in _FIELDS}
"""Valid combinations of value types, in the order of the fields, cached per class."""

_NAMES = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    timedelta: "a timedelta",
    UUID: "the id of an instance",
    NoneType: "None",
}
_TUPLES: tuple[type, ...] = (tuple,) * 7
_OPEN = (datetime, timedelta, UUID, RetryPolicy)
"""Classes whose subclasses are accepted too."""


def check_answer(answer: Answer, decider: str) -> None:
    """Raise CommandError unless the answer, with all requested work, matches the contract."""
    if type(answer) is not Decision:
        _check_fields(answer, decider)
        return
    kinds = (
        type(answer.events),
        type(answer.effects),
        type(answer.timers),
        type(answer.cancelled_timers),
        type(answer.withdrawn_effects),
        type(answer.recalls),
        type(answer.messages),
    )
    if kinds != _TUPLES:
        _refuse_container(answer, decider)
    if answer.effects:
        _check_each(answer.effects, Effect, "effects", decider)
    if answer.timers or answer.cancelled_timers or answer.withdrawn_effects or answer.recalls or answer.messages:
        _check_rest(answer, decider)


def check_status(status: Status, decider: str) -> None:
    """Raise CommandError unless the status is a known one."""
    if status.word not in WORDS:
        raise CommandError(
            f"{decider!r} gives the status {status.word!r}; give one of {', '.join(WORDS)}, and your own word as its reason",
            decider=decider,
        )
    if type(status.reason) is not str:
        _check_fields(status, decider)


def _check_rest(decision: Decision, decider: str) -> None:
    _check_each(decision.timers, Timer, "timers", decider)
    _check_each(decision.recalls, Recall, "recalls", decider)
    _check_each(decision.messages, Message, "messages", decider)
    for key in decision.cancelled_timers:
        if type(key) is not str:
            raise CommandError(
                f"{decider!r} cancels the timer {key!r}; give the key of a timer, which is text", decider=decider
            )
    for number in (*decision.withdrawn_effects, *(recall.effect for recall in decision.recalls)):
        if type(number) is not int or not 0 <= number <= _LAST_NUMBER:
            raise CommandError(
                f"{decider!r} takes back the effect {number!r}; give the number of an effect, as `moment.issued` counts them",
                decider=decider,
            )


def _check_each(things: Iterable[object], kind: type, field: str, decider: str) -> None:
    values_of, sound = _VALUES[kind], _SOUND[kind]
    for thing in things:
        # The types of the values decide. Nearly always the combination was checked before.
        if type(thing) is kind and (types := tuple(map(type, values_of(thing)))) in sound:
            continue
        if type(thing) is not kind:
            raise CommandError(
                f"{decider!r} gave {indefinite(type(thing))} among the {field} of a Decision; give each as {indefinite(kind)}",
                decider=decider,
            )
        _check_fields(thing, decider)
        sound.add(types)


def _check_fields(thing: object, decider: str) -> None:
    for field, allowed in _FIELDS.get(type(thing), {}).items():
        value = getattr(thing, field)
        if type(value) not in allowed and not (
            isinstance(value, _OPEN) and any(isinstance(value, each) for each in allowed)
        ):
            wanted = " or ".join(_NAMES.get(each, indefinite(each)) for each in allowed)
            raise CommandError(
                f"{decider!r} gave {indefinite(type(thing))} with {field}={value!r}; {field} must be {wanted}",
                decider=decider,
            )


def _refuse_container(decision: Decision, decider: str) -> None:
    for field in ("events", "effects", "timers", "cancelled_timers", "withdrawn_effects", "recalls", "messages"):
        value = getattr(decision, field)
        if type(value) is not tuple:
            raise CommandError(
                f"{decider!r} gave {indefinite(type(value))} as {field} of a Decision; give a tuple"
                + (", or begin with Decision.event(first, *more)" if field == "events" else ""),
                decider=decider,
            )
