"""The views for reports: names and columns of the specification, read-only, and within the walls between tenants."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from app.processes.acting import ANN, BOB, INPUT, asking, published
from standfast import MessagePackCodec
from standfast.errors import StoreError
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from support.databases import Databases
from support.desks import Desk
from support.engines import Place
from support.reporting import asked

VIEWS = ("workflow_instances", "workflow_events")
TENANTS = ("default", "rival")

INSTANCES = {
    "id": "uuid",
    "workflow_id": "text",
    "tenant_id": "text",
    "partition_id": "text",
    "subject_id": "text",
    "current_step": "text",
    "status": "text",
    "state": "json",
    "version": "integer",
    "idempotency_key": "text",
    "created_at": "timestamp with time zone",
    "updated_at": "timestamp with time zone",
    "expires_at": "timestamp with time zone",
}
EVENTS = {
    "workflow_instance_id": "uuid",
    "step_id": "text",
    "event": "text",
    "actor_id": "text",
    "data": "json",
    "comment": "text",
    "timestamp": "timestamp with time zone",
}


def run_orders(engine: ManualEngine) -> None:
    """An order in each of two tenants, as far as the end of one and the first step of the other."""
    published(engine)
    for tenant in TENANTS:
        calls = asking(engine, ANN, tenant=tenant)
        order = calls.processes.start("orders.approval", {**INPUT, "of": tenant}, idempotency_key=f"k-{tenant}")
        if tenant == "default":
            asking(engine, BOB, tenant=tenant).processes.advance(
                order.id, "approved", {"approval_notes": "fine"}, comment="a good customer"
            )
    engine.drain()


@pytest.fixture
def orders(place: Place) -> Place:
    """A database with these orders."""
    run_orders(place.engine())
    return place


@pytest.mark.row("P-143", "P-147")
def test_the_views_have_the_columns_of_the_specification(orders: Place) -> None:
    """With its names, in its order; what there is besides stands behind them."""
    for view, columns in (("workflow_instances", INSTANCES), ("workflow_events", EVENTS)):
        row = asked(orders.store, f"select * from {{}}{view} limit 1")[0]
        names = list(row)
        assert [each for each in names if each in columns] == list(columns)
        assert names.index("timestamp" if view == "workflow_events" else "expires_at") == len({"id", *columns}) - 1, (
            "the specification's columns come first"
        )


@pytest.mark.row("P-143", "P-147")
def test_columns_have_the_types_of_the_specification(postgres_dsn: str) -> None:
    """On Postgres, where columns have types; the id of an event is the one that the engine tells, a text."""
    open_store(postgres_dsn).close()
    with closing(psycopg.connect(postgres_dsn)) as connection:
        for view, columns in (("workflow_instances", INSTANCES), ("workflow_events", {"id": "text", **EVENTS})):
            found: dict[str, str] = dict(
                connection.execute(
                    "select attname::text, format_type(atttypid, atttypmod) from pg_attribute "
                    "where attrelid = %s::regclass and attnum > 0",
                    [f"standfast.{view}"],
                ).fetchall()
            )
            assert {name: found[name] for name in columns} == columns


@pytest.mark.row("P-143", "P-022", "P-033")
def test_a_report_reads_instances(orders: Place) -> None:
    """Where each is, in the words of processes, with its state as JSON and the key that it was started with."""
    statement = "select workflow_id, subject_id, current_step, status, version, idempotency_key from {}workflow_instances where tenant_id = ?"
    assert [tuple(row.values()) for row in asked(orders.store, statement, "rival")] == [
        ("orders.approval", "ann", "review", "active", 1, "k-rival")
    ]
    assert [tuple(row.values()) for row in asked(orders.store, statement, "default")] == [
        ("orders.approval", "ann", "approved", "completed", 3, "k-default")
    ]
    if orders.url.startswith("postgresql"):
        reading = "select state ->> 'approval_notes' as notes from {}workflow_instances where tenant_id = 'default'"
    else:
        reading = "select json_extract(state, '$.approval_notes') as notes from {}workflow_instances where tenant_id = 'default'"
    assert asked(orders.store, reading) == [{"notes": "fine"}]


@pytest.mark.row("P-147", "P-129", "P-163")
def test_a_report_reads_events(orders: Place) -> None:
    """The seven entries of the specification's sample, in their order, with who did what and why."""
    statement = (
        "select step_id, event, actor_id, comment from {}workflow_events "
        "where tenant_id = 'default' and category = 'step' order by workflow_instance_id, sequence"
    )
    assert [tuple(row.values()) for row in asked(orders.store, statement)] == [
        ("review", "step_entered", "ann", ""),
        ("review", "step_completed", "bob", "a good customer"),
        ("review", "approved", "bob", "a good customer"),
        ("process", "step_entered", "system", ""),
        ("process", "step_completed", "system", ""),
        ("notify", "step_entered", "system", ""),
        ("notify", "step_completed", "system", ""),
    ]


@pytest.mark.row("P-131")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "statement", ["delete from {{}}{}", "update {{}}{} set tenant_id = 'x'", "insert into {{}}{} (id) values (null)"]
)
def test_the_views_are_read_only(orders: Place, view: str, statement: str) -> None:
    """Nothing is written through them, whoever tries."""
    orders.must_fold = True
    desk = Desk(orders.store)
    with pytest.raises(StoreError):
        desk.run(statement.format(view))


