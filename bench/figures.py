"""What a round yields, and how the figures of several rounds become one row."""

from __future__ import annotations

import resource
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Figures(msgspec.Struct, kw_only=True):
    """The figures of one round; None where a figure does not apply."""

    per_second: float | None = None
    """Units of work a second; what a unit is, the workload says."""
    p50_ms: float | None = None
    p99_ms: float | None = None
    rss_mb: float | None = None
    """Most memory that the measured process ever had; set by the process itself at its end."""
    commits_per_step: float | None = None
    """Transactions of the committer for each unit of work."""
    extra: dict[str, float] = {}
    """Further figures that only this workload has."""


class Row(msgspec.Struct, kw_only=True):
    """One line of the result."""

    workload: str
    store: str
    figures: Figures

    def flat(self) -> dict[str, str | float | None]:
        """The row as one flat object: the figures that every row has, then those of its own."""
        common = {name: _rounded(getattr(self.figures, name)) for name in _COMMON}
        extra = {name: _rounded(value) for name, value in self.figures.extra.items()}
        return {"workload": self.workload, "store": self.store, **common, **extra}


_COMMON = ("per_second", "p50_ms", "p99_ms", "rss_mb", "commits_per_step")


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile of durations, in milliseconds."""
    return percentile(seconds, 0.50), percentile(seconds, 0.99)


def percentile(seconds: Sequence[float], share: float) -> float:
    """What this share of durations does not exceed, in milliseconds."""
    ordered = sorted(seconds)
    return ordered[round((len(ordered) - 1) * share)] * 1000


def medians(rounds: Sequence[Figures]) -> Figures:
    """The median of each figure, with the lowest and the highest rate beside it: the distance between them is the noise."""
    rates = [each.per_second for each in rounds if each.per_second is not None]
    extra = {name: statistics.median(each.extra[name] for each in rounds) for name in rounds[0].extra}
    if rates:
        extra |= {"lowest_per_second": min(rates), "highest_per_second": max(rates)}
    return Figures(
        per_second=_median([each.per_second for each in rounds]),
        p50_ms=_median([each.p50_ms for each in rounds]),
        p99_ms=_median([each.p99_ms for each in rounds]),
        rss_mb=_median([each.rss_mb for each in rounds]),
        commits_per_step=_median([each.commits_per_step for each in rounds]),
        extra={**extra, "rounds": len(rounds)},
    )


def peak_memory_mb() -> float:
    """The most memory this process ever had.

    Linux carries the peak of `getrusage` over from the process that started this one, so its own account is asked first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _rounded(value: float | None) -> float | None:
    """Four digits that count are more than the noise leaves."""
    return None if value is None else float(f"{value:.4g}")
