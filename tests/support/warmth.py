"""Connections to Postgres that outlive the test that made them.

A session of the server that is new has to read the catalogue and to plan every statement, which costs more than most tests do. The
database of a test is used again once it is like new, and here the sessions with it are: reset when they are hung up, and given to the
next test that connects. For tests whose subject is not the connections themselves.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, ExecStatus, PGconn, TransactionStatus
from psycopg.pq.abc import PGconn as Session
from psycopg_pool import ConnectionPool

from standfast.store.postgres import store
from standfast.store.postgres.connection import connection as connections

C = TypeVar("C", bound=psycopg.Connection[Any])

_RESET = b"set session authorization default; reset all; unlisten *; close all; select pg_advisory_unlock_all(); discard temp"
"""Everything that a session remembers but its plans, and what it knows about the tables."""

_gone = PGconn.connect_start(b"host=/")
_gone.finish()


class _Kept:
    """A session that nobody uses."""

    def __init__(self, session: Session, prepared: Any) -> None:
        self.session = session
        self.prepared = prepared


class Warmth:
    """The sessions that wait for the next test, by what they were asked for with."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[str, list[_Kept]] = {}

    def take(self, conninfo: str) -> _Kept | None:
        """A session with the same database, made with the same words; one that the server has ended meanwhile is none."""
        with self._guard:
            kept = self._kept.get(conninfo, [])
            while kept:
                found = kept.pop()
                if not select.select([found.session.socket], [], [], 0)[0]:
                    return found
                found.session.finish()
            return None

    def keep(self, conninfo: str, kept: _Kept) -> None:
        """Nobody needs this one for now."""
        with self._guard:
            self._kept.setdefault(conninfo, []).append(kept)

    def sessions(self, database: str) -> list[int]:
        """The process ids of those with a database."""
        with self._guard:
            return [each.session.backend_pid for key in self._keys(database) for each in self._kept[key]]

    def forget(self, database: str) -> None:
        """The database goes."""
        with self._guard:
            for key in self._keys(database):
                for each in self._kept.pop(key):
                    each.session.finish()

    def _keys(self, database: str) -> list[str]:
        return [key for key in self._kept if _database(key) == database]


@lru_cache
def _database(conninfo: str) -> object:
    return conninfo_to_dict(conninfo).get("dbname")


WARMTH = Warmth()


class WarmConnection(psycopg.Connection[Any]):
    """A connection on a session that others may have had, and may get."""

    _asked_for = ""

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Any:
        kept = WARMTH.take(conninfo)
        if kept is None:
            connection = yield from super()._connect_gen(conninfo)
        else:
            connection = cls(kept.session)
            connection._prepared = kept.prepared
        connection._asked_for = conninfo
        return connection

    def close(self) -> None:
        """Hang up: the session is kept if it is at rest and can be reset."""
        session = self.pgconn
        if (
            session.status != ConnStatus.OK
            or session.transaction_status != TransactionStatus.IDLE
            or self._pipeline
            or session.exec_(_RESET).status not in {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}
        ):
            super().close()
        else:
            while session.notifies():
                pass
            self.pgconn = _gone
            WARMTH.keep(self._asked_for, _Kept(session, self._prepared))


class _WarmPool(ConnectionPool[C]):
    def __init__(self, conninfo: str, **options: Any) -> None:
        super().__init__(conninfo, connection_class=cast("type[C]", WarmConnection), **options)


def _connect(
    conninfo: str, *, prepare: bool, lock_timeout: str = connections.LOCK_TIMEOUT
) -> psycopg.Connection[tuple[object, ...]]:
    connection = WarmConnection.connect(conninfo, autocommit=True, cursor_factory=psycopg.RawCursor)
    connections.prepare_connection(connection, prepare=prepare, lock_timeout=lock_timeout)
    return connection


@contextmanager
def warm_connections() -> Iterator[None]:
    """Stores of Postgres take their connections from here for as long as the block lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "connect", _connect)
        patch.setattr(store, "ConnectionPool", _WarmPool)
        yield
