"""Queries of callers on one tenant. They run under a role that sees only this tenant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import cast
from uuid import UUID

import msgspec
import psycopg
from psycopg.pq import Escaping
from psycopg.types.numeric import Int4, Int8
from psycopg_pool import ConnectionPool, PoolTimeout

from standfast.errors import StoreUnavailableError
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.events import PUBLICATIONS, PublicationPlace, StoredPublication
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.events import Subscriber
from standfast.store.postgres.connection import session as rows
from standfast.store.postgres.connection.connection import Connection
from standfast.store.postgres.connection.errors import translated
from standfast.store.postgres.connection.loading import load
from standfast.store.postgres.connection.packing import Integers, Texts, Uuids
from standfast.store.postgres.connection.pipeline import Statement, StatementCall, ask, rows_of
from standfast.store.postgres.connection.prepared_statements import drop_prepared
from standfast.store.postgres.connection.records import S, selecting, selecting_page
from standfast.store.postgres.connection.records import reading as reading_rows
from standfast.store.postgres.connection.session import Row
from standfast.store.postgres.reads.bulk_reads import PostgresBulkReads
from standfast.store.postgres.reads.documents import PostgresDocumentReads
from standfast.store.postgres.reads.process_search import PostgresProcessSearch
from standfast.store.postgres.reads.resume_requests import PostgresPausedInstances
from standfast.store.postgres.reads.tasks import PostgresTaskReads
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
from standfast.store.sql.nonblocking import check_nonblocking
from standfast.store.sql.paging import LAST_ID, id_range, in_order, page_of
from standfast.store.sql.statements import read_numbered


class _Sql(msgspec.Struct, frozen=True):
    as_tenant: str
    instances_of_parent: str
    instances_by_key: str
    instances_by_reason: str
    instances_by_attribute: str
    instances_of_definition: str
    instances_of_status: str
    instances_of_partition: str
    instances_in_hand: str
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


_sql = read_numbered(_Sql, "standfast.store.postgres", "reads.sql")

_READ_ONLY = "begin isolation level repeatable read read only"
_AS_TENANT = f"{_READ_ONLY}; {_sql.as_tenant}".encode()
_BEGIN, _COMMIT = StatementCall(Statement(_READ_ONLY), []), StatementCall(Statement("commit"), [])
_TENANT = Statement(_sql.as_tenant.replace("%s", "$1::text"))
_HEADERS = Statement(_sql.headers)

_NO_LIMIT = 2**62
_NOBODY = InstanceId(UUID(int=0))
_FIRST_EVENT = PublicationPlace(datetime(1, 1, 1, tzinfo=UTC), _NOBODY)


@contextmanager
def reading(pool: ConnectionPool[Connection], url: str) -> Iterator[Connection]:
    """Open a read-only transaction on a consistent snapshot."""
    with _taken(pool, url) as connection, connection.transaction():
        yield connection


@contextmanager
def _taken(pool: ConnectionPool[Connection], url: str) -> Iterator[Connection]:
    check_nonblocking()
    try:
        with translated(url), pool.connection() as connection:
            try:
                yield connection
            except BaseException:
                # When the pool rolls back, the driver drops the engine's prepared statements with its own.
                drop_prepared(connection)
                raise
    except PoolTimeout as error:
        raise StoreUnavailableError(f"{url} cannot be used now: {error}") from error


class PostgresReader(
    PostgresPausedInstances, PostgresTaskReads, PostgresProcessSearch, PostgresDocumentReads, PostgresBulkReads
):
    """Queries on the instances of one tenant, limited to a partition if one is given."""

    def __init__(self, pool: ConnectionPool[Connection], tenant: str, url: str, partition: str = "") -> None:
        self._pool = pool
        self._tenant = tenant
        self._url = url
        self._partition = partition

    def load(self, address: Address, *, whole: bool = False) -> Loaded | None:
        """Return an instance with its snapshot and the later events."""
        where = msgspec.structs.replace(address, tenant=self._tenant, partition=self._partition or address.partition)
        with self._as_tenant() as connection:
            return load(connection, [where], whole=whole)[0]

    def instances(self, query: InstanceQuery) -> list[InstanceHeader]:
        """Return a page of instances in the requested order."""
        which = [self._tenant, query.definition, Texts(query.statuses), Texts(query.kinds), query.definition_version]
        span = [*id_range(query), query.created_after, query.created_before, Int8(query.limit)]
        values = [*which, query.begun, *span]
        partition = self._partition or query.partition
        attributes = msgspec.json.encode(query.attributes).decode() if query.attributes else ""
        if query.ended_for:
            further = [Texts(query.ended_for), query.parent, query.key, attributes, partition]
            found = self._all(in_order(_sql.instances_by_reason, query), [*values, *further])
        elif query.key:
            further = [query.key, attributes, partition, query.parent]
            found = self._all(in_order(_sql.instances_by_key, query), [*values, *further])
        elif query.parent is not None:
            found = self._all(in_order(_sql.instances_of_parent, query), [*values, query.parent, attributes, partition])
        elif attributes:
            found = self._all(in_order(_sql.instances_by_attribute, query), [*values, attributes, partition])
        else:
            return self._by_status(query, [*values, partition], [*which, *span, partition])
        return [rows.header(row) for row in found]

    def events(self, instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """Return the history of an instance, in order."""
        values = [instance, self._tenant, self._partition, Int4(after), Int8(_NO_LIMIT if limit is None else limit)]
        return [rows.event(row) for row in self._all(_sql.events, values)]

    def work(self, instance: InstanceId) -> tuple[list[StoredEffect], list[StoredTimer]]:
        """Return pending effects and timers."""
        effects = [rows.effect(row) for row in self._of(instance, _sql.effects)]
        return effects, [rows.timer(row) for row in self._of(instance, _sql.timers)]

    def rows(self, kind: RowKind[S], instance: InstanceId, *, after: int = 0, limit: int | None = None) -> list[S]:
        """Return the rows of a kind."""
        if not after and limit is None:
            return [*map(reading_rows(kind), self._of(instance, selecting(kind)))]
        values = [instance, self._tenant, self._partition, Int8(after), Int8(_NO_LIMIT if limit is None else limit)]
        return [*map(reading_rows(kind), self._all(selecting_page(kind), values))]

    def with_rows(self, kind: RowKind[S], instance: InstanceId) -> tuple[InstanceHeader | None, list[S]]:
        """Return the row of an instance and its rows of a kind, in one round trip."""
        tenant, partition = self._tenant.encode(), self._partition.encode()
        found, theirs = self._at_once(
            StatementCall(_HEADERS, [tenant, Uuids([instance]).array(), partition]),
            StatementCall(_selecting(kind), [Uuids.pack(instance), tenant, partition]),
        )
        return (rows.header(found[0]) if found else None), [*map(reading_rows(kind), theirs)]

    def subscribers(
        self, event: str, correlation: str, *, after: Subscriber | None = None, limit: int
    ) -> list[Subscriber]:
        """Return the subscribers of an event."""
        last = after or Subscriber(_NOBODY, 0, 0, "")
        place = [last.instance, Int4(last.number), Int4(last.place)]
        found = self._all(_sql.subscribers, [self._tenant, event, correlation, *place, Int8(limit), self._partition])
        return [Subscriber(InstanceId(row[0]), *row[1:]) for row in found]

    def kept_for(
        self, event: str, correlation: str, *, now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """Return the retained events for a key."""
        values = [self._tenant, event, correlation, now, *(after or _FIRST_EVENT), Int8(limit), self._partition]
        return [*map(reading_rows(PUBLICATIONS), self._all(_sql.kept_for, values))]

    def publications(
        self, *, event: str = "", now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """Return the retained events."""
        values = [self._tenant, event, now, *(after or _FIRST_EVENT), Int8(limit), self._partition]
        return [*map(reading_rows(PUBLICATIONS), self._all(_sql.publications, values))]

    def headers(self, instances: Sequence[InstanceId]) -> list[InstanceHeader]:
        """Return the rows of the existing instances among these."""
        return [rows.header(row) for row in self._all(_sql.headers, [self._tenant, Uuids(instances), self._partition])]

    def messages(self, instance: InstanceId, *, limit: int = 100) -> list[StoredMessage]:
        """Return the waiting commands."""
        values = [self._tenant, instance, Int8(limit), self._partition]
        return [rows.message(row) for row in self._all(_sql.messages, values)]

    def stuck(
        self, kinds: Sequence[str], *, before: InstanceId | None = None, limit: int = 100
    ) -> list[InstanceHeader]:
        """Return active instances that cannot be woken."""
        values = [self._tenant, Texts(kinds), before or LAST_ID, Int8(limit), self._partition]
        return [rows.header(row) for row in self._all(_sql.stuck, values)]

    def in_hand(self, instances: Sequence[InstanceId]) -> set[InstanceId]:
        """Return the instances with a claimed effect."""
        values = [self._tenant, Uuids(instances), self._partition]
        return {InstanceId(row[0]) for row in self._all(_sql.in_hand, values)}

    def step_names(self, instance: InstanceId, numbers: Sequence[int]) -> dict[int, StepName]:
        """Return the nodes of these steps."""
        found = self._all(_sql.step_names, [self._tenant, instance, Integers(numbers), self._partition])
        return {row[0]: StepName(*row[1:]) for row in found}

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
        values = [self._tenant, Int8(after), definition, source, key, Int8(limit)]
        if instance is None:
            found = self._all(_sql.dead_letters, [*values, self._partition])
        else:
            found = self._all(_sql.dead_letters_of_instance, [*values, instance, self._partition])
        return [rows.dead_letter(row) for row in found]

    def count_letters(
        self,
        *,
        instance: InstanceId | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
    ) -> int:
        """Return the number of dead letters."""
        found = self._all(_sql.count_letters, [self._tenant, definition, source, key, instance, self._partition])
        count: int = found[0][0]
        return count

    def dead_letter(self, letter: int) -> DeadLetterRecord | None:
        """Return a dead letter."""
        found = self._all(_sql.dead_letter, [Int8(letter), self._tenant, self._partition])
        return rows.dead_letter(found[0]) if found else None

    def observations(self, *, definition: str = "", instance: InstanceId | None = None) -> list[ObservationRecord]:
        """Return the observed inputs, in order."""
        values = [self._tenant, definition, instance, self._partition]
        return [rows.observation(row) for row in self._all(_sql.observations, values)]

    def transitions(self, definition: str) -> list[TransitionRecord]:
        """Return the observed transitions with counts."""
        values = [self._tenant, definition, self._partition]
        return [TransitionRecord(*row) for row in self._all(_sql.transitions, values)]

    @contextmanager
    def look(self) -> Iterator[PostgresReader]:
        """Open a consistent snapshot: the transaction sees the state of its first query."""
        with self._as_tenant() as connection:
            yield _Look(connection, self)

    def _by_status(self, query: InstanceQuery, values: list[object], narrow: list[object]) -> list[InstanceHeader]:
        """Return a page along an index. Instances that have not begun but are claimed count as begun."""
        listed = _sql.instances_of_definition if query.definition else _sql.instances_of_status
        if self._partition or query.partition:
            listed = _sql.instances_of_partition
        with self._as_tenant() as connection:
            found = connection.execute(in_order(listed, query), values, binary=True).fetchall()
            if query.begun:
                found += connection.execute(in_order(_sql.instances_in_hand, query), narrow, binary=True).fetchall()
        return page_of(map(rows.header, cast("list[Row]", found)), query, query.limit)

    def _of(self, instance: InstanceId, statement: str) -> list[Row]:
        return self._all(statement, [instance, self._tenant, self._partition])

    def _all(self, statement: str, values: Sequence[object]) -> list[Row]:
        with self._as_tenant() as connection:
            return cast("list[Row]", connection.execute(statement, values, binary=True).fetchall())

    def _at_once(self, *calls: StatementCall) -> Sequence[list[Row]]:
        """Send queries that are known in advance, with their transaction, in one round trip."""
        begin = [_BEGIN, StatementCall(_TENANT, [self._tenant.encode()])]
        with _taken(self._pool, self._url) as connection:
            try:
                said = ask(connection, [*begin, *calls, _COMMIT])
            except psycopg.Error:
                if not connection.closed:
                    connection.rollback()
                    drop_prepared(connection)
                raise
            return [cast("list[Row]", rows_of(connection, each)) for each in said[len(begin) : -1]]

    @contextmanager
    def _as_tenant(self) -> Iterator[Connection]:
        with _taken(self._pool, self._url) as connection:
            tenant = Escaping(connection.pgconn).escape_literal(self._tenant.encode())
            connection.execute(
                _AS_TENANT % tenant, prepare=False
            )  # One round trip; the pool ends the transaction when it gets the connection back.
            yield connection


@cache
def _selecting(kind: RowKind[Record]) -> Statement:
    """Return the statement that reads an instance's rows of a kind."""
    return Statement(selecting(kind))


class _Look(PostgresReader):
    """A reader whose queries share one transaction."""

    def __init__(self, connection: Connection, of: PostgresReader) -> None:
        super().__init__(of._pool, of._tenant, of._url, of._partition)  # noqa: SLF001 - of the same class
        self._connection = connection

    def _at_once(self, *calls: StatementCall) -> Sequence[list[Row]]:
        said = ask(self._connection, calls)
        return [cast("list[Row]", rows_of(self._connection, each)) for each in said]

    @contextmanager
    def _as_tenant(self) -> Iterator[Connection]:
        yield self._connection
