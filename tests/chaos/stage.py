"""The stage of the chaos test: two workers and a caller on one database, and what happens to them."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import psycopg

from chaos.actors import SETTINGS, cast_of
from chaos.player import player
from standfast import Engine, Reply, StoreUnavailableError
from support.campaigns import SEED
from support.laborer import Book
from support.proxy import MODES, Link, Proxy, proxied
from support.waiting import eventually

_TABLES = (
    "create table chaos_paid (trip text not null, key text not null)",
    "create table chaos_seen (position bigint not null, instance text not null, sequence bigint not null, primary key (instance, sequence))",
)
_LEASE_SECONDS = SETTINGS.lease.total_seconds()
OUTAGE_SECONDS = 8.0
"""How long the database is away at a stretch: longer than any part of an engine may be silent before its health says so."""
_PART = 1 << 10


class Spell(NamedTuple):
    """A time in which every engine had reason to say that it is not well."""

    begun: float
    ended: float
    why: str


class Stage:
    """The processes, and the hand that hurts them."""

    def __init__(self, url: str, folder: Path, proxy: Proxy | None) -> None:
        self.url = url
        self.folder = folder
        self.done = Book(folder / "done")
        self.calls = Book(folder / "calls")
        self.faults: Counter[str] = Counter()
        self.spells: list[Spell] = []
        self.director = cast_of(Engine(url, settings=SETTINGS), self.done)
        """An engine of the test's own, past the proxy; it gives orders and looks, and never works."""
        self._proxy = proxy
        self._chance = random.Random(SEED)
        self._stack = ExitStack()
        self._workers = [self._begin("worker") for _ in range(2)]
        self._caller = self._begin("caller")

    # -- what happens

    def misfortunes(self) -> list[Callable[[], None]]:
        """What may happen next."""
        common = [
            self.kill_a_worker,
            self.stop_a_worker,
            self.kill_the_caller,
            self.pause,
            self.refuse,
            self.rebuild,
            self.rebuild,
        ]
        if self._proxy is None:
            return [*common, self.lock_the_file, self.lock_the_file]
        return [*common, self.cut_a_connection, self.cut_a_connection, self.cut_all_connections]

    def hurt(self, seconds: float) -> None:
        """Have things go wrong for a while, one after the other, and one long outage in the middle."""
        begun, has_been_away = time.monotonic(), False
        while (gone := time.monotonic() - begun) < seconds:
            if gone > seconds / 2 and not has_been_away:
                has_been_away = True
                self.take_the_database_away()
            else:
                self._chance.choice(self.misfortunes())()
            time.sleep(0.2 + self._chance.random())  # Between two misfortunes the engines get somewhere.
            self.revive()

    def kill_a_worker(self) -> None:
        """A worker dies."""
        self.faults["worker killed"] += 1
        self._chance.choice(self._workers).kill()

    def kill_the_caller(self) -> None:
        """The API process dies in the middle of its calls."""
        self.faults["caller killed"] += 1
        self._caller.kill()

    def stop_a_worker(self) -> None:
        """A worker stands still for longer than its lease, and wakes up."""
        self.faults["worker stopped"] += 1
        worker = self._chance.choice(self._workers)
        with suppress(ProcessLookupError):
            worker.send_signal(signal.SIGSTOP)
            time.sleep(2 * _LEASE_SECONDS if self._may_write() else 0.05)
            worker.send_signal(signal.SIGCONT)

    def pause(self) -> None:
        """Processing is paused for a moment."""
        self._maintain("pause")

    def refuse(self) -> None:
        """Commands are refused for a moment."""
        self._maintain("refuse")

    def rebuild(self) -> None:
        """The read model is made anew while everything goes on."""
        self.faults["rebuilt"] += 1
        self._order(lambda: self.director.futures.projections.rebuild("seen"))

    def cut_a_connection(self) -> None:
        """A connection breaks in the middle of something."""
        assert self._proxy is not None
        self.faults["connection cut"] += 1
        nth = self._chance.randrange(_PART)

        def when(_link: Link, data: bytes) -> bool:
            return hash((nth, len(data))) % 7 == 0

        self._proxy.cut(when, self._chance.choice(MODES))

    def cut_all_connections(self) -> None:
        """The server ends every session."""
        self.faults["connections cut"] += 1
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid() and usename is not null"
            )

    def lock_the_file(self) -> None:
        """Another process keeps the write lock for a while."""
        self.faults["file locked"] += 1
        with self._locked():
            time.sleep(self._chance.random())

    def take_the_database_away(self) -> None:
        """The database is away for so long that every engine must say so."""
        self.faults["outage"] += 1
        begun = time.time()
        with self._locked() if self._proxy is None else self._proxy.shut():
            time.sleep(OUTAGE_SECONDS)
        self.spells.append(Spell(begun, time.time(), "the database was away"))

    def revive(self) -> None:
        """Whoever was killed comes back; nobody else may have died."""
        self._workers = [each if _lives(each) else self._begin("worker") for each in self._workers]
        if not _lives(self._caller):
            self._caller = self._begin("caller")

    # -- the end

    def lower_the_curtain(self) -> None:
        """Nothing goes wrong from here on, and nothing new is asked for."""
        self._order(self.director.futures.admin.resume_processing)
        self.revive()
        (self.folder / "curtain").touch()
        eventually(self._is_silent, within=120)

    def _is_silent(self) -> bool:
        self._workers = [each if _lives(each) else self._begin("worker") for each in self._workers]
        return self._caller.poll() == 0

    def end(self) -> list[int]:
        """Ask the workers to leave; their exit codes."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        return [worker.wait(60) for worker in self._workers]

    def pids(self) -> list[int]:
        """The workers that are alive."""
        return [worker.pid for worker in self._workers]

    def close(self) -> None:
        """Leave nothing behind."""
        self._stack.close()
        self.director.stop()

    # -- how

    def _begin(self, part: str) -> subprocess.Popen[bytes]:
        url = self.url if self._proxy is None else self._proxy.url
        return self._stack.enter_context(player(part, url, self.folder))

    def _order(self, order: Callable[[], Reply[None]]) -> None:
        """Give an order, again if the connections of the director were cut as well."""
        while True:
            with suppress(StoreUnavailableError):
                return order().result(60)

    def _maintain(self, mode: Literal["pause", "refuse"]) -> None:
        self.faults[mode] += 1
        admin = self.director.futures.admin
        self._order(admin.pause_processing if mode == "pause" else admin.refuse_commands)
        time.sleep(0.5 + self._chance.random() / 2)
        self._order(self.director.futures.admin.resume_processing)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
        try:
            connection.execute("begin immediate")
            yield
            connection.execute("rollback")
        finally:
            connection.close()

    def _may_write(self) -> bool:
        """Whether a file takes a writing transaction now: one that a process was stopped in would keep everybody waiting."""
        if self._proxy is not None:
            return True
        try:
            connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None, timeout=0.5)
            connection.execute("begin immediate")
            connection.execute("rollback")
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return True


def _lives(process: subprocess.Popen[bytes]) -> bool:
    code = process.poll()
    assert code in {None, -signal.SIGKILL}, f"a process ended by itself, with {code}"
    return code is None


def prepare(url: str) -> None:
    """The tables of the test's own."""
    if url.startswith("sqlite"):
        connection: sqlite3.Connection | psycopg.Connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    else:
        connection = psycopg.connect(url)
    with connection:
        for statement in _TABLES:
            connection.execute(statement)
    connection.close()


@contextmanager
def stage(url: str, folder: Path) -> Iterator[Stage]:
    """A stage with everybody on it."""
    with nullcontext() if url.startswith("sqlite") else proxied(url) as proxy:
        Engine(url, settings=SETTINGS).stop()  # The tables are there before anybody comes.
        prepare(url)
        set_up = Stage(url, folder, proxy)
        try:
            yield set_up
        finally:
            set_up.close()
