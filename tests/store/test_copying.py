"""Copying a database: whole or not at all, into nothing that is needed, and with every value as it was."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from cli.calling import Standfast
from standfast import (
    ConfigurationError,
    CopyProgress,
    CorruptHistoryError,
    MessagePackCodec,
    NotFoundError,
    PayloadError,
    RejectedError,
    Saga,
    SchemaMismatchError,
    StoreUnavailableError,
    copy_database,
)
from standfast.cli.exit_codes import Exit
from standfast.store import opening
from standfast.store.copy.copy import OF_THE_PLACE
from standfast.store.copy.verification import JSON
from standfast.store.opening import open_copyable, open_store
from standfast.store.postgres.copy import TYPES
from standfast.testing import ManualEngine
from store.test_security import login
from support.databases import Databases

KILLED = -signal.SIGKILL
ALL = "select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where nspname = 'standfast' and relkind in ('r', 'p') and not relispartition"


class Site:
    """A database, as somebody sees it who does not ask the engine."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_file = url.startswith("sqlite")

    def ask(self, statement: str, *values: object) -> list[Any]:
        """Plain SQL."""
        if self.is_file:
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file, file:
                return file.execute(statement.replace("standfast.", ""), values).fetchall()
        with psycopg.connect(self.url) as server:
            found = server.execute(statement.replace("?", "%s").encode(), values)
            return found.fetchall() if found.description else []

    def filled(self) -> dict[str, int]:
        """The tables that have rows."""
        with closing(open_copyable(self.url, is_source=False)) as database, database.reading() as tables:
            found = {name: tables.count(name) for name in tables.columns()}
        return {name: count for name, count in found.items() if count}

    def facts(self) -> dict[str, str]:
        """What it says of itself."""
        return dict(self.ask("select name, value from standfast.meta"))


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """An empty database of each kind in turn, as a target."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / 'target.db'}"
        else:
            databases: Databases = request.getfixturevalue("postgres_server")
            url = stack.enter_context(databases.prepared())
        open_store(url).close()
        yield Site(url)


@pytest.fixture
def shop(tmp_path: Path) -> Site:
    """A file with a run that waits."""
    return stocked(f"sqlite:///{tmp_path / 'shop.db'}")


def stocked(url: str) -> Site:
    """A database with a run that waits."""
    engine = ManualEngine(url).register(Saga("ask").human("approve").build())
    engine.start("ask", {"n": "ä" * 100})
    engine.drain()
    engine.stop()
    site = Site(url)
    site.ask("delete from standfast.workers")  # The engine of a test does not say that it goes.
    return site


def refused(source: Site, target: Site | str) -> str:
    """How a copy is refused, which changes nothing in the source."""
    before = source.facts()
    with pytest.raises(RejectedError) as raised:
        copy_database(source.url, target if isinstance(target, str) else target.url)
    assert source.facts() == before
    return f"{raised.value.reason}: {raised.value}"


def in_a_child(call: Callable[[], object]) -> int:
    """What becomes of another process that does this: its exit code, or the signal that ended it, as a negative number."""
    child = os.fork()
    if not child:  # pragma: no cover - another process
        try:
            call()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ended_at(stage: str, table: str) -> Callable[[CopyProgress], None]:
    """Kill the process when the copy has come so far."""

    def hear(progress: CopyProgress) -> None:
        if (progress.stage, progress.table) == (stage, table):
            os.kill(os.getpid(), signal.SIGKILL)

    return hear


def test_no_table_can_be_forgotten(tmp_path: Path, postgres_dsn: str) -> None:
    """Whatever a migration makes is copied: both databases name the same tables and columns, and each type is known."""
    file = Site(f"sqlite:///{tmp_path / 'a.db'}")
    open_store(file.url).close()
    found = []
    for url in (file.url, postgres_dsn):
        with closing(open_copyable(url, is_source=True)) as database, database.reading() as tables:
            found.append({name: set(columns) for name, columns in tables.columns().items()})
    ours, theirs = found
    assert {"workers", "retention", "redaction", "fact_versions"} == OF_THE_PLACE, (
        "whatever is left behind is about the place"
    )
    made = {name for (name,) in file.ask("select name from sqlite_master where type = 'table'")}
    assert set(ours) == {name for name in made if not name.startswith("sqlite_")}
    server = Site(postgres_dsn)
    assert set(theirs) == {name for (name,) in server.ask(ALL)} - {"migrations"}
    assert {name: ours[name] for name in ours.keys() - OF_THE_PLACE} == {
        name: theirs[name] for name in theirs.keys() - OF_THE_PLACE
    }
    types = server.ask(
        "select table_name, column_name, udt_name from information_schema.columns where table_schema = 'standfast'"
    )
    assert {kind for table, _, kind in types if table in theirs.keys() - OF_THE_PLACE} <= TYPES.keys()
    assert {(table, name) for table, name, kind in types if kind == "jsonb"} == JSON


def test_what_is_not_empty_is_no_target(shop: Site, site: Site) -> None:
    """A single row of any table is enough; nothing is changed, and the sentence says what to do."""
    site.ask("insert into standfast.definition_triggers values ('a', 'b', 'c')")
    before = site.filled()
    assert "standfast drop" in refused(shop, site)
    assert refused(shop, site).startswith("not_empty: ")
    assert "in definition_triggers: name a new" in refused(shop, site)
    assert site.filled() == before
    site.ask("delete from standfast.definition_triggers")
    site.ask("insert into standfast.meta values ('counter:x', '1')")
    assert "rows in meta" in refused(shop, site)
    site.ask("delete from standfast.meta where name = 'counter:x'")
    handlers = "''" if site.is_file else "'{}'"
    site.ask(
        f"insert into standfast.workers values ('0190b6d0-0000-7000-8000-000000000001', 'w', {handlers}, '2026-01-01', '9999-01-01')"
    )
    assert refused(shop, site).startswith("still_working: 1 workers are alive on ")


def test_a_source_that_somebody_works_on_is_copied_by_a_rehearsal_alone(shop: Site, site: Site) -> None:
    """It goes on as if nothing were; the copy is closed, so that nothing is done twice, and can be thrown away."""
    shop.ask("insert into workers values ('w', 'w', '', '2026-01-01', '9999-01-01')")
    assert "--rehearse" in refused(shop, site)
    shop.ask("create table customers (id integer)")
    before = shop.facts()
    told = Standfast()("copy", shop.url, site.url, "--rehearse")
    assert "not copied, because they are not Standfast's: customers" in told.stdout
    assert "is in maintenance, for the source goes on" in told.stdout
    assert "copied 1 instances" in told.stderr
    assert shop.facts() == before
    assert site.facts()["maintenance"] == "refuse"
    assert site.filled()["instances"] == 1
    shop.ask("delete from workers")
    assert refused(shop, site).startswith("not_empty: ")


def test_a_copy_is_whole_and_both_sides_say_so(shop: Site, site: Site) -> None:
    """The command tells what it did, and where to go on; the next one finds the same way back."""
    told = Standfast()("copy", shop.url, site.url)
    assert "1 instances were held against their histories, and 0 differences found" in told.stdout
    assert "is in maintenance and refuses commands" in told.stdout
    assert shop.facts()["maintenance"] == "refuse"
    facts = site.facts()
    assert "maintenance" not in facts
    assert facts["identity"] != shop.facts()["identity"]
    assert not any(name.startswith("note:cop") for name in facts)
    back = f"{shop.url}.back"
    found = Standfast().json("copy", site.url, back)
    assert (found["verified"], found["differences"], found["left"]) == (1, [], [])
    filled = Site(back).filled()
    assert {name: count for name, count in found["rows"].items() if count} == {**filled, "meta": 2}
    for table in ("instances", "events", "steps", "human_tasks", "definitions", "snapshots"):
        whole = f"select * from {table} order by 1, 2, 3"
        assert Site(back).ask(whole) == shop.ask(whole), table


def test_what_cannot_be_copied_is_told(shop: Site, site: Site, tmp_path: Path) -> None:
    """Another schema, no database, one in memory, one and the same, another codec: each in a sentence, and nothing is made or changed."""
    assert refused(shop, shop).startswith("same_database: ")
    for wrong in ("sqlite://", "mysql://shop", "nonsense"):
        for pair in ((wrong, site.url), (shop.url, wrong)):
            with pytest.raises(ConfigurationError):
                copy_database(*pair)
    missing = tmp_path / "none.db"
    with pytest.raises(NotFoundError):
        copy_database(f"sqlite:///{missing}", site.url)
    assert not missing.exists()
    shop.ask("pragma user_version = 99")
    with pytest.raises(SchemaMismatchError, match="newer than this code"):
        copy_database(shop.url, site.url)
    shop.ask("pragma user_version = 0")
    assert "standfast migrate" in Standfast()("copy", shop.url, site.url, code=Exit.UNFIT).stderr
    shop.ask("pragma user_version = 1")
    with pytest.raises(ConfigurationError, match="written with the 'json' codec"):
        copy_database(shop.url, site.url, codec=MessagePackCodec())
    site.ask("update standfast.meta set value = 'mine' where name = 'codec'")
    assert refused(shop, site).startswith("other_codec: ")
    shop.ask("update meta set value = 'mine' where name = 'codec'")
    with pytest.raises(ConfigurationError, match="which is code of yours"):
        copy_database(shop.url, site.url)
    assert site.filled().keys() == {"meta"}


def test_a_text_that_postgres_cannot_keep_is_named(shop: Site, postgres_dsn: str) -> None:
    """Somebody has written into the file what no engine writes; the table is told, and nothing is copied."""
    shop.ask("insert into definition_triggers values (?, 'b', 'c')", "a\x00b")
    with pytest.raises(PayloadError, match="a row of definition_triggers"):
        copy_database(shop.url, postgres_dsn)
    shop.ask("delete from definition_triggers")
    shop.ask("update instances set paused_at = 'yesterday, maybe'")
    with pytest.raises(PayloadError, match="a row of instances"):
        copy_database(shop.url, postgres_dsn)
    assert Site(postgres_dsn).filled().keys() == {"meta"}
    shop.ask("update instances set paused_at = '2026-01-01 00:00:00'")
    with pytest.raises(CorruptHistoryError, match="other rows of instances"):
        copy_database(shop.url, postgres_dsn)
    assert Site(postgres_dsn).filled().keys() == {"meta"}
    assert "maintenance" not in shop.facts()


@pytest.mark.parametrize("place", [("copy", "events"), ("compare", "api_requests")])
def test_a_copy_that_is_killed_leaves_nothing(shop: Site, site: Site, place: tuple[str, str]) -> None:
    """Wherever that is before its end, the target is as empty as before, the source is open, and the next copy is like a first one."""
    assert in_a_child(lambda: copy_database(shop.url, site.url, hear=ended_at(*place))) == KILLED
    assert site.filled().keys() == {"meta"}
    assert "maintenance" not in shop.facts()
    assert copy_database(shop.url, site.url).verified == 1


def test_a_copy_that_is_killed_before_it_is_verified_is_closed(shop: Site, site: Site) -> None:
    """Nobody works on it, it says why, and it is taken for neither an empty database nor one to copy from."""
    assert in_a_child(lambda: copy_database(shop.url, site.url, hear=ended_at("verify", ""))) == KILLED
    assert site.facts()["maintenance"] == "refuse"
    assert "was not verified to its end" in Standfast(site.url)("doctor", code=Exit.NO).stdout
    assert refused(shop, site).startswith("unfinished_copy: ")
    assert refused(site, f"{shop.url}.other").startswith("unfinished_copy: ")
    Standfast()("drop", site.url, "--yes", "--with-unfinished")
    assert copy_database(shop.url, site.url).verified == 1


def test_a_copy_that_differs_is_closed_and_the_source_goes_on(shop: Site, site: Site) -> None:
    """What differs from its history in the target alone is no copy; what differs in the source already is copied as it is, and told."""

    def spoil(progress: CopyProgress) -> None:
        if progress.stage == "verify":
            site.ask("update standfast.instances set reason = 'nonsense'")

    with pytest.raises(CorruptHistoryError, match="reason: stored is 'nonsense'"):
        copy_database(shop.url, site.url, hear=spoil)
    assert "maintenance" not in shop.facts()
    assert refused(shop, site).startswith("unfinished_copy: ")
    shop.ask("update instances set reason = 'nonsense'")
    told = Standfast()("copy", shop.url, f"{shop.url}.other").stdout
    assert "as in the source: " in told


def test_a_source_that_moves_on_is_not_left_behind(shop: Site, site: Site) -> None:
    """Somebody who was not stopped writes before he has heard of maintenance: the source is as it was, and the copy is closed."""

    def move(progress: CopyProgress) -> None:
        if progress.stage == "verify" and not progress.done:
            shop.ask("insert into definition_triggers values ('a', 'b', 'c')")

    before = shop.facts()
    with pytest.raises(RejectedError, match=r"was changed \(definition_triggers\) after") as raised:
        copy_database(shop.url, site.url, hear=move)
    assert raised.value.reason == "moved_on"
    assert shop.facts() == before
    assert site.facts()["maintenance"] == "refuse"


def test_two_copies_at_once(shop: Site, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into one target the second is turned away while the first goes on, and from one source too; neither is spoilt."""
    monkeypatch.setattr(opening, "_COPYING_PATIENCE", 0.01)
    told = []

    def again(progress: CopyProgress) -> None:
        if (progress.stage, progress.table) == ("copy", "events"):
            for target in (site.url, f"{shop.url}.other"):
                with pytest.raises(StoreUnavailableError) as raised:
                    copy_database(shop.url, target)
                told.append(str(raised.value))
            with pytest.raises(StoreUnavailableError):
                copy_database(shop.url, site.url, rehearse=True)

    assert copy_database(shop.url, site.url, hear=again).verified == 1
    assert len(told) == 2
    assert Site(f"{shop.url}.other").filled() == {}


