"""Messages from a transaction of the caller's own: accepted when that commits, and never otherwise."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from standfast.errors import ConfigurationError, StandfastError
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.store.postgres.connection.errors import translated
from standfast.store.records.instances import Address, StoredMessage
from support.databases import Databases
from support.rows import (
    NOW,
    WORDS,
    by_id,
    by_key,
    message,
    new_id,
)

HOLD = timedelta(seconds=10)


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Any]]:
    """A store, and a connection that the caller opened to the same database."""
    if request.param == "sqlite":
        store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
        own: Any = closing(sqlite3.connect(tmp_path / "store.db"))
    else:
        dsn: str = request.getfixturevalue("postgres_dsn")
        store = open_store(dsn)
        own = closing(psycopg.connect(dsn))
    with own as connection:
        connection.execute("create table bookings (name text)")
        connection.commit()
        yield store, connection
    store.close()


def delivered(store: Store) -> list[StoredMessage]:
    """What lies in the inbox."""
    return store.inbox().claim(NOW, words=WORDS, hold=HOLD, limit=9)


@pytest.mark.row("D-106")
def test_a_message_is_accepted_with_the_callers_commit(both: tuple[Store, Any]) -> None:
    """The caller's rows and the message are there together, and not before the commit."""
    store, connection = both
    connection.execute("insert into bookings values ('room 5')")
    sent = message("o-1", "booked", command_id="c-1", comment="please")
    number = store.accept_within(connection, sent, NOW)
    assert store.inbox().depth() == 0
    connection.commit()
    (found,) = delivered(store)
    assert (found.id, found.address, found.data, found.command_id) == (number, by_key("o-1"), b"booked", "c-1")
    assert (found.type, found.actor, found.comment) == ("Tell", "ada", "please")


@pytest.mark.row("D-106")
def test_a_message_goes_with_the_callers_rollback(both: tuple[Store, Any]) -> None:
    """What the caller undoes was never accepted."""
    store, connection = both
    connection.execute("insert into bookings values ('room 5')")
    store.accept_within(connection, message(), NOW)
    connection.rollback()
    assert (delivered(store), connection.execute("select * from bookings").fetchall()) == ([], [])


def test_a_start_is_accepted_with_the_callers_commit(both: tuple[Store, Any]) -> None:
    """Version and parent of an instance that begins with the message are kept."""
    store, connection = both
    parent = new_id()
    store.accept_within(connection, message(instance=new_id(), parent=parent, definition_version="7"), NOW)
    connection.commit()
    assert [(each.parent, each.definition_version) for each in delivered(store)] == [(parent, "7")]


def test_messages_keep_the_order_of_the_callers_transaction(both: tuple[Store, Any]) -> None:
    """Several messages of one transaction, by key and by id, are delivered in the order of accepting."""
    store, connection = both
    identity = new_id()
    for sent in (message("o-1", "one"), message(instance=identity, text="two"), message("o-1", "three")):
        store.accept_within(connection, sent, NOW)
    connection.commit()
    found = delivered(store)
    assert [each.data for each in found] == [b"one", b"two", b"three"]
    assert found[1].address.instance == identity


@pytest.mark.parametrize("connection", [None, "sqlite://", object()])
def test_something_else_than_a_connection_is_refused(both: tuple[Store, Any], connection: object) -> None:
    """The message says what kind of connection is wanted."""
    with pytest.raises(ConfigurationError, match=r"give a (sqlite3|psycopg) connection to .*, not an? "):
        both[0].accept_within(connection, message(), NOW)


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_connection_to_another_database_is_refused(
    both: tuple[Store, Any], request: pytest.FixtureRequest, tmp_path: Path, *, is_ours: bool
) -> None:
    """A command goes where the engine is: another database is refused, be it one of ours or not, and nothing is written there."""
    store, _ = both
    with ExitStack() as stack:
        if store.url.startswith("sqlite"):
            url, file = f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "other.db"
            other = open_store(url) if is_ours else None
            theirs: Any = stack.enter_context(closing(sqlite3.connect(file)))
        else:
            databases: Databases = request.getfixturevalue("postgres_server")
            url = stack.enter_context(databases.empty())
            other = open_store(url) if is_ours else None
            theirs = stack.enter_context(closing(psycopg.connect(url)))
        with pytest.raises(ConfigurationError, match="the connection is to another database than"):
            store.accept_within(theirs, message(), NOW)
        theirs.rollback()
        assert delivered(store) == []
        if other is not None:
            assert delivered(other) == []
            other.close()


