"""Who sees what on Postgres: every table is walled off by tenant in the database itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psycopg
import pytest
from psycopg import sql

from standfast.errors import ConfigurationError
from standfast.kernel.people import Absence, Delegation, Grant, Principal
from standfast.kernel.row_kinds.changes import Change
from standfast.kernel.row_kinds.steps import StepOpened, SubscriptionOpened, TaskOpened
from standfast.store.opening import open_store
from standfast.store.ports.documents import PublishingRule
from standfast.store.ports.pauses import PauseRecord, PauseScope
from standfast.store.ports.versioned_settings import Edition
from standfast.store.postgres.commit.transactions import PostgresUnit
from standfast.store.postgres.connection.loading import _headers as found_headers
from standfast.store.records.instances import (
    SHARED_TENANT,
    Address,
    Borrower,
    InstanceQuery,
    Snapshot,
    Wanted,
)
from support.databases import Databases
from support.desks import Desk
from support.rows import (
    NOW,
    OTHER_TENANT,
    SHIP_WORDS,
    WORDS,
    born,
    by_id,
    definition,
    effect,
    effective,
    letter,
    message,
    moved,
    new_id,
    new_worker,
    observation,
    receipt,
    timer,
)

REVIEWED = {"migrations": "the numbers of the schema's steps; nothing of any tenant"}
"""Tables without a wall, and why that is right. Partitions are reached through their walled parents only; see below."""

WITHOUT_TENANT = {"meta", "workers", "projections"}
"""Tables of the engine itself."""

SEEN_BY_TENANTS = {
    "definitions", "instances", "events", "snapshots", "effects", "timers", "inbox", "dead_letters", "steps", "human_tasks",
    "subscriptions", "observations", "pauses", "principals", "role_grants", "delegations", "absences", "changes",
    "chains", "charters",
    "blueprints", "publishing_rules",
}  # fmt: skip

Connection = psycopg.Connection[Any]


def full(desk: Desk, tenant: str) -> None:
    """An instance with a row in every table that tenants see."""
    identity = new_id()
    records = [StepOpened(number=1, node="a"), TaskOpened(number=1), SubscriptionOpened(number=1, signal="s")]
    change = born(
        identity,
        key="same",
        tenant=tenant,
        issued=2,
        effects=[effect(identity, tenant=tenant)],
        timers=[timer(identity, number=1, tenant=tenant)],
        messages=[message("same", tenant=tenant), message("dead", tenant=tenant)],
        receipts=[receipt(identity, tenant=tenant)],
        records=records,
        snapshot=Snapshot(version=1, state_version=1, data=b"x"),
    )
    desk.writer.write([change], observations=[observation(identity, tenant=tenant)], now=NOW)
    dead = desk.inbox.claim(NOW, words=WORDS, hold=timedelta(0), limit=9)[-1]
    desk.inbox.bury(dead.claim, letter("inbox", tenant=tenant))
    definition = f"'{tenant}', 'order', '1', 'saga', '', '', 'h', '1', 'draft', '', '', 'ada', '{NOW}'"
    desk.run(f"insert into {{}}definitions values ({definition})")
    desk.pauses.begin(PauseRecord(scope=PauseScope(tenant, "order"), paused_by="ada", paused_at=NOW))
    with desk.people.changing(tenant) as unit:
        unit.put(Principal(id="ann"))
        unit.grant(Grant(principal="ann", role="finance", begins_at=NOW))
        unit.delegate(Delegation(giver="ann", receiver="bob", begins_at=NOW))
        unit.absent(Absence(principal="ann", begins_at=NOW))
        unit.note(
            Change(tenant=tenant, subject="person", name="ann", action="put", actor="ada", at=NOW, mark=f"{tenant}-1")
        )
    chain = Edition(tenant=tenant, name="c", version=0, content=b"[]", note="", published_by="", published_at=NOW)
    desk.chains.publish(chain)
    charter = Edition(
        tenant=tenant, name="settings", version=0, content=b"{}", note="", published_by="", published_at=NOW
    )
    desk.charters.publish(charter)
    blueprints = desk.store.blueprints()
    with blueprints.changing(tenant, "invoice") as unit:
        unit.add(effective(tenant=tenant))
    blueprints.set_rule(PublishingRule(tenant=tenant, two_person=True, set_by="ada", set_at=NOW))


@pytest.fixture(scope="module")
def shared_dsn(postgres_server: Databases) -> Iterator[str]:
    """A database with two tenants in it, for all tests that only look, or are refused."""
    with postgres_server.prepared() as dsn:
        store = open_store(dsn)
        desk = Desk(store)
        full(desk, "default")
        full(desk, OTHER_TENANT)
        yield dsn
        store.close()


@pytest.fixture
def postgres_desk(postgres_server: Databases) -> Iterator[Desk]:
    """A desk on a database of the test's own."""
    with postgres_server.prepared() as dsn:
        store = open_store(dsn)
        yield Desk(store)
        store.close()


