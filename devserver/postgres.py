"""A throwaway Postgres server for tests, benchmarks and trying out: no root step, no Docker, nothing left behind.

    with temporary_server() as server:
        dsn = server.create_database("orders")

The server is a child of this process and ends with it, on Linux even when this process is killed. Its data lies in
memory where possible and is removed at the end; what a killed process left behind is removed by the next one. Whoever
can reach the loopback address of this machine is let in without a password: keep nothing of value in it.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

from devserver.folders import make_folder, sweep_folders
from devserver.programs import (
    clean_environment,
    find_programs,
    run_as,
    server_account,
    tied_command,
    usable_programs,
)
from standfast.errors import ConfigurationError

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02
TAIL_BYTES = 4_000
PORTS = range(15_432, 32_768)
"""Below the range from which systems take the ports of outgoing connections, so that a restart finds its port free."""

DEFAULTS = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
}

PASSING_FAULTS = (
    "could not create any TCP/IP sockets",
    "pre-existing shared memory block",
    'lock file "postmaster.pid" already exists',
)
"""What a start-up may complain about that another attempt can cure: a port race, the last remains of a killed server."""


@contextmanager
def temporary_server(*, fsync: bool = False, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A running server that is gone when the block is left.

    Args:
        fsync: whether a commit waits for the disk; such a server keeps its data on disk, not in memory.
        settings: further server settings, for example `{"log_statement": "all"}`. Addresses, `fsync`,
            `full_page_writes` and `synchronous_commit=on` cannot be changed this way.
    """
    server = Server(fsync=fsync, settings=settings)
    try:
        server.start()
        yield server
    finally:
        server.close()


