"""The SQLite store: the parts, on one database."""

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
"""What a file says of itself."""
DEFAULT_PATIENCE = 60.0
"""Seconds to wait for another process to let go of the file before giving up."""


class SQLiteParts:
    """The sides of the store. There is one writing connection, and its lock makes it safe for all threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def writer(self) -> SQLiteWriter:
        """For a committer."""
        return SQLiteWriter(self._database)

    def effects(self) -> SQLiteEffects:
        """For a worker."""
        return SQLiteEffects(self._database)

    def timers(self) -> SQLiteTimers:
        """For the timer loop."""
        return SQLiteTimers(self._database)

    def inbox(self) -> SQLiteInbox:
        """For the inbox loop."""
        return SQLiteInbox(self._database)

    def workers(self) -> SQLiteWorkers:
        """For the heartbeat."""
        return SQLiteWorkers(self._database)

    def feed(self) -> SQLiteFeed:
        """For projections."""
        return SQLiteFeed(self._database, owner=self)

    def keeper(self) -> SQLiteKeeper:
        """For operators and housekeeping."""
        return SQLiteKeeper(self._database)

    def resumes(self) -> SQLiteResumes:
        """For whoever lets paused instances go on."""
        return SQLiteResumes(self._database)

    def incidents(self) -> SQLiteIncidents:
        """For whoever looks for instances that nothing can wake."""
        return SQLiteIncidents(self._database)

    def expiries(self) -> SQLiteExpiries:
        """For operators who look for what should have ended."""
        return SQLiteExpiries(self._database)

    def definitions(self) -> SQLiteDefinitions:
        """For whoever resolves definitions."""
        return SQLiteDefinitions(self._database)

    def pauses(self) -> SQLitePauses:
        """For those who pause, and for the walk."""
        return SQLitePauses(self._database)

    def notifications(self) -> SQLiteNotifications:
        """For those who tell people something, and for those people."""
        return SQLiteNotifications(self._database)

    def people(self) -> SQLitePeople:
        """For whoever asks who is asked."""
        return SQLitePeople(self._database)

    def changes(self) -> SQLiteChanges:
        """For whoever changes something, and for auditors."""
        return SQLiteChanges(self._database)

    def chains(self) -> SQLiteEditions:
        """For whoever resolves approval chains."""
        return SQLiteEditions(self._database, CHAINS)

    def charters(self) -> SQLiteEditions:
        """For what organisations say of their documents."""
        return SQLiteEditions(self._database, CHARTERS)

    def seals(self) -> SQLiteSeals:
        """For whoever seals histories."""
        return SQLiteSeals(self._database)

    def blueprints(self) -> SQLiteBlueprints:
        """For whoever publishes contracts and bodies."""
        return SQLiteBlueprints(self._database)

    def access(self) -> SQLiteAccess:
        """For those who come with keys, and for whoever looks after these."""
        return SQLiteAccess(self._database)

    @contextmanager
    def together(self) -> Iterator[SQLiteFacts]:
        """One transaction of the writer."""
        with self._database.together() as connection:
            yield SQLiteFacts(connection)

    def close(self) -> None:
        """Nothing to let go of: the connections are the file's."""