@pytest.fixture
def connection(shared_dsn: str) -> Iterator[Connection]:
    """A plain connection to that database; what it does is undone."""
    with closing(psycopg.connect(shared_dsn)) as opened:
        yield opened
        opened.rollback()


def tables(connection: Connection) -> dict[str, tuple[bool, bool, set[str]]]:
    """Every table of the schema that is no partition: whether its wall stands, also for its owner, and its policies."""
    rows = connection.execute(
        "select c.relname, c.relrowsecurity, c.relforcerowsecurity, "
        "array(select p.polname::text from pg_policy p where p.polrelid = c.oid) "
        "from pg_class c where c.relnamespace = 'standfast'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition"
    )
    return {name: (is_on, is_forced, set(policies)) for name, is_on, is_forced, policies in rows}


@pytest.mark.row("E-892")
def test_every_table_has_a_wall(connection: Connection) -> None:
    """Row-level security is on and forced for every table, with policies; exceptions are reviewed by name."""
    found = tables(connection)
    open_tables = {
        name for name, (is_on, is_forced, policies) in found.items() if not (is_on and is_forced and policies)
    }
    assert open_tables == set(REVIEWED)
    for name, (_, _, policies) in found.items():
        if name not in REVIEWED:
            own = {"engine", "identity"} if name == "meta" else {"engine"}
            shared = {"shared"} if name in {"definitions", "blueprints"} else set()
            assert policies == (own if name in WITHOUT_TENANT else {"engine", "tenant", *shared}), name


def test_policies_check_what_is_written(connection: Connection) -> None:
    """The tenants' policies hold for reading and writing alike, and know no other way around."""
    found = connection.execute(
        "select distinct polcmd::text, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) "
        "from pg_policy where polname = 'tenant'"
    ).fetchall()
    wall = "(tenant = current_setting('standfast.tenant'::text, true))"
    assert found == [("*", True, wall, wall)]


def test_partitions_cannot_be_reached(connection: Connection) -> None:
    """Partitions have no wall of their own, so tenants and the public have no right to any of them."""
    found = connection.execute(
        "select relname from pg_class where relnamespace = 'standfast'::regnamespace and relispartition and relkind = 'r' and ("
        "has_table_privilege('standfast_tenant', oid, 'select, insert, update, delete, truncate') "
        "or has_table_privilege('public', oid, 'select, insert, update, delete, truncate'))"
    ).fetchall()
    assert found == []


def test_there_are_no_views_around_the_wall(connection: Connection) -> None:
    """A view would show rows with its owner's eyes unless it says otherwise; and only reviewed functions run with other rights than their caller's."""
    views = connection.execute(
        "select relname from pg_class where relnamespace = 'standfast'::regnamespace and relkind in ('v', 'm') "
        "and not coalesce('security_invoker=true' = any (reloptions), false)"
    ).fetchall()
    definers = connection.execute(
        "select proname from pg_proc where pronamespace = 'standfast'::regnamespace and prosecdef order by proname"
    ).fetchall()
    assert (views, definers) == ([], [("instances_having",), ("make_partitions",), ("start_key",)])


@contextmanager
def as_tenant(connection: Connection, tenant: str | None) -> Iterator[Connection]:
    """The connection as a tenant sees the database; None names no tenant at all."""
    with connection.transaction(force_rollback=True):
        connection.execute("set local role standfast_tenant")
        if tenant is not None:
            connection.execute("select set_config('standfast.tenant', %s, true)", [tenant])
        yield connection


