"""What callers of one tenant may see. The tenant is part of every question, so another one's rows do not exist here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.kernel.history import StoredEvent
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import DeadLetterSource
from holdfast.store.findings import StoredStep, StoredSubscription, StoredTask, TaskPlace, Transition
from holdfast.store.paging import id_range, newest
from holdfast.store.shapes import (
    Address,
    DeadLetter,
    Header,
    InstanceQuery,
    Loaded,
    Observation,
    StoredEffect,
    StoredTimer,
)
from holdfast.store.sqlite import rows
from holdfast.store.sqlite.commits import load
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.rows import text, text_or_none
from holdfast.store.statements import read_statements


class _Sql(msgspec.Struct, frozen=True):
    instances_of_parent: str
    instances_by_key: str
    instances_of_definition: str
    instances_of_status: str
    statuses: str
    statuses_of_definition: str
    events: str
    effects: str
    timers: str
    steps: str
    tasks: str
    open_tasks: str
    open_tasks_of_role: str
    headers: str
    begun: str
    subscriptions: str
    dead_letters: str
    dead_letters_of_instance: str
    dead_letter: str
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
        first, before = id_range(query)
        values = {
            "tenant": self._tenant,
            "definition": query.definition,
            "definition_version": query.definition_version,
            "key": query.key,
            "parent": _text(query.parent),
            "statuses": json.dumps(query.statuses) if query.statuses else None,
            "first": str(first),
            "before": str(before),
            "after": text_or_none(query.created_after),
            "until": text_or_none(query.created_before),
            "limit": query.limit,
        }
        if query.parent is not None:
            return [rows.header(row) for row in self._all(_sql.instances_of_parent, values)]
        if query.key:
            return [rows.header(row) for row in self._all(_sql.instances_by_key, values)]
        return self._by_status(query, values)

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

    def open_tasks(
        self, *, role: str | None = None, after: TaskPlace | None = None, limit: int = 100
    ) -> list[StoredTask]:
        """The questions that nobody has answered, in the order of asking."""
        place = ("", "", 0) if after is None else (text(after.opened_at), str(after.instance), after.number)
        if role is None:
            found = self._all(_sql.open_tasks, (self._tenant, *place, limit))
        else:
            found = self._all(_sql.open_tasks_of_role, (self._tenant, role, *place, limit))
        return [rows.task(row) for row in found]

    def headers(self, instances: Sequence[InstanceId]) -> list[Header]:
        """The rows of these instances, of those that exist."""
        values = {"tenant": self._tenant, "instances": json.dumps([str(each) for each in instances])}
        return [rows.header(row) for row in self._all(_sql.headers, values)]

    def begun(self, instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Those of which anything has begun."""
        values = {"tenant": self._tenant, "instances": json.dumps([str(each) for each in instances])}
        return {rows.instance_id(row[0]) for row in self._all(_sql.begun, values)}

    def dead_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[DeadLetter]:
        """What gave up, oldest first."""
        values = {
            "tenant": self._tenant,
            "instance": _text(instance),
            "definition": definition,
            "source": source,
            "after": after,
            "limit": limit,
        }
        statement = _sql.dead_letters if instance is None else _sql.dead_letters_of_instance
        return [rows.dead_letter(row) for row in self._all(statement, values)]

    def dead_letter(self, letter: int) -> DeadLetter | None:
        """One dead letter."""
        found = self._all(_sql.dead_letter, (letter, self._tenant))
        return rows.dead_letter(found[0]) if found else None

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[Observation]:
        """The observed inputs, in order."""
        values = {"tenant": self._tenant, "definition": definition, "instance": _text(instance)}
        return [rows.observation(row) for row in self._all(_sql.observations, values)]

    def transitions(self, definition: str) -> list[Transition]:
        """The observed moves, counted."""
        return [Transition(*row) for row in self._all(_sql.transitions, (self._tenant, definition))]

    def _by_status(self, query: InstanceQuery, values: dict[str, Any]) -> list[Header]:
        """Each status newest first, along an index, and then the newest of all."""
        if query.definition:
            known, listed = _sql.statuses_of_definition, _sql.instances_of_definition
        else:
            known, listed = _sql.statuses, _sql.instances_of_status
        with self._database.reading() as connection:
            statuses = set(query.statuses) or {row[0] for row in connection.execute(known, values)}
            found = [row for each in statuses for row in connection.execute(listed, {**values, "status": each})]
        return newest(map(rows.header, found), query.limit)

    def _of(self, instance: InstanceId, statement: str) -> list[rows.Row]:
        return self._all(statement, (str(instance), self._tenant))

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[rows.Row]:
        with self._database.reading() as connection:
            return connection.execute(statement, values).fetchall()


def _text(instance: InstanceId | None) -> str | None:
    return None if instance is None else str(instance)
