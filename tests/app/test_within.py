"""Commands in a transaction that the caller has open: they become true with his commit, and never were without it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import django
import django.conf
import msgspec
import psycopg
import pytest
import sqlalchemy
from django.db.utils import ConnectionHandler
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from standfast import (
    Actor,
    ConfigurationError,
    Decision,
    Engine,
    ForbiddenError,
    HeldError,
    Moment,
    NotFoundError,
    RejectedError,
    Rejection,
    RequestContext,
    ReusedIdError,
    Saga,
    StandfastError,
    StoppedError,
)
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.inside import lanes_of
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Puppet, act, done
from support.waiting import eventually

ANN = RequestContext(actor=Actor(id="ann"))


def connect(place: Place | Live) -> Any:
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


def tell(engine: Engine, connection: object, key: str, what: str, *, command_id: str = "") -> None:
    """Have a command carried out in the caller's transaction."""
    with engine.within(connection, request=ANN) as unit:
        unit.execute(Puppet, Do(key, what), command_id=command_id)


def orders(place: Place) -> list[str]:
    """The caller's rows, as others see them."""
    with closing(connect(place)) as other:
        return [row[0] for row in other.execute("select id from orders order by id").fetchall()]


@pytest.mark.row("G-29")
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


@pytest.mark.row("G-29")
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
    assert list(lanes_of(engine)[0].cache.outdated) == [engine.deciders.get(Puppet, "p-1").id]
    shop.commit()
    engine.deciders.execute(Puppet, Do("p-1", "z"))
    assert engine.deciders.state(Puppet, "p-1") == ("x", "y", "z")


def test_a_command_id_counts_once(place: Place, shop: Any) -> None:
    """Sent again, in the same transaction, in another one or without one, the command is not carried out again."""
    engine = place.engine().register(Puppet())
    for _ in range(2):
        tell(engine, shop, "p-1", "x", command_id="c-1")
        tell(engine, shop, "p-1", "x", command_id="c-1")
        shop.commit()
    engine.deciders.execute(Puppet, Do("p-1", "x"), command_id="c-1")
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_a_signal_with_an_id_counts_once(place: Place, shop: Any) -> None:
    """Sent again, in the same transaction, in another one or without one, it is not kept again; rolled back, it never was."""
    engine = place.engine().register(Saga("parts").wait_for("one", "part").wait_for("two", "part").build())
    run = engine.start("parts")
    engine.drain()
    for end in (shop.rollback, shop.commit, shop.commit):
        with engine.within(shop, request=ANN) as unit:
            unit.signal(run, "part", 1, command_id="w-1")
            unit.signal(run, "part", 1, command_id="w-1")
            with pytest.raises(ReusedIdError):
                unit.signal(run, "part", 2, command_id="w-1")
        end()
    run.signal("part", 1, command_id="w-1")
    engine.drain()
    assert run.describe().status == "running"
    run.signal("part", 2, command_id="w-2")
    engine.drain()
    assert run.result() == {"one": 1, "two": 2}


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
    with ManualEngine() as of_a_test, pytest.raises(ConfigurationError, match=r"in memory.*ManualEngine\(url\)"):
        tell(of_a_test.register(Puppet()), shop, "p-1", "x")


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


