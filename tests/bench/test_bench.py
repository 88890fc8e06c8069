"""The benchmark runs to its end and says what it promises; its figures are not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import ROOT

REQUIRED = {"workload", "store", "per_second", "p50_ms", "p99_ms", "rss_mb", "commits_per_step"}
ROWS = [
    "limit",
    "W1",
    "W1 alone",
    "W1 shared",
    "W2",
    "long saga",
    "compile 1,000",
    "W3",
    "W3 single",
    "W3 together",
    "W3 answered",
    "W4",
    "W4 threads",
    "claim 1,000",
    "claim 1,000,000",
    "recovery",
]


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark from some other folder, once and small."""
    command = [sys.executable, str(ROOT / "bench" / "run.py"), "--scale", "0.01", "--rounds", "1", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=110)


def check_rows(done: subprocess.CompletedProcess[str], store: str) -> None:
    """One JSON object for each row, with every key and a positive figure."""
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["workload"] for row in rows] == ROWS
    for row in rows:
        assert row.keys() >= REQUIRED
        assert row["store"] == store
        assert (row["per_second"] or row["p50_ms"]) > 0
        assert row["rss_mb"] > 0
    by_name = {row["workload"]: row for row in rows}
    assert by_name["W3"]["enqueue_per_second"] > 0
    assert by_name["W3"]["commits_per_step"] > 0
    assert by_name["claim 1,000,000"]["times_p50_of_few"] > 0
    assert by_name["recovery"]["seconds"] > 0


def test_every_row_on_sqlite(tmp_path: Path) -> None:
    """Every workload runs on SQLite and reports the promised keys."""
    check_rows(bench(tmp_path, "--store", "sqlite", "--json"), "sqlite")


def test_every_row_on_postgres(tmp_path: Path, postgres_dsn: str) -> None:
    """Every workload runs on the Postgres server that it is pointed at and reports the promised keys."""
    check_rows(bench(tmp_path, "--store", "postgres", "--json", "--dsn", postgres_dsn), "postgres")


def test_the_table_is_aligned(tmp_path: Path) -> None:
    """Without --json there is one table with a heading, and progress goes to standard error."""
    done = bench(tmp_path, "--store", "sqlite", "--workload", "limit")
    heading, row = done.stdout.splitlines()
    assert heading.index("store") == row.index("sqlite")
    assert "round 1 of 1" in done.stderr


@pytest.mark.parametrize("arguments", [("--workload", "W9"), ("--rounds", "0"), ("--scale", "-1")])
def test_nonsense_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """What cannot be measured is refused before anything is started."""
    done = bench(tmp_path, *arguments)
    assert done.returncode == 2
    assert "error:" in done.stderr