class SQLiteShare(SQLiteParts):
    """A file, or a database in memory, as one engine has it."""

    def __init__(self, database: Database, identity: str) -> None:
        super().__init__(database)
        self._identity = identity
        """Told apart by it from every other database; made when the file was."""
        self.url = database.url
        self.writers = 1  # The file has one writer at a time.

    @property
    def is_lent(self) -> bool:
        """Whether the code that asks has the file's only writer in its hands."""
        return self._database.is_lent

    def refuse_inside(self) -> None:
        """Raise where the writer is lent."""
        self._database.refuse_inside()

    def line(self) -> SQLiteParts:
        """The parts, which share all connections."""
        return SQLiteParts(self._database)

    def share(self) -> SQLiteShare:
        """The same file with the same connections."""
        return SQLiteShare(self._database, self._identity)

    def reader(self, tenant: str, partition: str = "") -> SQLiteReader:
        """For callers of one tenant, or of one part of it."""
        return SQLiteReader(self._database, tenant, partition)

    @contextmanager
    def survey(self) -> Iterator[SQLiteParts]:
        """The parts, for one who only looks."""
        with self._database.reading():
            yield SQLiteParts(self._database)

    def now(self) -> datetime:
        """The host's time, which is the file's."""
        with self._database.reading() as connection:
            return read_clock(connection, None)

    def accept_within(self, connection: object, message: StoredMessage, now: datetime) -> int:
        """Put a message into the inbox in the caller's own transaction."""
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
        """Nobody else writes meanwhile."""
        return self._database.entered()

    def within(self, connection: object) -> AbstractContextManager[SQLiteUnit]:
        """The transaction that a caller has open, for our statements too."""
        return borrowed(unwrapped(connection, sqlite3.Connection, self.url), self._database, identity=self._identity)

    def wakeups(self, notice: Callable[[str], None]) -> DataVersion:
        """Hints that another process has committed."""
        return DataVersion(self._database, notice)

    def locked_for(self) -> float:
        """Seconds for which another process has held the write lock."""
        return self._database.locked_for()

    def take_back(self) -> None:
        """Give the file a new writer if a projection of this share still has the old one."""
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
    """SQLite cannot call other processes, but it counts what they commit: the count is looked at a few times a second."""

    must_send = False

    def __init__(self, database: Database, notice: Callable[[str], None]) -> None:
        self._database = database
        self._notice = notice
        self._seen = database.changed() if database.is_file else 0
        self._closed = threading.Event()

    def send(self, hint: str) -> None:
        """Nothing to do: the commit itself is what others see."""

    def listen(self, timeout: float) -> None:
        """Look whether somebody else has committed."""
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
    """The schema's version, kept in the file's header."""

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
        """Writers exclude one another; the version is looked at again inside."""
        yield

    def apply(self, migration: Migration) -> None:
        """All statements and the new version, or nothing."""
        with self._database.writing() as connection:
            if connection.execute("pragma user_version").fetchone()[0] >= migration.number:
                return  # Another process was faster.
            if taken := _there(connection, [migration]):
                raise ConfigurationError(_TAKEN.format(self.url, ", ".join(taken)))
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(f"pragma user_version = {migration.number}")


_TAKEN = (
    "{} has tables of somebody else by names that the engine needs for its own: {}; rename them, or give the engine a file of its own "
    "(on Postgres it has a schema of its own)"
)
_MARKED = (
    "{} has a `pragma user_version` of {} and no table of the engine: somebody else keeps a mark there, where the engine keeps the version "
    "of its schema; give the engine a file of its own"
)


def _check_mark(schema: SQLiteSchema, database: Database, migrations: Sequence[Migration]) -> None:
    """ConfigurationError if the version in the file's header is none of ours."""
    with database.reading() as connection:
        is_ours = bool(_there(connection, migrations))
    if not is_ours and (number := schema.version()):
        raise ConfigurationError(_MARKED.format(database.url, number))


def _there(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> list[str]:
    """The tables that migrations make, as far as they are there."""
    there = {name for (name,) in connection.execute("select name from sqlite_schema where type in ('table', 'view')")}
    return sorted(there.intersection(made_by(migrations).tables))


def sqlite_script(after: int) -> str:
    """What brings a file from a schema to that of this code, as SQL; empty if it has it."""
    return scripted(
        read_migrations(__package__), after=after, noted=lambda each: f"pragma user_version = {each.number}"
    )


class _Models:
    """Databases in memory as migrations leave them: the next one begins as a copy, which takes a tenth of the time of making it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._made: dict[tuple[Migration, ...], sqlite3.Connection] = {}

    def give(self, database: Database, migrations: tuple[Migration, ...]) -> None:
        """Bring a new database up to these migrations."""
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
    """The statements of a script; a trigger's body holds semicolons of its own."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _settle(database: Database, codec: str) -> str:
    """Check that the file speaks our codec; its identity. Only who finds it new writes into it: whoever just looks waits for no writer."""
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