def test_a_message_is_accepted_although_others_write_meanwhile(both: tuple[Store, Any]) -> None:
    """Whether it is the right database is found out without a look that would be old by the time of writing."""
    store, connection = both
    connection.execute("begin")
    store.writer().accept([message("o-0")], NOW)
    store.accept_within(connection, message("o-1"), NOW)
    connection.commit()
    assert [each.address.key for each in delivered(store)] == ["o-0", "o-1"]


def test_a_refusal_comes_in_our_words(both: tuple[Store, Any]) -> None:
    """What the database does not take is an error of ours, also on the caller's connection."""
    store, connection = both
    with pytest.raises(StandfastError):
        store.accept_within(connection, message(tenant=""), NOW)
    connection.rollback()
    assert delivered(store) == []


def test_a_connection_with_its_own_rows_will_do(postgres_dsn: str) -> None:
    """Whatever form of rows the caller has chosen for the connection, accepting works and leaves it chosen."""
    store = open_store(postgres_dsn)
    with psycopg.connect(postgres_dsn, row_factory=dict_row) as connection:
        number = store.accept_within(connection, message(), NOW)
        assert connection.execute("select 1 as one").fetchone() == {"one": 1}
    assert [each.id for each in delivered(store)] == [number]
    store.close()


@pytest.fixture
def database(postgres_dsn: str) -> Iterator[tuple[Store, psycopg.Connection[Any]]]:
    """A store on Postgres, and a plain connection to its database."""
    store = open_store(postgres_dsn)
    with psycopg.connect(postgres_dsn) as connection:
        yield store, connection
    store.close()


@pytest.mark.row("D-106")
def test_plain_sql_can_submit(database: tuple[Store, psycopg.Connection[Any]]) -> None:
    """`standfast.submit` accepts a command by business key in the transaction of any language."""
    store, connection = database
    row = connection.execute(
        "select standfast.submit('order', 'Tell', '{\"text\": \"hëllo\"}', key => 'o-1')"
    ).fetchone()
    assert store.inbox().depth() == 0
    connection.commit()
    (found,) = delivered(store)
    assert row == (found.id,)
    assert (found.address, found.type, found.version) == (by_key("o-1"), "Tell", 1)
    assert (found.data.decode(), found.actor, found.comment, found.command_id) == (
        '{"text": "hëllo"}',
        "postgres",
        "",
        "",
    )


def test_plain_sql_can_say_everything(database: tuple[Store, psycopg.Connection[Any]]) -> None:
    """Instance, command id, tenant, actor, comment and version can be named; the target is that of the engine's own messages."""
    store, connection = database
    identity = new_id()
    connection.execute(
        "select standfast.submit('order', 'Tell', 'x', instance => %s, command_id => 'c', tenant => 'rival', actor => 'bob', comment => 'why', version => 2)",
        [UUID(int=identity.int)],
    )
    connection.commit()
    (found,) = delivered(store)
    assert found.address.tenant == "rival"
    assert (found.address.instance, found.address.definition) == (by_id(identity).instance, "order")
    assert (found.command_id, found.actor, found.comment, found.version) == ("c", "bob", "why", 2)
    targets = connection.execute("select target from standfast.inbox").fetchall()
    assert targets == [(found.target,)]


