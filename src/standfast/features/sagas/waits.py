"""The steps of a saga that wait: for time, for a signal, for published events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Self

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions import ExpressionOptions, Spelling, parse
from standfast.features.sagas.builder_state import BuilderState
from standfast.features.sagas.options import Duration, milliseconds
from standfast.graph.index import EVENT
from standfast.graph.model import (
    OK,
    TIMEOUT,
    Awaited,
    EventTrigger,
    Need,
    Node,
    Stored,
    WaitEventOp,
    WaitEventsOp,
    WaitTimerOp,
)
from standfast.graph.values.calendars import UTC_ZONE
from standfast.machine.model.queries.expression_scope import SAGA

Question = str | dict[str, object]

_DATA = ExpressionOptions(root="input", namespaces=frozenset({"input"}))
"""For keys: every name is one of the data, because rows are made again from the history, which does not tell what else there was."""
_ALL = ExpressionOptions(root="input", namespaces=frozenset(SAGA.schema.fields or ()))
_MATCH = ExpressionOptions(root="input", namespaces=frozenset({"input", EVENT}))
_TRIGGER = ExpressionOptions(root=EVENT, namespaces=frozenset({EVENT, "key"}))

Build = Callable[[Any], object]
"""Builds a way: it is given an empty one and adds steps to it."""


class EventSpec(msgspec.Struct, frozen=True):
    """An event for `wait_for_events`."""

    event: str
    key: str
    match: Question
    name: str


def event(event: str, *, key: str = "", match: Question = "", name: str = "") -> EventSpec:
    """An event for `wait_for_events`, called `name` there; see `wait_for_event`."""
    return EventSpec(event, key, match, name)


class Waits:
    """The waiting steps of a chain under construction."""

    _parts: BuilderState

    def wait(
        self,
        name: str,
        duration: Duration | None = None,
        *,
        until: str | datetime | None = None,
        cron: str = "",
        time_zone: str = UTC_ZONE,
    ) -> Self:
        """Let time go by: a duration, until an instant, or until the next time of a calendar rule.

        `until` is an instant, or an expression over the data that gives one; if it has passed, the saga goes on at once, and what is no
        instant is a failure of the step. `cron` has five fields, as `0 9 * * MON-FRI`, on the clock of `time_zone`.
        """
        length = None if duration is None else milliseconds(duration)
        moment = None if until is None else _instant(self._parts, name, until)
        return self._append(
            Node(id=name, op=WaitTimerOp(duration_ms=length, until=moment, cron=cron, time_zone=time_zone))
        )

    def wait_for(
        self,
        name: str,
        signal: str,
        *,
        capability: str = "",
        timeout: Duration | None = None,
        on_timeout: Build | None = None,
    ) -> Self:
        """Wait for a signal; what it brings is the answer of the step. With a `capability`, only those who have it may send one."""
        return self._wait(name, WaitEventOp(signal=signal), capability=capability, timeout=timeout, way=on_timeout)

    def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        key: str = "",
        match: Question = "",
        capability: str = "",
        timeout: Duration | None = None,
        on_timeout: Build | None = None,
    ) -> Self:
        """Wait for an event that is published for a key; what it brings is found under the name of the step.

        `key` is an expression over the data, `match` a condition over the data and over `event`, which is what the event brings. An event
        that was published before counts as long as it is kept. With a `capability`, only those who have it may publish it.
        """
        return self.wait_for_events(
            name,
            EventSpec(event, key, match, ""),
            capability=capability,
            timeout=timeout,
            on_timeout=on_timeout,
        )

    def wait_for_events(
        self,
        name: str,
        *events: EventSpec,
        need: Need = "all",
        capability: str = "",
        timeout: Duration | None = None,
        on_timeout: Build | None = None,
    ) -> Self:
        """Wait for several events: for all of them, for `any`, or for a number; under the name of the step is found what each one brought, by name."""
        given: list[object] = list(events)  # What a caller without types may give.
        for each in given:
            if not isinstance(each, EventSpec):
                told = f"{name!r} waits for a {type(each).__name__}; give it events, event('…', key='…')"
                self._parts.find("event", told, name)
        awaited = tuple(_awaited(self._parts, name, each) for each in given if isinstance(each, EventSpec))
        return self._wait(
            name, WaitEventsOp(events=awaited, need=need), capability=capability, timeout=timeout, way=on_timeout
        )

    def _wait(
        self, name: str, op: WaitEventOp | WaitEventsOp, *, capability: str, timeout: Duration | None, way: Build | None
    ) -> Self:
        limit = None if timeout is None else milliseconds(timeout)
        self._append(Node(id=name, op=op, timeout_ms=limit, capability=capability))
        return self._side(name, TIMEOUT, way)

    def _append(self, node: Node, *, on: str = OK) -> Self:
        raise NotImplementedError

    def _side(self, name: str, outcome: str, build: Build | None) -> Self:
        raise NotImplementedError


def trigger_of(
    parts: BuilderState,
    event: str,
    *,
    key: str,
    when: Question,
    input: dict[str, str] | None,  # noqa: A002 - as the saga calls it
    named: str,
) -> EventTrigger:
    """What starts a saga; what is wrong with it becomes a finding."""
    what = f"the trigger {event!r} of {named!r}"
    return EventTrigger(
        event=event,
        key=_stored(parts, "", f"the key of {what}", key, options=_TRIGGER, spelling="mapping") if key else None,
        when=_stored(parts, "", f"the condition of {what}", when, options=_TRIGGER, spelling=_spelling(when))
        if when
        else None,
        input=None
        if input is None
        else {
            name: _stored(parts, "", f"{name!r}, which {what} gives,", each, options=_TRIGGER, spelling="mapping")
            for name, each in input.items()
        },
    )


def _awaited(parts: BuilderState, name: str, spec: EventSpec) -> Awaited:
    match = spec.match
    return Awaited(
        event=spec.event,
        key=_stored(parts, name, f"the key of {name!r}", spec.key, options=_DATA, spelling="mapping")
        if spec.key
        else None,
        match=_stored(parts, name, f"what {name!r} asks of its event", match, options=_MATCH, spelling=_spelling(match))
        if match
        else None,
        name=spec.name,
    )


def _instant(parts: BuilderState, name: str, until: object) -> Stored:
    """What gives an instant: one that is known by now is written down as it is."""
    if isinstance(until, datetime):
        if until.utcoffset() is None:
            parts.find(
                "until", f"{name!r} waits until {until}, which names no time zone; give datetime(…, tzinfo=UTC)", name
            )
        until = f"'{until.isoformat()}'"
    elif isinstance(until, str) and _is_instant(until):
        told = f"{name!r} waits until {until}, which is an instant and no expression; give it as a datetime, or in quotes: \"'{until}'\""
        parts.find("until", told, name)
        return {}
    return _stored(parts, name, f"the instant that {name!r} waits for", until, options=_ALL, spelling="mapping")


def _is_instant(text: str) -> bool:
    """Whether a text is an instant or a day, as people write them."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return "-" in text


def _spelling(condition: Question) -> Spelling:
    return "go" if isinstance(condition, str) and condition.lstrip().startswith("{{") else "native"


def _stored(
    parts: BuilderState, place: str, what: str, source: object, *, options: ExpressionOptions, spelling: Spelling
) -> Stored:
    """An expression as the graph keeps it; what is wrong with it becomes a finding."""
    if not isinstance(source, str | dict):
        parts.find("bad_expression", f"{what} is {source!r}; give an expression as text", place)
        return {}
    try:
        return parse(source, spelling=spelling, options=options).to_data()
    except ExpressionError as error:
        parts.find("bad_expression", f"{what} is wrong: {error}", place)
        return {}
