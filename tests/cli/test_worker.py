"""`standfast worker`, as real processes: they work, are drained when they are asked to end, and are started again when they die."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from cli.calling import Standfast
from standfast import Engine, Saga
from standfast.cli.admin.worker import _Seat
from standfast.cli.applications import equip
from standfast.cli.exit_codes import Exit
from standfast.cli.subprocesses import Subprocess
from standfast.errors import ConfigurationError
from standfast.store.opening import open_store
from support.repository import ROOT

SHOP = """
import os
import pathlib

from standfast import Saga


def pack():
    if pathlib.Path("slow").exists():
        with open("begun", "w") as begun:
            begun.write("x")
        with open("gate") as gate:  # It opens once the test opens it too.
            gate.read()
    return {"parcel": os.getpid()}


order = Saga("order").step("pack", pack).build()
everything = [order]
nothing = 5


def register(engine):
    engine.register(order)


def broken(engine):
    raise ValueError("no")
"""


class Worker:
    """A worker that a test has started; what it says is read line by line."""

    def __init__(self, url: str, *options: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "STANDFAST_DATABASE": url}
        command = [sys.executable, "-m", "standfast.cli", "worker", "--app", "shop:register", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self._kept: list[int] = []
        """The processes that it has started, as far as it was heard."""

    def hear(self, pattern: str) -> re.Match[str]:
        """The next line that says this; a worker that ends before has failed."""
        heard = []
        for line in self._said:
            heard.append(line)
            self._kept += map(int, re.findall(r"worker (\d+) started", line))
            if (match := re.search(pattern, line)) is not None:
                return match
        raise AssertionError("".join(heard))

    @property
    def _said(self) -> IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait until it and all that it has started have ended; its exit code."""
        self._said.read()  # Whoever lives has it open.
        return self.process.wait(timeout=60)

    def close(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        for each in self._kept:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._said.close()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Worker]]:
    """Workers are closed at the end of the test."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    made: list[Worker] = []
    yield made
    for each in made:
        each.close()


@pytest.fixture
def filed() -> Standfast:
    """The command with a database in a file, for what has nothing to do with databases."""
    open_store("sqlite:///standfast.db").close()
    return Standfast("sqlite:///standfast.db")


def done(standfast: Standfast, *options: str) -> int:
    """Start an order and wait for it; the process that packed it."""
    told = standfast.json("start", "order", "--wait", "60s", *options)["result"]
    assert isinstance(told, dict)
    return int(told["parcel"])


@pytest.mark.row("EH-12", "G-43")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_works_until_it_is_asked_to_end(based: Standfast, workers: list[Worker], number: int) -> None:
    """Then it leaves with exit code 0."""
    worker = Worker(based.url)
    workers.append(worker)
    worker.hear("working on")
    assert done(based) == worker.process.pid
    assert worker.end(number) == Exit.DONE


def test_a_call_that_runs_is_finished_before_a_worker_leaves(based: Standfast, workers: list[Worker]) -> None:
    """What it did is stored: no other call follows."""
    os.mkfifo("begun")
    os.mkfifo("gate")
    Path("slow").touch()
    worker = Worker(based.url)
    workers.append(worker)
    worker.hear("working on")
    run = based("start", "order").stdout.strip()
    Path("begun").read_text()  # Until the handler has begun.
    worker.process.send_signal(signal.SIGTERM)
    worker.process.send_signal(signal.SIGTERM)  # Once more changes nothing.
    Path("gate").write_text("go")
    assert worker.wait() == Exit.DONE
    assert based("watch", run).stdout.splitlines()[-1] == f"{run} is completed"


def test_a_worker_that_dies_is_started_again(based: Standfast, workers: list[Worker]) -> None:
    """Several processes are kept alive, and all of them end when the one that keeps them is asked to."""
    supervisor = Worker(based.url, "--processes", "2")
    workers.append(supervisor)
    first = int(supervisor.hear(r"worker (\d+) started")[1])
    supervisor.hear("working on")
    os.kill(first, signal.SIGKILL)
    assert int(supervisor.hear(r"worker (\d+) ended \(-9\); the next one begins (?:in|at)")[1]) == first
    second = int(supervisor.hear(r"worker (\d+) started")[1])
    assert second != first
    assert done(based) not in {first, supervisor.process.pid}
    assert supervisor.end() == Exit.DONE
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_no_worker_outlives_whoever_keeps_it(filed: Standfast, workers: list[Worker]) -> None:
    """A supervisor that is killed leaves no process behind."""
    supervisor = Worker(filed.url, "--processes", "2")
    workers.append(supervisor)
    supervisor.hear("working on")
    supervisor.hear("working on")
    assert supervisor.end(signal.SIGKILL) == -signal.SIGKILL


def test_a_machine_without_room_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A process that cannot be started now is started later, and meanwhile the others are kept."""
    tries = iter([OSError(errno.EAGAIN, "no room"), OSError(errno.EAGAIN, "no room")])

    def start() -> Subprocess:
        raise next(tries)

    seat = _Seat(start)
    assert [seat.look(), seat.look()] == [None, None]
    assert capsys.readouterr().err == "a worker cannot be started: no room; the next one begins in 1 s\n"


def test_what_another_start_cannot_mend_is_not_started_again(filed: Standfast, workers: list[Worker]) -> None:
    """A wrong application ends the supervisor with the code of its processes."""
    supervisor = Worker(filed.url, "--processes", "2", "--app", "shop:nope")
    workers.append(supervisor)
    supervisor.hear("shop has no 'nope'")
    assert supervisor.wait() == Exit.WRONG


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("", "a worker needs --app"),
        ("shop", "names no application; give module:attribute"),
        ("shp:register", "there is no module 'shp' here"),
        ("shop:registr", "shop has no 'registr'; did you mean 'register'?"),
        ("shop:broken", "shop:broken failed: ValueError: no"),
        ("shop:nothing", "cannot be registered"),
        ("bad:x", "bad cannot be imported: ZeroDivisionError"),
        ("missing:x", "missing cannot be imported: No module named 'nowhere'"),
    ],
)
@pytest.mark.usefixtures("workers")
def test_a_wrong_application_is_told(filed: Standfast, monkeypatch: pytest.MonkeyPatch, *, app: str, told: str) -> None:
    """With what is wrong about it, and exit code 2."""
    Path("bad.py").write_text("1 / 0")
    Path("missing.py").write_text("import nowhere")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    for name in ("shop", "bad", "missing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    options = ["--app", app] if app else []
    assert told in filed("worker", *options, code=Exit.WRONG).stderr


def test_a_worker_makes_no_database(standfast: Standfast) -> None:
    """One that is not there is told, as everywhere."""
    result = standfast("worker", "--app", "x:y", "--database", "sqlite:///nope.db", code=Exit.NOT_FOUND)
    assert "`standfast migrate" in result.stderr
    assert not Path("nope.db").exists()


def test_an_application_may_be_workflows_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """One, or several; other values are refused in the words of the engine."""
    one, two = (Saga(name).step("pack", lambda: None).build() for name in ("one", "two"))
    monkeypatch.setattr("cli.flows.one", one, raising=False)
    monkeypatch.setattr("cli.flows.both", [one, two], raising=False)
    engine = Engine("sqlite://")
    equip(engine, "cli.flows:one")
    assert [each.name for each in engine.definitions.list()] == ["one"]
    equip(engine, "cli.flows:both")
    assert [each.name for each in engine.definitions.list()] == ["one", "two"]
    with pytest.raises(ConfigurationError, match="cannot be registered"):
        equip(engine, "cli.flows:ORDERS")
    engine.stop()