def test_a_line_that_breaks(shop: Site, postgres_server: Databases) -> None:
    """In the middle of a copy to a server, or from one: it is told, and the other side is as it was."""
    with postgres_server.prepared() as first, postgres_server.prepared() as second:
        place, other = Site(first), Site(second)

        def cut(progress: CopyProgress) -> None:
            if (progress.stage, progress.table) == ("copy", "events"):
                place.ask(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                )

        with pytest.raises(StoreUnavailableError):
            copy_database(shop.url, place.url, hear=cut)
        assert place.filled().keys() == {"meta"}
        assert copy_database(shop.url, place.url).verified == 1
        with pytest.raises(StoreUnavailableError):
            copy_database(place.url, other.url, hear=cut)
        assert other.filled().keys() == {"meta"}
        assert "maintenance" not in place.facts()
        assert copy_database(place.url, other.url).verified == 1


def test_a_disk_that_is_full(shop: Site, tmp_path: Path) -> None:
    """It is told, and the file is empty again."""
    shop.ask("insert into definition_triggers values (?, 'b', 'c')", "x" * 2_000_000)
    target = Site(f"sqlite:///{tmp_path / 'target.db'}")
    open_store(target.url).close()

    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
        try:
            copy_database(shop.url, target.url)
        except StoreUnavailableError:
            os._exit(7)

    assert in_a_child(write) == 7
    assert target.filled().keys() == {"meta"}
    assert copy_database(shop.url, target.url).verified == 1