@pytest.mark.parametrize(
    "wrong", ["tenant => '*'", "tenant => ''", "comment => repeat('x', 65537)", "version => 40000"]
)
def test_plain_sql_has_the_same_limits(database: tuple[Store, psycopg.Connection[Any]], wrong: str) -> None:
    """What an engine would refuse is refused by the database too: a tenant that is none, an endless comment, a wrong version."""
    _, connection = database
    with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.NumericValueOutOfRange)):
        connection.execute(f"select standfast.submit('order', 'Tell', 'x', {wrong})")


def test_a_trigger_can_submit(database: tuple[Store, psycopg.Connection[Any]]) -> None:
    """A row of the caller's own table can start a workflow, and does not when its transaction is undone."""
    store, connection = database
    connection.execute("create table orders (id text)")
    connection.execute(
        "create function tell() returns trigger language plpgsql as $$ begin "
        "perform standfast.submit('order', 'Place', to_json(new)::text, key => new.id); return new; end $$"
    )
    connection.execute("create trigger tell after insert on orders for each row execute function tell()")
    connection.commit()
    connection.execute("insert into orders values ('dropped')")
    connection.rollback()
    connection.execute("insert into orders values ('o-1'), ('o-2')")
    connection.commit()
    assert [(each.address.key, each.data) for each in delivered(store)] == [
        ("o-1", b'{"id":"o-1"}'),
        ("o-2", b'{"id":"o-2"}'),
    ]


@pytest.mark.parametrize(
    ("role", "tenant", "refusal"),
    [
        (None, None, "permission denied for schema standfast"),
        ("standfast_tenant", None, "row-level security"),
        ("standfast_tenant", "rival", "row-level security"),
        ("standfast_tenant", "default", ""),
        ("standfast_engine", None, ""),
    ],
)
@pytest.mark.parametrize("is_plain", [True, False])
def test_which_rights_a_caller_needs(
    database: tuple[Store, psycopg.Connection[Any]],
    role: str | None,
    tenant: str | None,
    refusal: str,
    *,
    is_plain: bool,
) -> None:
    """A user hands commands in with the role of the engine, or with that of tenants and the tenant set; otherwise it is refused."""
    store, connection = database
    user = sql.Identifier(f"caller_{secrets.token_hex(4)}")
    connection.execute(sql.SQL("create role {} nologin").format(user))
    if role is not None:
        connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), user))
    connection.commit()
    try:
        connection.execute(sql.SQL("set role {}").format(user))
        if tenant is not None:
            connection.execute("select set_config('standfast.tenant', %s, false)", [tenant])
        with pytest.raises(StandfastError, match=refusal) if refusal else nullcontext():
            if is_plain:
                with translated(store.url):
                    connection.execute("select standfast.submit('order', 'Tell', 'x', key => 'o-1')")
            else:
                store.accept_within(connection, message("o-1"), NOW)
        connection.rollback() if refusal else connection.commit()
    finally:
        connection.execute("reset role")
        connection.execute(sql.SQL("drop owned by {}").format(user))
        connection.execute(sql.SQL("drop role {}").format(user))
        connection.commit()
    assert [each.address.key for each in delivered(store)] == ([] if refusal else ["o-1"])


def test_plain_sql_names_the_same_target_as_the_engine(database: tuple[Store, psycopg.Connection[Any]]) -> None:
    """Messages of both wait in one queue, also where names hold colons and percent signs; those of others in another."""
    store, connection = database
    for definition, key in (("shop:or%der", "1"), ("shop", "or%der:1")):
        connection.execute("select standfast.submit(%s, 'Tell', 'x', key => %s)", [definition, key])
        store.accept_within(connection, message_to(definition, key), NOW)
    connection.commit()
    targets = connection.execute("select target, count(*) from standfast.inbox group by target").fetchall()
    assert sorted(count for _, count in targets) == [2, 2]


def message_to(definition: str, key: str) -> StoredMessage:
    """A message to an instance of another definition."""
    return StoredMessage(
        address=Address(tenant="default", definition=definition, key=key),
        language=definition,
        type="Tell",
        data=b"x",
        actor="ada",
    )