def count(connection: Connection, table: str) -> int:
    """How many rows are seen."""
    row = connection.execute(sql.SQL("select count(*) from standfast.{}").format(sql.Identifier(table))).fetchone()
    assert row is not None
    number: int = row[0]
    return number


@pytest.mark.row("E-576")
@pytest.mark.parametrize("table", sorted(SEEN_BY_TENANTS))
def test_a_tenant_sees_its_own_rows(connection: Connection, table: str) -> None:
    """With a tenant named, that tenant's rows are seen; without one, or with a stranger's, none."""
    whole = count(connection, table)
    seen = []
    for tenant in ("default", OTHER_TENANT, "stranger", "", None):
        with as_tenant(connection, tenant) as eyes:
            seen.append(count(eyes, table))
    assert seen[0] > 0
    assert seen == [whole / 2, whole / 2, 0, 0, 0]


def test_a_tenant_that_has_left_is_forgotten(connection: Connection) -> None:
    """After the transaction that named a tenant, the setting is empty and shows nothing."""
    with as_tenant(connection, "default"):
        pass
    with as_tenant(connection, None) as eyes:
        assert [count(eyes, table) for table in ("instances", "events")] == [0, 0]


@pytest.mark.row("E-377", "E-577", "E-952")
@pytest.mark.parametrize(
    "table", sorted({"receipts", "migrations", "api_keys", "api_refusals"} | WITHOUT_TENANT - {"meta"})
)
def test_a_tenant_does_not_see_the_engines_tables(connection: Connection, table: str) -> None:
    """What belongs to the engine alone can be neither read nor written nor emptied."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_tenant(connection, "default") as eyes:
        count(eyes, table)
    row = connection.execute(
        "select column_name from information_schema.columns "
        "where table_schema = 'standfast' and table_name = %s and is_identity = 'NO'",
        [table],
    ).fetchone()
    assert row is not None
    for change in ("insert into {} default values", "update {} set {} = {}", "delete from {}", "truncate {}"):
        statement = sql.SQL(change).format(
            sql.Identifier("standfast", table), sql.Identifier(row[0]), sql.Identifier(row[0])
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege), as_tenant(connection, "default") as eyes:
            eyes.execute(statement)


def test_a_tenant_sees_which_database_it_is_and_nothing_else_of_the_engine(connection: Connection) -> None:
    """Of the engine's own facts the identity of the database can be read, which tells it from others."""
    with as_tenant(connection, "default") as eyes:
        assert eyes.execute("select name from standfast.meta").fetchall() == [("identity",)]


@pytest.mark.parametrize("tenant", [OTHER_TENANT, ""])
def test_the_committer_itself_finds_no_instance_of_another_tenant(postgres_desk: Desk, tenant: str) -> None:
    """Its role sees all tenants, so every statement that finds instances names the tenant, and locks nobody else's rows."""
    head = postgres_desk.born(born(key="k"))
    foreign = [Address(tenant=tenant, instance=head.id), Address(tenant=tenant, definition="order", key="k")]
    with postgres_desk.writer.unit() as holder:
        assert holder.load([by_id(head.id)]) != [None]
        with postgres_desk.store.writer().unit() as unit:
            assert isinstance(unit, PostgresUnit)
            unit.connection.execute("set local lock_timeout = '1s'")
            assert unit.load(foreign) == [None, None]
            assert [found_headers(unit.connection, [each]) for each in foreign] == [[], []]


@pytest.mark.row("E-346")
@pytest.mark.parametrize("table", sorted(SEEN_BY_TENANTS))
@pytest.mark.parametrize(
    "change", ["delete from standfast.{}", "update standfast.{} set tenant = tenant", "truncate standfast.{}"]
)
def test_a_tenant_writes_nothing(connection: Connection, table: str, change: str) -> None:
    """A tenant's role changes and removes no row, not even its own."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_tenant(connection, "default") as eyes:
        eyes.execute(sql.SQL(change).format(sql.Identifier(table)))


@pytest.mark.parametrize("table", sorted(SEEN_BY_TENANTS - {"inbox"}))
def test_a_tenant_adds_nothing(connection: Connection, table: str) -> None:
    """A tenant's role adds no row to any table but the inbox."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_tenant(connection, "default") as eyes:
        eyes.execute(sql.SQL("insert into standfast.{} default values").format(sql.Identifier(table)))


