"""The command line: which rows on which stores, in how many rounds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from bench.cases import (
    ADVANCE_FEW,
    ADVANCE_MANY,
    CASES,
    CLAIM_FEW,
    CLAIM_MANY,
    DOCUMENTS_FEW,
    DOCUMENTS_MANY,
    HTTP_FEW,
    HTTP_MANY,
    INBOX_FEW,
    INBOX_MANY,
    LISTS_FEW,
    LISTS_MANY,
    MUTATE,
    MUTATE_FEW,
    MUTATE_MANY,
    PLAIN,
    WORKLOADS,
    Case,
)
from bench.databases import Databases, SQLiteDatabases, postgres_databases
from bench.figures import Figures, Row, medians
from bench.printing import json_line, table
from bench.rounds import Round
from bench.single import RoundError, run_apart
from bench.verdicts import verdicts


def main(arguments: Sequence[str]) -> int:
    """Measure what was asked for and print it."""
    wanted = _parse(arguments)
    cases = [case for case in CASES if case.workload in wanted.workload and case.name in (wanted.row or [case.name])]
    rows: list[Row] = []
    try:
        with ExitStack() as stack:
            for databases in _stores(wanted, stack):
                rows += _measured(cases, databases, rounds=wanted.rounds, scale=wanted.scale)
    except RoundError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(map(json_line, rows)) if wanted.json else table(rows))
    for each in verdicts(rows):  # Beside the rows, so that programs that read them read nothing else.
        _tell(str(each) if wanted.scale >= 1 else f"{each} (at {wanted.scale:g} of the sizes)")
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 dev.py bench", description="Measure Standfast on this machine.")
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument(
        "--workload", nargs="+", choices=WORKLOADS, default=WORKLOADS, metavar="NAME", help=", ".join(WORKLOADS)
    )
    parser.add_argument(
        "--row", nargs="+", choices=[case.name for case in CASES], metavar="ROW", help="only these rows, by name"
    )
    parser.add_argument("--json", action="store_true", help="one object per line instead of a table")
    parser.add_argument("--rounds", type=_positive_int, default=3, help="rounds of each row; the medians are printed")
    parser.add_argument("--dsn", help="URL of a Postgres server to use, instead of a throwaway one")
    parser.add_argument("--scale", type=_positive, default=1.0, help="share of the full sizes, for a quick look")
    return parser.parse_args(arguments)


def _positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def _stores(wanted: argparse.Namespace, stack: ExitStack) -> Iterator[Databases]:
    """The stores to measure; a server starts when it is its turn."""
    if wanted.store in {"sqlite", "both"}:
        yield SQLiteDatabases()
    if wanted.store in {"postgres", "both"}:
        yield stack.enter_context(postgres_databases(wanted.dsn))


def _measured(cases: Sequence[Case], databases: Databases, *, rounds: int, scale: float) -> list[Row]:
    """Round by round over all rows, so that a slow minute of the machine falls on one round of several rows, not on one row."""
    found: dict[str, list[Figures]] = {case.name: [] for case in cases}
    for number in range(1, rounds + 1):
        for case in cases:
            figures = _one_round(case, databases, scale)
            found[case.name].append(figures)
            _tell(f"{databases.store}, round {number} of {rounds}: {case.name}: {_gist(figures)}")
    rows = [Row(workload=case.name, store=databases.store, figures=medians(found[case.name])) for case in cases]
    _relate({row.workload: row.figures for row in rows})
    return rows


def _one_round(case: Case, databases: Databases, scale: float) -> Figures:
    with databases.fresh() as url:
        this = Round(url=url, scale=scale)
        case.prepare(this)
        databases.settle(url)
        return run_apart(case, this)


def _relate(found: dict[str, Figures]) -> None:
    """Say how rows of one store compare: what is found among many to what is found among few, jobs to what can be written at all."""
    pairs = (
        (CLAIM_FEW, CLAIM_MANY),
        (INBOX_FEW, INBOX_MANY),
        (ADVANCE_FEW, ADVANCE_MANY),
        (LISTS_FEW, LISTS_MANY),
        (MUTATE_FEW, MUTATE_MANY),
        (DOCUMENTS_FEW, DOCUMENTS_MANY),
        (HTTP_FEW, HTTP_MANY),
    )
    for one, other in pairs:
        few, many = found.get(one), found.get(other)
        if few and many and few.p50_ms and many.p50_ms:
            many.extra["times_p50_of_few"] = many.p50_ms / few.p50_ms
            apart = [many.extra[name] / few.extra[name] for name in many.extra if name.endswith("_p50_ms")]
            many.extra |= {"most_times_p50_of_few": max(apart)} if apart else {}
    edits, plain = found.get(MUTATE), found.get(PLAIN)
    if edits and plain and edits.per_second and plain.per_second:
        edits.extra["times_sqlalchemy"] = edits.per_second / plain.per_second
    limit, jobs = found.get("limit"), found.get("W3")
    if limit and jobs and limit.per_second:
        jobs.extra["enqueue_share_of_limit"] = jobs.extra["enqueue_per_second"] / limit.per_second


def _gist(figures: Figures) -> str:
    rate = f"{figures.per_second:,.0f}/s" if figures.per_second is not None else ""
    wait = f"p50 {figures.p50_ms:.3g} ms" if figures.p50_ms is not None else ""
    return ", ".join(part for part in (rate, wait) if part)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
