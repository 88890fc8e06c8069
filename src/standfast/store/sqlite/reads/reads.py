"""Queries of callers on one tenant. Every statement names the tenant, so that rows of others are invisible."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, id_text
from standfast.kernel.row_kinds.events import PUBLICATIONS, PublicationPlace, StoredPublication
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.kernel.rows import RowKind
from standfast.store.ports.events import Subscriber
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    InstanceHeader,
    InstanceQuery,
    Loaded,
    ObservationRecord,
    StoredEffect,
    StoredMessage,
    StoredTimer,
)
from standfast.store.records.queries import StepName, TransitionRecord
from standfast.store.sql.paging import LAST_ID, id_range, in_order
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.connection import session as rows
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.loading import load
from standfast.store.sqlite.connection.records import S, reading, selecting, selecting_page
from standfast.store.sqlite.connection.session import Row, text, text_or_none
from standfast.store.sqlite.reads.bulk_reads import SQLiteBulkReads
from standfast.store.sqlite.reads.documents import SQLiteDocumentReads
from standfast.store.sqlite.reads.process_search import SQLiteProcessSearch
from standfast.store.sqlite.reads.resume_requests import SQLitePausedInstances
from standfast.store.sqlite.reads.tasks import SQLiteTaskReads


class _Sql(msgspec.Struct, frozen=True):
    instances_of_parent: str
    instances_by_key: str
    instances_by_reason: str
    instances_by_attribute: str
    instances_of_definition: str
    instances_of_status: str
    instances_of_partition: str
    instances_in_hand: str
    next_of_parent: str
    next_of_definition: str
    next_of_status: str
    next_of_partition: str
    events: str
    effects: str
    timers: str
    subscribers: str
    kept_for: str
    publications: str
    headers: str
    messages: str
    stuck: str
    in_hand: str
    step_names: str
    dead_letters: str
    dead_letters_of_instance: str
    count_letters: str
    dead_letter: str
    observations: str
    transitions: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "reads.sql")

_NO_LIMIT = -1


class SQLiteReader(SQLitePausedInstances, SQLiteTaskReads, SQLiteProcessSearch, SQLiteDocumentReads, SQLiteBulkReads):
    """Queries on the instances of one tenant, limited to a partition if one is given."""

    def __init__(self, database: Database, tenant: str, partition: str = "") -> None:
        self._database = database
        self._tenant = tenant
        self._partition = partition

    def load(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Return an instance with its snapshot and the later events."""
        with self._database.reading() as connection:
            where = msgspec.structs.replace(
                address, tenant=self._tenant, partition=self._partition or address.partition
            )
            return load(connection, where, whole=whole)

    def instances(self, query: InstanceQuery) -> list[InstanceHeader]:
        """Return a page of instances in the requested order."""
        first, before = id_range(query)
        values = {
            "tenant": self._tenant,
            "partition": self._partition or query.partition,
            "definition": query.definition,
            "definition_version": query.definition_version,
            "key": query.key,
            "parent": _text(query.parent),
            "kinds": json.dumps(query.kinds) if query.kinds else None,
            "statuses": json.dumps(query.statuses) if query.statuses else None,
            "begun": query.begun,
            "attributes": msgspec.json.encode(query.attributes).decode() if query.attributes else None,
            "first": str(first),
            "before": str(before),
            "after": text_or_none(query.created_after),
            "until": text_or_none(query.created_before),
            "limit": query.limit,
        }
        if query.ended_for:
            statement = in_order(_sql.instances_by_reason, query)
            of_each = [self._all(statement, {**values, "reason": each}) for each in set(query.ended_for)]
            return [rows.header(row) for row in _page([row for some in of_each for row in some], query)]
        if query.key:
            return [rows.header(row) for row in self._all(in_order(_sql.instances_by_key, query), values)]
        if query.attributes and query.parent is None:
            return [rows.header(row) for row in self._all(in_order(_sql.instances_by_attribute, query), values)]
        return self._by_status(query, values)

    def events(self, instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """Return the history of an instance, in order."""
        values = {**self._named(instance), "after": after, "limit": _NO_LIMIT if limit is None else limit}
        return [rows.event(row) for row in self._all(_sql.events, values)]

    def work(self, instance: InstanceId) -> tuple[list[StoredEffect], list[StoredTimer]]:
        """Return pending effects and timers."""
        effects = [rows.effect(row) for row in self._of(instance, _sql.effects)]
        return effects, [rows.timer(row) for row in self._of(instance, _sql.timers)]

    def rows(self, kind: RowKind[S], instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[S]:
        """Return the rows of a kind."""
        if not after and limit is None:
            return [*map(reading(kind), self._of(instance, selecting(kind)))]
        values = {**self._named(instance), "after": after, "limit": _NO_LIMIT if limit is None else limit}
        return [*map(reading(kind), self._all(selecting_page(kind), values))]

    def with_rows(self, kind: RowKind[S], instance: InstanceId) -> tuple[InstanceHeader | None, list[S]]:
        """Return the row of an instance, and its rows of a kind."""
        with self.look() as look:
            found = look.headers([instance])
            return (found[0] if found else None), look.rows(kind, instance)

    def subscribers(
        self, event: str, correlation: str, *, after: Subscriber | None = None, limit: int
    ) -> list[Subscriber]:
        """Return the subscribers of an event."""
        instance, number, place = ("", 0, 0) if after is None else (str(after.instance), after.number, after.place)
        values = {**self._whose, "event": event, "correlation": correlation, "instance": instance, "limit": limit}
        found = self._all(_sql.subscribers, {**values, "number": number, "place": place})
        return [Subscriber(rows.instance_id(row[0]), *row[1:]) for row in found]

    def kept_for(
        self, event: str, correlation: str, *, now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """Return the retained events for a key."""
        at, instance = ("", "") if after is None else (text(after.published_at), str(after.instance))
        values = {**self._whose, "event": event, "correlation": correlation, "now": text(now), "limit": limit}
        found = self._all(_sql.kept_for, {**values, "at": at, "instance": instance})
        return [*map(reading(PUBLICATIONS), found)]

    def publications(
        self, *, event: str = "", now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """Return the retained events."""
        at, instance = ("", "") if after is None else (text(after.published_at), str(after.instance))
        values = {
            **self._whose,
            "event": event,
            "now": text(now),
            "at": at,
            "instance": instance,
            "limit": limit,
        }
        return [*map(reading(PUBLICATIONS), self._all(_sql.publications, values))]

    def headers(self, instances: Sequence[InstanceId]) -> list[InstanceHeader]:
        """Return the rows of the existing instances among these."""
        values = {**self._whose, "instances": json.dumps([*map(id_text, instances)])}
        return [rows.header(row) for row in self._all(_sql.headers, values)]

    def messages(self, instance: InstanceId, *, limit: int = 100) -> list[StoredMessage]:
        """Return the waiting commands."""
        values = {**self._named(instance), "limit": limit}
        return [rows.message(row) for row in self._all(_sql.messages, values)]

    def stuck(
        self, kinds: Sequence[str], *, before: InstanceId | None = None, limit: int = 100
    ) -> list[InstanceHeader]:
        """Return active instances that cannot be woken."""
        values = {**self._whose, "kinds": json.dumps(kinds), "before": str(before or LAST_ID), "limit": limit}
        return [rows.header(row) for row in self._all(_sql.stuck, values)]

    def in_hand(self, instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Return the instances with a claimed effect."""
        values = {**self._whose, "instances": json.dumps([str(each) for each in instances])}
        return {rows.instance_id(row[0]) for row in self._all(_sql.in_hand, values)}

    def step_names(self, instance: InstanceId, numbers: Sequence[int]) -> dict[int, StepName]:
        """Return the nodes of these steps."""
        values = {**self._named(instance), "numbers": json.dumps(list(numbers))}
        return {row[0]: StepName(*row[1:]) for row in self._all(_sql.step_names, values)}

    def dead_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> list[DeadLetterRecord]:
        """Return dead letters, oldest first."""
        values = {
            **self._whose,
            "instance": _text(instance),
            "definition": definition,
            "source": source,
            "key": key,
            "after": after,
            "limit": limit,
        }
        statement = _sql.dead_letters if instance is None else _sql.dead_letters_of_instance
        return [rows.dead_letter(row) for row in self._all(statement, values)]

    def count_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
    ) -> int:
        """Return the number of dead letters."""
        values = {
            **self._whose,
            "instance": _text(instance),
            "definition": definition,
            "source": source,
            "key": key,
        }
        count: int = self._all(_sql.count_letters, values)[0][0]
        return count

    def dead_letter(self, letter: int) -> DeadLetterRecord | None:
        """Return a dead letter."""
        found = self._all(_sql.dead_letter, {**self._whose, "letter": letter})
        return rows.dead_letter(found[0]) if found else None

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[ObservationRecord]:
        """Return the observed inputs, in order."""
        values = {**self._whose, "definition": definition, "instance": _text(instance)}
        return [rows.observation(row) for row in self._all(_sql.observations, values)]

    def transitions(self, definition: str) -> list[TransitionRecord]:
        """Return the observed transitions with counts."""
        return [
            TransitionRecord(*row) for row in self._all(_sql.transitions, {**self._whose, "definition": definition})
        ]

    @contextmanager
    def look(self) -> Iterator[SQLiteReader]:
        """Open a consistent snapshot: a read transaction that all queries of this thread share."""
        with self._database.reading():
            yield self

    def _by_status(self, query: InstanceQuery, values: dict[str, Any]) -> list[InstanceHeader]:
        """Return a page group by group along an index, begun and not begun instances.

        No group returns more than a page.
        """
        newest_first, following, names, flags = _way(query, values)
        listed = in_order(newest_first, query)
        found: list[Row] = []
        with self._database.reading() as connection:
            groups = [
                {**values, **group, "is_begun": flag}
                for group in _groups(connection, following, names, values)
                if _is_asked_for(group, query)
                for flag in flags
            ]
            heads = [(connection.execute(listed, {**group, "limit": 1}).fetchone(), group) for group in groups]
            firsts = [(row[0], group) for row, group in heads if row]
            for first, group in sorted(firsts, key=itemgetter(0), reverse=not query.oldest_first):
                if len(found) == query.limit and (first > found[-1][0]) is query.oldest_first:
                    break
                found = _page([*found, *connection.execute(listed, group)], query)
            if query.begun and query.parent is None:
                found = _page([*found, *connection.execute(in_order(_sql.instances_in_hand, query), values)], query)
        return [*map(rows.header, found)]

    def _of(self, instance: InstanceId, statement: str) -> list[Row]:
        return self._all(statement, self._named(instance))

    def _named(self, instance: InstanceId) -> dict[str, Any]:
        return {"instance": str(instance), **self._whose}

    @property
    def _whose(self) -> dict[str, Any]:
        return {"tenant": self._tenant, "partition": self._partition}

    def _all(self, statement: str, values: dict[str, Any] | Sequence[object]) -> list[Row]:
        with self._database.reading() as connection:
            return connection.execute(statement, values).fetchall()


def _text(instance: InstanceId | None) -> str | None:
    return None if instance is None else str(instance)


def _page(found: list[Row], query: InstanceQuery) -> list[Row]:
    return sorted(found, key=itemgetter(0), reverse=not query.oldest_first)[: query.limit]


class _Way(NamedTuple):
    """How a list is read."""

    newest_first: str
    """Reads a page of a group."""
    following: str
    """Finds the next group."""
    names: tuple[str, ...]
    """The columns that define a group."""
    flags: tuple[int, ...]
    """The values of `begun` to read."""


def _way(query: InstanceQuery, values: Mapping[str, Any]) -> _Way:
    """Return the access path with the most selective index."""
    flags = (1, 0) if query.begun is None else (int(query.begun),)
    if query.parent is not None:  # Its index does not separate begun children.
        return _Way(_sql.instances_of_parent, _sql.next_of_parent, ("at_status",), (0,))
    if values["partition"]:
        of_partition = ("at_kind", "at_definition", "at_status")
        return _Way(_sql.instances_of_partition, _sql.next_of_partition, of_partition, flags)
    if query.definition:
        return _Way(_sql.instances_of_definition, _sql.next_of_definition, ("at_version", "at_status"), flags)
    return _Way(_sql.instances_of_status, _sql.next_of_status, ("at_kind", "at_status"), flags)


def _groups(
    connection: sqlite3.Connection, following: str, names: Sequence[str], values: Mapping[str, Any]
) -> Iterator[dict[str, str]]:
    """Return the existing groups in order, limited to one version if requested."""
    version = values["definition_version"]
    group = {**dict.fromkeys(names, ""), "at_version": version}
    while row := connection.execute(following, {**values, **group}).fetchone():
        group = dict(zip(names, row, strict=True))
        if version and group.get("at_version", version) != version:
            return
        yield group


def _is_asked_for(group: Mapping[str, str], query: InstanceQuery) -> bool:
    return (
        (not query.statuses or group["at_status"] in query.statuses)
        and (not query.kinds or group.get("at_kind", query.kinds[0]) in query.kinds)
        and (not query.definition or group.get("at_definition", query.definition) == query.definition)
    )
