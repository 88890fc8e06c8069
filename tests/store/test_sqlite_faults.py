"""When the file fails: each fault has a stable code and a sentence, nothing half-written stays, and it passes with its cause."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from standfast.errors import ConfigurationError, CorruptHistoryError, StoreError, StoreUnavailableError
from standfast.store.opening import open_store
from standfast.store.records.instances import InstanceChange, InstanceQuery
from standfast.store.sqlite.store import SQLiteStore
from support.desks import Desk
from support.inside import connections_of
from support.rows import (
    NOW,
    born,
    by_id,
    by_key,
    definition,
    moved,
)
from support.unprivileged import as_nobody, public_folder
from support.waiting import arrives, together


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that holds a store with one instance."""
    file = tmp_path / "store.db"
    store = open_store(f"sqlite:///{file}")
    Desk(store).born(born(key="first"))
    store.close()
    return file


@pytest.fixture
def desk(path: Path) -> Iterator[Desk]:
    """A desk on that file."""
    store = open_store(f"sqlite:///{path}")
    yield Desk(store)
    store.close()


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            "create table events (id integer primary key, title text)",
            "names that the engine needs: events;",
        ),
        ("create view steps as select 1", "names that the engine needs: steps;"),
        ("create table mine (id)", ""),
    ],
)
def test_what_somebody_else_has_in_the_file_stays_and_is_named(tmp_path: Path, made: str, told: str) -> None:
    """A table of an application by a name of the engine's is refused by its name when the file is opened, and nothing is made beside it."""
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as shop:
        shop.execute(made)
        before = shop.execute("select sql from sqlite_schema").fetchall()
        if not told:
            open_store(f"sqlite:///{file}").close()
            return
        with pytest.raises(ConfigurationError, match=told):
            open_store(f"sqlite:///{file}")
        assert shop.execute("select sql from sqlite_schema").fetchall() == before


@pytest.mark.parametrize("version", [1, 99])
def test_a_file_that_somebody_else_has_marked_is_no_schema_of_ours(tmp_path: Path, version: int) -> None:
    """Whoever keeps a `user_version` of his own in the file is told so, and not to update anything."""
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as shop:
        shop.execute("create table mine (id)")
        shop.execute(f"pragma user_version = {version}")
    with pytest.raises(ConfigurationError, match="other software uses it"):
        open_store(f"sqlite:///{file}")


def test_who_opens_a_file_that_is_in_order_waits_for_no_writer(path: Path) -> None:
    """Nor does who makes known what is known: it may be a process whose own transaction has the writer already."""
    known = definition()
    with closing(open_store(f"sqlite:///{path}")) as store:
        assert store.definitions().publish(known, NOW).hash == known.hash
    with held(path), closing(SQLiteStore(str(path), codec="json", patience=0.05)) as store:
        assert store.definitions().publish(known, NOW).hash == known.hash


def test_a_read_only_file_is_unavailable() -> None:
    """A file that may not be written is refused when it is opened, with the code of an outage."""
    with public_folder() as folder:
        file = folder / "store.db"
        open_store(f"sqlite:///{file}").close()
        file.chmod(0o444)
        folder.chmod(0o555)
        with as_nobody(), pytest.raises(StoreUnavailableError, match=r"read-only|cannot be opened") as caught:
            open_store(f"sqlite:///{file}")
    assert (caught.value.code, caught.value.retryable) == ("store_unavailable", True)


def test_a_file_that_may_not_be_read_is_unavailable() -> None:
    """A file of somebody else is refused with a sentence that names it."""
    with public_folder() as folder:
        file = folder / "store.db"
        open_store(f"sqlite:///{file}").close()
        file.chmod(0o000)
        with as_nobody(), pytest.raises(StoreUnavailableError, match=str(file)):
            open_store(f"sqlite:///{file}")


def test_a_commit_waits_for_the_disk(desk: Desk) -> None:
    """The log is synchronised with every commit: less loses acknowledged commits in a power cut."""
    assert (desk.query("pragma synchronous"), desk.query("pragma journal_mode")) == ([(2,)], [("wal",)])


