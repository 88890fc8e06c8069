"""What specifications ask of figures, as data, and the judge of it: tests never assert times, so whoever measures is told here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bench.figures import Row


class Limit(NamedTuple):
    """A figure of a row has to stay below so much, or to reach so much."""

    workload: str
    requirement: str
    """The row of the requirements that asks for it."""
    figure: str
    below: float = math.inf
    least: float = 0.0
    store: str = ""
    """Where it counts; empty for everywhere."""


LIMITS = (
    Limit("pause", "R-123", "p99_ms", 100.0),
    Limit("paused 1,000", "R-123", "paused_p99_ms", 100.0),
    Limit("resume", "R-124", "p99_ms", 500.0),
    Limit("paused 1,000", "R-124", "p99_ms", 500.0),
    Limit("approval", "R-125", "p99_ms", 1000.0),
    Limit("http looks 1,000,000", "G-10", "run_p99_ms", 25.0),
    Limit("http looks 1,000,000", "G-10", "list_p99_ms", 50.0),
    Limit("http start", "G-30", "times_dbos", least=3.0, store="postgres"),
    Limit("http streams", "G-17", "p99_ms", 1000.0, store="postgres"),
    Limit("http streams", "G-17", "times_alone", least=0.8, store="postgres"),
    Limit("dev", "G-30", "p99_ms", 3000.0),
)


class Verdict(NamedTuple):
    """What became of one limit in one row."""

    limit: Limit
    store: str
    found: float | None
    """None if the row has no such figure, which is no proof of anything."""

    @property
    def is_kept(self) -> bool:
        """Whether the figure is there, and below the limit, or at least what is to be reached."""
        return self.found is not None and self.limit.least <= self.found < self.limit.below

    def __str__(self) -> str:
        kept = "kept" if self.is_kept else "NOT KEPT"
        measured = "not measured" if self.found is None else f"{self.found:,.4g}"
        asked = f"below {self.limit.below:,.0f}" if self.limit.below < math.inf else f"at least {self.limit.least:g}"
        asked = f"{self.limit.figure.replace('_', ' ')} {asked}"
        return f"{self.limit.requirement}  {self.limit.workload}, {self.store}: {asked}: {measured}, {kept}"


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The limits of the rows that were measured, in the order of the rows."""
    return [
        Verdict(limit, row.store, _figure(row, limit.figure))
        for row in rows
        for limit in LIMITS
        if limit.workload == row.workload and limit.store in {"", row.store}
    ]


def _figure(row: Row, name: str) -> float | None:
    found = row.flat().get(name)
    return found if isinstance(found, float) else None