class Server:
    """One Postgres server with data of its own. Use `temporary_server`, or `start` it and `close` it in the end."""

    def __init__(self, *, fsync: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._account = server_account()
        self._folders: list[Path] = []
        self._process: _Process | None = None
        self._port: int | None = None
        self._settings = DEFAULTS | dict(settings or {}) | _durability(fsync=fsync)
        sweep_folders(self._account)
        atexit.register(self._close_at_exit, os.getpid())
        self._programs = self._find_programs()
        self._folder = self._make_folder(in_memory=not fsync)

    @property
    def data_directory(self) -> Path:
        """Where the server keeps its data; it survives `stop` and goes with `close`."""
        return self._folder / "data"

    @property
    def log_file(self) -> Path:
        """Everything the server has logged since it was made."""
        return self._folder / "log"

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; it stays the same over `stop` and `start`."""
        assert self._port is not None, "the server was never started"
        return self._port

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the server process exists."""
        return self._process is not None and self._process.is_alive

    def dsn(self, database: str = "postgres", *, over_socket: bool = False) -> str:
        """The URL of a database, by TCP; `over_socket` names the unix socket instead, which is a little faster."""
        if over_socket:
            return f"postgresql://postgres@/{quote(database)}?host={quote(str(self._folder), safe='')}&port={self.port}"
        return f"postgresql://postgres@127.0.0.1:{self.port}/{quote(database)}"

    def create_database(self, name: str, template: str | None = None) -> str:
        """Make a database, empty or as a copy of another that nobody is connected to; returns its URL."""
        return create_database(self.dsn(), name, template=template)

    def drop_database(self, name: str) -> None:
        """Remove a database if it exists, and end every connection to it."""
        drop_database(self.dsn(), name)

    def start(self) -> None:
        """Start the server and wait until it answers; after `stop`, on the same data and port."""
        if self.is_running:
            return
        if not self.data_directory.exists():
            self._initialize()
        deadline = time.monotonic() + START_SECONDS
        while not self._attempt_start(deadline):
            time.sleep(POLL_SECONDS)

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server and keep its data.

        `fast` ends all connections and writes a checkpoint; `immediate` just quits, so that the next start recovers
        from the log as after a crash.
        """
        if self._process is not None:
            self._process.end({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
            self._process = None

    def close(self) -> None:
        """Stop the server and remove everything it had."""
        self.stop("immediate")
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        atexit.unregister(self._close_at_exit)

    def _close_at_exit(self, owner: int) -> None:
        if os.getpid() == owner:  # A forked copy of this process must not take the server from the original.
            self.close()

    def _make_folder(self, *, in_memory: bool = False, executable: bool = False) -> Path:
        folder = make_folder(self._account, in_memory=in_memory, executable=executable)
        self._folders.append(folder)
        return folder

    def _find_programs(self) -> Path:
        # InstanceCache-backed folders are often mounted without the right to execute, so a copy gets a folder of its own.
        return usable_programs(find_programs(), self._account, lambda: self._make_folder(executable=True))

    def _initialize(self) -> None:
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        data = f"--pgdata={self.data_directory}"
        done = run_as(self._account, self._programs / "initdb", *options, data, cwd=self._folder)
        if done.returncode != 0:
            raise ConfigurationError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _attempt_start(self, deadline: float) -> bool:
        """Start the process and wait for it; False when it ended with a fault that may pass."""
        port = self._port or _free_port()
        log_offset = self.log_file.stat().st_size if self.log_file.exists() else 0
        process = _Process(self._command(port), self._folder, self.log_file)
        try:
            ready = _wait_until_ready(
                process, f"host={self._folder} port={port} user=postgres dbname=postgres", deadline
            )
        except BaseException:
            process.end(signal.SIGQUIT)
            raise
        if ready:
            self._process, self._port = process, port
            return True
        tail = _tail(self.log_file, log_offset)
        if time.monotonic() < deadline and any(fault in tail for fault in PASSING_FAULTS):
            return False
        process.end(signal.SIGQUIT)
        raise ConfigurationError(f"the Postgres server did not start; the end of its log:\n{tail}")

    def _command(self, port: int) -> list[str]:
        addresses = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": str(self._folder),
        }
        options = [f"--{name}={value}" for name, value in (self._settings | addresses).items()]
        return tied_command(self._account, self._programs / "postgres", "-D", str(self.data_directory), *options)


class _Process:
    """A running `postgres` and the thread that started it.

    Linux sends the signal that ties the two together when the starting *thread* ends, not the process. So the server
    is started by a thread that does nothing else and stays until the server has ended, whichever thread asked for it.
    """

    def __init__(self, command: list[str], folder: Path, log_file: Path) -> None:
        started: Future[subprocess.Popen[bytes]] = Future()
        self._keeper = threading.Thread(
            target=_keep, args=(started, command, folder, log_file), name="postgres-keeper", daemon=True
        )
        self._keeper.start()
        self._popen = started.result()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        return self._keeper.is_alive()

    def ends_within(self, seconds: float) -> bool:
        self._keeper.join(seconds)
        return not self._keeper.is_alive()

    def end(self, request: signal.Signals) -> None:
        """Ask the server to end, insist after a while, and wait until it has ended."""
        self._popen.send_signal(request)
        if not self.ends_within(STOP_SECONDS):
            self._popen.kill()
            self._keeper.join()


def _keep(started: Future[subprocess.Popen[bytes]], command: list[str], folder: Path, log_file: Path) -> None:
    try:
        with log_file.open("ab") as log:
            # A session of its own: the interrupt key at the terminal is for this process, which then stops the server.
            process = subprocess.Popen(  # noqa: S603 - programs found by us, settings of our caller
                command,
                cwd=folder,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except BaseException as error:  # noqa: BLE001 - the thread that waits for the outcome raises it
        started.set_exception(error)
        return
    started.set_result(process)
    process.wait()


def _wait_until_ready(process: _Process, conninfo: str, deadline: float) -> bool:
    """Wait until the server answers; False when it ended or the deadline passed before it did."""
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            psycopg.connect(conninfo, connect_timeout=2).close()
            return True
        if process.ends_within(POLL_SECONDS):
            return False
    return False


def _durability(*, fsync: bool) -> dict[str, str]:
    switch = "on" if fsync else "off"
    return {"fsync": switch, "full_page_writes": switch, "synchronous_commit": "on"}


def _free_port() -> int:
    """A port that nobody listens on at this moment; who loses the race for it tries another."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _tail(log_file: Path, offset: int) -> str:
    text = log_file.read_bytes()[offset:]
    return text[-TAIL_BYTES:].decode(errors="replace")


def database_dsn(dsn: str, database: str) -> str:
    """The URL of another database on the same server."""
    parts = urlsplit(dsn)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ConfigurationError(f"a Postgres server is named by a postgresql:// URL, not by {dsn!r}")
    return parts._replace(path=f"/{quote(database)}").geturl()


def create_database(dsn: str, name: str, *, template: str | None = None) -> str:
    """Make a database on the server that the URL leads to; returns the URL of the new database."""
    created = database_dsn(dsn, name)
    statement = sql.SQL("create database {}").format(sql.Identifier(name))
    if template is not None:
        statement += sql.SQL(" template {}").format(sql.Identifier(template))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)
    return created


def drop_database(dsn: str, name: str) -> None:
    """Remove a database if it exists, and end every connection to it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
