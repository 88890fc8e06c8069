"""Waiting for time to go by, for an instant, for the next time of a calendar rule, or for a signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import (
    ERROR,
    OK,
    TIMEOUT,
    Execution,
    NodeExpression,
    NodeOp,
    NodeShape,
    Stored,
    source,
)
from standfast.graph.values.calendars import UTC_ZONE, calendar_findings
from standfast.graph.values.value_checks import name_findings, time_findings

_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}


UNTIL = "until"
"""The name of the expression that gives an instant."""


class WaitTimerOp(NodeOp, frozen=True, kw_only=True, tag="wait_timer"):
    """Waits for a time to go by, until an instant, or for the next time that a calendar rule names: one of the three."""

    duration_ms: int | None = None
    until: Stored | None = None
    """Stored expression that yields an instant; one that has passed is no wait at all."""
    cron: str = ""
    """When, as five fields: minute, hour, day of the month, month, day of the week."""
    time_zone: str = UTC_ZONE
    """Whose clock `cron` means, as `Europe/Berlin`."""
    calendar: str = ""
    """The calendar of the organisation whose working time the duration counts; empty for time by the clock."""

    word: ClassVar[str] = "wait"
    shape: ClassVar[NodeShape] = NodeShape(('(("', '"))'), "shape=ellipse, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """The time is over; or what should be an instant is none, or there is no such calendar."""
        return frozenset({OK}) if self.until is None and not self.calendar else frozenset({OK, ERROR})

    @property
    def detail(self) -> str:
        """How long, or until when."""
        if self.until is not None:
            return f"until {source(self.until)}"
        if self.cron:
            return f"{self.cron} {self.time_zone}"
        length = self.duration_ms or 0
        unit = next((unit for unit, size in _UNITS.items() if length and not length % size), "ms")
        return f"{length // _UNITS.get(unit, 1)} {unit}{f' of {self.calendar}' if self.calendar else ''}"

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """What gives the instant."""
        if self.until is not None:
            yield NodeExpression(UNTIL, f"the instant that {node!r} waits for", self.until)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the time."""
        given = [self.duration_ms is not None, self.until is not None, self.cron != ""]
        if sum(given) != 1:
            message = f"{node!r} has {sum(given)} of a duration, `until` and `cron`; give one of the three"
            yield Diagnostic("wait_time", message, node)
        if self.duration_ms is not None:
            yield from time_findings(node, "wait_duration", f"the time that {node!r} waits", self.duration_ms)
        if self.calendar:
            yield from name_findings(node, "calendar", f"the calendar of {node!r}", self.calendar)
            if self.duration_ms is None:
                yield Diagnostic("calendar", f"{node!r} has a calendar and no duration that it is for; give one", node)
        if self.cron != "":
            yield from calendar_findings(node, self.cron, self.time_zone)
        elif self.time_zone != UTC_ZONE:
            yield Diagnostic("time_zone", f"{node!r} has a time zone and no `cron` that it is for; give one", node)


class WaitEventOp(NodeOp, frozen=True, kw_only=True, tag="wait_event"):
    """Waits for a signal."""

    signal: str

    word: ClassVar[str] = "wait_for"
    shape: ClassVar[NodeShape] = NodeShape(('{{"', '"}}'), "shape=hexagon, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """The signal came; it did not in time, which is a failure where no edge leads on from it; or there was no room for what it brought."""
        return frozenset({OK, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """What it waited for has happened."""
        return (OK,)

    @property
    def detail(self) -> str:
        """What it waits for."""
        return self.signal

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name of the signal."""
        return name_findings(node, "no_signal", f"the signal that {node!r} waits for", self.signal)
