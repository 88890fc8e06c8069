"""Claim: how long it takes to take one effect out of a queue, with few and with very many waiting.

The unit of work is a claim of one effect by a worker that has half of the handlers. The rows are of several tenants, handlers and
priorities, filled in by plain SQL. The queue is vacuumed and its statistics are fresh, as in a queue that has stood for a while.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from uuid import UUID

import psycopg

from bench.figures import Figures, percentiles
from bench.rounds import Round
from standfast.kernel.ids import WorkerId
from standfast.store.opening import open_store
from standfast.store.records.instances import Wanted, Word

FEW, MANY = 1_000, 1_000_000
CLAIMS = 300
WARM_UP = 20
HANDLERS = 8
WORKER = WorkerId(UUID("01900000-0000-7000-8000-000000000001"))

POSTGRES_FILL = """
insert into standfast.effects (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at
)
select (lpad(to_hex(1700000000000 + g), 12, '0') || '7' || substr(md5(g::text), 1, 19))::uuid, 0, 'tenant-' || (g / 8 % 5), 'jobs',
    'jobs', 'handler-' || (g % 8), 'Run', 1, convert_to('{"i":' || g || '}', 'UTF8'), '', g * 7919 % 101,
    1700000000000000 + g * 1000 + (100 - g * 7919 % 101) * 2000000, null, null, 0, 0, '', '2026-01-01T00:00:00Z'
from generate_series(1::bigint, $1::bigint) as g
"""

SQLITE_FILL = """
with recursive n (g) as (select 1 union all select g + 1 from n where g < ?)
insert into effects (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at
)
select printf('%08x-%04x-7%03x-8%03x-%012x', (1700000000000 + g) >> 16, (1700000000000 + g) & 65535, g % 4096, g * 31 % 4096, g), 0,
    'tenant-' || (g / 8 % 5), 'jobs', 'jobs', 'handler-' || (g % 8), 'Run', 1, cast('{"i":' || g || '}' as blob), x'', g * 7919 % 101,
    1700000000000000 + g * 1000 + (100 - g * 7919 % 101) * 2000000, null, null, 0, 0, '', '2026-01-01T00:00:00.000000+00:00'
from n
"""


def preparation(waiting: int) -> Callable[[Round], None]:
    """What fills the queue with this many rows."""

    def prepare(this: Round) -> None:
        open_store(this.url).close()
        rows = _rows(this, waiting)
        if this.is_postgres:
            _fill_postgres(this.url, rows)
        else:
            _fill_sqlite(this.path, rows)

    return prepare


def measure(this: Round) -> Figures:
    """Claim one effect at a time."""
    claims = this.sized(CLAIMS)
    store = open_store(this.url)
    effects = store.effects()
    wanted = [Wanted(f"handler-{number}", 1) for number in range(0, HANDLERS, 2)]
    words = [Word("jobs", "Run", 1)]
    waits = []
    for number in range(WARM_UP + claims):
        begun = time.perf_counter()
        found = effects.claim(WORKER, wanted, 1, words=words)
        wait = time.perf_counter() - begun
        assert len(found) == 1, "the queue is empty"
        if number >= WARM_UP:
            waits.append(wait)
    store.close()
    p50, p99 = percentiles(waits)
    return Figures(per_second=claims / sum(waits), p50_ms=p50, p99_ms=p99, commits_per_step=1.0)


def _rows(this: Round, waiting: int) -> int:
    """Even the smallest queue must not run dry for the worker, which takes from half of it."""
    return this.sized(waiting, least=3 * (WARM_UP + this.sized(CLAIMS)))


def _fill_postgres(url: str, rows: int) -> None:
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(POSTGRES_FILL, [rows])
        connection.execute("vacuum (analyze) standfast.effects")


def _fill_sqlite(path: str, rows: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(SQLITE_FILL, [rows])
    connection.execute("analyze")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
