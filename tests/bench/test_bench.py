"""The benchmark runs to its end and says what it promises; its figures are not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cases import CASES
from bench.figures import Figures, Row
from bench.verdicts import LIMITS, verdicts
from support.repository import ROOT

REQUIRED = {"workload", "store", "per_second", "p50_ms", "p99_ms", "rss_mb", "commits_per_step"}
ROWS = {
    "limit W1 W2 long compile": ["limit", "W1", "W1 alone", "W1 shared", "W2", "long saga", "compile 1,000"],
    "W3 W4 claim recovery": [
        "W3",
        "W3 single",
        "W3 together",
        "W3 answered",
        "W4",
        "W4 threads",
        "claim 1,000",
        "claim 1,000,000",
        "recovery",
    ],
    "pause approval inbox": ["pause", "resume", "paused 1,000", "approval", "inbox 1,000", "inbox 100,000"],
    "advance lists domain": [
        "advance",
        "advance alone 1,000",
        "advance alone 1,000,000",
        "lists 1,000",
        "lists 1,000,000",
        "domain 200",
        "domain limits",
    ],
    "mutate documents": [
        "mutate",
        "mutate in SQLAlchemy",
        "mutate alone 1,000",
        "mutate alone 1,000,000",
        "mutate refused",
        "document approval",
        "documents 1,000",
        "documents 1,000,000",
        "compile slots",
    ],
    "http": ["http start", "http looks 1,000", "http looks 1,000,000", "http streams", "dev"],
}
"""The rows that names of workloads stand for."""
FIGURES = {
    "W3": ("enqueue_per_second", "commits_per_step"),
    "claim 1,000,000": ("times_p50_of_few",),
    "recovery": ("seconds",),
    "resume": ("answered_p99_ms",),
    "paused 1,000": ("paused_p99_ms",),
    "advance": ("commits_per_step",),
    "advance alone 1,000,000": ("times_p50_of_few",),
    "lists 1,000,000": ("p95_ms", "slowest_p95_ms", "times_p50_of_few", "most_times_p50_of_few"),
    "mutate": ("times_sqlalchemy", "commits_per_step"),
    "mutate alone 1,000,000": ("times_p50_of_few",),
    "mutate refused": ("accepted_p50_ms", "times_accepted"),
    "documents 1,000,000": ("p95_ms", "slowest_p95_ms", "times_p50_of_few"),
    "http looks 1,000,000": ("run_p99_ms", "list_p99_ms", "times_p50_of_few"),
    "http streams": ("times_alone", "streams"),
    "domain 200": ("cpu_ms",),
    "domain limits": ("cpu_ms",),
    "inbox 100,000": ("p95_ms", "slowest_p95_ms", "times_p50_of_few", "most_times_p50_of_few"),
}
"""Figures that only some rows have."""


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark from some other folder, once and small."""
    command = [sys.executable, str(ROOT / "bench" / "run.py"), "--scale", "0.003", "--rounds", "1", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=110)


def check_rows(done: subprocess.CompletedProcess[str], names: list[str], store: str) -> None:
    """One JSON object for each row, with every key and a positive figure."""
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["workload"] for row in rows] == names
    for row in rows:
        assert row.keys() >= REQUIRED
        assert row["store"] == store
        assert (row["per_second"] or row["p50_ms"]) > 0
        assert row["rss_mb"] > 0
        assert all(row[name] > 0 for name in FIGURES.get(row["workload"], ()))


@pytest.mark.row("G-41")
def test_every_row_is_looked_at() -> None:
    """Whatever the benchmark can measure, and in which order, is known here."""
    assert [case.name for case in CASES] == [name for names in ROWS.values() for name in names]


@pytest.mark.long
@pytest.mark.parametrize("workloads", ROWS)
def test_every_row_on_sqlite(tmp_path: Path, workloads: str) -> None:
    """Every workload runs on SQLite and reports the promised keys."""
    done = bench(tmp_path, "--store", "sqlite", "--json", "--workload", *workloads.split())
    check_rows(done, ROWS[workloads], "sqlite")


@pytest.mark.row("E-835", "E-893")
@pytest.mark.parametrize(
    "workloads",
    [pytest.param(each, marks=pytest.mark.long) if each.startswith(("mutate", "http")) else each for each in ROWS],
)
def test_every_row_on_postgres(tmp_path: Path, postgres_dsn: str, workloads: str) -> None:
    """Every workload runs on the Postgres server that it is pointed at and reports the promised keys."""
    done = bench(tmp_path, "--store", "postgres", "--json", "--dsn", postgres_dsn, "--workload", *workloads.split())
    check_rows(done, ROWS[workloads], "postgres")
    judged = [line.split()[0] for line in done.stderr.splitlines() if line.endswith(" of the sizes)")]
    assert sorted(judged) == sorted(each.requirement for each in LIMITS if each.workload in ROWS[workloads])


def test_the_table_is_aligned(tmp_path: Path) -> None:
    """Without --json there is one table with a heading, and progress goes to standard error."""
    done = bench(tmp_path, "--store", "sqlite", "--workload", "limit")
    heading, row = done.stdout.splitlines()
    assert heading.index("store") == row.index("sqlite")
    assert "round 1 of 1" in done.stderr


def row(workload: str, p99_ms: float | None, **extra: float) -> Row:
    """A row that was measured."""
    return Row(workload=workload, store="postgres", figures=Figures(p50_ms=1.0, p99_ms=p99_ms, extra=extra))


@pytest.mark.row("R-123", "R-124", "R-125")
@pytest.mark.row("G-41")
def test_figures_are_judged_by_the_limits_of_the_specification() -> None:
    """Pause below 100 ms, resume below 500 ms, approval to the next handler below a second; what is at its limit, or not there, has not kept it."""
    assert {(each.requirement, each.workload, each.below) for each in LIMITS} >= {
        ("R-123", "pause", 100.0),
        ("R-124", "resume", 500.0),
        ("R-125", "approval", 1000.0),
    }
    assert {each.workload for each in LIMITS} <= {case.name for case in CASES}
    good = [row("pause", 99.9), row("resume", 499.0), row("approval", 999.0), row("limit", 5000.0)]
    assert [(each.limit.requirement, each.is_kept) for each in verdicts(good)] == [
        ("R-123", True),
        ("R-124", True),
        ("R-125", True),
    ]
    bad = [
        row("pause", 100.0),
        row("resume", 501.0),
        row("approval", None),
        row("paused 1,000", 7.0, paused_p99_ms=101),
    ]
    assert [each.is_kept for each in verdicts(bad)] == [False, False, False, False, True]
    assert [str(each) for each in verdicts(bad[::2])] == [
        "R-123  pause, postgres: p99 ms below 100: 100, NOT KEPT",
        "R-125  approval, postgres: p99 ms below 1,000: not measured, NOT KEPT",
    ]
    streams = [row("http streams", 999.0, times_alone=0.8), row("http streams", 1000.0, times_alone=0.79)]
    assert [each.is_kept for each in verdicts(streams)] == [True, True, False, False]
    assert str(verdicts(streams)[3]).endswith("times alone at least 0.8: 0.79, NOT KEPT")


@pytest.mark.parametrize("arguments", [("--workload", "W9"), ("--rounds", "0"), ("--scale", "-1"), ("--row", "W9")])
def test_nonsense_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """What cannot be measured is refused before anything is started."""
    done = bench(tmp_path, *arguments)
    assert done.returncode == 2
    assert "error:" in done.stderr
