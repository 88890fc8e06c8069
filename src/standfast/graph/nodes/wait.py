"""Nodes that wait for a duration, a time, a calendar rule, or a signal."""

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
"""Name of the expression for a time."""


class WaitTimerOp(NodeOp, frozen=True, kw_only=True, tag="wait_timer"):
    """Waits for a duration, until a time, or for the next match of a calendar rule. Exactly one is given."""

    duration_ms: int | None = None
    until: Stored | None = None
    """Stored expression for a time. A past time ends the wait immediately."""
    cron: str = ""
    """Five cron fields: minute, hour, day of the month, month, day of the week."""
    time_zone: str = UTC_ZONE
    """Time zone of `cron`, such as `Europe/Berlin`."""
    calendar: str = ""
    """Organisation calendar whose working time the duration counts. Empty for elapsed time."""

    word: ClassVar[str] = "wait"
    shape: ClassVar[NodeShape] = NodeShape(('(("', '"))'), "shape=ellipse, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Waits for time."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """Elapsed; failed for an invalid time or an unknown calendar."""
        return frozenset({OK}) if self.until is None and not self.calendar else frozenset({OK, ERROR})

    @property
    def detail(self) -> str:
        """The duration or the time."""
        if self.until is not None:
            return f"until {source(self.until)}"
        if self.cron:
            return f"{self.cron} {self.time_zone}"
        length = self.duration_ms or 0
        unit = next((unit for unit, size in _UNITS.items() if length and not length % size), "ms")
        return f"{length // _UNITS.get(unit, 1)} {unit}{f' of {self.calendar}' if self.calendar else ''}"

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the expression for the time."""
        if self.until is not None:
            yield NodeExpression(UNTIL, f"the instant that {node!r} waits for", self.until)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the wait."""
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
        """Waits for an external signal."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """Received; timed out, which is a failure without an edge; or failed for lack of space."""
        return frozenset({OK, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """Answered by the signal."""
        return (OK,)

    @property
    def detail(self) -> str:
        """The signal."""
        return self.signal

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the signal's name."""
        return name_findings(node, "no_signal", f"the signal that {node!r} waits for", self.signal)