@pytest.mark.row("P-148")
def test_one_instance_is_found_without_a_look_at_the_others(orders: Place) -> None:
    """What is asked by the id of an instance goes along indexes, whichever view is asked; what is asked of one tenant does not look at others."""
    one = "'01890000-0000-7000-8000-000000000000'"
    for question in (
        f"select * from {{}}workflow_instances where id = {one}",
        f"select * from {{}}workflow_events where workflow_instance_id = {one} order by sequence",
        "select * from {}workflow_instances where tenant_id = 'default'",
    ):
        plan = planned(orders, question)
        assert not re.search(r"Seq Scan on (instances|events|processes|steps)|SCAN (i|e|p|s)\b", plan), plan


def planned(place: Place, question: str) -> str:
    """How the database would answer, if tables were large."""
    with place.store.line().writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        if isinstance(connection, sqlite3.Connection):
            return " ".join(row[3] for row in connection.execute(f"explain query plan {question.format('')}"))
        connection.execute("set local enable_seqscan = off")
        return " ".join(row[0] for row in connection.execute(f"explain {question.format('standfast.')}").fetchall())


# -- walls


@contextmanager
def as_tenant(dsn: str, tenant: str | None) -> Iterator[psycopg.Connection[Any]]:
    """A connection with the rights of a report on one tenant; None names no tenant."""
    with closing(psycopg.connect(dsn)) as connection:
        connection.execute("set role standfast_tenant")
        if tenant is not None:
            connection.execute("select set_config('standfast.tenant', %s, false)", [tenant])
        yield connection


@pytest.mark.row("E-892", "P-127")
@pytest.mark.parametrize("view", VIEWS)
def test_a_tenant_sees_its_own_rows_alone(postgres_dsn: str, view: str) -> None:
    """Row-level security holds through the views: for one tenant, for another one, and for nobody."""
    store = open_store(postgres_dsn)
    engine = ManualEngine(store=store)
    run_orders(engine)
    for tenant in TENANTS:
        with as_tenant(postgres_dsn, tenant) as connection:
            assert connection.execute(f"select distinct tenant_id from standfast.{view}").fetchall() == [(tenant,)]
            if view == "workflow_instances":
                found = connection.execute(f"select idempotency_key, state ->> 'of' from standfast.{view}").fetchall()
                assert found == [(f"k-{tenant}", tenant)]
    with as_tenant(postgres_dsn, None) as connection:
        assert connection.execute(f"select count(*) from standfast.{view}").fetchone() == (0,)
    engine.stop()
    store.close()


@pytest.mark.row("P-127")
@pytest.mark.parametrize("sees_all", [False, True], ids=["one tenant", "all tenants"])
def test_a_user_of_reports_needs_no_more_than_the_page_says(postgres_dsn: str, *, sees_all: bool) -> None:
    """A role of its own reads both views, of one tenant or of all, and writes nothing."""
    store = open_store(postgres_dsn)
    engine = ManualEngine(store=store)
    run_orders(engine)
    with closing(psycopg.connect(postgres_dsn)) as connection:
        connection.execute("create role reports_of_a_test nologin" + (" bypassrls" if sees_all else ""))
        if sees_all:
            connection.execute("grant usage on schema standfast to reports_of_a_test")
            connection.execute("grant select on all tables in schema standfast to reports_of_a_test")
            connection.execute("grant execute on function standfast.start_key to reports_of_a_test")
        else:
            connection.execute("grant standfast_tenant to reports_of_a_test")
            connection.execute("set local standfast.tenant = 'rival'")
        connection.execute("set local role reports_of_a_test")
        seen = list(TENANTS) if sees_all else ["rival"]
        for view in VIEWS:
            found = connection.execute(f"select distinct tenant_id from standfast.{view} order by 1").fetchall()
            assert [tenant for (tenant,) in found] == seen
        keys = connection.execute("select idempotency_key from standfast.workflow_instances order by 1").fetchall()
        assert [key for (key,) in keys] == [f"k-{tenant}" for tenant in seen]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("delete from standfast.instances")
        connection.rollback()
    engine.stop()
    store.close()


def test_a_tenant_sees_no_digest_of_a_command(postgres_dsn: str) -> None:
    """Of receipts only what the view needs: keys of starts, and not what was sent."""
    open_store(postgres_dsn).close()
    with as_tenant(postgres_dsn, "default") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select digest from standfast.receipts")


# -- other bytes


@pytest.fixture
def empty_dsn(postgres_server: Databases) -> Iterator[str]:
    """A database in which there is nothing at all."""
    with postgres_server.empty() as dsn:
        yield dsn


@pytest.mark.parametrize("driver", ["sqlite", "postgres"])
def test_events_in_another_codec_are_left_out(driver: str, request: pytest.FixtureRequest, tmp_path: Any) -> None:
    """What is not JSON cannot be told by SQL: the trail is empty, and instances are told as ever."""
    codec = MessagePackCodec()
    url = f"sqlite:///{tmp_path / 'a.db'}" if driver == "sqlite" else request.getfixturevalue("empty_dsn")
    store = open_store(url, codec=codec.name)
    engine = ManualEngine(store=store, codec=codec)
    run_orders(engine)
    assert asked(store, "select * from {}workflow_events") == []
    found = asked(store, "select current_step from {}workflow_instances order by tenant_id")
    assert [row["current_step"] for row in found] == ["approved", "review"]
    engine.stop()
    store.close()
