"""The result for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bench.figures import Row

_HEADINGS = ("workload", "store", "per second", "p50 ms", "p99 ms", "RSS MB", "commits/step", "further")


def json_line(row: Row) -> str:
    """The row as one JSON object on one line."""
    return json.dumps(row.flat())


def table(rows: Sequence[Row]) -> str:
    """The rows as an aligned table."""
    lines = [_HEADINGS, *map(_cells, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(_HEADINGS))]
    return "\n".join(_aligned(line, widths) for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    found = row.figures
    numbers = (found.per_second, found.p50_ms, found.p99_ms, found.rss_mb, found.commits_per_step)
    further = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in found.extra.items())
    return (row.workload, row.store, *map(_number, numbers), further)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    last = len(line) - 1
    cells = [
        cell.ljust(width) if place < 2 or place == last else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"
