"""What callers of one tenant may see. The tenant is part of every question, so another one's rows do not exist here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.kernel.history import StoredEvent
from holdfast.kernel.ids import InstanceId
from holdfast.store.shapes import (
    Address,
    DeadLetter,
    Header,
    InstanceQuery,
    Loaded,
    Observation,
    StoredEffect,
    StoredStep,
    StoredSubscription,
    StoredTask,
    StoredTimer,
    Transition,
)
from holdfast.store.sqlite import rows
from holdfast.store.sqlite.commits import load
from holdfast.store.sqlite.database import Database
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    instances: str
    events: str
    effects: str
    timers: str
    steps: str
    tasks: str
    subscriptions: str
    dead_letters: str
    observations: str
    transitions: str


_sql = read_statements(_Sql, __package__, "reads.sql")

_NO_LIMIT = -1


class SQLiteReader:
    """Questions about the instances of one tenant."""

    def __init__(self, database: Database, tenant: str) -> None:
        self._database = database
        self._tenant = tenant

    def load(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """An instance with its snapshot and the events after it."""
        with self._database.reading() as connection:
            return load(connection, msgspec.structs.replace(address, tenant=self._tenant), whole=whole)

    def instances(self, query: InstanceQuery) -> list[Header]:
        """A page of instances, newest first."""
        values = {
            "tenant": self._tenant,
            "definition": query.definition,
            "key": query.key,
            "parent": _text(query.parent),
            "statuses": json.dumps(query.statuses) if query.statuses else None,
            "before": _text(query.before),
            "limit": query.limit,
        }
        return [rows.header(row) for row in self._all(_sql.instances, values)]

    def events(self, instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """The history of an instance, in order."""
        values = (str(instance), self._tenant, after, _NO_LIMIT if limit is None else limit)
        return [rows.event(row) for row in self._all(_sql.events, values)]

    def work(self, instance: InstanceId) -> tuple[list[StoredEffect], list[StoredTimer]]:
        """Live effects and timers."""
        effects = [rows.effect(row) for row in self._of(instance, _sql.effects)]
        return effects, [rows.timer(row) for row in self._of(instance, _sql.timers)]

    def steps(self, instance: InstanceId) -> list[StoredStep]:
        """The step rows, in order."""
        return [rows.step(row) for row in self._of(instance, _sql.steps)]

    def tasks(self, instance: InstanceId) -> list[StoredTask]:
        """The questions that were asked."""
        return [rows.task(row) for row in self._of(instance, _sql.tasks)]

    def subscriptions(self, instance: InstanceId) -> list[StoredSubscription]:
        """The signals that are waited for."""
        return [rows.subscription(row) for row in self._of(instance, _sql.subscriptions)]

    def dead_letters(self, *, instance: InstanceId | None = None, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """What gave up, oldest first."""
        values = {"tenant": self._tenant, "instance": _text(instance), "after": after, "limit": limit}
        return [rows.dead_letter(row) for row in self._all(_sql.dead_letters, values)]

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[Observation]:
        """The observed inputs, in order."""
        values = {"tenant": self._tenant, "definition": definition, "instance": _text(instance)}
        return [rows.observation(row) for row in self._all(_sql.observations, values)]

    def transitions(self, definition: str) -> list[Transition]:
        """The observed moves, counted."""
        return [Transition(*row) for row in self._all(_sql.transitions, (self._tenant, definition))]

    def _of(self, instance: InstanceId, statement: str) -> list[rows.Row]:
        return self._all(statement, (str(instance), self._tenant))

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[rows.Row]:
        with self._database.reading() as connection:
            return connection.execute(statement, values).fetchall()


def _text(instance: InstanceId | None) -> str | None:
    return None if instance is None else str(instance)