def test_a_tenant_submits_for_itself_only(connection: Connection) -> None:
    """A tenant may put a command into the inbox under its own name, and under no other."""
    with as_tenant(connection, "default") as eyes:
        assert eyes.execute("select standfast.submit('order', 'Pay', '{}', key => 'o-1')").fetchone() is not None
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security")
    with refused, as_tenant(connection, "default") as eyes:
        eyes.execute("select standfast.submit('order', 'Pay', '{}', key => 'o-1', tenant => 'rival')")


def test_a_search_by_attributes_stays_behind_the_wall(postgres_desk: Desk) -> None:
    """It runs with its owner's rights, and answers with instances of the tenant that is set; with none if none is."""
    ids = {}
    for tenant in ("default", OTHER_TENANT):
        change = born(tenant=tenant)
        change.header = msgspec.structs.replace(change.header, search='{"is":"red"}')
        postgres_desk.writer.write([change], now=NOW)
        ids[tenant] = change.header.id
    with postgres_desk.writer.unit() as unit, unit.lend() as lent:
        connection: Connection = lent  # type: ignore[assignment]
        for looking, expected in ((OTHER_TENANT, [(ids[OTHER_TENANT],)]), ("stranger", []), (None, [])):
            with as_tenant(connection, looking) as eyes:
                found = eyes.execute("select * from standfast.instances_having('{}')").fetchall()
                assert found == expected, looking


@pytest.mark.parametrize(
    "name", ["o'hara", "a\\' or true --", "%s %(x)s", "'; reset role; --", "ünï\u2028", '"quoted"']
)
def test_the_name_of_a_tenant_is_a_name_and_no_statement(postgres_desk: Desk, name: str) -> None:
    """Whatever a tenant is called, readers see its rows and nobody else's."""
    others, own = postgres_desk.born(born()), postgres_desk.born(born(tenant=name))
    assert [each.id for each in postgres_desk.reading(name).instances(InstanceQuery())] == [own.id]
    assert [each.id for each in postgres_desk.reader.instances(InstanceQuery())] == [others.id]


def test_a_tenant_makes_no_partitions(connection: Connection) -> None:
    """The function that changes tables with its owner's rights is for the engine."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_tenant(connection, "default") as eyes:
        eyes.execute("select standfast.make_partitions(now(), 1)")


def test_readers_look_with_a_tenants_eyes(shared_dsn: str) -> None:
    """A store's reader runs under the role that is walled in, and leaves nothing of it behind on the connection."""
    store = open_store(shared_dsn)
    reader: Any = store.reader(OTHER_TENANT)
    who = "select current_user, coalesce(current_setting('standfast.tenant', true), '')"
    with reader._as_tenant() as used:
        assert used.execute(who).fetchone() == ("standfast_tenant", OTHER_TENANT)
    with reader._pool.connection() as used:
        assert used.execute(who).fetchone() == (urlsplit(shared_dsn).username, "")
    store.close()


@contextmanager
def login(dsn: str, *grants: str, options: str = "") -> Iterator[str]:
    """A database user of its own with these roles; the URL by which it connects."""
    name, password = f"standfast_test_{secrets.token_hex(4)}", secrets.token_hex(8)
    with closing(psycopg.connect(dsn, autocommit=True)) as admin:
        admin.execute(f"create role {name} login password '{password}' {options}")
        for role in grants:
            admin.execute(f"grant {role} to {name}")
        parts = urlsplit(dsn)
        host = parts.netloc.rpartition("@")[2]
        try:
            yield parts._replace(netloc=f"{name}:{password}@{host}").geturl()
        finally:
            admin.execute(f"drop owned by {name} cascade")
            admin.execute(f"drop role {name}")


