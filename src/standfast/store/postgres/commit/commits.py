"""Loads instances and writes commits. A commit sends all its parts together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain

from standfast.kernel.ids import WorkerId
from standfast.store.ports.facts import Gate
from standfast.store.postgres.commit.commit_statements import accept, run
from standfast.store.postgres.commit.transactions import PostgresUnit, opened
from standfast.store.postgres.connection.commit_parts import (
    finished_parts,
    gates_part,
    observations_part,
    parts_of,
)
from standfast.store.postgres.connection.connection import HeldConnection, ReconnectingConnection
from standfast.store.postgres.connection.loading import disown, load
from standfast.store.postgres.connection.records import record_parts
from standfast.store.postgres.facts.facts import PostgresFacts
from standfast.store.records.instances import (
    Address,
    Claim,
    EffectClaim,
    InstanceChange,
    Loaded,
    ObservationRecord,
    StoredMessage,
)


class PostgresWriter:
    """The store as a committer uses it, with its own connection."""

    def __init__(self, line: ReconnectingConnection, base: int) -> None:
        self._line = line
        self._base = base

    def load(self, addresses: Sequence[Address], *, whole: bool = False) -> list[Loaded | None]:
        """Return the current instances without a lock."""
        with self._line.use() as connection:
            return load(connection, addresses, whole=whole)

    def write(
        self,
        changes: Sequence[InstanceChange],
        *,
        finished: Sequence[Claim] = (),
        observations: Sequence[ObservationRecord] = (),
        gates: Sequence[Gate] = (),
        now: datetime,
    ) -> None:
        """Write everything in one round trip."""
        if not changes and not finished and not observations:
            return
        parts = chain(
            parts_of(changes, now),
            record_parts(changes, now),
            [observations_part(observations)] if observations else (),
            finished_parts(finished),
            [gates_part(gates)] if gates else (),
        )
        with self._line.use() as connection:
            run(connection, parts, self._base)

    @contextmanager
    def unit(self) -> Iterator[PostgresUnit]:
        """Open a locking transaction."""
        with self._line.use() as connection, opened(connection, self._base) as unit:
            yield unit

    @contextmanager
    def looking(self) -> Iterator[PostgresFacts]:
        """Open the current facts."""
        with self._line.use() as connection:
            yield PostgresFacts(HeldConnection(connection, self._line.url))

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Store messages in the inbox."""
        with self._line.use() as connection:
            return accept(connection, messages, now)

    def disown(self, worker: WorkerId, held: Sequence[EffectClaim]) -> int:
        """Release the effects that a worker owns without knowing it."""
        with self._line.use() as connection:
            return disown(connection, worker, held)