def test_a_connection_of_sqlalchemy_is_taken(place: Place, shop: Any) -> None:
    """Its connection has the driver's inside; the transaction is committed and rolled back by SQLAlchemy's own words."""
    engine = place.engine().register(Puppet())
    url = place.url.replace("postgresql://", "postgresql+psycopg://")
    alchemy = sqlalchemy.create_engine(url)
    try:
        with alchemy.begin() as theirs:
            theirs.execute(sqlalchemy.text("insert into orders values ('o-1')"))
            tell(engine, theirs, "p-1", "x")
        with alchemy.connect() as theirs:
            theirs.execute(sqlalchemy.text("insert into orders values ('o-2')"))
            tell(engine, theirs, "p-1", "y")
            theirs.rollback()
    finally:
        alchemy.dispose()
    assert orders(place) == ["o-1"]
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_a_session_of_sqlalchemy_is_taken(place: Place, shop: Any) -> None:
    """It is what applications have at hand."""
    engine = place.engine().register(Puppet())
    alchemy = sqlalchemy.create_engine(place.url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with Session(alchemy) as session, session.begin():
            session.execute(sqlalchemy.text("insert into orders values ('o-1')"))
            tell(engine, session, "p-1", "x")
    finally:
        alchemy.dispose()
    assert orders(place) == ["o-1"]
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


on_postgres = pytest.mark.parametrize("live", ["postgres"], indirect=True)
"""A file has one writer, so that everybody waits for whoever has it."""


@on_postgres
@pytest.mark.parametrize("held", [1, 3])
def test_an_instance_that_a_caller_holds_keeps_nobody_else_waiting(live: Live, held: int) -> None:
    """Commands for it wait until he has ended, in their order; those for others are carried out meanwhile, and nothing fails."""
    engine = live.engine(msgspec.structs.replace(QUICK, patience=timedelta(seconds=60))).register(Puppet(), done)
    engine.start_worker()
    for number in range(8):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    with ExitStack() as stack:
        shops = [stack.enter_context(closing(connect(live))) for _ in range(held)]
        for number, shop in enumerate(shops):
            tell(engine, shop, f"p-{number}", "mine")
        waiting = [engine.futures.deciders.execute(Puppet, Do(f"p-{n}", m)) for m in "ab" for n in range(held)]
        for number in range(held, 8):
            for what in "yz":
                engine.deciders.execute(Puppet, Do(f"p-{number}", what))
        assert [reply.done() for reply in waiting] == [False] * len(waiting)
        assert engine.health().is_healthy
        for shop in shops:
            shop.commit()
    for reply in waiting:
        reply.result(timeout=30)
    states = [engine.deciders.state(Puppet, f"p-{number}") for number in range(8)]
    assert states == [("x", "mine", "a", "b")] * held + [("x", "y", "z")] * (8 - held)


@on_postgres
def test_no_command_overtakes_one_that_waits_for_the_same_instance(live: Live) -> None:
    """Whoever comes when an instance has just become free stands behind those who were put off until it would be."""
    engine = live.engine(msgspec.structs.replace(QUICK, patience=timedelta(seconds=60))).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    for number in range(5):
        with closing(connect(live)) as shop:
            tell(engine, shop, "p-1", f"mine {number}")
            first = engine.futures.deciders.execute(Puppet, Do("p-1", f"a {number}"))
            eventually(lambda: any(lane.committer._held for lane in lanes_of(engine)))
            shop.commit()
            second = engine.futures.deciders.execute(Puppet, Do("p-1", f"b {number}"))
            first.result(timeout=30)
            second.result(timeout=30)
    told = [f"{who} {number}" for number in range(5) for who in ("mine", "a", "b")]
    assert engine.deciders.state(Puppet, "p-1") == ("x", *told)


@on_postgres
def test_whoever_waits_for_an_instance_that_is_held_for_too_long_is_told(live: Live) -> None:
    """After the time that callers have, he gets an error that says what is the matter; the next one finds all as it was."""
    soon = msgspec.structs.replace(QUICK, patience=timedelta(seconds=0.5))
    engine = live.engine(soon).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    with closing(connect(live)) as shop:
        tell(engine, shop, "p-1", "mine")
        reply = engine.futures.deciders.execute(Puppet, Do("p-1", "y"))
        assert isinstance(reply.exception(timeout=30), HeldError)
        shop.rollback()
    engine.deciders.execute(Puppet, Do("p-1", "z"))
    assert engine.deciders.state(Puppet, "p-1") == ("x", "z")


@on_postgres
def test_an_instance_that_is_held_for_long_is_told_by_health(live: Live) -> None:
    """Commands that wait longer than a part may stand still are named; when the holder has ended all is well."""
    settings = msgspec.structs.replace(QUICK, patience=timedelta(seconds=60), unhealthy_after=timedelta(seconds=0.5))
    engine = live.engine(settings).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    with closing(connect(live)) as shop:
        tell(engine, shop, "p-1", "mine")
        reply = engine.futures.deciders.execute(Puppet, Do("p-1", "y"))
        eventually(lambda: any("other transactions hold" in each for each in engine.health().problems))
        shop.commit()
    reply.result(timeout=30)
    eventually(lambda: engine.health().is_healthy)


@on_postgres
def test_a_stop_answers_those_who_wait_for_an_instance_that_is_held(live: Live) -> None:
    """Nobody waits for ever."""
    engine = live.engine(msgspec.structs.replace(QUICK, patience=timedelta(seconds=60))).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    with closing(connect(live)) as shop:
        tell(engine, shop, "p-1", "mine")
        reply = engine.futures.deciders.execute(Puppet, Do("p-1", "y"))
        engine.stop()
        assert isinstance(reply.exception(timeout=30), StoppedError | HeldError)
        shop.rollback()


def test_a_connection_of_django_is_taken(place: Place, shop: Any) -> None:
    """What `django.db.connection` is, inside `transaction.atomic()`; that of a block that raises never was."""
    engine = place.engine().register(Puppet())
    theirs = django_connection(place.url)
    try:
        with theirs.cursor() as cursor, atomic(theirs):
            cursor.execute("insert into orders values ('o-1')")
            tell(engine, theirs, "p-1", "x")
        with suppress(ZeroDivisionError), theirs.cursor() as cursor, atomic(theirs):
            cursor.execute("insert into orders values ('o-2')")
            tell(engine, theirs, "p-1", "y")
            raise ZeroDivisionError
    finally:
        theirs.close()
    assert orders(place) == ["o-1"]
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def django_connection(url: str) -> Any:
    """A connection as Django makes it from its settings."""
    if not django.conf.settings.configured:
        django.conf.settings.configure(USE_TZ=True)
        django.setup()
    if url.startswith("sqlite"):
        told = {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    else:
        parts = urlsplit(url)
        told = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "HOST": parts.hostname or "",
            "PORT": str(parts.port or ""),
            "USER": parts.username or "",
            "PASSWORD": parts.password or "",
        }
    return ConnectionHandler({"default": told})["default"]


@contextmanager
def atomic(theirs: Any) -> Iterator[None]:
    """What `transaction.atomic()` does, on a connection that Django has not listed."""
    theirs.set_autocommit(autocommit=False)
    try:
        yield
        theirs.commit()
    except BaseException:
        theirs.rollback()
        raise
    finally:
        theirs.set_autocommit(autocommit=True)


def test_a_workflow_starts_with_the_callers_rows(place: Place, shop: Any) -> None:
    """The run is there for signals in the same transaction, and for everybody once it is committed."""
    saga = Saga("order").wait_for("paid", "paid").step("ship", lambda: {"shipped": True}).build()
    engine = place.engine().register(saga)
    shop.execute("insert into orders values ('o-1')")
    with engine.within(shop) as unit:
        run = unit.start("order", {"sku": "lamp"}, key="o-1")
        unit.signal(run, "paid", {"by": "ann"})
    with pytest.raises(NotFoundError):
        engine.run(run.id).describe()
    shop.commit()
    engine.drain()
    assert run.describe().status == "completed"
    with engine.within(shop) as unit:
        gone = unit.start("order", {"sku": "lamp"}, key="o-2")
    shop.rollback()
    with pytest.raises(NotFoundError):
        gone.describe()


def test_a_command_that_only_waits_is_accepted_with_the_rest(place: Place, shop: Any) -> None:
    """`submit` decides nothing yet: it goes into the inbox with the caller's rows."""
    engine = place.engine().register(Puppet())
    with engine.within(shop) as unit:
        assert unit.submit(Puppet, Do("p-1", "x")) > 0
        unit.execute_dynamic("puppet", {"type": "Do", "workflow_id": "p-2", "what": "y"})
    shop.commit()
    engine.drain()
    assert [engine.deciders.state(Puppet, key) for key in ("p-1", "p-2")] == [("x",), ("y",)]


def test_tenants_stay_apart(place: Place, shop: Any) -> None:
    """A unit of one tenant neither finds nor makes instances of another."""
    engine = place.engine().register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    with engine.within(shop, request=RequestContext(tenant="acme", actor=Actor(id="ann"))) as unit:
        unit.execute(Puppet, Do("p-1", "a"))
    shop.commit()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
    assert engine.as_tenant("acme").deciders.state(Puppet, "p-1") == ("a",)


def test_a_unit_acts_for_somebody_of_the_engines_own_tenant(place: Place, shop: Any) -> None:
    """An actor alone stays in the tenant of the engine, as with `acting`; one that is given by id alone has no rights."""
    engine = ManualEngine(store=place.store, clock=place.clock, tenant="acme")
    engine.register(Saga("buying", capability="orders:start").wait("a day", 86400).build())
    ann = Actor(id="ann", capabilities=frozenset({"orders:start"}))
    with engine.within(shop, request=ann) as unit:
        run = unit.start("buying")
    shop.commit()
    with engine.within(shop, request="bob") as unit, pytest.raises(ForbiddenError):
        unit.start("buying")
    shop.rollback()
    assert [each.id for each in engine.as_tenant("acme").runs.list().items] == [run.id]
    assert engine.run(run).history()[0].actor == "ann"


def test_a_unit_ends_with_its_block(place: Place, shop: Any) -> None:
    """Afterwards it is not clear whose transaction the connection has: the sentence says what to do."""
    engine = place.engine().register(Puppet())
    with engine.within(shop) as unit:
        pass
    with pytest.raises(ConfigurationError, match="begin another one"):
        unit.execute(Puppet, Do("p-1", "x"))


def test_handlers_of_another_process_hear_of_the_commit(live: Live) -> None:
    """A worker that runs elsewhere does what follows soon after the caller has committed, and nothing before."""
    ledger = Ledger()
    worker = live.engine().register(Puppet(act), lambda context, effect: ledger.add(effect)).start_worker()
    client = live.engine().register(Puppet(act))
    with closing(connect(live)) as shop:
        tell(client, shop, "p-1", "x")
        shop.commit()
    eventually(lambda: ledger.entries == [Act("x")])
    assert worker.deciders.state(Puppet, "p-1") == ("x",)


def test_a_wrapper_that_has_begun_nothing_is_refused(place: Place, shop: Any) -> None:
    """What we would begin behind its back its own `commit` would not commit: the command would be lost without a word."""
    engine = place.engine().register(Puppet())
    alchemy = sqlalchemy.create_engine(place.url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with alchemy.connect() as theirs:
            with pytest.raises(ConfigurationError, match="begin one with it"):
                tell(engine, theirs, "p-1", "x")
            theirs.execute(sqlalchemy.text("select 1"))
            tell(engine, theirs, "p-1", "x")
            theirs.commit()
    finally:
        alchemy.dispose()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


class SessionForCoroutines:
    """As that of SQLAlchemy is, which needs one more library."""

    def get_bind(self) -> None:
        """Sessions have it."""

    async def connection(self) -> None:
        """Nobody waits for it."""
        raise AssertionError

    async def execute(self) -> None:
        """Nor for this."""
        raise AssertionError


@pytest.mark.filterwarnings("error")
def test_a_session_for_coroutines_is_told_what_to_do_instead(place: Place, shop: Any) -> None:
    """It is not even asked for its connection, which nobody would wait for."""
    with pytest.raises(ConfigurationError, match=r"for coroutines.*standfast\.submit"):
        tell(place.engine().register(Puppet()), SessionForCoroutines(), "p-1", "x")


def test_no_connection_is_no_transaction(place: Place) -> None:
    """A connection that is missing is not taken for the engine's own."""
    engine = place.engine().register(Puppet())
    with pytest.raises(ConfigurationError, match="not None"), engine.within(None):
        pass


def test_whoever_has_the_only_writer_is_not_kept_waiting_for_himself(live: Live) -> None:
    """A call that writes beside the unit, in its block, raises at once on a file; on Postgres it is carried out by itself."""
    engine = live.engine().register(Puppet())
    with closing(connect(live)) as shop, engine.within(shop) as unit:
        unit.execute(Puppet, Do("p-1", "x"))
        error = engine.futures.deciders.execute(Puppet, Do("p-2", "y")).exception(timeout=30)
        shop.commit()
    if live.url.startswith("sqlite"):
        assert isinstance(error, ConfigurationError)
        assert "after your commit" in str(error)
    else:
        assert error is None
    engine.deciders.execute(Puppet, Do("p-2", "z"))


@on_postgres
def test_the_transaction_begins_as_the_caller_has_set_it(live: Live) -> None:
    """Isolation and read-only are those of his connection, also where the unit is the first to say anything."""
    engine = live.engine().register(Puppet())
    with closing(psycopg.connect(live.url)) as shop:
        shop.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        tell(engine, shop, "p-1", "x")
        assert shop.execute("select current_setting('transaction_isolation')").fetchone() == ("serializable",)
        shop.rollback()
        shop.read_only = True
        with pytest.raises(StandfastError):
            tell(engine, shop, "p-1", "x")
        shop.rollback()


@on_postgres
def test_nothing_of_ours_stays_on_the_connection(live: Live) -> None:
    """Whoever listens for notices and notifications on it goes on hearing them."""
    engine, heard = live.engine().register(Puppet()), Ledger()
    with closing(psycopg.connect(live.url)) as shop:
        shop.add_notice_handler(lambda notice: heard.add(notice.message_primary))
        shop.add_notify_handler(lambda notify: heard.add(notify.payload))
        tell(engine, shop, "p-1", "x")
        shop.execute("do $$ begin raise notice 'seen'; end $$")
        shop.execute("listen mine")
        shop.commit()
        shop.execute("notify mine, 'told'")
        shop.commit()
        shop.execute("select 1")
    assert heard.entries == ["seen", "told"]


@on_postgres
def test_a_connection_that_speaks_another_encoding_is_refused(live: Live) -> None:
    """Keys would be stored as others."""
    engine = live.engine().register(Puppet())
    with (
        closing(psycopg.connect(live.url, client_encoding="latin1")) as shop,
        pytest.raises(ConfigurationError, match="UTF8"),
    ):
        tell(engine, shop, "p-1", "x")


@on_postgres
def test_an_engine_speaks_its_own_encoding(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says, what is written is read again."""
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    engine = live.engine().register(Puppet())
    engine.deciders.execute(Puppet, Do("m\u00fc", "x"))
    assert engine.deciders.state(Puppet, "m\u00fc") == ("x",)


@on_postgres
def test_a_refusal_for_want_of_rights_leaves_the_transaction_usable(live: Live) -> None:
    """A user without our role is told so, and goes on with his own rows."""
    engine = live.engine().register(Puppet())
    with closing(psycopg.connect(live.url)) as shop:
        shop.execute("create table mine (id int)")
        shop.execute("drop role if exists standfast_stranger")
        shop.execute("create role standfast_stranger")
        shop.execute("grant all on mine to standfast_stranger")
        shop.execute("set local role standfast_stranger")
        with pytest.raises(ConfigurationError, match="standfast_engine"):
            tell(engine, shop, "p-1", "x")
        shop.execute("insert into mine values (1)")
        assert shop.execute("select id from mine").fetchall() == [(1,)]
        shop.rollback()


def test_projections_see_the_commands_of_a_unit_in_their_order(place: Place, shop: Any) -> None:
    """Events of one transaction come in the order in which they were decided, whichever instances they are of."""
    engine = place.engine().register(Puppet())
    engine.deciders.execute(Puppet, Do("old", "0"))
    for number, key in enumerate(("new", "old", "newer", "old", "new"), start=1):
        tell(engine, shop, key, str(number))
    shop.commit()
    events = [each.data for each in place.store.feed().read(after=0, limit=100)]
    assert [json.loads(each)["what"] for each in events] == ["0", "1", "2", "3", "4", "5"]
