"""A host that keeps its own tables: what it writes and what becomes of a document are one transaction, which is the host's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from app.documents.acting import ANN, BOB, CARL, GIVEN, active, approve, asking, opened, submitted
from app.test_within import atomic, django_connection
from standfast import (
    Actor,
    ConfigurationError,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    RequestContext,
    StepContext,
)
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from support.engines import Live, Place

MINE = RequestContext(actor=BOB)


@pytest.fixture
def place(live: Live) -> Iterator[Place]:
    """Engines that the test drives, on a database that the host can connect to as well."""
    place = Place(open_store(live.url, codec="json"), live.url)
    yield place
    place.close()


def connect(place: Place) -> Any:
    """A connection of the host's own."""
    if place.url.startswith("sqlite"):
        return sqlite3.connect(place.url.removeprefix("sqlite:///"))
    return psycopg.connect(place.url)


@pytest.fixture
def host(place: Place) -> Iterator[Any]:
    """The host's connection, with a table of invoices of its own."""
    with closing(connect(place)) as connection:
        connection.execute("create table host_invoices (id text primary key, total integer)")
        connection.commit()
        yield connection


def rows(place: Place) -> list[tuple[str, int]]:
    """The host's invoices, as others see them."""
    with closing(connect(place)) as other:
        return [(row[0], row[1]) for row in other.execute("select id, total from host_invoices order by id").fetchall()]


def seen(engine: ManualEngine, name: str = "INV-1") -> tuple[str, int]:
    """Status and version of an invoice, as everybody sees them."""
    view = engine.documents.get("invoice", name)
    return view.status, view.version


@pytest.mark.row("E-067", "E-930", "E-031", "E-462")
def test_a_document_and_the_hosts_rows_are_committed_together(place: Place, host: Any) -> None:
    """Created, edited and submitted in one transaction of the host's: each answer shows the document as that has it, and nobody else sees anything before."""
    engine = opened(place)
    host.execute("insert into host_invoices values ('INV-1', 700)")
    with engine.within(host, request=MINE) as unit:
        made = unit.documents.create("invoice", GIVEN, id="INV-1")
        edited = unit.documents.mutate("invoice", "INV-1", {"total": 700}, expected_version=1)
        sent = unit.documents.transition("invoice", "INV-1", "submit")
    assert [(each.status, each.version) for each in (made, edited, sent)] == [
        ("draft", 1),
        ("draft", 2),
        ("submitted", 2),
    ]
    assert (sent.window, sent.places, sent.requester, sent.updated_by) == ("amend_only", ["first"], "bob", "bob")
    with pytest.raises(NotFoundError):
        engine.documents.get("invoice", "INV-1")
    host.commit()
    assert (rows(place), seen(engine)) == ([("INV-1", 700)], ("submitted", 2))
    approve(engine, ANN)
    approve(engine, CARL)
    assert seen(engine) == ("active", 3)


@pytest.mark.row("E-067", "E-930", "E-953")
def test_what_the_host_rolls_back_never_was(place: Place, host: Any) -> None:
    """Neither the edit, nor the amendment, nor the document that it made; and a refusal leaves the host's transaction usable."""
    engine = opened(place)
    active(engine)
    before = seen(engine)
    host.execute("insert into host_invoices values ('INV-1', 1)")
    with engine.within(host, request=MINE) as unit:
        with pytest.raises(RejectedError, match="cannot be edited"):
            unit.documents.mutate("invoice", "INV-1", {"total": 1})
        new = unit.documents.amend("invoice", "INV-1", {"total": 1}, new_id="INV-2")
        assert (new.id, new.status, new.is_amendment, new.amended_from) == ("INV-2", "amended", True, "INV-1")
        with pytest.raises(RejectedError) as caught:
            unit.documents.mutate("invoice", "INV-1", {"total": 2})
        assert caught.value.reason == "ALREADY_SUPERSEDED"
    host.rollback()
    assert (rows(place), seen(engine)) == ([], before)
    with pytest.raises(NotFoundError):
        engine.documents.get("invoice", "INV-2")
    with engine.within(host, request=MINE) as unit:
        unit.documents.amend("invoice", "INV-1", {"total": 3}, new_id="INV-2")
    host.commit()
    assert (seen(engine, "INV-2"), seen(engine)) == (("amended", 1), ("cancelled", 2))


def test_an_edit_that_is_an_amendment_is_one_in_the_hosts_transaction_too(live: Live, place: Place, host: Any) -> None:
    """The answer is the document that takes the place, also when the call is made again with its key, inside or outside.

    It is made on the thread that the connection belongs to, also by an engine that has threads of its own.
    """
    engine = opened(place)
    submitted(engine)
    with engine.within(host, request=MINE) as unit:
        new = unit.documents.mutate("invoice", "INV-1", {"total": 900}, idempotency_key="k")
        again = unit.documents.mutate("invoice", "INV-1", {"total": 900}, idempotency_key="k")
    host.commit()
    outside = asking(engine, BOB).documents.mutate("invoice", "INV-1", {"total": 900}, idempotency_key="k")
    assert {(each.id, each.is_amendment, each.version) for each in (new, again, outside)} == {(new.id, True, 1)}
    assert len(engine.documents.list("invoice").items) == 2
    with live.engine().within(host, request=MINE) as unit:
        unit.documents.create("invoice", GIVEN, id="INV-3")
        unit.documents.transition("invoice", "INV-3", "submit")
        assert unit.documents.mutate("invoice", "INV-3", {"total": 3}, idempotency_key="l").is_amendment
        with pytest.raises(NotFoundError) as missing:
            unit.documents.mutate("invoice", "INV-9", {"total": 3})
        assert missing.value.kind == "document"
    host.commit()


