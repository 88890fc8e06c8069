"""Live workers in Postgres.

A worker's row is the lease on all its claims: when it expires, all of them are released.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

import msgspec

from standfast.kernel.ids import WorkerId
from standfast.store.records.instances import EffectClaim, Maintenance, WorkerRecord
from standfast.store.records.queries import Beat
from standfast.store.sql.migrations import read_migrations
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.commit.claims import read_clock
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.session import instant, text


class _Sql(msgspec.Struct, frozen=True):
    beat: str
    remove_dead: str
    free_orphans: str
    still_held: str
    maintenance: str
    retire: str
    free_held: str
    live: str
    announce: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "workers.sql")

_SEPARATOR = "\n"


class SQLiteWorkers:
    """Heartbeats."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(
        self,
        worker: WorkerId,
        held: Sequence[EffectClaim],
        *,
        name: str,
        handlers: Sequence[str],
        lease: timedelta,
        now: datetime | None,
    ) -> Beat:
        """Renew the lease, release the work of dead workers, and return this worker's void claims."""
        with self._database.writing() as connection:
            run = connection.execute
            moment = read_clock(connection, now)
            run(_sql.beat, (str(worker), name, _SEPARATOR.join(handlers), text(moment), text(moment + lease)))
            run(_sql.remove_dead, (text(moment),))
            revived = sorted({handler for (handler,) in run(_sql.free_orphans)})
            kept = {
                claim: run(_sql.still_held, (str(claim.instance), claim.number, str(worker), claim.fence)).fetchone()
                for claim in held
            }
            return Beat(
                now=moment,
                lost=[claim for claim, row in kept.items() if row is None],
                stopping=[claim for claim, row in kept.items() if row is not None and row[0]],
                unawaited=[claim for claim, row in kept.items() if row is not None and row[1]],
                revived=revived,
                maintenance=_maintenance(connection),
            )

    def retire(self, worker: WorkerId) -> None:
        """Deregister, and release the remaining claims."""
        with self._database.writing() as connection:
            connection.execute(_sql.retire, (str(worker),))
            connection.execute(_sql.free_held, (str(worker),))

    def live(self, now: datetime | None) -> list[WorkerRecord]:
        """Return the workers with a valid lease."""
        with self._database.reading() as connection:
            return live_workers(connection, read_clock(connection, now))

    def schemas(self) -> tuple[int, int]:
        """Returns the schema version of the database, and the newest one that this code knows."""
        with self._database.reading() as connection:
            at: int = connection.execute("pragma user_version").fetchone()[0]
        return at, read_migrations("standfast.store.sqlite")[-1].number

    def maintenance(self) -> Maintenance:
        """Return the current maintenance mode."""
        with self._database.reading() as connection:
            return _maintenance(connection)

    def announce(self, handler: str, *, every: timedelta, now: datetime | None) -> bool:
        """Return whether the caller should report this missing handler."""
        with self._database.writing() as connection:
            moment = read_clock(connection, now)
            values = (handler, text(moment), text(moment - every))
            return connection.execute(_sql.announce, values).fetchone() is not None


def _maintenance(connection: sqlite3.Connection) -> Maintenance:
    row = connection.execute(_sql.maintenance).fetchone()
    return cast("Maintenance", row[0]) if row else ""


def live_workers(connection: sqlite3.Connection, now: datetime) -> list[WorkerRecord]:
    """Return the workers with a valid lease."""
    return [
        WorkerRecord(
            id=WorkerId(UUID(row[0])),
            name=row[1],
            handlers=row[2].split(_SEPARATOR) if row[2] else [],
            started_at=instant(row[3]),
            alive_until=instant(row[4]),
        )
        for row in connection.execute(_sql.live, (text(now),))
    ]
