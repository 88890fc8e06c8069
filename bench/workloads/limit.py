"""Limit: what the machine can write at all. The rows that W3 leaves behind, put in as fast as the driver can.

The unit of work is a job: one row each of `instances`, `events` and `effects`, in transactions of 500 jobs, on one connection. The rows
are made before the clock starts, so that the figure is that of the database and the disk. Nothing is decided, checked or claimed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from uuid import UUID

import psycopg
from psycopg import sql

from bench.figures import Figures
from bench.rounds import Round
from bench.workloads.queue import JOBS
from standfast.store.opening import open_store

BATCH = 500
TABLES = ("instances", "events", "effects")
AT = "2026-01-01T00:00:00.000000+00:00"
RANK = 1_767_225_600_000_000
COLUMNS = {
    "instances": "id tenant definition definition_version kind key status reason begun version issued commits parent created_at "
    "updated_at ended_at started_by",
    "events": "instance sequence position tenant type version data at actor comment cause",
    "effects": "instance number tenant definition language handler type version data options priority rank parked_until owner fence attempts "
    "error created_at",
}

Value = str | int | bytes | None
Batch = dict[str, list[tuple[Value, ...]]]


def prepare(this: Round) -> None:
    """Make the tables."""
    open_store(this.url).close()


def measure(this: Round) -> Figures:
    """Write everything, batch by batch."""
    count = this.sized(JOBS)
    batches = [_batch(range(first, min(first + BATCH, count))) for first in range(0, count, BATCH)]
    seconds = _write_postgres(this.url, batches) if this.is_postgres else _write_sqlite(this.path, batches)
    rows = len(TABLES) * count
    return Figures(
        per_second=count / seconds, commits_per_step=len(batches) / count, extra={"rows_per_second": rows / seconds}
    )


def _batch(numbers: Sequence[int]) -> Batch:
    made: Batch = {table: [] for table in TABLES}
    for i in numbers:
        identity = str(UUID(int=(1_767_225_600_000 + i) << 80 | 7 << 76 | 0b10 << 62 | i))
        data = b'{"i":%d}' % i
        made["instances"].append(
            (
                identity,
                "default",
                "jobs",
                "",
                "decider",
                f"job-{i}",
                "running",
                "",
                1,
                1,
                1,
                1,
                None,
                AT,
                AT,
                None,
                "system",
            )
        )
        made["events"].append((identity, 1, i + 1, "default", "Enqueued", 1, data, AT, "system", "", identity))
        made["effects"].append(
            (identity, 0, "default", "jobs", "jobs", "jobs", "Run", 1, data, b"", 0, RANK + i, None, None, 0, 0, "", AT)
        )
    return made


def _write_postgres(url: str, batches: Sequence[Batch]) -> float:
    lines = [{table: "".join(map(_line, rows)) for table, rows in batch.items()} for batch in batches]
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        begun = time.perf_counter()
        for batch in lines:
            for table, text in batch.items():
                columns = sql.SQL(", ").join(map(sql.Identifier, COLUMNS[table].split()))
                statement = sql.SQL("copy standfast.{} ({}) from stdin").format(sql.Identifier(table), columns)
                with cursor.copy(statement) as copy:
                    copy.write(text)
            connection.commit()
        return time.perf_counter() - begun


def _line(row: tuple[Value, ...]) -> str:
    """A row in the text format of COPY."""
    return "\t".join(map(_field, row)) + "\n"


def _field(value: Value) -> str:
    if value is None:
        return "\\N"
    return f"\\\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _write_sqlite(path: str, batches: Sequence[Batch]) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma synchronous = full")
    statements = {
        table: f"insert into {table} ({names.replace(' ', ', ')}) values ({', '.join('?' for _ in names.split())})"
        for table, names in COLUMNS.items()
    }
    begun = time.perf_counter()
    for batch in batches:
        connection.execute("begin immediate")
        for table, rows in batch.items():
            connection.executemany(statements[table], rows)
        connection.execute("commit")
    seconds = time.perf_counter() - begun
    connection.close()
    return seconds
