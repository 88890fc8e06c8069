"""The SQLite store: its parts, on one database."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from standfast.errors import ConfigurationError, StoreError
from standfast.store.records.instances import StoredMessage
from standfast.store.sql.driver_connections import unwrapped
from standfast.store.sql.migrations import Migration, bring_up, read_migrations, scripted
from standfast.store.sql.removal import made_by
from standfast.store.sqlite.admin.definitions import SQLiteDefinitions
from standfast.store.sqlite.admin.document_definitions import SQLiteBlueprints
from standfast.store.sqlite.admin.maintenance import SQLiteKeeper
from standfast.store.sqlite.admin.notifications import SQLiteNotifications
from standfast.store.sqlite.admin.pauses import SQLitePauses
from standfast.store.sqlite.admin.seals import SQLiteSeals
from standfast.store.sqlite.admin.workers import SQLiteWorkers
from standfast.store.sqlite.commit.caller_transaction import borrowed
from standfast.store.sqlite.commit.claims import SQLiteEffects, SQLiteInbox, SQLiteTimers, read_clock
from standfast.store.sqlite.commit.commits import SQLiteUnit, SQLiteWriter, accept_within
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.errors import is_missing, translated
from standfast.store.sqlite.facts.access import SQLiteAccess
from standfast.store.sqlite.facts.changes import SQLiteChanges
from standfast.store.sqlite.facts.directory import SQLitePeople
from standfast.store.sqlite.facts.facts import SQLiteFacts
from standfast.store.sqlite.facts.versioned_settings import CHAINS, CHARTERS, SQLiteEditions
from standfast.store.sqlite.reads.deadlines import SQLiteExpiries
from standfast.store.sqlite.reads.feed import SQLiteFeed
from standfast.store.sqlite.reads.reads import SQLiteReader
from standfast.store.sqlite.reads.resume_requests import SQLiteResumes
from standfast.store.sqlite.reads.stuck_instances import SQLiteIncidents

_FACTS = ("codec", "identity")
"""Facts that a file stores about itself."""
DEFAULT_PATIENCE = 60.0
"""Seconds to wait for another process to release the file."""


class SQLiteParts:
    """The parts of the store. They share one writing connection, whose lock makes them thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def writer(self) -> SQLiteWriter:
        """Open the port for a committer."""
        return SQLiteWriter(self._database)

    def effects(self) -> SQLiteEffects:
        """Open the port for a worker."""
        return SQLiteEffects(self._database)

    def timers(self) -> SQLiteTimers:
        """Open the port for the timer loop."""
        return SQLiteTimers(self._database)

    def inbox(self) -> SQLiteInbox:
        """Open the port for the inbox loop."""
        return SQLiteInbox(self._database)

    def workers(self) -> SQLiteWorkers:
        """Open the port for the heartbeat."""
        return SQLiteWorkers(self._database)

    def feed(self) -> SQLiteFeed:
        """Open the port for projections."""
        return SQLiteFeed(self._database, owner=self)

    def keeper(self) -> SQLiteKeeper:
        """Open the port for operators and housekeeping."""
        return SQLiteKeeper(self._database)

    def resumes(self) -> SQLiteResumes:
        """Port for resuming paused instances."""
        return SQLiteResumes(self._database)

    def incidents(self) -> SQLiteIncidents:
        """Open the port for incidents."""
        return SQLiteIncidents(self._database)

    def expiries(self) -> SQLiteExpiries:
        """Open the port for overdue processes."""
        return SQLiteExpiries(self._database)

    def definitions(self) -> SQLiteDefinitions:
        """Open the port for definitions."""
        return SQLiteDefinitions(self._database)

    def pauses(self) -> SQLitePauses:
        """Open the port for pauses and their propagation."""
        return SQLitePauses(self._database)

    def notifications(self) -> SQLiteNotifications:
        """Open the notification lists."""
        return SQLiteNotifications(self._database)

    def people(self) -> SQLitePeople:
        """Open the port for people."""
        return SQLitePeople(self._database)

    def changes(self) -> SQLiteChanges:
        """Open the audit of changes."""
        return SQLiteChanges(self._database)

    def chains(self) -> SQLiteEditions:
        """Open the approval chains."""
        return SQLiteEditions(self._database, CHAINS)

    def charters(self) -> SQLiteEditions:
        """Open the settings and rules of organisations."""
        return SQLiteEditions(self._database, CHARTERS)

    def seals(self) -> SQLiteSeals:
        """Open the seals of histories."""
        return SQLiteSeals(self._database)

    def blueprints(self) -> SQLiteBlueprints:
        """Open the document definitions."""
        return SQLiteBlueprints(self._database)

    def access(self) -> SQLiteAccess:
        """Open the port for credentials and their administration."""
        return SQLiteAccess(self._database)

    @contextmanager
    def together(self) -> Iterator[SQLiteFacts]:
        """Open one transaction of the writer."""
        with self._database.together() as connection:
            yield SQLiteFacts(connection)

    def close(self) -> None:
        """Do nothing: the file owns the connections."""


