"""Live workers in Postgres.

A worker's row is the lease on all its claims: when it expires, all of them are released.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

import msgspec

from standfast.kernel.codec.type_cache import settled
from standfast.kernel.ids import WorkerId
from standfast.store.postgres.connection.commit_parts import effect_key
from standfast.store.postgres.connection.connection import Connection, ReconnectingConnection
from standfast.store.postgres.connection.packing import Texts, Uuids, columns_of
from standfast.store.records.instances import EffectClaim, Maintenance, WorkerRecord
from standfast.store.records.queries import Beat
from standfast.store.sql.migrations import read_migrations
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    clock: str
    beat: str
    remove_dead: str
    free_owned: str
    free_orphans: str
    still_held: str
    maintenance: str
    schema: str
    retire: str
    live: str
    announce: str


_sql = read_numbered(_Sql, "standfast.store.postgres", "workers.sql")


class PostgresWorkers:
    """Heartbeats."""

    def __init__(self, line: ReconnectingConnection) -> None:
        self._line = line

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
        with self._line.transaction() as connection:
            moment = _clock(connection, now)
            connection.execute(_sql.beat, [worker, name, Texts(handlers), moment, moment + lease])
            dead = [cast("UUID", row[0]) for row in connection.execute(_sql.remove_dead, [moment])]
            mode = _maintenance(connection)
            kept = _kept(connection, held)
            return Beat(
                now=moment,
                lost=[claim for claim in held if claim not in kept],
                stopping=[claim for claim, (is_stopping, _) in kept.items() if is_stopping],
                unawaited=[claim for claim, (_, is_over) in kept.items() if is_over],
                revived=_free(connection, dead),
                maintenance=mode,
            )

    def retire(self, worker: WorkerId) -> None:
        """Deregister, and release the remaining claims."""
        with self._line.transaction() as connection:
            connection.execute(_sql.retire, [worker])
            _free(connection, [worker])

    def live(self, now: datetime | None) -> list[WorkerRecord]:
        """Return the workers with a valid lease."""
        with self._line.use() as connection:
            found = connection.execute(_sql.live, [now]).fetchall()
        names = WorkerRecord.__struct_fields__
        return [msgspec.convert(dict(zip(names, row, strict=True)), settled(WorkerRecord)) for row in found]

    def schemas(self) -> tuple[int, int]:
        """Returns the schema version of the database, and the newest one that this code knows."""
        with self._line.use() as connection:
            row = connection.execute(_sql.schema).fetchone()
        assert row is not None
        return cast("int", row[0]), read_migrations("standfast.store.postgres")[-1].number

    def maintenance(self) -> Maintenance:
        """Return the current maintenance mode."""
        with self._line.use() as connection:
            return _maintenance(connection)

    def announce(self, handler: str, *, every: timedelta, now: datetime | None) -> bool:
        """Return whether the caller should report this missing handler."""
        with self._line.use() as connection:
            values = [handler, _clock(connection, now), every]
            return connection.execute(_sql.announce, values).fetchone() is not None


def free_orphans(connection: Connection) -> None:
    """Release the effects of dead workers."""
    connection.execute(_sql.free_orphans)


def _maintenance(connection: Connection) -> Maintenance:
    row = connection.execute(_sql.maintenance).fetchone()
    return cast("Maintenance", row[0]) if row else ""


def _clock(connection: Connection, now: datetime | None) -> datetime:
    row = connection.execute(_sql.clock, [now]).fetchone()
    assert row is not None
    return cast("datetime", row[0])


def _kept(connection: Connection, held: Sequence[EffectClaim]) -> dict[EffectClaim, tuple[bool, bool]]:
    """Return the valid claims, each with two flags: its effect is to be stopped, and no instance waits for its result."""
    if not held:
        return {}
    columns = columns_of(_sql.still_held, [effect_key(claim) for claim in held])
    rows = connection.execute(_sql.still_held, columns, binary=True).fetchall()
    found = {row[:3]: (bool(row[3]), bool(row[4])) for row in rows}
    keys = {claim: (claim.instance, claim.number, claim.fence) for claim in held}
    return {claim: found[key] for claim, key in keys.items() if key in found}


def _free(connection: Connection, workers: Sequence[UUID]) -> list[str]:
    if not workers:
        return []
    return sorted({str(row[0]) for row in connection.execute(_sql.free_owned, [Uuids(workers)])})
