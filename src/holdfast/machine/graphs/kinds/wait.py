"""Waiting for time to go by, or for a signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import name_findings, time_findings
from holdfast.machine.graphs.kinds.kind import ERROR, OK, TIMEOUT, Execution, NodeOp, Shape

_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}


class WaitTimer(NodeOp, frozen=True, kw_only=True, tag="wait_timer"):
    """Waits for a time to go by."""

    duration_ms: int

    word: ClassVar[str] = "wait"
    shape: ClassVar[Shape] = Shape(('(("', '"))'), "shape=ellipse, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """The time is over."""
        return frozenset({OK})

    @property
    def detail(self) -> str:
        """How long."""
        whole = (unit for unit, size in _UNITS.items() if self.duration_ms and not self.duration_ms % size)
        unit = next(whole, "ms")
        return f"{self.duration_ms // _UNITS.get(unit, 1)} {unit}"

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the time."""
        return time_findings(node, "wait_duration", f"the time that {node!r} waits", self.duration_ms)


class WaitEvent(NodeOp, frozen=True, kw_only=True, tag="wait_event"):
    """Waits for a signal."""

    signal: str

    word: ClassVar[str] = "wait_for"
    shape: ClassVar[Shape] = Shape(('{{"', '"}}'), "shape=hexagon, style=filled")
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