def test_positions_numbers_and_months_go_on(site: Site, tmp_path: Path, postgres_dsn: str) -> None:
    """Events of one position are told apart where they must be, readers stand behind what they have read, and no number is given twice."""
    source = Site(postgres_dsn)
    open_store(source.url).close()
    ids = [f"0190b6d0-0000-7000-8000-00000000000{number}" for number in range(3)]
    at = "2024-07-15T10:00:00.000001+00:00"
    for instance, position in zip(ids, (5 << 20, 5 << 20, (5 << 20) + 1), strict=True):
        values = (instance, 1, position, "default", "e", 1, b"\x00", at, "", "", "")
        source.ask(f"insert into standfast.events values ({', '.join('?' * 11)})", *values)
        header = (instance, "default", "d", "1", "decider", "running", "", True, 1, 0, 1, at, at, "")
        names = "id, tenant, definition, definition_version, kind, status, reason, begun, version, issued, commits, created_at, updated_at, started_by"
        source.ask(f"insert into standfast.instances ({names}) values ({', '.join('?' * 14)})", *header)
    source.ask(
        "insert into standfast.projections values ('half', ?, null, '', null), ('none', 0, null, '', null)", 5 << 20
    )
    source.ask("alter table standfast.inbox alter column id restart with 41")
    source.ask("select nextval(pg_get_serial_sequence('standfast.inbox', 'id'))")
    copied = copy_database(source.url, site.url)
    assert (copied.verified, copied.unread) == (0, {"d": 3})
    found = [position for (position,) in site.ask("select position from standfast.events order by position, instance")]
    reader = dict(site.ask("select name, position from standfast.projections"))
    if site.is_file:
        assert (found, reader["half"]) == ([5 << 20, (5 << 20) + 1, (5 << 20) + 2], (5 << 20) + 1)
        (last,) = site.ask("select seq from sqlite_sequence where name = 'inbox'")[0]
    else:
        assert (found, reader["half"]) == ([5 << 20, 5 << 20, (5 << 20) + 1], 5 << 20)
        (last,) = site.ask("select last_value - 1 from standfast.inbox_id_seq")[0]
        assert site.ask("select distinct tableoid::regclass::text from standfast.events") == [
            ("standfast.events_2024_07",)
        ]
    assert (last, reader["none"]) == (41, 0)
    store = open_store(site.url)
    newest = store.feed().newest()
    store.close()
    assert newest >= max(found)


