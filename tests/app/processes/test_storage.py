"""What the specification keeps in tables of its own, found in those of the engine, from outside of it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final, cast
from uuid import RFC_4122, UUID

import psycopg
import pytest

from app.processes.acting import ANN, BOB, CAT, INPUT, asking, published
from standfast import (
    Actor,
    Engine,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    StandfastError,
)
from standfast.app.api.sync import Calls
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.repository import ROOT

Rows = list[tuple[object, ...]]

RFC_9562: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def sql(live: Live) -> Callable[[str], Rows]:
    """Statements in SQL by a connection of one's own; `{}` stands for the schema."""

    def ask(statement: str) -> Rows:
        if live.url.startswith("sqlite"):
            with closing(sqlite3.connect(live.url.removeprefix("sqlite:///"))) as file, file:
                return cast("Rows", file.execute(statement.replace("{}", "")).fetchall())
        with psycopg.connect(live.url) as server:
            found = server.execute(statement.replace("{}", "standfast."))
            return found.fetchall() if found.description else []

    return ask


def begun(live: Live) -> tuple[Engine, UUID]:
    """An order that was started with a key, and one advance."""
    engine = live.engine()
    published(engine)
    north = asking(engine, ANN, partition="north").processes
    instance = north.start("orders.approval", INPUT, idempotency_key="k", key="o-1").id
    asking(engine, CAT, partition="north").processes.advance(instance, "returned", {"why": "unclear"}, comment="which?")
    return engine, instance


@pytest.mark.row("P-143", "P-168")
@pytest.mark.row("C-05")
def test_every_column_of_an_instance_has_its_place(live: Live) -> None:
    """Definition, tenant, partition, starter, status and times are columns; step and state are in the history, the key is a receipt."""
    engine, instance = begun(live)
    seen = asking(engine, BOB, partition="north").processes.get(instance).instance
    names = "definition, tenant, partition, started_by, status, created_at, updated_at, deadline_at"
    (row,) = sql(live)(f"select {names} from {{}}instances")
    assert row[:5] == ("orders.approval", "default", "north", "ann", "running")
    times = [each if isinstance(each, datetime) else datetime.fromisoformat(str(each)) for each in row[5:]]
    assert times == [seen.created_at, seen.updated_at, seen.expires_at]
    assert (seen.current_step, seen.state, seen.version) == ("review", {**INPUT, "why": "unclear"}, 2)
    assert ("default", "k", str(instance)) in [
        (*row[:2], str(row[2])) for row in sql(live)("select tenant, key, instance from {}receipts")
    ]


@pytest.mark.row("P-144")
def test_a_key_is_there_once_for_a_tenant(live: Live) -> None:
    """The database itself refuses a second one."""
    begun(live)
    columns = "tenant, scope, key, instance, version, digest, created_at"
    copied = f"insert into {{}}receipts ({columns}) select {columns} from {{}}receipts where key = 'k'"
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.UniqueViolation)):
        sql(live)(copied)


@pytest.mark.row("P-145", "P-146", "P-148")
def test_what_is_looked_for_has_an_index(live: Live) -> None:
    """Instances by tenant and status, timers by when they are due, events by their instance in order."""
    begun(live)
    schema = (
        ROOT / "src/standfast/store" / ("sqlite" if live.url.startswith("sqlite") else "postgres") / "schema.sql"
    ).read_text()
    words = " ".join(schema.lower().split())
    for columns in (
        "index instances_processes on",
        "(tenant, kind, status, begun, ",
        "(language, type, version, due_at)",
        "(instance, sequence)",
    ):
        assert columns in words


@pytest.mark.row("P-131", "P-137", "P-147")
def test_the_trail_is_only_ever_added_to(live: Live) -> None:
    """An event names its instance, what it is, who did it, why and when; the database refuses to change or to delete it."""
    engine, instance = begun(live)
    ask = sql(live)
    before = asking(engine, BOB, partition="north").processes.events(instance)
    answered = [row for row in ask("select type, actor, comment, data from {}events") if row[0] == "step_answered"]
    assert [(row[1], row[2]) for row in answered] == [("cat", "which?")]
    assert json.loads(bytes(cast("bytes", answered[0][3])))["data"] == {"why": "unclear"}
    for statement in ("update {}events set actor = 'eve'", "delete from {}events"):
        with pytest.raises((sqlite3.Error, psycopg.Error), match="append-only"):
            ask(statement)
    assert asking(engine, BOB, partition="north").processes.events(instance) == before


@pytest.mark.row("P-149", "C-28")
def test_a_change_is_guarded_by_the_version(live: Live) -> None:
    """Somebody who decided on what was before writes nothing, whoever is asked; and a deadline moves with what it is about."""
    engine, instance = begun(live)
    calls = asking(engine, CAT, partition="north").processes
    for version in (1, 3):
        with pytest.raises(RejectedError) as refused:
            calls.advance(instance, "returned", {"why": "unclear"}, expected_version=version)
        assert refused.value.reason == "VERSION_CONFLICT"
    with pytest.raises(NotFoundError):
        asking(engine, CAT, tenant="t2").processes.advance(instance, "returned", expected_version=2)
    ask = sql(live)
    assert ask("select deadline_at from {}instances") != [(None,)]
    calls.advance(instance, "rejected", expected_version=2)
    assert ask("select deadline_at from {}instances") == [(None,)]