class SQLiteShare(SQLiteParts):
    """A file, or a database in memory, as one engine uses it."""

    def __init__(self, database: Database, identity: str) -> None:
        super().__init__(database)
        self._identity = identity
        """Unique identity of the database, generated when the file was created."""
        self.url = database.url
        self.writers = 1  # The file has one writer at a time.

    @property
    def is_lent(self) -> bool:
        """Whether the calling code holds the file's only writer."""
        return self._database.is_lent

    def refuse_inside(self) -> None:
        """Raise if the calling code holds the writer."""
        self._database.refuse_inside()

    def line(self) -> SQLiteParts:
        """Return the parts, which share all connections."""
        return SQLiteParts(self._database)

    def share(self) -> SQLiteShare:
        """Return the same file with the same connections."""
        return SQLiteShare(self._database, self._identity)

    def reader(self, tenant: str, partition: str = "") -> SQLiteReader:
        """Open a reader for callers of one tenant or one of its partitions."""
        return SQLiteReader(self._database, tenant, partition)

    @contextmanager
    def survey(self) -> Iterator[SQLiteParts]:
        """Open the parts for queries."""
        with self._database.reading():
            yield SQLiteParts(self._database)

    def now(self) -> datetime:
        """Return the host's time, which the file uses."""
        with self._database.reading() as connection:
            return read_clock(connection, None)

    def accept_within(self, connection: object, message: StoredMessage, now: datetime) -> int:
        """Store a message in the inbox within the caller's transaction."""
        given = unwrapped(connection, sqlite3.Connection, self.url)
        try:
            with translated(self.url):
                number = accept_within(given, message, now, identity=self._identity)
        except StoreError as error:
            if not is_missing(error.__cause__):
                raise
            number = None
        if number is None:
            raise ConfigurationError(f"the connection is to another database than {self.url}; give one to that file")
        return number

    def entered(self) -> AbstractContextManager[None]:
        """Note that no other code can write meanwhile."""
        return self._database.entered()

    def within(self, connection: object) -> AbstractContextManager[SQLiteUnit]:
        """Join the caller's open transaction."""
        return borrowed(unwrapped(connection, sqlite3.Connection, self.url), self._database, identity=self._identity)

    def wakeups(self, notice: Callable[[str], None]) -> DataVersion:
        """Open the hints that another process has committed."""
        return DataVersion(self._database, notice)

    def locked_for(self) -> float:
        """Return the seconds for which another process has held the write lock."""
        return self._database.locked_for()

    def take_back(self) -> None:
        """Replace the writer if a projection of this share holds it."""
        self._database.take_back(self)


class SQLiteStore(SQLiteShare):
    """A store in a file, or in memory."""

    def __init__(self, path: str, *, codec: str, may_migrate: bool = True, patience: float = DEFAULT_PATIENCE) -> None:
        database = Database(path, patience=patience)
        try:
            migrations = read_migrations(__package__)
            if path or not may_migrate:
                schema = SQLiteSchema(database)
                _check_mark(schema, database, migrations)
                bring_up(schema, migrations, may_migrate=may_migrate)
            else:
                _models.give(database, migrations)
            super().__init__(database, _settle(database, codec))
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class DataVersion:
    """Detects commits of other processes.

    SQLite cannot notify processes, but counts commits; the count is polled a few times a second.
    """

    must_send = False

    def __init__(self, database: Database, notice: Callable[[str], None]) -> None:
        self._database = database
        self._notice = notice
        self._seen = database.changed() if database.is_file else 0
        self._closed = threading.Event()

    def send(self, hint: str) -> None:
        """Do nothing: other processes notice the commit itself."""

    def listen(self, timeout: float) -> None:
        """Poll for commits of other processes."""
        self._closed.wait(timeout)
        if not self._database.is_file or self._closed.is_set():
            return
        now = self._database.changed()
        if now != self._seen:
            self._seen = now
            self._notice("")

    def close(self) -> None:
        """Stop waiting."""
        self._closed.set()


