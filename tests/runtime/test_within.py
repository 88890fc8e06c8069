"""Commands in a transaction that the caller has open: they become true with his commit, and never were without it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from holdfast import Actor, ConfigurationError, Decision, Moment, RejectedError, Rejection, RequestContext
from holdfast.errors import NotFoundError
from holdfast.runtime.commit.submissions import Outcome, receipt_key
from holdfast.store.opening import open_store
from holdfast.store.shapes import Address
from holdfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import service_of
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Puppet, act

ANN = RequestContext(actor=Actor(id="ann"))


def connect(place: Place) -> Any:
    """A connection of the caller's own."""
    if place.url.startswith("sqlite"):
        return sqlite3.connect(place.url.removeprefix("sqlite:///"))
    return psycopg.connect(place.url)


@pytest.fixture
def place(live: Live) -> Iterator[Place]:
    """Engines that the test drives, on a database that the caller can connect to as well."""
    place = Place(open_store(live.url, codec="json"), live.url)
    yield place
    place.close()


@pytest.fixture
def shop(place: Place) -> Iterator[Any]:
    """The caller's connection, with a table of his own."""
    with closing(connect(place)) as connection:
        connection.execute("create table orders (id text primary key)")
        connection.commit()
        yield connection


def tell(engine: ManualEngine, connection: object, key: str, what: str, *, command_id: str = "") -> Outcome:
    """Have a command carried out in the caller's transaction."""
    told: list[tuple[Outcome | None, BaseException | None]] = []
    address, command = Address(tenant="default", definition="puppet", key=key), Do(key, what)
    service_of(engine).execute(
        address,
        command,
        request=ANN,
        receipt=receipt_key(address, command_id),
        connection=connection,
        settled=lambda outcome, error: told.append((outcome, error)),
    )
    ((outcome, error),) = told
    if error is not None:
        raise error
    assert outcome is not None
    return outcome


def orders(place: Place) -> list[str]:
    """The caller's rows, as others see them."""
    with closing(connect(place)) as other:
        return [row[0] for row in other.execute("select id from orders order by id").fetchall()]


def test_what_is_committed_with_the_callers_rows_is_true(place: Place, shop: Any) -> None:
    """Events, rows and effects are there when the caller has committed: handlers run, and the next command finds the state."""
    ledger = Ledger()
    engine = place.engine().register(Puppet(act), lambda context, effect: ledger.add(effect))
    shop.execute("insert into orders values ('o-1')")
    tell(engine, shop, "p-1", "x")
    tell(engine, shop, "p-1", "y")
    shop.commit()
    engine.drain()
    assert orders(place) == ["o-1"]
    assert ledger.entries == [Act("x"), Act("y")]
    engine.deciders.execute(Puppet, Do("p-1", "z"))
    assert engine.deciders.state(Puppet, "p-1") == ("x", "y", "z")
    assert [each.actor for each in engine.deciders.history(Puppet, "p-1")] == ["ann", "ann", "system"]


def test_what_is_rolled_back_with_the_callers_rows_never_was(place: Place, shop: Any) -> None:
    """No instance, no effect and no row is left, also of an instance that the engine knew before."""
    ledger = Ledger()
    engine = place.engine().register(Puppet(act), lambda context, effect: ledger.add(effect))
    engine.deciders.execute(Puppet, Do("old", "x"))
    engine.drain()
    shop.execute("insert into orders values ('o-1')")
    tell(engine, shop, "new", "x")
    tell(engine, shop, "old", "y")
    shop.rollback()
    engine.drain()
    assert orders(place) == []
    assert ledger.entries == [Act("x")]
    assert engine.deciders.state(Puppet, "old") == ("x",)
    with pytest.raises(NotFoundError):
        engine.deciders.state(Puppet, "new")
    engine.deciders.execute(Puppet, Do("old", "z"))
    assert engine.deciders.state(Puppet, "old") == ("x", "z")


def test_a_refusal_leaves_the_callers_transaction_usable(place: Place, shop: Any) -> None:
    """What he wrote before stands, and he may go on: with his rows, and with other commands."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return (
            Rejection(code="no", message="not today") if command.what == "no" else Decision.event(Noted(command.what))
        )

    engine = place.engine().register(Puppet(choose))
    shop.execute("insert into orders values ('o-1')")
    with pytest.raises(RejectedError):
        tell(engine, shop, "p-1", "no")
    tell(engine, shop, "p-1", "x")
    shop.execute("insert into orders values ('o-2')")
    shop.commit()
    assert orders(place) == ["o-1", "o-2"]
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_what_the_engine_remembers_is_told(place: Place, shop: Any) -> None:
    """The next command of an engine that knew the instance is decided on what the caller has committed, at the first try."""
    engine = place.engine().register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    tell(engine, shop, "p-1", "y")
    shop.commit()
    engine.deciders.execute(Puppet, Do("p-1", "z"))
    assert engine.deciders.state(Puppet, "p-1") == ("x", "y", "z")


def test_a_command_id_counts_once(place: Place, shop: Any) -> None:
    """Sent again, in the same transaction, in another one or without one, the command is not carried out again."""
    engine = place.engine().register(Puppet())
    first = tell(engine, shop, "p-1", "x", command_id="c-1")
    assert tell(engine, shop, "p-1", "x", command_id="c-1") == first
    shop.commit()
    assert tell(engine, shop, "p-1", "x", command_id="c-1") == first
    shop.commit()
    engine.deciders.execute(Puppet, Do("p-1", "x"), command_id="c-1")
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_a_connection_keeps_its_manners(place: Place, shop: Any) -> None:
    """Row factories, types and prepared statements of the caller's connection are his before and after."""
    engine = place.engine().register(Puppet())
    shop.row_factory = sqlite3.Row if place.url.startswith("sqlite") else dict_row
    tell(engine, shop, "p-1", "x")
    shop.execute("insert into orders values ('o-1')")
    assert shop.execute("select id from orders").fetchone()["id"] == "o-1"
    shop.commit()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_a_connection_to_another_database_is_refused(place: Place, shop: Any, tmp_path: Any) -> None:
    """Also one of another kind, and one that is none."""
    engine = place.engine().register(Puppet())
    with closing(sqlite3.connect(tmp_path / "elsewhere.db")) as elsewhere:
        for wrong in (elsewhere, object(), "postgresql://"):
            with pytest.raises(ConfigurationError):
                tell(engine, wrong, "p-1", "x")


def test_a_connection_without_a_transaction_is_refused(place: Place, shop: Any) -> None:
    """Nothing would say when the command becomes true; the sentence says what to do."""
    engine = place.engine().register(Puppet())
    if place.url.startswith("sqlite"):
        shop.isolation_level = None
    else:
        shop.autocommit = True
    with pytest.raises(ConfigurationError, match="begin one"):
        tell(engine, shop, "p-1", "x")
    with pytest.raises(NotFoundError):
        engine.deciders.state(Puppet, "p-1")


def test_wrapped_connections_are_taken(place: Place, shop: Any) -> None:
    """What Django and SQLAlchemy hand out has the driver's connection inside."""

    class Pooled:
        driver_connection = shop

    class Wrapped:
        connection = Pooled()

    engine = place.engine().register(Puppet())
    tell(engine, Wrapped(), "p-1", "x")
    shop.commit()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
