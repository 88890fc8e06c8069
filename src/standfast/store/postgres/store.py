"""The Postgres store: its parts, each on its own connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import NamedTuple

import psycopg
from psycopg import RawCursor
from psycopg_pool import ConnectionPool

from standfast.errors import ConfigurationError, SchemaMismatchError
from standfast.store.postgres.admin.definitions import PostgresDefinitions
from standfast.store.postgres.admin.document_definitions import PostgresBlueprints
from standfast.store.postgres.admin.maintenance import PostgresKeeper
from standfast.store.postgres.admin.notifications import PostgresNotifications
from standfast.store.postgres.admin.pauses import PostgresPauses
from standfast.store.postgres.admin.schema import PostgresSchema, read_clock, settle
from standfast.store.postgres.admin.seals import PostgresSeals
from standfast.store.postgres.admin.workers import PostgresWorkers
from standfast.store.postgres.commit.caller_transaction import borrowed
from standfast.store.postgres.commit.claims import PostgresEffects, PostgresInbox, PostgresTimers
from standfast.store.postgres.commit.commit_statements import accept_within
from standfast.store.postgres.commit.commits import PostgresWriter
from standfast.store.postgres.commit.transactions import PostgresUnit
from standfast.store.postgres.connection.connection import (
    COMMITTER_LOCK_TIMEOUT,
    LOCK_TIMEOUT,
    Connection,
    HeldConnection,
    ReconnectingConnection,
    check_reader,
    patient_conninfo,
    prepare_reader,
)
from standfast.store.postgres.connection.errors import translated
from standfast.store.postgres.facts.access import PostgresAccess
from standfast.store.postgres.facts.changes import PostgresChanges
from standfast.store.postgres.facts.directory import PostgresPeople
from standfast.store.postgres.facts.facts import PostgresFacts
from standfast.store.postgres.facts.versioned_settings import CHAINS, CHARTERS, PostgresEditions
from standfast.store.postgres.listen import PostgresWakeups
from standfast.store.postgres.reads.deadlines import PostgresExpiries
from standfast.store.postgres.reads.feed import PostgresFeed
from standfast.store.postgres.reads.reads import PostgresReader, reading
from standfast.store.postgres.reads.resume_requests import PostgresResumes
from standfast.store.postgres.reads.stuck_instances import PostgresIncidents
from standfast.store.records.instances import StoredMessage
from standfast.store.sql.driver_connections import unwrapped
from standfast.store.sql.migrations import bring_up, read_migrations

_READER_PATIENCE_SECONDS = 10.0


class PostgresParts:
    """The parts of the store, on connections from a source: one for all, or one for each."""

    def __init__(self, line: Callable[[], ReconnectingConnection], base: int) -> None:
        self._next_line = line
        self._base = base

    def writer(self) -> PostgresWriter:
        """Open the port for a committer."""
        return PostgresWriter(self._next_line(), self._base)

    def effects(self) -> PostgresEffects:
        """Open the port for a worker."""
        return PostgresEffects(self._next_line())

    def timers(self) -> PostgresTimers:
        """Open the port for the timer loop."""
        return PostgresTimers(self._next_line())

    def inbox(self) -> PostgresInbox:
        """Open the port for the inbox loop."""
        return PostgresInbox(self._next_line())

    def workers(self) -> PostgresWorkers:
        """Open the port for the heartbeat."""
        return PostgresWorkers(self._next_line())

    def feed(self) -> PostgresFeed:
        """Open the port for projections."""
        return PostgresFeed(self._next_line(), self._base)

    def keeper(self) -> PostgresKeeper:
        """Open the port for operators and housekeeping."""
        return PostgresKeeper(self._next_line())

    def resumes(self) -> PostgresResumes:
        """Port for resuming paused instances."""
        return PostgresResumes(self._next_line())

    def incidents(self) -> PostgresIncidents:
        """Open the port for incidents."""
        return PostgresIncidents(self._next_line())

    def expiries(self) -> PostgresExpiries:
        """Open the port for overdue processes."""
        return PostgresExpiries(self._next_line())

    def definitions(self) -> PostgresDefinitions:
        """Open the port for definitions."""
        return PostgresDefinitions(self._next_line())

    def pauses(self) -> PostgresPauses:
        """Open the port for pauses and their propagation."""
        return PostgresPauses(self._next_line())

    def notifications(self) -> PostgresNotifications:
        """Open the notification lists."""
        return PostgresNotifications(self._next_line())

    def people(self) -> PostgresPeople:
        """Open the port for people."""
        return PostgresPeople(self._next_line())

    def changes(self) -> PostgresChanges:
        """Open the audit of changes."""
        return PostgresChanges(self._next_line())

    def chains(self) -> PostgresEditions:
        """Open the approval chains."""
        return PostgresEditions(self._next_line(), CHAINS)

    def charters(self) -> PostgresEditions:
        """Open the settings and rules of organisations."""
        return PostgresEditions(self._next_line(), CHARTERS)

    def seals(self) -> PostgresSeals:
        """Open the seals of histories."""
        return PostgresSeals(self._next_line())

    def blueprints(self) -> PostgresBlueprints:
        """Open the document definitions."""
        return PostgresBlueprints(self._next_line())

    def access(self) -> PostgresAccess:
        """Open the port for credentials and their administration."""
        return PostgresAccess(self._next_line())

    @contextmanager
    def together(self) -> Iterator[PostgresFacts]:
        """Open one transaction on the connection of these parts."""
        with self._next_line().transaction() as connection:
            yield PostgresFacts(HeldConnection(connection, ""))


class PostgresLine(PostgresParts):
    """The parts of the store on one connection."""

    def __init__(
        self, line: ReconnectingConnection, base: int, *, hang_up: Callable[[ReconnectingConnection], None]
    ) -> None:
        super().__init__(lambda: line, base)
        self._line = line
        self._hang_up = hang_up

    def close(self) -> None:
        """Close the connection."""
        self._hang_up(self._line)


class _Opened(NamedTuple):
    """A database that is ready for use."""

    dsn: str
    prepare: bool
    url: str
    base: int
    identity: str
    pool: ConnectionPool[Connection]


class PostgresShare(PostgresParts):
    """A Postgres database as one engine uses it. Its connections are closed with it."""

    def __init__(self, opened: _Opened, *, closed: Callable[[PostgresShare], None] | None = None) -> None:
        super().__init__(self._new_line, opened.base)
        self._opened = opened
        self._closed = closed
        """Called when this share is closed. None for the store itself."""
        self.url = opened.url
        self.writers = 2  # One decides while the other waits for the server.
        self._lines: set[ReconnectingConnection] = set()
        self._shares: set[PostgresShare] = set()
        self._is_closed = False

    @property
    def is_lent(self) -> bool:
        """Always False: there are as many writers as connections."""
        return False

    def refuse_inside(self) -> None:
        """Does nothing."""

    def writer(self) -> PostgresWriter:
        """Open the port for a committer, with a short lock timeout."""
        return PostgresWriter(self._new_line(COMMITTER_LOCK_TIMEOUT), self._base)

    def line(self) -> PostgresLine:
        """Open the parts on one connection."""
        return PostgresLine(self._new_line(), self._base, hang_up=self._hang_up)

    def share(self) -> PostgresShare:
        """Open the same database with separate connections."""
        share = PostgresShare(self._opened, closed=self._shares.discard)
        self._shares.add(share)
        if self._is_closed:
            share.close()
        return share

    def reader(self, tenant: str, partition: str = "") -> PostgresReader:
        """Open a reader for callers of one tenant or one of its partitions."""
        return PostgresReader(self._opened.pool, tenant, self.url, partition)

    @contextmanager
    def survey(self) -> Iterator[PostgresLine]:
        """Open the parts on a pooled read connection."""
        with reading(self._opened.pool, self.url) as connection:
            yield PostgresLine(HeldConnection(connection, self.url), self._base, hang_up=lambda _line: None)

    def now(self) -> datetime:
        """Return the server's time."""
        line = ReconnectingConnection(self._opened.dsn, prepare=self._opened.prepare)
        try:
            return read_clock(line)
        finally:
            line.close()

    def accept_within(self, connection: object, message: StoredMessage, now: datetime) -> int:
        """Store a message in the inbox within the caller's transaction."""
        given = unwrapped(connection, psycopg.Connection, self.url)
        try:
            with translated(self.url):
                number = accept_within(given, message, now, identity=self._opened.identity)
        except SchemaMismatchError:
            number = None
        if number is None:
            raise ConfigurationError(
                f"the connection is to another database than {self.url}; give one to that database"
            )
        return number

    def entered(self) -> AbstractContextManager[None]:
        """Does nothing: other writers continue."""
        return nullcontext()

    def within(self, connection: object) -> AbstractContextManager[PostgresUnit]:
        """Join the caller's open transaction."""
        given = unwrapped(connection, psycopg.Connection, self.url)
        return borrowed(given, base=self._opened.base, identity=self._opened.identity, url=self.url)

    def wakeups(self, notice: Callable[[str], None]) -> PostgresWakeups:
        """Open the hints from other processes."""
        return PostgresWakeups(self._new_line(), self._new_line(), notice)

    def locked_for(self) -> float:
        """Return None: a long wait for a lock raises an error instead."""
        return 0.0

    def take_back(self) -> None:
        """Does nothing: no caller waits for a writer."""

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        for share in list(self._shares):
            share.close()
        for line in list(self._lines):
            self._hang_up(line)
        if self._closed is not None:
            self._closed(self)

    def _new_line(self, lock_timeout: str = LOCK_TIMEOUT) -> ReconnectingConnection:
        line = ReconnectingConnection(self._opened.dsn, prepare=self._opened.prepare, lock_timeout=lock_timeout)
        self._lines.add(line)
        if self._is_closed:  # A handler that outlives its engine asked for it.
            self._hang_up(line)
        return line

    def _hang_up(self, line: ReconnectingConnection) -> None:
        line.retire()
        self._lines.discard(line)


class PostgresStore(PostgresShare):
    """A store in a Postgres database."""

    def __init__(
        self, dsn: str, *, codec: str, may_migrate: bool = True, prepare: bool = True, readers: int = 4
    ) -> None:
        line = ReconnectingConnection(dsn, prepare=prepare)
        try:
            bring_up(PostgresSchema(line), read_migrations(__package__), may_migrate=may_migrate)
            base, identity = settle(line, codec)
        finally:
            line.close()
        pool = ConnectionPool[Connection](
            patient_conninfo(dsn),
            min_size=0,
            max_size=readers,
            timeout=_READER_PATIENCE_SECONDS,
            # It retries with growing delays. After this time a new caller starts over, and finds a server that has
            # returned.
            reconnect_timeout=_READER_PATIENCE_SECONDS,
            kwargs={"autocommit": True, "cursor_factory": RawCursor},
            configure=lambda connection: prepare_reader(connection, prepare=prepare),
            check=check_reader,
            name="standfast-readers",
            open=True,
        )
        super().__init__(_Opened(dsn, prepare, line.url, base, identity, pool))

    def close(self) -> None:
        """Close all connections, including the readers of all shares."""
        self._opened.pool.close()
        super().close()