def test_wrong_calls_of_a_unit_are_told_and_other_tenants_find_nothing(place: Place, host: Any) -> None:
    """An unknown type, a wrong id, a unit that has ended, another tenant: each in words, and nothing is written."""
    engine = opened(place)
    submitted(engine)
    with engine.within(host, request=MINE) as unit:
        with pytest.raises(NotFoundError):
            unit.documents.create("nothing")
        with pytest.raises(NotFoundError):
            unit.documents.transition("invoice", "X", "submit")
        with pytest.raises(PayloadError):
            unit.documents.mutate("invoice", 7, {})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="begin another one"):
        unit.documents.create("invoice", GIVEN)
    with engine.within(host, request=RequestContext(tenant="other", actor=BOB)) as unit:
        with pytest.raises(NotFoundError):
            unit.documents.mutate("invoice", "INV-1", {"total": 1})
        with pytest.raises(NotFoundError):
            unit.documents.amend("invoice", "INV-1", {"total": 1})
    host.commit()
    assert seen(engine) == ("submitted", 1)


def test_an_action_with_a_handler_is_done_in_the_hosts_transaction(place: Place, host: Any) -> None:
    """The handler writes on the host's connection: what it wrote, the document and the host's rows stand together, or not at all."""
    engine = opened(place)
    mine = RequestContext(actor=Actor(id="bob", capabilities=frozenset({"invoice.discount"})))
    asking(engine, BOB).documents.create("invoice", GIVEN, id="INV-1")

    def give_discount(context: StepContext, document: dict[str, Any], payload: dict[str, int]) -> dict[str, object]:
        connection: Any = context.connection
        connection.execute(f"insert into host_invoices values ('discount', {payload['percent']})")
        if payload["percent"] > 50:
            raise ValueError("too much")
        return {"total": document["data"]["total"] - payload["percent"]}

    engine.handle("give_discount", give_discount)
    with engine.within(host, request=mine) as unit:
        with pytest.raises(ValueError, match="too much"):
            unit.documents.mutate("invoice", "INV-1", {"percent": 60}, action="discount")
        edited = unit.documents.mutate("invoice", "INV-1", {"note": "x"})
        made = unit.documents.mutate("invoice", "INV-1", {"percent": 10}, action="discount", idempotency_key="d")
        again = unit.documents.mutate("invoice", "INV-1", {"percent": 10}, action="discount", idempotency_key="d")
    assert (edited.version, made.version, made.data["total"], again.version) == (2, 3, 490, 3)
    assert (seen(engine), rows(place)) == (("draft", 1), [])
    host.rollback()
    assert (seen(engine), rows(place)) == (("draft", 1), [])
    with engine.within(host, request=mine) as unit:
        unit.documents.mutate("invoice", "INV-1", {"percent": 10}, action="discount")
    host.commit()
    assert (seen(engine), rows(place)) == (("draft", 2), [("discount", 10)])
    with engine.within(host, request=MINE) as unit, pytest.raises(ForbiddenError):
        unit.documents.mutate("invoice", "INV-1", {"percent": 10}, action="discount")
    host.rollback()


def test_sqlalchemy_and_django_keep_invoices_beside_their_documents(place: Place, host: Any) -> None:
    """A session of SQLAlchemy and a connection of Django's, each with its own rows: committed with the document, or gone with it."""
    engine = opened(place)
    database = sqlalchemy.create_engine(place.url.replace("postgresql://", "postgresql+psycopg://"))
    insert = sqlalchemy.text("insert into host_invoices values (:id, :total)")
    try:
        with Session(database) as session, session.begin():
            session.execute(insert, {"id": "A", "total": 500})
            with engine.within(session.connection(), request=MINE) as unit:
                unit.documents.create("invoice", GIVEN, id="A")
        with suppress(ZeroDivisionError), Session(database) as session, session.begin():
            session.execute(insert, {"id": "B", "total": 500})
            with engine.within(session.connection(), request=MINE) as unit:
                unit.documents.create("invoice", GIVEN, id="B")
            raise ZeroDivisionError
    finally:
        database.dispose()
    theirs = django_connection(place.url)
    try:
        with theirs.cursor() as cursor, atomic(theirs):
            cursor.execute("insert into host_invoices values ('C', 500)")
            with engine.within(theirs, request=MINE) as unit:
                unit.documents.create("invoice", GIVEN, id="C")
    finally:
        theirs.close()
    assert rows(place) == [("A", 500), ("C", 500)]
    assert sorted(each.id for each in engine.documents.list("invoice").items) == ["A", "C"]
