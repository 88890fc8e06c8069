"""`standfast bench`: measure the throughput and latency of runs, to compare machines and settings."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from standfast.app.configuration import FLAG
from standfast.app.engine import Engine
from standfast.cli.framework import verb
from standfast.cli.output import json_option, print_fields, print_json
from standfast.cli.target import Target, database_scope
from standfast.features.sagas import Saga

_TENANT = "standfast-bench"
_NAME = "standfast-bench"
_ALONE = 20
_PATIENCE_SECONDS = 600.0


async def _nothing() -> None:
    """A step without work, to measure its overhead."""


@verb("bench", "standfast bench", "standfast bench --runs 2000 --database postgresql://user@host/db --json")
@click.option(
    "--runs", type=click.IntRange(1, 100_000), default=500, show_default=True, help="How many, all in flight."
)
@click.option("--steps", type=click.IntRange(1, 1000), default=10, show_default=True, help="Steps of each, in a row.")
@json_option
@database_scope
def bench(place: Target, *, runs: int, steps: int, as_json: bool) -> None:
    """Measure how fast runs complete: many in parallel, then one at a time.

    Without --database it uses a temporary file. In an existing database the runs remain, under a tenant of their own,
    standfast-bench.
    """
    with _engine(place) as (engine, where):
        saga = Saga(_NAME, version=str(steps))
        for number in range(steps):
            saga.step(f"step-{number + 1}", _nothing)
        engine.register(saga.build()).start_worker()
        calls = engine.as_tenant(_TENANT)
        calls.start(_NAME, version=str(steps)).result(_PATIENCE_SECONDS)
        begun = time.perf_counter()
        for run in [calls.start(_NAME, version=str(steps)) for _ in range(runs)]:
            run.result(_PATIENCE_SECONDS)
        took = time.perf_counter() - begun
        alone = []
        for _ in range(_ALONE):
            one = time.perf_counter()
            calls.start(_NAME, version=str(steps)).result(_PATIENCE_SECONDS)
            alone.append((time.perf_counter() - one) * 1000)
    told = {
        "database": where,
        "runs": runs,
        "steps": runs * steps,
        "seconds": round(took, 3),
        "steps_per_second": round(runs * steps / took, 1),
        "alone_median_ms": round(statistics.median(alone), 2),
        "alone_slowest_ms": round(max(alone), 2),
    }
    print_json(told) if as_json else print_fields({name.replace("_", " "): value for name, value in told.items()})


@contextmanager
def _engine(place: Target) -> Iterator[tuple[Engine, str]]:
    if place.source.rank("database") == FLAG:  # Do not measure on the database of the file or a variable by accident.
        with place.engine() as engine:
            yield engine, place.shown_url
        return
    with tempfile.TemporaryDirectory(prefix="standfast-bench-") as folder:
        engine = Engine(f"sqlite:///{Path(folder) / 'bench.db'}", settings=place.configuration.settings)
        try:
            yield engine, "a new SQLite file"
        finally:
            engine.stop()