def test_a_plain_owner_can_copy(shop: Site, postgres_server: Databases) -> None:
    """A user who owns the database and has made the roles, as servers of others give one: no superuser, and walls hold for him too."""
    with postgres_server.empty() as admin, login(admin) as dsn:
        user, database = urlsplit(dsn).username, urlsplit(dsn).path[1:]
        # What a server gives to a user who makes a role: he may grant it, and has nothing of it himself.
        Site(admin).ask(f"grant standfast_engine, standfast_tenant to {user} with admin true, inherit false, set false")
        Site(admin).ask(f"alter database {database} owner to {user}")
        assert copy_database(shop.url, dsn).verified == 1
        assert copy_database(dsn, f"{shop.url}.back").verified == 1
        with (
            login(admin, "standfast_engine") as worker,
            pytest.raises(ConfigurationError, match="the user that migrates"),
        ):
            copy_database(worker, f"{shop.url}.other")
        Site(admin).ask(f"alter database {database} owner to current_user")


def test_a_row_may_be_huge(shop: Site, site: Site) -> None:
    """Bytes that no text has, and many of them."""
    data = bytes(range(256)) * 10_000
    (run,) = shop.ask("select instance from events limit 1")[0]
    shop.ask(
        "insert into document_versions values (?, 1, 't', 's', ?, 'h', 1, 'w', '2026-01-01T00:00:00.000000+00:00')",
        run,
        data,
    )
    copy_database(shop.url, site.url, verify=False)
    ((found,),) = site.ask("select data from standfast.document_versions")
    assert found == data