def test_a_plain_user_with_the_engines_role_is_enough(postgres_dsn: str) -> None:
    """No superuser, no owner: a login that has only been granted standfast_engine does all the engine does."""
    with login(postgres_dsn, "standfast_engine") as dsn:
        store = open_store(dsn)
        desk = Desk(store)
        identity = new_id()
        head = desk.born(
            born(identity, effects=[effect(identity)], timers=[timer(identity, number=1)], messages=[message()])
        )
        (owned,) = desk.effects.claim(new_worker(), [Wanted("ship", 1)], 1, words=SHIP_WORDS)
        desk.commit(moved(head, ends=True, consumed=[owned.claim], records=[StepOpened(number=1, node="a")]))
        assert len(desk.timers.claim(NOW, words=WORDS, hold=timedelta(0), limit=9).timers) == 1
        assert len(desk.inbox.claim(NOW, words=WORDS, hold=timedelta(0), limit=9)) == 1
        desk.workers.beat(new_worker(), [], name="w", handlers=[], lease=timedelta(1), now=NOW)
        assert len(desk.feed.read(after=0, limit=9)) == 2
        assert desk.reader.load(by_id(identity)) is not None
        desk.keeper.tidy(NOW)
        desk.keeper.maintain("pause")
        assert desk.keeper.delete(identity, tenant="default", force=True)
        store.close()


@pytest.mark.row("E-346")
def test_the_engines_role_cannot_rewrite_history(postgres_dsn: str) -> None:
    """A login with the engine's role can neither truncate, nor switch off the guards, nor change the schema."""
    with login(postgres_dsn, "standfast_engine") as dsn, closing(psycopg.connect(dsn, autocommit=True)) as user:
        for attempt in (
            "truncate standfast.events",
            "update standfast.events set actor = ''",
            "alter table standfast.events disable trigger all",
            "set session_replication_role = replica",
            "drop table standfast.receipts",
            "create table standfast.mine ()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                user.execute(attempt)


def test_a_user_without_the_role_is_told_what_is_missing(postgres_dsn: str) -> None:
    """A login that was granted nothing gets a configuration error that names the role."""
    with login(postgres_dsn) as dsn, pytest.raises(ConfigurationError, match="grant it the role standfast_engine"):
        open_store(dsn)


def test_a_plain_owner_can_migrate(postgres_server: Databases) -> None:
    """Once an administrator has made the roles and granted them, no special right is needed to make the tables."""
    with postgres_server.empty() as admin_dsn, login(admin_dsn, "standfast_engine") as dsn:
        with closing(psycopg.connect(admin_dsn, autocommit=True)) as admin:
            database, user = urlsplit(dsn).path[1:], urlsplit(dsn).username
            admin.execute(f"alter database {database} owner to {user}")
        store = open_store(dsn)
        desk = Desk(store)
        head = desk.born(born())
        assert desk.reader.load(by_id(head.id)) is not None
        desk.keeper.tidy(NOW)
        store.close()
        with closing(psycopg.connect(admin_dsn, autocommit=True)) as admin:
            admin.execute(f"alter database {database} owner to current_user")


def test_a_user_who_may_not_make_roles_is_told_the_commands(postgres_server: Databases) -> None:
    """Without the roles' membership and without the right to give it, the error lists what an administrator has to run."""
    with (
        postgres_server.empty() as admin_dsn,
        login(admin_dsn) as dsn,
        pytest.raises(ConfigurationError, match=r"create role standfast_engine nologin; .*grant standfast_engine to"),
    ):
        open_store(dsn)


def test_a_tenant_sees_its_own_definitions_and_the_shared_ones(postgres_desk: Desk) -> None:
    """Those of another tenant do not exist for it, and it cannot write any."""
    for tenant in ("default", OTHER_TENANT, SHARED_TENANT):
        postgres_desk.definitions.publish(definition(tenant=tenant, hash=tenant), NOW)
    with postgres_desk.writer.unit() as unit, unit.lend(None, Borrower("default", "standfast_tenant")) as lent:
        connection: Connection = lent  # type: ignore[assignment]
        seen = connection.execute("select tenant from standfast.definitions order by tenant").fetchall()
        assert [row[0] for row in seen] == [SHARED_TENANT, "default"]
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("update standfast.definitions set status = 'retired'")