@pytest.mark.row("P-134")
def test_an_instance_is_made_once(place: Place) -> None:
    """A second start under the same business key is refused, and changes nothing."""
    engine = place.engine()
    published(engine)
    first = asking(engine, ANN).processes.start("orders.approval", INPUT, key="o-1").id
    with pytest.raises(StandfastError) as refused:
        asking(engine, ANN).processes.start("orders.approval", INPUT, key="o-1")
    assert getattr(refused.value, "reason", "") == "already_started"
    assert [each.id for each in engine.processes.list(key="o-1").items] == [first]


@pytest.mark.row("P-141", "C-36")
def test_an_instance_that_has_ended_can_be_deleted_with_its_events(place: Place) -> None:
    """Not before its end, and not from another tenant."""
    engine = place.engine()
    published(engine)
    instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    with pytest.raises(StandfastError):
        engine.instances.delete(instance)
    asking(engine, BOB).processes.advance(instance, "rejected")
    with pytest.raises(NotFoundError):
        engine.as_tenant("t2").instances.delete(instance)
    assert engine.processes.get(instance).instance.status == "completed"
    engine.instances.delete(instance)
    with pytest.raises(NotFoundError):
        engine.processes.events(instance)
    assert engine.processes.list().total == 0


@pytest.mark.row("P-142")
def test_a_process_runs_in_memory() -> None:
    """Tests need no server and no file: the same engine, on a database that goes with it."""
    engine = ManualEngine()
    published(engine)
    instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    asking(engine, BOB).processes.advance(instance, "approved")
    engine.drain()
    assert engine.processes.get(instance).instance.status == "completed"
    engine.stop()


@pytest.mark.row("P-022", "C-04")
def test_an_id_is_a_uuid_of_its_own(live: Live) -> None:
    """Ids are UUIDs as RFC 9562 writes them, all of version 7, as the page says, and no two are the same, whichever engine made them; the row has the same."""
    engines = [live.engine() for _ in range(2)]
    for engine in engines:
        published(engine)
    made = [asking(engine, ANN).processes.start("orders.approval", INPUT).id for engine in engines for _ in range(50)]
    assert len(set(made)) == 100
    assert all(RFC_9562.fullmatch(str(each)) for each in made)
    assert {(UUID(str(each)).version, UUID(str(each)).variant) for each in made} == {(7, RFC_4122)}
    assert {str(row[0]) for row in sql(live)("select id from {}instances")} == set(map(str, made))
    page = " ".join((ROOT / "docs/reference/process-format.md").read_text(encoding="utf-8").split())
    assert "Ids are UUIDs of version 7 (RFC 9562), and not of version 4, because" in page


@pytest.mark.row("P-140", "P-105")
def test_what_has_expired_is_found(place: Place) -> None:
    """Active ones whose time is over before an instant, strictly: those of one's own tenant and partition, or of all tenants for the engine itself."""
    engine = place.engine()
    published(engine)
    own = asking(engine, ANN).processes.start("orders.approval", INPUT)
    north = asking(engine, ANN, partition="north").processes.start("orders.approval", INPUT).id
    there = asking(engine, ANN, tenant="t2").processes.start("orders.approval", INPUT).id
    ended = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    asking(engine, BOB).processes.advance(ended, "rejected")
    held = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    engine.run(held).pause("month end")
    due = own.expires_at
    assert due is not None
    moment, reader = timedelta(microseconds=1), Actor(id="rita", capabilities=frozenset({"execution:read"}))

    def expired(calls: Engine | Calls, **asked: Any) -> set[UUID]:
        return {each.id for each in calls.processes.expired(**asked)}

    assert expired(engine, before=due, tenant="*") == set()
    assert expired(engine, before=due + moment, tenant="*") == {own.id, north, there}
    assert expired(engine, before=due + moment) == {own.id, north}
    assert expired(engine, before=due + moment, tenant="t2") == {there}
    assert expired(asking(engine, reader), before=due + moment) == {own.id}
    assert expired(asking(engine, reader, partition="north"), before=due + moment) == {north}
    assert expired(asking(engine, reader, tenant="t2"), before=due + moment) == {there}
    place.clock.move(timedelta(hours=72))
    assert expired(engine, tenant="*") == set()
    place.clock.move(timedelta(seconds=1))
    (first,) = engine.processes.expired(tenant="*", limit=1)
    others = engine.processes.expired(tenant="*", after=first)
    assert {first.id, *(each.id for each in others)} == {own.id, north, there}
    assert (first.workflow_id, first.subject_id, first.expires_at) == ("orders.approval", "ann", due)
    for calls, asked, error in (
        (asking(engine, BOB), {}, ForbiddenError),
        (asking(engine, reader), {"tenant": "*"}, ForbiddenError),
        (asking(engine, reader), {"tenant": "t2"}, ForbiddenError),
        (engine, {"before": datetime(2026, 1, 1)}, PayloadError),  # noqa: DTZ001 - that it has no zone is the point
        (engine, {"after": own}, PayloadError),
        (engine, {"limit": 0}, PayloadError),
        (engine, {"tenant": "x" * 9999}, PayloadError),
    ):
        with pytest.raises(error):
            expired(calls, **asked)
    assert engine.processes.process_timeouts() == 3
    assert expired(engine, tenant="*") == set()