class SQLiteSchema:
    """The schema version, stored in the file's header."""

    def __init__(self, database: Database) -> None:
        self.url = database.url
        self._database = database

    def version(self) -> int:
        """The file's user_version."""
        with self._database.reading() as connection:
            number: int = connection.execute("pragma user_version").fetchone()[0]
            return number

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the write lock, and read the version again inside."""
        yield

    def apply(self, migration: Migration) -> None:
        """Run all statements and set the new version, in one transaction."""
        with self._database.writing() as connection:
            if connection.execute("pragma user_version").fetchone()[0] >= migration.number:
                return  # Another process has applied it.
            if taken := _there(connection, [migration]):
                raise ConfigurationError(_TAKEN.format(self.url, ", ".join(taken)))
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(f"pragma user_version = {migration.number}")


_TAKEN = (
    "{} has foreign tables with names that the engine needs: {}; rename them, or give the engine a file of its own "
    "(on Postgres it has a schema of its own)"
)
_MARKED = (
    "{} has a `pragma user_version` of {} and no table of the engine: other software uses it, and the engine needs it for the version "
    "of its schema; give the engine a file of its own"
)


def _check_mark(schema: SQLiteSchema, database: Database, migrations: Sequence[Migration]) -> None:
    """Raise ConfigurationError if other software has set the version in the file's header."""
    with database.reading() as connection:
        is_ours = bool(_there(connection, migrations))
    if not is_ours and (number := schema.version()):
        raise ConfigurationError(_MARKED.format(database.url, number))


def _there(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> list[str]:
    """Return the tables of the migrations that exist."""
    there = {name for (name,) in connection.execute("select name from sqlite_schema where type in ('table', 'view')")}
    return sorted(there.intersection(made_by(migrations).tables))


def sqlite_script(after: int) -> str:
    """Return the SQL script that migrates a file from a schema version to that of this code. Empty if it is current."""
    return scripted(
        read_migrations(__package__), after=after, noted=lambda each: f"pragma user_version = {each.number}"
    )


class _Models:
    """Templates of migrated databases in memory. Copying one takes a tenth of the time of migrating."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._made: dict[tuple[Migration, ...], sqlite3.Connection] = {}

    def give(self, database: Database, migrations: tuple[Migration, ...]) -> None:
        """Migrate a new database."""
        with self._guard, database.reading() as connection:
            model = self._made.get(migrations)
            if model is not None:
                model.backup(connection)
                return
            bring_up(SQLiteSchema(database), migrations, may_migrate=True)
            model = sqlite3.connect(":memory:", check_same_thread=False)
            connection.backup(model)
            self._made[migrations] = model


_models = _Models()


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements. A trigger's body contains semicolons."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _settle(database: Database, codec: str) -> str:
    """Check the codec, and return the file's identity.

    Only a new file is written, so that readers wait for no writer.
    """
    with database.reading() as connection:
        facts = _facts(connection)
    if len(facts) < len(_FACTS):
        with database.writing() as connection:
            for fact in zip(_FACTS, (codec, secrets.token_hex(16)), strict=True):
                connection.execute("insert into meta (name, value) values (?, ?) on conflict do nothing", fact)
            facts = _facts(connection)
    kept, identity = (facts[each] for each in _FACTS)
    if kept != codec:
        raise ConfigurationError(
            f"{database.url} was written with the {kept!r} codec; open it with that one, not with {codec!r}"
        )
    return identity


def _facts(connection: sqlite3.Connection) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in connection.execute("select name, value from meta where name in (?, ?)", _FACTS)
    }