def test_an_unwritable_folder_is_a_wrong_setting() -> None:
    """Where no file can be made, the message says why."""
    with public_folder() as folder:
        folder.chmod(0o555)
        with as_nobody(), pytest.raises(ConfigurationError, match="cannot be created: Permission denied"):
            open_store(f"sqlite:///{folder / 'store.db'}")


@pytest.mark.parametrize("content", [b"this is no database, whatever its name says" * 99, b"\x00" * 4096])
def test_a_foreign_file_is_damaged(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is never written to; the message says to restore it."""
    file = tmp_path / "store.db"
    file.write_bytes(content)
    with pytest.raises(CorruptHistoryError, match=r"is damaged.*restore it from a backup") as caught:
        open_store(f"sqlite:///{file}")
    assert (caught.value.code, caught.value.retryable) == ("corrupt_history", False)
    assert file.read_bytes() == content


def test_a_damaged_page_is_found(path: Path) -> None:
    """Rubbish in the middle of the file is corruption as soon as it is read, and no answer is made up."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.raises(CorruptHistoryError, match="is damaged"):
        works(path)


def works(path: Path) -> None:
    """Open the store and use it."""
    store = open_store(f"sqlite:///{path}")
    try:
        desk = Desk(store)
        desk.born(born())
        desk.feed.read(after=0, limit=9)
    finally:
        store.close()


@contextmanager
def full_disk(desk: Desk) -> Iterator[None]:
    """The file may not grow for a while."""
    writer: sqlite3.Connection = desk.store._database._writer  # type: ignore[attr-defined]
    (used,) = writer.execute("pragma page_count").fetchone()
    writer.execute(f"pragma max_page_count = {used}")
    try:
        yield
    finally:
        writer.execute("pragma max_page_count = 1000000000")


def test_a_full_disk_is_unavailable_and_passes(desk: Desk) -> None:
    """A commit that finds no room is undone whole, tells so, and can be repeated when there is room."""
    first = desk.loaded(desk.reader.instances(InstanceQuery())[0].id).header
    large = moved(first)
    large.events = [msgspec.structs.replace(event, data=b"x" * 1_000_000) for event in large.events]
    with full_disk(desk), pytest.raises(StoreUnavailableError, match="the disk is full") as caught:
        desk.commit(born(), large)
    assert caught.value.retryable
    assert len(desk.reader.instances(InstanceQuery())) == 1
    desk.commit(large)
    assert desk.loaded(first.id).header.version == 2


LIMITED = """
import resource, sys
sys.path.insert(0, {tests!r})
from standfast.errors import StoreUnavailableError
from standfast.store.opening import open_store
from support.desks import Desk
from support.inside import connections_of
from support.rows import born
desk = Desk(open_store(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
try:
    for _ in range(10_000):
        desk.born(born(events=20))
except StoreUnavailableError as error:
    print(error.code)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
desk.born(born(key="afterwards"))
print("went on")
"""


def test_a_write_that_the_system_refuses_is_unavailable(tmp_path: Path) -> None:
    """When the operating system itself refuses to let the file grow, what was committed stays and the rest is refused."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    script = LIMITED.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["store_unavailable", "went on"], done.stderr
    store = open_store(url)
    (found,) = store.writer().load([by_key("afterwards")])
    assert found is not None
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    store.close()


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin immediate")
print("held", flush=True)
sys.stdin.readline()
connection.execute("commit")
"""


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the write lock of the file until it is told to let go."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_a_second_process_is_waited_for(path: Path, desk: Desk) -> None:
    """A commit that finds the file locked by another process waits for its turn; no lock is ever reported."""
    asked = threading.Event()
    writer: sqlite3.Connection = desk.store._database._writer  # type: ignore[attr-defined]
    writer.set_trace_callback(lambda statement: asked.set() if statement == "begin immediate" else None)
    outcome: list[BaseException | None] = []

    def commit() -> None:
        try:
            desk.born(born(key="waited"))
        except BaseException as error:  # noqa: BLE001 - looked at below
            outcome.append(error)
        else:
            outcome.append(None)

    with held(path):
        thread = threading.Thread(target=commit)
        thread.start()
        arrives(asked)
        assert not outcome
    thread.join()
    assert outcome == [None]


def test_reading_does_not_wait(path: Path, desk: Desk) -> None:
    """While another process writes, readers see the last commit at once."""
    with held(path):
        assert [head.key for head in desk.reader.instances(InstanceQuery())] == ["first"]


def test_patience_ends_in_our_words(path: Path) -> None:
    """Whoever waits too long hears of an outage with a stable code, and can go on when the lock is free."""
    store = SQLiteStore(str(path), codec="json", patience=0.05)
    desk = Desk(store)
    with held(path), pytest.raises(StoreUnavailableError, match="another process holds its write lock") as caught:
        desk.born(born())
    assert (caught.value.code, caught.value.retryable) == ("store_unavailable", True)
    desk.born(born())
    store.close()


def test_making_the_tables_waits_like_everything_else(tmp_path: Path) -> None:
    """A new file that another process is writing to can be opened with patience, and not without."""
    file = tmp_path / "new.db"
    with held(file), pytest.raises(StoreUnavailableError):
        SQLiteStore(str(file), codec="json", patience=0.05)
    SQLiteStore(str(file), codec="json", patience=0.05).close()


def test_threads_take_turns(desk: Desk) -> None:
    """Many threads of one process write at once, and none of them ever meets a lock."""
    changes = [[born() for _ in range(5)] for _ in range(8)]

    def work(mine: list[InstanceChange]) -> None:
        for change in mine:
            desk.commit(change)

    together(*(partial(work, mine) for mine in changes))
    found = desk.writer.load([by_id(change.header.id) for mine in changes for change in mine])
    assert all(each is not None for each in found)


def test_whoever_reads_while_a_store_is_closed_comes_to_an_end(path: Path) -> None:
    """A thread that outlives its engine keeps the connection that it reads with until it leaves it: to close it under its hands ends the process."""
    store = SQLiteStore(str(path), codec="json")
    database: Any = store._database
    with database.reading() as connection:
        rows = connection.execute(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select i from n"
        )
        assert rows.fetchone() == (1,)
        store.close()
        assert len(rows.fetchall()) == 8
    assert connections_of(store) == 0
    with pytest.raises(StoreUnavailableError, match="was stopped"), database.reading():
        pass


def test_a_closed_store_says_so(path: Path) -> None:
    """Work on a store that was closed is an error of ours."""
    store = open_store(f"sqlite:///{path}")
    desk = Desk(store)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        desk.commit(born(), now=NOW)


def test_readers_cannot_write(desk: Desk) -> None:
    """A reader has a connection of its own, which only reads: whatever writes goes through the one that takes turns."""
    assert isinstance(desk.store, SQLiteStore)
    with pytest.raises(StoreError, match="readonly"), desk.store._database.reading() as connection:
        connection.execute("delete from instances")
    assert desk.writer.load([by_key("first")]) != [None]


def test_the_writer_is_taken_from_nobody_elses_projection(tmp_path: Path) -> None:
    """Engines on one store object each take the only writer from their own projections, and leave it to those of others."""
    store = SQLiteStore(str(tmp_path / "shared.db"), codec="json")
    own, other = store.share(), store.share()
    seen: list[str] = []

    def clear(connection: Any) -> None:
        for share in (other, own):
            taking = threading.Thread(target=share.take_back)
            taking.start()
            taking.join()
            try:
                connection.execute("select 1")
                seen.append("kept")
            except sqlite3.Error:
                seen.append("taken")

    with pytest.raises(TimeoutError):
        own.feed().rewind("p", clear=clear, now=NOW)
    assert seen == ["kept", "taken"]
    store.close()
