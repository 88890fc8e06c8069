"""Questions that must stay cheap however much is stored: they look at the rows they answer with, and at few others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec
import psycopg
import pytest

from standfast.kernel.ids import InstanceId
from standfast.kernel.people import Absence, Delegation, DirectoryLook, Grant, Principal
from standfast.kernel.row_kinds.documents import DOCUMENT_VERSIONS, DocumentOpened, VersionKept
from standfast.kernel.row_kinds.events import PublicationKept
from standfast.kernel.row_kinds.steps import (
    STEPS,
    DeadLetterRaised,
    StepMoved,
    StepOpened,
    SubscriptionOpened,
    TaskOpened,
    TaskPlace,
)
from standfast.kernel.row_kinds.tasks import DecisionGiven, PersonAsked
from standfast.store.opening import open_store
from standfast.store.ports.documents import DocumentQuery
from standfast.store.ports.maintenance import ExpiredQuery, PausedQuery
from standfast.store.ports.reading import AskedOf, Match, TenantReader
from standfast.store.ports.tasks import AssigneeRecord, TaskQuery
from standfast.store.postgres.admin import workers as postgres_workers
from standfast.store.postgres.commit import claims as postgres_claims
from standfast.store.postgres.commit import commit_statements as postgres_calls
from standfast.store.postgres.connection import loading as postgres_loading
from standfast.store.postgres.connection import records as postgres_records
from standfast.store.postgres.reads import reads as postgres_reads
from standfast.store.records.instances import DEFAULT_TENANT, InstanceChange, InstanceQuery, Wanted, Word
from standfast.store.sql.statements import numbered
from standfast.store.sqlite.commit import commits as sqlite_commits
from standfast.store.sqlite.connection import loading as sqlite_loading
from standfast.store.sqlite.reads import reads as sqlite_reads
from support.desks import Desk
from support.rows import (
    HOUR,
    LATER,
    NOW,
    OTHER_TENANT,
    SHIP_WORDS,
    WORDS,
    born,
    definition,
    effect,
    effective,
    message,
    moved,
    new_id,
    new_worker,
    timer,
)

MANY = 1500
FEW = 3

PARENT, MOTHER = new_id(), new_id()
OLD = NOW - timedelta(days=400)

_LOOKED_AT = (
    "select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::int from pg_class c "
    "where c.relnamespace = 'standfast'::regnamespace and c.relkind in ('r', 'i')"
)


@pytest.fixture
def new_database(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[str]]:
    """A database that nobody has had: in one that was emptied, what was deleted costs queries something."""
    return lambda: request.getfixturevalue("postgres_server").fresh()


class Effort:
    """How much a store did to answer: rows that Postgres looked at, or instructions of SQLite's machine."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.is_postgres = desk.store.url.startswith("postgresql")
        self.spent = 0

    @property
    def is_small(self) -> bool:
        """Whether it has nothing to do with how many rows there are."""
        return self.spent < (MANY // 10 if self.is_postgres else MANY * 3)

    @contextmanager
    def of(self, asked: Any) -> Iterator[None]:
        """Measure what a part of the store does inside the block."""
        if self.is_postgres:
            with self._counting_rows(asked):
                yield
        else:
            with self._counting_instructions():
                yield

    @contextmanager
    def _counting_instructions(self) -> Iterator[None]:
        database: Any = self._desk.store._database  # type: ignore[attr-defined]
        with database.reading() as reader:  # The next who reads gets the same one.
            connections = {database._writer, reader}

        def count() -> int:
            self.spent += 1
            return 0

        for connection in connections:
            connection.set_progress_handler(count, 1)
        try:
            yield
        finally:
            for connection in connections:
                connection.set_progress_handler(None, 1)

    @contextmanager
    def _counting_rows(self, asked: Any) -> Iterator[None]:
        place, name = (asked, "_as_tenant") if hasattr(asked, "_as_tenant") else (asked._line, "use")
        connect = getattr(place, name)

        @contextmanager
        def counted() -> Iterator[Any]:
            with connect() as connection, connection.transaction():
                before = connection.execute(_LOOKED_AT).fetchone()[0]
                yield connection
                self.spent += connection.execute(_LOOKED_AT).fetchone()[0] - before

        setattr(place, name, counted)
        try:
            yield
        finally:
            delattr(place, name)


def one(status: str = "running", at: datetime = NOW, **rest: Any) -> InstanceChange:
    """An instance in this status."""
    header = {
        name: rest.pop(name)
        for name in ("parent", "definition_version", "kind", "begun", "search", "partition", "reason", "ended_at")
        if name in rest
    }
    change = born(new_id(at), **rest)
    change.header = msgspec.structs.replace(change.header, status=status, created_at=at, **header)
    return change


def crowd(desk: Desk) -> None:
    """Many instances that nobody asks for, and a few of each kind that somebody does."""
    desk.commit(
        *(one("completed", records=[TaskOpened(number=1, role="clerk", outcome="ok")]) for _ in range(MANY // 2))
    )
    desk.commit(*(one("completed", at=OLD, definition="old", key=f"k{number}") for number in range(FEW)), now=OLD)
    desk.commit(*(one(definition="rare", definition_version="2", parent=PARENT) for _ in range(FEW)))
    desk.commit(*(one(search='{"colour":"red","size":3}') for _ in range(FEW)))
    desk.commit(*(one(definition="pay", kind="saga", begun=False) for _ in range(FEW)))
    desk.commit(*(one(partition="south") for _ in range(FEW)))
    blocked: dict[str, Any] = {"kind": "rules", "reason": "blocked", "ended_at": NOW}
    desk.commit(
        one("completed", **blocked | {"reason": "rejected"}), *(one("completed", **blocked) for _ in range(FEW))
    )
    desk.commit(one("cancelled", **blocked), one("completed", **blocked | {"kind": "process"}))
    desk.commit(*(one("failed", parent=MOTHER, records=[letter(number)]) for number in range(FEW)))
    desk.commit(*(one(tenant=OTHER_TENANT, key="theirs") for _ in range(1)))
    desk.commit(*(one(records=[TaskOpened(number=1, role="boss")]) for _ in range(FEW)))
    desk.commit(*(one("completed", parent=MOTHER, records=[letter(number)]) for number in range(MANY // 2)))
    desk.commit(*(one(records=[waiting("many"), kept("many")]) for _ in range(MANY // 2)))
    desk.commit(*(one(records=[waiting("rare"), kept("rare")]) for _ in range(FEW)))


def waiting(event: str) -> SubscriptionOpened:
    """A wait for an event."""
    return SubscriptionOpened(number=1, kind="event", signal=event, correlation="o-1")


def kept(event: str) -> PublicationKept:
    """An event that is kept."""
    return PublicationKept(id="e", event=event, correlation="o-1", expires_at=NOW + HOUR, data=b"{}")


def letter(number: int) -> DeadLetterRaised:
    """A dead letter of a step."""
    return DeadLetterRaised(source="step", number=number, name="charge", reason="r", error="e")


LISTS: dict[str, tuple[InstanceQuery, int]] = {
    "nothing": (InstanceQuery(limit=5), 5),
    "definition": (InstanceQuery(definition="rare"), FEW),
    "version": (InstanceQuery(definition="rare", definition_version="2"), FEW),
    "status": (InstanceQuery(statuses=("failed",)), FEW),
    "statuses": (InstanceQuery(statuses=("failed", "running"), limit=4), 4),
    "definition and status": (InstanceQuery(definition="order", statuses=("failed",)), FEW),
    "key": (InstanceQuery(key="k1"), 1),
    "definition and key": (InstanceQuery(definition="old", key="k1"), 1),
    "parent": (InstanceQuery(parent=PARENT), FEW),
    "parent of many": (InstanceQuery(parent=MOTHER, limit=5), 5),
    "parent and status": (InstanceQuery(parent=MOTHER, statuses=("failed",)), FEW),
    "parent and key": (InstanceQuery(parent=MOTHER, key="k1"), 0),
    "attribute": (InstanceQuery(attributes={"colour": "red"}), FEW),
    "attribute and status": (InstanceQuery(attributes={"size": 3}, statuses=("failed",)), 0),
    "version that is not there": (InstanceQuery(definition="order", definition_version="9"), 0),
    "partition": (InstanceQuery(partition="south"), FEW),
    "partition and definition": (InstanceQuery(partition="south", definition="order", limit=2), 2),
    "partition and status": (InstanceQuery(partition="south", statuses=("completed", "failed")), 0),
    "partition that is not there": (InstanceQuery(partition="west"), 0),
    "reason": (InstanceQuery(ended_for=("blocked", "rejected"), statuses=("completed",), kinds=("rules",)), FEW + 1),
    "time": (InstanceQuery(created_before=OLD + timedelta(seconds=1)), FEW),
    "time just before most": (InstanceQuery(created_before=NOW - HOUR), FEW),
    "time and status": (InstanceQuery(statuses=("completed",), created_after=OLD, created_before=LATER, limit=5), 5),
    "kind": (InstanceQuery(kinds=("saga",)), FEW),
    "kind and status": (InstanceQuery(kinds=("saga", "process"), statuses=("failed", "running")), FEW),
    "waiting": (InstanceQuery(begun=False, kinds=("saga",)), FEW),
    "waiting of a definition": (InstanceQuery(begun=False, definition="pay"), FEW),
    "begun of a definition": (InstanceQuery(begun=True, definition="pay"), 0),
    "next page": (InstanceQuery(before=new_id(OLD + timedelta(days=1))), FEW),
}


@pytest.mark.row("E-333", "E-334", "G-10")
def test_every_list_of_instances_is_served_by_an_index(desk: Desk) -> None:
    """Whatever narrows a list, from either end, what is left out is not read; the answer has as many rows as it should, in order."""
    crowd(desk)
    for name, (query, expected) in LISTS.items():
        for is_turned in (False, True) if query.before is None else (False,):
            effort = Effort(desk)
            with effort.of(desk.reader):
                found = desk.reader.instances(msgspec.structs.replace(query, oldest_first=is_turned))
            assert (name, len(found)) == (name, expected)
            assert effort.is_small, f"{name}: {effort.spent}"
            ids = [each.id for each in found]
            assert ids == sorted(ids, reverse=not is_turned)


@pytest.mark.row("E-310")
def test_the_workflow_in_force_is_found_by_an_index(desk: Desk) -> None:
    """Neither workflows of other types and tenants nor old ones of the same type are read."""
    archived = {"status": "archived", "archived_by": "bob", "archived_at": NOW}
    with desk.store.blueprints().changing(DEFAULT_TENANT, "invoice") as unit:
        for number in range(1, MANY // 3):
            unit.add(effective(type=f"t{number}", workflow=f"{number}-t"))
            unit.add(effective(tenant=OTHER_TENANT, type=f"t{number}", workflow=f"{number}-u"))
            unit.add(effective(version=number, workflow=f"{number}-i", **archived))
        unit.add(effective(version=MANY, workflow="last"))
    effort = Effort(desk)
    with effort.of(desk.reader):
        found = desk.reader.in_force("invoice")
    assert found is not None
    assert found.workflow == "last"
    assert effort.is_small, effort.spent


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_few_instances_with_a_value_are_found_among_many_with_others(desk: Desk) -> None:
    """The index knows the values, and is used although row-level security stands before the table."""
    desk.commit(*(one(search=f'{{"colour":"grey","number":{number}}}') for number in range(MANY)))
    desk.commit(*(one(search='{"colour":"red"}') for _ in range(FEW)))
    effort = Effort(desk)
    with effort.of(desk.reader):
        found = desk.reader.instances(InstanceQuery(attributes={"colour": "red"}))
    assert len(found) == FEW
    assert effort.is_small, effort.spent


ENDED = ("completed", "failed", "cancelled", "aborted")
EVERY = ("running", "paused", *ENDED)
MATCHES: dict[str, tuple[Match, int]] = {
    "a page": (Match(statuses=EVERY, partition="", limit=5), 5),
    "status": (Match(statuses=("paused",), partition=""), FEW),
    "partition": (Match(statuses=EVERY, partition="south"), FEW),
    "in all partitions": (Match(statuses=("paused",)), FEW),
    "definition": (Match(statuses=EVERY, partition="", definition="rare"), FEW),
    "starter": (Match(statuses=EVERY, partition="", started_by="zoe"), FEW),
    "key": (Match(statuses=EVERY, partition="", key="p1"), 1),
    "role": (Match(statuses=EVERY, partition="", people=(AskedOf("role", "boss"),)), FEW),
    "a page of a role": (Match(statuses=EVERY, partition="", people=(AskedOf("role", "clerk"),), limit=4), 4),
    "people of a definition": (Match(statuses=EVERY, people=(AskedOf("role", "boss", "other"),)), 0),
    "next page": (Match(statuses=EVERY, partition="", before=new_id(OLD + timedelta(days=1))), 0),
}


def processes(desk: Desk) -> None:
    """Many processes that have ended or ask others, and a few of each sort that somebody looks for."""

    def some(count: int, status: str = "completed", **rest: Any) -> None:
        header: dict[str, Any] = {
            "kind": "process",
            **{name: rest.pop(name) for name in ("partition", "started_by") if name in rest},
        }
        changes = [one(status, **rest) for _ in range(count)]
        for change in changes:
            change.header = msgspec.structs.replace(change.header, **header)
        desk.commit(*changes)

    asked = [TaskOpened(number=1), PersonAsked(number=1, place=1, kind="role", name="clerk")]
    some(MANY // 2)
    some(MANY // 2, "running", records=asked)
    some(FEW, "paused")
    some(FEW, partition="south")
    some(FEW, definition="rare")
    some(FEW, started_by="zoe")
    for number in range(FEW):
        some(1, key=f"p{number}")
    boss = [TaskOpened(number=1), PersonAsked(number=1, place=1, kind="role", name="boss")]
    some(FEW, "running", records=[*boss, PersonAsked(number=1, place=2, kind="role", name="boss")])


@pytest.mark.row("P-124", "P-145")
def test_every_list_of_processes_is_served_by_an_index(desk: Desk) -> None:
    """By status, partition, definition, starter, key and whom they ask: what is left out is not read, and each is found once."""
    processes(desk)
    for name, (match, expected) in MATCHES.items():
        effort = Effort(desk)
        with effort.of(desk.reader):
            found = desk.reader.matching(match)
        assert (name, len(found)) == (name, expected)
        assert found == sorted(set(found), reverse=True)
        assert effort.is_small, f"{name}: {effort.spent}"
        if match.limit == Match(statuses=()).limit and match.before is None:
            with effort.of(desk.reader):
                assert (name, desk.reader.count_matching(match)) == (name, expected)
            assert effort.is_small, f"counting {name}: {effort.spent}"


def resting(next_step: str, at: datetime = NOW) -> InstanceChange:
    """An instance that is paused before a step."""
    change = one("paused", definition="pay", kind="saga")
    change.header = msgspec.structs.replace(change.header, paused_at=at, next_step=next_step, reason="requested")
    return change


@pytest.mark.row("R-020")
def test_what_goes_on_with_a_step_is_found_among_many_that_are_paused(desk: Desk) -> None:
    """By an index on the next step: however many are paused before others, they are not read; those that were paused last come first."""
    desk.commit(
        *(resting("ship") for _ in range(MANY)), *(resting("pack", NOW + HOUR * number) for number in range(FEW))
    )
    desk.commit(resting(""), one(definition="pay", kind="saga"))
    for query, expected in (
        (PausedQuery(next_step="pack"), FEW),
        (PausedQuery(next_step="pack", reason="requested", definition="pay", kinds=("saga",)), FEW),
        (PausedQuery(next_step="pack", reason="dlq"), 0),
        (PausedQuery(next_step="pack", limit=2), 2),
        (PausedQuery(next_step="pa"), 0),
    ):
        effort = Effort(desk)
        with effort.of(desk.reader):
            found = desk.reader.paused(query)
        assert len(found) == expected
        assert effort.is_small, f"{query}: {effort.spent}"
    headers = {each.id: each for each in desk.reader.headers(desk.reader.paused(PausedQuery(next_step="pack")))}
    order = [headers[each] for each in desk.reader.paused(PausedQuery(next_step="pack"))]
    assert [(each.next_step, each.paused_at) for each in order] == [
        ("pack", NOW + HOUR * number) for number in reversed(range(FEW))
    ]


def expiring(
    at: datetime | None, status: str = "running", *, tenant: str = DEFAULT_TENANT, partition: str = ""
) -> InstanceChange:
    """A process whose time is over at an instant."""
    change = one(status, tenant=tenant)
    told: dict[str, Any] = {"kind": "process", "deadline_at": at, "partition": partition}
    change.header = msgspec.structs.replace(change.header, **told)
    return change


@pytest.mark.row("P-140", "P-146")
def test_what_has_expired_is_found_among_many_that_have_not(desk: Desk) -> None:
    """Active processes with a deadline before the cutoff, strictly, of all tenants or of one; an index finds them, the longest overdue first."""
    desk.commit(*(expiring(LATER) for _ in range(MANY // 2)), *(expiring(None) for _ in range(FEW)))
    desk.commit(*(expiring(NOW - HOUR, "completed") for _ in range(MANY // 2)), expiring(NOW - HOUR, "paused"))
    early, late, there = expiring(NOW - HOUR * 2), expiring(NOW - HOUR), expiring(NOW - HOUR, tenant=OTHER_TENANT)
    south, exact = expiring(NOW - HOUR * 3, partition="south"), expiring(NOW)
    desk.commit(early, late, there, south, exact)
    expiries = desk.store.expiries()

    def ids(**query: Any) -> list[InstanceId]:
        effort = Effort(desk)
        with effort.of(expiries):
            found = expiries.expired(ExpiredQuery(**{"before": NOW, **query}))
        assert effort.is_small, f"{query}: {effort.spent}"
        return [each.id for each in found]

    own = sorted([late.header.id, there.header.id])
    assert ids() == [south.header.id, early.header.id, *own]
    assert ids(tenant=DEFAULT_TENANT) == [south.header.id, early.header.id, late.header.id]
    assert ids(tenant=DEFAULT_TENANT, partition="") == [early.header.id, late.header.id]
    assert ids(partition="south") == [south.header.id]
    assert ids(tenant=OTHER_TENANT) == [there.header.id]
    assert ids(limit=2) == [south.header.id, early.header.id]
    assert ids(after=(NOW - HOUR * 2, early.header.id)) == own
    assert ids(tenant=DEFAULT_TENANT, after=(NOW - HOUR, late.header.id)) == []
    assert exact.header.id in ids(before=NOW + timedelta(microseconds=1))


IN_HAND: dict[str, InstanceQuery] = {
    "all": InstanceQuery(begun=True, statuses=("running",), kinds=("saga",)),
    "of a definition": InstanceQuery(begun=True, statuses=("running",), definition="pay"),
    "of a version": InstanceQuery(begun=True, definition_version="2"),
    "in any status": InstanceQuery(begun=True),
    "a page": InstanceQuery(begun=True, kinds=("saga",), limit=2 * FEW),
}


def test_instances_that_run_are_found_among_many_that_wait(desk: Desk) -> None:
    """However many nobody has begun: those that are begun are listed along an index, and those in hand are few."""
    pay: dict[str, Any] = {"definition": "pay", "kind": "saga", "definition_version": "2"}
    waiting = [one(**pay, begun=False) for _ in range(MANY // 3)]
    taken = [one(**pay, begun=False) for _ in range(FEW)]
    begun = [one(**pay, begun=True) for _ in range(FEW)]
    for change in waiting:
        change.effects = [effect(change.header.id)]
    for change in taken:
        change.effects = [effect(change.header.id, number, handler="mail") for number in range(2)]
    desk.commit(*waiting, *taken, *begun)
    desk.commit(one(**{**pay, "definition": "other", "kind": "process", "definition_version": "1"}, begun=False))
    assert len(desk.effects.claim(new_worker(), [Wanted("mail", 9)], 2 * FEW, LATER, words=SHIP_WORDS)) == 2 * FEW
    running = sorted((change.header.id for change in (*taken, *begun)), reverse=True)
    for name, query in IN_HAND.items():
        effort = Effort(desk)
        with effort.of(desk.reader):
            found = desk.reader.instances(query)
        assert (name, [header.id for header in found]) == (name, running)
        assert effort.is_small, f"{name}: {effort.spent}"
    first, second, *_ = desk.reader.instances(msgspec.structs.replace(IN_HAND["all"], limit=2))
    rest = desk.reader.instances(msgspec.structs.replace(IN_HAND["all"], before=second.id))
    assert [first.id, second.id, *(header.id for header in rest)] == running
    narrow = msgspec.structs.replace(IN_HAND["all"], created_before=OLD)
    assert desk.reader.instances(narrow) == []


QUESTIONS: dict[str, tuple[Callable[[TenantReader], object], str]] = {
    "another tenant's instances": (lambda reader: reader.instances(InstanceQuery()), OTHER_TENANT),
    "a page of dead letters": (lambda reader: reader.dead_letters(limit=3), "default"),
    "rows of named instances": (lambda reader: reader.headers([PARENT, new_id()]), "default"),
    "what is in hand": (lambda reader: reader.in_hand([PARENT]), "default"),
    "who waits for an event": (lambda reader: reader.subscribers("rare", "o-1", limit=9), "default"),
    "events that came early": (
        lambda reader: reader.kept_for("rare", "o-1", now=NOW, limit=9),
        "default",
    ),
    "events that are kept": (lambda reader: reader.publications(now=NOW, limit=3), "default"),
    "names of steps": (lambda reader: reader.step_names(PARENT, [1, 2]), "default"),
    "the steps of an instance": (lambda reader: reader.rows(STEPS, PARENT), "default"),
    "the steps of several": (lambda reader: reader.rows_of(STEPS, [PARENT, new_id()]), "default"),
    "histories of several": (lambda reader: reader.histories([PARENT, new_id()]), "default"),
    "work of several": (lambda reader: reader.effects_of([PARENT, new_id()]), "default"),
    "timers of several": (lambda reader: reader.timers_of([PARENT, new_id()]), "default"),
    "snapshots of several": (lambda reader: reader.snapshots([PARENT, new_id()]), "default"),
}


@pytest.mark.row("E-353", "E-355", "E-358", "E-950", "E-380")
def test_questions_look_at_little(desk: Desk) -> None:
    """Questions of a caller cost what their answers are worth."""
    crowd(desk)
    for question, (ask, tenant) in QUESTIONS.items():
        effort, reader = Effort(desk), desk.reading(tenant)
        with effort.of(reader):
            ask(reader)
        assert effort.is_small, f"{question}: {effort.spent}"


def test_an_event_looks_at_what_it_starts_alone(desk: Desk) -> None:
    """What an event starts is found among many definitions without a look at those that it does not start."""
    for number in range(MANY):
        desk.definitions.publish(definition(name=f"d{number}"), NOW, triggers={"rare"} if number < FEW else {"other"})
    effort = Effort(desk)
    with effort.of(desk.definitions):
        found = desk.definitions.triggered("default", "rare")
    assert [each.name for each in found] == [f"d{number}" for number in range(FEW)]
    assert effort.is_small, f"{effort.spent}"


PEOPLE: dict[str, tuple[Callable[[DirectoryLook], Sequence[object]], int]] = {
    "some of them": (lambda look: look.principals(["p7", "p8", "nobody"]), 2),
    "a page": (lambda look: look.page(after="p5", limit=3), 3),
    "deactivated ones": (lambda look: look.inactive(), 1),
    "roles of somebody": (lambda look: look.grants(principals=["p7"], at=NOW), 1),
    "holders of a role": (lambda look: look.grants(role="boss", at=NOW), 1),
    "delegations by somebody": (lambda look: look.delegations(givers=["p7"], at=NOW), 1),
    "delegations to somebody": (lambda look: look.delegations(receiver="p8", at=NOW), 1),
    "absences of somebody": (lambda look: look.absences(["p7"], at=NOW), 1),
}


def test_people_are_found_among_many(desk: Desk) -> None:
    """Whoever acts is looked up by a few rows, however large the house is."""
    with desk.people.changing("default") as unit:
        for number in range(MANY):
            who = f"p{number}"
            unit.put(Principal(id=who, is_active=number != 7))
            unit.grant(Grant(principal=who, role="boss" if number == 7 else "clerk", begins_at=NOW))
            unit.delegate(Delegation(giver=who, receiver=f"p{number + 1}", begins_at=NOW))
            unit.absent(Absence(principal=who, begins_at=NOW))
    for name, (ask, expected) in PEOPLE.items():
        effort = Effort(desk)
        with effort.of(desk.people), desk.people.looking("default") as look:
            found = ask(look)
        assert (name, len(found)) == (name, expected)
        assert effort.is_small, f"{name}: {effort.spent}"


MINE = (AssigneeRecord("user", "ada"), AssigneeRecord("role", "boss"))
OWN = TaskQuery(people=MINE, limit=FEW)
INBOXES: dict[str, tuple[Callable[[TenantReader], Sequence[object] | int], int]] = {
    "all": (lambda reader: reader.open_tasks(TaskQuery(limit=FEW)), FEW),
    "mine": (lambda reader: reader.open_tasks(OWN), FEW),
    "a page of mine": (lambda reader: reader.open_tasks(msgspec.structs.replace(OWN, after=_place(reader))), 1),
    "a role's": (lambda reader: reader.open_tasks(TaskQuery(people=MINE[1:])), FEW),
    "mine of a definition": (lambda reader: reader.open_tasks(msgspec.structs.replace(OWN, definition="pay")), FEW),
    "a definition's": (lambda reader: reader.open_tasks(TaskQuery(definition="pay")), FEW),
    "a key's": (lambda reader: reader.open_tasks(TaskQuery(key="k1")), 1),
    "a requester's": (lambda reader: reader.open_tasks(TaskQuery(requester="rita")), FEW),
    "overdue ones": (lambda reader: reader.open_tasks(TaskQuery(due_before=LATER)), FEW),
    "mine that are overdue": (lambda reader: reader.open_tasks(msgspec.structs.replace(OWN, due_before=LATER)), FEW),
    "mine that a requester wants": (
        lambda reader: reader.open_tasks(msgspec.structs.replace(OWN, requester="rita")),
        FEW,
    ),
    "how many are overdue": (lambda reader: reader.count_overdue(MINE, LATER), FEW),
    "counts": (lambda reader: reader.count_tasks(MINE), len(MINE)),
    "decided ones": (lambda reader: reader.decisions_by("ada", limit=FEW), FEW),
}


def _place(reader: TenantReader) -> TaskPlace:
    return reader.open_tasks(msgspec.structs.replace(OWN, limit=1))[0].place


def inboxes(desk: Desk) -> None:
    """Many open questions to others, and a few to somebody who is asked by name and by role."""
    theirs = [
        TaskOpened(number=1, due_at=LATER + HOUR),
        PersonAsked(number=1, place=1, name="bob"),
        given(1, actor="bob"),
    ]
    desk.commit(*(one(definition="sell", records=theirs) for _ in range(MANY)))
    mine = [
        TaskOpened(number=1, requester="rita", due_at=NOW),
        PersonAsked(number=1, place=1, kind="role", name="boss"),
        PersonAsked(number=1, place=2, name="ada"),
        *(given(sequence, actor="ada") for sequence in (1, 2)),
    ]
    desk.commit(*(one(definition="pay", key=f"k{number}", records=mine) for number in range(FEW)))


def given(sequence: int, actor: str) -> DecisionGiven:
    """A decision of somebody."""
    return DecisionGiven(number=1, sequence=sequence, actor=actor, outcome="confirmed")


@pytest.mark.row("E-354")
@pytest.mark.row("E-675")
def test_an_inbox_looks_at_its_own_questions(desk: Desk) -> None:
    """However many questions wait for others, a list reads those that it shows; who is asked twice finds a question once."""
    inboxes(desk)
    for name, (look, expected) in INBOXES.items():
        effort = Effort(desk)
        with effort.of(desk.reader):
            found = look(desk.reader)
        if name != "a page of mine":  # Which of them is the first depends on their ids.
            assert (name, found if isinstance(found, int) else len(found)) == (name, expected)
        assert effort.is_small, f"{name}: {effort.spent}"


@pytest.mark.row("E-675")
def test_what_others_are_late_with_is_not_looked_at(desk: Desk) -> None:
    """However many questions to others should have been answered, only one's own are looked at to count those that should."""
    inboxes(desk)
    effort = Effort(desk)
    with effort.of(desk.reader):
        assert desk.reader.count_overdue(MINE, LATER + 2 * HOUR) == FEW
    assert effort.is_small, f"{effort.spent}"


DOCUMENTS: dict[str, tuple[Callable[[TenantReader], Sequence[object]], int]] = {
    "by id": (lambda reader: [reader.document("order", "k1")], 1),
    "a version": (lambda reader: reader.rows(DOCUMENT_VERSIONS, _named(reader, "k1")), 1),
    "of a type": (lambda reader: reader.documents(DocumentQuery(type="order", limit=FEW)), FEW),
    "of a status": (lambda reader: reader.documents(DocumentQuery(type="invoice", status="late", limit=FEW)), FEW),
    "somebody's": (lambda reader: reader.documents(DocumentQuery(type="invoice", requester="rita")), FEW),
    "a page behind": (
        lambda reader: reader.documents(DocumentQuery(type="invoice", before=_behind(reader), limit=FEW)),
        FEW,
    ),
}


def _named(reader: TenantReader, name: str) -> InstanceId:
    found = reader.document("order", name)
    assert found is not None
    return found.instance


def _behind(reader: TenantReader) -> InstanceId:
    return reader.documents(DocumentQuery(type="invoice", limit=1))[0].instance


@pytest.mark.row("E-962", "E-356", "E-032")
@pytest.mark.row("E-332", "E-333")
def test_documents_are_found_among_many(desk: Desk) -> None:
    """However many documents of other types, statuses and people there are, a list reads those that it shows."""

    def document(type_: str, name: str, status: str, requester: str) -> InstanceChange:
        row = DocumentOpened(type=type_, id=name, status=status, version=1, data=b"{}", requester=requester)
        kept = VersionKept(version=1, status=status, data=b"{}", data_hash="h", mutation=1)
        return one(key=name, definition=type_, records=[row, kept])

    desk.commit(*(document("invoice", f"i{number}", "draft", "bob") for number in range(MANY)))
    desk.commit(*(document("order", f"k{number}", "draft", "bob") for number in range(FEW)))
    desk.commit(*(document("invoice", f"l{number}", "late", "rita") for number in range(FEW)))
    for name, (look, expected) in DOCUMENTS.items():
        effort = Effort(desk)
        with effort.of(desk.reader):
            found = look(desk.reader)
        assert (name, len(found)) == (name, expected)
        assert effort.is_small, f"{name}: {effort.spent}"


@pytest.mark.row("E-380")
def test_the_letters_of_an_instance_are_found_at_once(desk: Desk) -> None:
    """Those of others are not read."""
    crowd(desk)
    head = desk.born(one(records=[letter(1)]))
    effort = Effort(desk)
    with effort.of(desk.reader):
        found = desk.reader.dead_letters(instance=head.id)
    assert [each.instance for each in found] == [head.id]
    assert effort.is_small, f"{effort.spent}"


@pytest.mark.parametrize("is_late", [False, True])
def test_what_can_be_deleted_is_found_at_once(desk: Desk, *, is_late: bool) -> None:
    """Whether few instances have ended, or many whose events a projection has not read, they are not looked at one by one."""
    desk.feed.enter("totals")
    old = desk.born(born())
    desk.commit(moved(old, ends=True, at=NOW - HOUR))
    desk.feed.advance("totals", limit=9, apply=lambda events, connection: None, now=LATER)
    many = [born() for _ in range(MANY)]
    desk.commit(*many)
    if is_late:
        desk.commit(*(moved(each.header, ends=True, at=LATER + HOUR) for each in many), now=LATER + HOUR)
    effort = Effort(desk)
    with effort.of(desk.keeper):
        found = desk.keeper.expired(ended_before=LATER + 9 * HOUR, limit=9)
    assert ([each.instance for each in found], effort.is_small) == ([old.id], True), effort.spent


def test_events_that_can_be_deleted_are_found_at_once(desk: Desk) -> None:
    """Among many finished instances that are kept for ever, those of published events are not looked for one by one."""
    many = [born() for _ in range(MANY)]
    desk.commit(*many)
    desk.commit(*(moved(each.header, ends=True, at=NOW - HOUR) for each in many))
    over = desk.born(one(kind="event"))
    desk.commit(moved(over, ends=True, at=NOW - HOUR))
    effort = Effort(desk)
    with effort.of(desk.keeper):
        found = desk.keeper.expired(ended_before=LATER, limit=9, kind="event")
    assert ([each.instance for each in found], effort.is_small) == ([over.id], True), effort.spent


def test_a_page_of_the_versions_of_a_document_reads_no_others(desk: Desk) -> None:
    """However often it was edited, a page of its versions, and one version, are found by their numbers."""
    kept = [
        VersionKept(version=number, status="draft", data=b"{}", data_hash="h", mutation=1) for number in range(MANY)
    ]
    change = born(records=kept)
    desk.commit(change)
    effort = Effort(desk)
    with effort.of(desk.reader):
        found = desk.reader.rows(DOCUMENT_VERSIONS, change.header.id, after=MANY // 2, limit=FEW)
    assert [each.version for each in found] == [MANY // 2 + 1, MANY // 2 + 2, MANY // 2 + 3]
    assert effort.is_small, f"{effort.spent}"
    assert len(desk.reader.rows(DOCUMENT_VERSIONS, change.header.id, after=MANY - FEW)) == FEW - 1


def handled(desk: Desk) -> InstanceId:
    """A large backlog of handlers that somebody has, and one effect that nobody can do."""
    identity = new_id()
    work = [effect(identity, number, handler=f"h{number % 3}") for number in range(MANY)]
    desk.commit(born(identity, issued=MANY + 1, effects=[*work, effect(identity, MANY, handler="fax")]))
    desk.workers.beat(new_worker(), [], name="w", handlers=["h0", "h1", "h2"], lease=timedelta(days=1), now=NOW)
    return identity


def test_work_that_somebody_can_do_is_not_counted(desk: Desk) -> None:
    """The look for missing handlers goes from one to the next, past the work that waits behind each of them."""
    handled(desk)
    effort = Effort(desk)
    with effort.of(desk.keeper):
        found = desk.keeper.unhandled(waited=timedelta(0), now=LATER)
    assert [(each.handler, each.waiting) for each in found] == [("fax", 1)]
    assert effort.is_small, f"{effort.spent}"


def test_work_that_nobody_can_do_is_counted_up_to_a_limit(desk: Desk) -> None:
    """However much of it there is, not more is looked at than was asked for."""
    identity = new_id()
    work = [effect(identity, number, handler="fax") for number in range(MANY)]
    desk.commit(born(identity, issued=MANY, effects=work))
    effort = Effort(desk)
    with effort.of(desk.keeper):
        found = desk.keeper.unhandled(waited=timedelta(0), now=LATER, most=10)
    assert [(each.handler, each.waiting) for each in found] == [("fax", 10)]
    assert effort.is_small, f"{effort.spent}"


@pytest.mark.parametrize("now", [LATER, None])
def test_a_claim_looks_at_what_it_takes(desk: Desk, now: datetime | None) -> None:
    """However much waits: the index leads to the most urgent ones of each handler, whoever says what time it is."""
    handled(desk)
    effort = Effort(desk)
    with effort.of(desk.effects):
        taken = desk.effects.claim(
            new_worker(), [Wanted("h0", FEW), Wanted("h1", FEW), Wanted("h2", FEW)], 4, now, words=SHIP_WORDS
        )
    assert len(taken) == 4
    assert effort.is_small, f"{effort.spent}"


def paused(desk: Desk) -> None:
    """Much work in front that a pause holds, and a little behind it that none does."""
    held, free = new_id(), new_id()
    effects = [effect(held, number) for number in range(MANY)]
    timers = [timer(held, f"t{number}", MANY + number, due=NOW - HOUR) for number in range(MANY)]
    keys = [(each.key, False) for each in timers]
    change = born(held, issued=2 * MANY, effects=effects, timers=timers, held_timers=keys)
    change.held_effects = range(MANY)
    desk.commit(change)
    others = [timer(free, f"t{number}", FEW + number) for number in range(FEW)]
    desk.commit(born(free, issued=2 * FEW, effects=[effect(free, number) for number in range(FEW)], timers=others))


def test_what_a_pause_holds_is_not_looked_at_by_those_who_claim_the_rest(desk: Desk) -> None:
    """The indexes that work is claimed by leave it out, so a paused definition with much waiting costs others nothing."""
    paused(desk)
    desk.keeper.unhandled(waited=timedelta(0), now=NOW)
    desk.keeper.waiting_words(
        ["ship"], waited=timedelta(0), now=NOW
    )  # Postgres: whoever looks first tidies the indexes.
    effort = Effort(desk)
    with effort.of(desk.effects):
        taken = desk.effects.claim(new_worker(), [Wanted("ship", MANY)], MANY, NOW, words=SHIP_WORDS)
    with effort.of(desk.timers):
        due = desk.timers.claim(NOW, words=WORDS, hold=HOUR, limit=MANY).timers
    with effort.of(desk.keeper):
        unhandled = desk.keeper.unhandled(waited=timedelta(0), now=NOW)
        words = desk.keeper.waiting_words(["ship"], waited=timedelta(0), now=NOW)
    assert (len(taken), len(due), unhandled, [each.kind for each in words]) == (FEW, FEW, [], ["timer"])
    assert effort.is_small, f"{effort.spent}"


NEWER = Word("order", "Deliver", 1)
"""What an older process cannot read."""


def unreadable(desk: Desk) -> None:
    """Much work in front that this process cannot read, and a little behind it that it can."""
    strange, plain = new_id(), new_id()
    word: dict[str, Any] = {"language": NEWER.language, "type": NEWER.type}
    effects = [effect(strange, number, **word) for number in range(MANY)]
    timers = [timer(strange, f"t{number}", MANY + number, due=NOW - HOUR, **word) for number in range(MANY)]
    desk.commit(born(strange, issued=2 * MANY, effects=effects, timers=timers))
    desk.writer.accept([message(key=f"k{number}", **word) for number in range(MANY)], NOW)
    mine: dict[str, Any] = {"effects": [effect(plain, 0, ready=LATER)], "timers": [timer(plain, "mine", 1)]}
    desk.commit(born(plain, issued=2, **mine))
    desk.writer.accept([message(key="mine")], NOW)


CLAIMS: dict[str, tuple[str, Callable[[Any], Sequence[object]]]] = {
    "effects": ("effects", lambda part: part.claim(new_worker(), [Wanted("ship", 9)], 9, LATER, words=SHIP_WORDS)),
    "timers": ("timers", lambda part: part.claim(LATER, words=WORDS, hold=HOUR, limit=9).timers),
    "messages": ("inbox", lambda part: part.claim(LATER, words=WORDS, hold=HOUR, limit=9)),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_work_that_cannot_be_read_is_passed_over_at_once(desk: Desk, name: str) -> None:
    """However much of it stands in front: the words that a process knows lead it to what it can do."""
    unreadable(desk)
    part, claim = CLAIMS[name]
    effort = Effort(desk)
    with effort.of(getattr(desk, part)):
        assert len(claim(getattr(desk, part))) == 1
    assert effort.is_small, f"{effort.spent}"


def test_the_words_that_work_waits_with_are_found_at_once(desk: Desk) -> None:
    """From one word to the next, however much work waits with each."""
    unreadable(desk)
    effort = Effort(desk)
    with effort.of(desk.keeper):
        found = desk.keeper.waiting_words(["fax", "ship"], waited=timedelta(0), now=LATER)
    assert [(each.kind, each.word.type) for each in found] == [
        ("effect", "Deliver"),
        ("effect", "Ship"),
        ("inbox", "Deliver"),
        ("inbox", "Tell"),
        ("timer", "Deliver"),
        ("timer", "Remind"),
    ]
    assert {each.since for each in found if each.kind == "timer"} == {NOW - HOUR, NOW}
    assert effort.is_small, f"{effort.spent}"


BY_ID = {
    "postgres": (
        numbered(postgres_calls._sql.moved),
        postgres_loading._sql.headers,
        postgres_loading._sql.lock,
        postgres_reads._sql.headers,
    ),
    "sqlite": (
        sqlite_commits._sql.update_instance,
        sqlite_commits._sql.touch_instance,
        sqlite_loading._sql.instance_by_id,
        sqlite_reads._sql.headers,
    ),
}
"""The statements that name instances by their ids."""


def plan_of(desk: Desk, statement: str) -> str:
    """How the database means to carry out a statement, whatever its arguments are."""
    if not desk.store.url.startswith("postgresql"):
        with desk.store._database.reading() as connection:  # type: ignore[attr-defined]
            names = dict.fromkeys(re.findall(r":(\w+)", statement))
            arguments: Any = names or (None,) * statement.count("?")
            return " ".join(row[3] for row in connection.execute(f"explain query plan {statement}", arguments))
    with desk.writer._line.use() as connection:  # type: ignore[attr-defined]
        return " ".join(explained(connection, statement))


def explained(connection: Any, statement: str) -> list[str]:
    """The lines of Postgres' plan for a statement with any arguments."""
    nothing = ", ".join(["null"] * len(set(re.findall(r"\$\d+", statement))))
    connection.execute(f"prepare asked as {statement}")
    rows = connection.execute(f"explain execute asked({nothing})").fetchall()
    connection.execute("deallocate asked")
    return [row[0] for row in rows]


def test_handlers_that_nothing_waits_for_cost_nothing(desk: Desk) -> None:
    """A process may have many handlers; a claim looks only at those with work, and gives the same as if it had no others."""
    identity = new_id()
    desk.commit(born(identity, issued=1, effects=[effect(identity, 0)]))
    wanted = [Wanted("ship", 1), *(Wanted(f"idle {number}", 1) for number in range(MANY))]
    effort = Effort(desk)
    with effort.of(desk.effects):
        (taken,) = desk.effects.claim(new_worker(), wanted, 9, LATER, words=SHIP_WORDS)
    assert taken.instance == identity
    assert effort.is_small


def test_an_instance_is_found_by_its_id_in_a_new_database(desk: Desk) -> None:
    """A planner that knows nothing yet about the tables keeps its first plan for long: it must not be one that reads a whole tenant."""
    kind, key = ("postgres", "instances_pkey") if desk.store.url.startswith("postgresql") else ("sqlite", "(id=?)")
    for statement in BY_ID[kind]:
        plan = plan_of(desk, statement)
        assert key in plan, plan
        assert "instances_by_status" not in plan, plan
        assert "instances_by_definition" not in plan, plan


JOINED = {
    f"{module.__name__.rpartition('.')[2]}.{name}": numbered(text)
    for module in (postgres_calls, postgres_loading, postgres_claims, postgres_workers)
    for name, text in msgspec.structs.asdict(module._sql).items()
    if "unnest" in text and name not in {"free_owned", "disown"}
}
"""The statements that find rows by given ones. The two that are left out look for all that a worker owns."""


def test_given_rows_are_looked_up_one_by_one(postgres_dsn: str) -> None:
    """Queues are empty most of the time. A planner that saw them so would read all of them for every row that is asked for."""
    store = open_store(postgres_dsn)
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("analyze")
    with store.writer()._line.use() as connection:  # type: ignore[attr-defined]
        plans = {name: explained(connection, statement) for name, statement in JOINED.items()}
    store.close()
    for name, lines in plans.items():
        told = "\n".join([name, *lines])
        for place, line in enumerate(lines):
            assert "Seq Scan" not in line, told
            if "Index Scan" in line or "Index Only Scan" in line:
                assert "Index Cond" in lines[place + 1], told


@pytest.mark.row("E-359")
def test_old_steps_are_packed_a_few_at_a_time(desk: Desk) -> None:
    """A round looks at the next ones and at no others, and one that comes to the end says so; those of younger instances are not looked at, and one that ended lately stays."""
    given = [
        StepOpened(number=number, node="a", status="completed", output=b'"' + b"x" * 400 + b'"')
        for number in range(MANY)
    ]
    change = one(at=OLD, records=given)
    desk.commit(change, now=OLD)
    desk.commit(moved(change.header, records=[StepMoved(number=5, status="completed")]), now=LATER)
    desk.born(one(records=given[:1]))
    last: tuple[InstanceId, int] | None = None
    rounds, effort = [], Effort(desk)
    for _ in range(2):
        with effort.of(desk.keeper):
            count, last = desk.keeper.fade(before=NOW, after=last, limit=10)
        rounds.append((count, last))
    assert rounds == [(9, (change.header.id, 9)), (10, (change.header.id, 19))]
    assert effort.is_small, f"{effort.spent}"
    assert desk.keeper.fade(before=NOW, after=last, limit=MANY) == (MANY - 20, None)
    assert desk.keeper.fade(before=NOW, after=None, limit=MANY + 1) == (0, None)
    assert {row.output for row in desk.reader.rows(STEPS, change.header.id)} == {given[0].output}


@pytest.mark.row("E-382")
def test_a_step_is_looked_for_in_the_month_of_its_instance(postgres_dsn: str) -> None:
    """Its table has a part for each month; what moves it names its instance, so that the other parts are not opened."""
    store = open_store(postgres_dsn)
    desk, moment = Desk(store), NOW.replace(year=2046)
    desk.keeper.tidy(moment)
    head = desk.born(born(new_id(moment), records=[StepOpened(number=1, node="a")]))
    given = [f"'{{{head.id}}}'", "'{1}'", "'{completed}'", *["'{null}'"] * 6, "'2046-03-02'"]
    statement = postgres_records._changing(STEPS).replace("?", "{}").format(*given)
    with store.writer()._line.use() as connection:  # type: ignore[attr-defined]
        rows = connection.execute(f"explain (analyze, costs off, timing off, summary off) {statement}").fetchall()
    store.close()
    opened = [row[0] for row in rows if "Scan" in row[0] and " on steps" in row[0] and "never executed" not in row[0]]
    assert [line.split(" on ")[1].split()[0] for line in opened] == [f"steps_{moment:%Y_%m}"], rows


def test_statistics_lead_nowhere_else(desk: Desk) -> None:
    """A list goes along its index, also in a database that was analysed while one definition had nearly all: the ids lead through everything."""
    common = "common" * 60  # An index of many pages.
    desk.commit(*(born(new_id(), definition=common) for _ in range(MANY)), born(new_id(), definition="rare"))
    reads: Any = sqlite_reads
    if desk.store.url.startswith("postgresql"):
        reads = postgres_reads
        with desk.writer._line.use() as connection:  # type: ignore[attr-defined]
            connection.execute("analyze standfast.instances")
    else:
        with desk.store._database.writing() as connection:  # type: ignore[attr-defined]
            connection.execute("analyze")
    for statement, index in (
        (reads._sql.instances_of_definition, "instances_by_definition"),
        (reads._sql.instances_of_status, "instances_by_status"),
    ):
        plan = plan_of(desk, statement)
        assert index in plan
        assert "instances_pkey" not in plan
        assert "PRIMARY KEY (id" not in plan
    if desk.store.url.startswith("postgresql"):
        for query in (
            InstanceQuery(definition="rare"),
            InstanceQuery(definition=common, limit=1),
            InstanceQuery(limit=1),
        ):
            assert len(desk.reader.instances(query)) == 1
            assert pages_of(desk, query) < MANY // 30, query


def pages_of(desk: Desk, query: InstanceQuery) -> int:
    """How many pages of indexes a list looks at: rows of an index that are passed over are counted as nothing else."""
    reader: Any = desk.reader
    count = (
        "select sum(pg_stat_get_xact_blocks_fetched(c.oid))::int from pg_class c "
        "where c.relnamespace = 'standfast'::regnamespace and c.relkind = 'i'"
    )
    with reader.look() as look:
        before = look._connection.execute(count).fetchone()[0]
        look.instances(query)
        pages: int = look._connection.execute(count).fetchone()[0] - before
    return pages
