"""A store with its parts at hand, as one thread of the engine holds them."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from standfast.kernel.ids import InstanceId
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.store import Store
from standfast.store.records.instances import DEFAULT_TENANT, Claim, InstanceChange, InstanceHeader, Loaded
from support.rows import NOW, by_id


class Desk:
    """The parts of a store on one connection."""

    def __init__(self, store: Store) -> None:
        parts = store.line()
        self.store = store
        self.writer = parts.writer()
        self.effects = parts.effects()
        self.timers = parts.timers()
        self.inbox = parts.inbox()
        self.workers = parts.workers()
        self.feed = parts.feed()
        self.keeper = parts.keeper()
        self.definitions = parts.definitions()
        self.pauses = parts.pauses()
        self.people = parts.people()
        self.chains = parts.chains()
        self.charters = parts.charters()
        self.access = parts.access()
        self.reader = store.reader(DEFAULT_TENANT)

    def another(self) -> Desk:
        """A second desk, as another process would have."""
        return Desk(self.store)

    def reading(self, tenant: str) -> TenantReader:
        """What another tenant sees."""
        return self.store.reader(tenant)

    def commit(self, *changes: InstanceChange, finished: tuple[Claim, ...] = (), now: datetime = NOW) -> None:
        """One commit."""
        self.writer.write(changes, finished=finished, now=now)

    def born(self, change: InstanceChange) -> InstanceHeader:
        """Write an instance; its row."""
        self.commit(change)
        return change.header

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the database itself, past the store; `{}` stands before the name of a table."""
        with self.writer.unit() as unit, unit.lend() as lent:
            connection: Any = lent
            prefix = "" if isinstance(connection, sqlite3.Connection) else "standfast."
            return [tuple(row) for row in connection.execute(statement.format(prefix)).fetchall()]

    def run(self, statement: str) -> None:
        """Change the database itself, past the store; `{}` stands before the name of a table."""
        with self.writer.unit() as unit, unit.lend() as lent:
            connection: Any = lent
            prefix = "" if isinstance(connection, sqlite3.Connection) else "standfast."
            connection.execute(statement.format(prefix))

    def loaded(self, instance: InstanceId) -> Loaded:
        """An instance that must be there."""
        (found,) = self.writer.load([by_id(instance)])
        assert found is not None
        return found
