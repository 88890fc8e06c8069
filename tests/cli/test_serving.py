"""`standfast server`, `keys`, `dev` and `init`, as real processes: who is let in, what is drained, and that what is written runs."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

from cli.calling import Standfast
from cli.programs import standfast_program
from standfast import Engine, Saga
from standfast.app.configuration import Serving
from standfast.cli.admin.serve import options_of
from standfast.cli.develop.init import called
from standfast.cli.exit_codes import Exit
from standfast.client import Client, Retries
from standfast.errors import ConfigurationError, ForbiddenError
from standfast.http import HttpOptions
from standfast.store.opening import open_store
from support.waiting import arrives, eventually

SHOP = """
from standfast import Saga

def pack():
    with open("begun", "w") as begun:
        begun.write("x")
    with open("gate") as gate:  # It opens once the test opens it too.
        gate.read()
    return {"parcel": 7}

order = Saga("order").step("pack", pack).build()
"""
START = b'{"definition": "order"}'
NONE = "there is no valid API key"


@pytest.fixture
def filed() -> Standfast:
    """The command with a database in a file: which store it is makes no difference here."""
    open_store("sqlite:///standfast.db").close()
    return Standfast("sqlite:///standfast.db")


def key_of(standfast: Standfast, *words: str) -> str:
    """The secret of a new key."""
    return standfast("keys", "create", "test", "--actor", "ann", *words).stdout.strip()


def test_a_server_that_nobody_could_come_to_does_not_begin(filed: Standfast) -> None:
    """Without a key that holds, or an issuer; it says how to make one, and what does without."""
    told = filed("server", "--port", "0", code=Exit.WRONG).stderr
    assert NONE in told
    assert "standfast keys create" in told
    assert "--insecure-dev" in told
    secret = key_of(filed, "--scope", "*")
    filed("keys", "revoke", secret.split("_")[1])
    assert NONE in filed("server", "--port", "0", code=Exit.WRONG).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--insecure-dev", "--host", "0.0.0.0"), "accepts every client that can reach '0.0.0.0'"),
        (("--insecure-dev", "--host", "192.0.2.1"), "accepts every client that can reach"),
        (("--insecure-dev", "--certificate", "none.pem"), "the certificate cannot be used"),
        (("--with-worker",), "--with-worker needs --app"),
        (("--app", "nothing:here"), "there is no module 'nothing'"),
        (("--database", "sqlite:///none.db"), "no database"),
        (("--port", "70000"), "70000 is not in the range"),
    ],
)
def test_a_server_that_is_told_nonsense_does_not_begin(filed: Standfast, words: tuple[str, ...], told: str) -> None:
    """In one sentence, before anything listens."""
    code = Exit.NOT_FOUND if "--database" in words else Exit.WRONG
    assert told in filed("server", "--port", "0", *words, code=code).stderr


@pytest.mark.row("EO-40")
def test_a_server_without_security_says_so_and_is_for_this_machine(filed: Standfast) -> None:
    """Everybody here is let in without a key, and whoever started it is told."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        port = line.getsockname()[1]
    seen: list[str] = []

    def visit() -> None:
        with Client(f"http://127.0.0.1:{port}", retries=Retries(attempts=600, delay=0.05, longest_delay=0.1)) as client:
            seen.append(client.tell_me().credential)
        os.kill(os.getpid(), signal.SIGTERM)  # It listens, so that this is for it.

    visitor = threading.Thread(target=visit)
    visitor.start()
    told = filed("server", "--insecure-dev", "--port", str(port)).stderr
    visitor.join(60)
    assert seen == ["dev"]
    assert "INSECURE: authentication is off (development mode); only this machine can connect" in told


@pytest.mark.row("D-079", "G-43")
def test_a_server_answers_what_it_has_begun_and_then_ends(filed: Standfast) -> None:
    """SIGTERM: a request that has begun is answered, a stream ends, the handler that runs comes to its end, and the exit code is 0."""
    Path("shop.py").write_text(SHOP, encoding="utf-8")
    os.mkfifo("gate")
    secret = key_of(filed, "--scope", "*")
    words = ("server", "--port", "0", "--app", "shop:order", "--with-worker")
    with standfast_program(*words, STANDFAST_DATABASE=filed.url) as program:
        address = program.hear(r"serving at (\S+)")[1]
        with Client(address) as stranger, pytest.raises(ForbiddenError):
            stranger.list_executions()
        port = address.rpartition(":")[2]
        told = filed("server", "--port", port, code=Exit.WRONG).stderr
        assert f"cannot listen at 127.0.0.1, port {port}: Address already in use" in told
        with Client(address, secret) as client:
            slow = client.start_execution(definition="order").id
        eventually(Path("begun").exists)
        listener = Listener(address, secret)
        line = begun_request(address, secret)
        program.process.send_signal(signal.SIGTERM)
        listener.thread.join(60)
        assert not listener.thread.is_alive()
        line.sendall(START)
        assert line.recv(4096).startswith(b"HTTP/1.1 201")
        line.close()
        program.hear("shutting down: running handlers may finish")
        program.process.send_signal(signal.SIGTERM)  # It waits for the handler, and once more changes nothing.
        Path("gate").write_text("", encoding="utf-8")
        assert program.wait()[0] == 0
    engine = Engine(filed.url, migrate=False)
    assert engine.run(slow).describe().result == {"parcel": 7}
    assert len(engine.runs.list(definition="order")) == 2
    engine.stop()


def test_a_server_that_ends_tells_those_whom_it_leaves(filed: Standfast) -> None:
    """A request that takes longer than an ending server waits is refused as one that may be sent again, and nothing looks like a failure."""
    head = b"POST /api/v1/executions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
    with standfast_program("server", "--port", "0", "--insecure-dev", STANDFAST_DATABASE=filed.url) as program:
        port = int(program.hear(r"serving at http://127.0.0.1:(\d+)")[1])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
            line.sendall(head)
            eventually(lambda: httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200)
            code, told = program.end()
            answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"stopped"' in answer
    assert (code, "Traceback" in told) == (0, False)


@pytest.mark.parametrize("words", [("server", "--port", "0", "--with-worker"), ("worker",)])
def test_ctrl_c_again_ends_it_at_once(filed: Standfast, words: tuple[str, ...]) -> None:
    """A server and a worker that wait for a handler are ended by a second SIGINT; the run goes on elsewhere, as after a crash."""
    Path("shop.py").write_text(SHOP, encoding="utf-8")
    os.mkfifo("gate")
    key_of(filed, "--scope", "*")
    with standfast_program(*words, "--app", "shop:order", STANDFAST_DATABASE=filed.url) as program:
        program.hear("serving at|working on")
        run = filed("start", "order").stdout.strip()
        eventually(Path("begun").exists)
        program.process.send_signal(signal.SIGTERM)

        def insisted() -> bool:
            program.process.send_signal(signal.SIGINT)
            return program.process.poll() is not None

        eventually(insisted)
        assert program.wait()[0] == -signal.SIGINT
    assert filed.json("show", run)["run"]["status"] == "running"


class Listener:
    """Somebody who listens to what happens, on a thread, until the server ends that."""

    def __init__(self, address: str, secret: str) -> None:
        self._hears = threading.Event()
        self.thread = threading.Thread(target=self._listen, args=(address, secret), daemon=True)
        self.thread.start()
        arrives(self._hears)

    def _listen(self, address: str, secret: str) -> None:
        headers = {"authorization": f"Bearer {secret}"}
        with httpx.stream("GET", f"{address}/api/v1/executions/events", headers=headers, timeout=60) as response:
            for _ in response.iter_lines():
                self._hears.set()


def begun_request(address: str, secret: str) -> socket.socket:
    """A start whose body the server waits for."""
    host, _, port = address.removeprefix("http://").partition(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    head = (
        "POST /api/v1/executions HTTP/1.1",
        f"host: {host}",
        f"authorization: Bearer {secret}",
        "content-type: application/json",
        f"content-length: {len(START)}",
        "expect: 100-continue",
    )
    line.sendall("\r\n".join([*head, "", ""]).encode())
    assert line.recv(4096).startswith(b"HTTP/1.1 100")
    return line


def test_what_the_configuration_says_of_a_server_is_laid_over_what_python_says(tmp_path: Path) -> None:
    """Issuers are added, what is said counts, and the rest is as the program has it; what cannot be meant is told."""
    Path("web.py").write_text(
        "from standfast.http import HttpOptions, InboundHook\n"
        "options = HttpOptions(burst=7, open_metrics=True, hooks=(InboundHook(name='a', secrets=(), event='e'),))\n"
        "other = 5\n",
        encoding="utf-8",
    )
    made = options_of(Serving(options="web:options", issuer="https://i", audience="h", jwks="keys.json", burst=9))
    assert (made.burst, made.open_metrics, made.hooks[0].name) == (9, True, "a")
    assert [(each.issuer, each.jwks) for each in made.issuers] == [("https://i", "keys.json")]
    assert options_of(Serving()) == HttpOptions()
    with pytest.raises(ConfigurationError, match="is no HttpOptions"):
        options_of(Serving(options="web:other"))


@pytest.mark.long
def test_dev_answers_its_first_request_in_three_seconds() -> None:
    """Of computing, so that what else the machine does counts for little."""
    with standfast_program("dev", "--port", "0") as program:
        address = program.hear(r"standfast is at (\S+)")[1]
        assert httpx.get(f"{address}/api/v1/executions").status_code == 200
        assert program.processor_seconds < 3


def test_who_changes_a_workflow_while_trying_is_told_how_to_begin_anew(
    standfast: Standfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was published stays as it is; where nothing is worth keeping, that is no reason to count versions."""
    url = f"sqlite:///{tmp_path / 'tried.db'}"
    (tmp_path / "changed_flow.py").write_text(
        "from standfast import Saga\nflow = Saga('tried').wait('long', 60).build()\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    Engine(url).register(Saga("tried").wait("short", 5).build()).stop()
    told = standfast("dev", "--database", url, "--app", "changed_flow:flow", code=Exit.WRONG).stderr
    assert f"Or begin anew, without the data: `standfast drop {url} --yes --with-unfinished`" in told


@pytest.mark.parametrize("folder", ["mine", "50%41 or more?", "a#b"])
def test_a_folder_that_is_said_overrules_a_database_that_is_said_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A flag is nearer than a variable; samples do not come into a database that was named for something else. Any name will do."""
    monkeypatch.chdir(tmp_path)
    elsewhere = f"sqlite:///{tmp_path / 'shop.db'}"
    with standfast_program("dev", "--port", "0", "--folder", folder, STANDFAST_DATABASE=elsewhere) as program:
        program.hear(r"standfast is at (\S+)")
        assert program.hear(r"the data +(\S.*)$")[1] == str(tmp_path / folder)
        assert program.end(signal.SIGINT)[0] == 0
    assert (tmp_path / folder / "standfast.db").is_file()
    assert [each.name for each in tmp_path.iterdir()] == [folder]


def test_samples_come_into_no_database_by_accident(
    standfast: Standfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tries `dev` or `bench` where the file or a variable names the database of a shop leaves that as it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STANDFAST_DATABASE", "sqlite:///shop.db")
    told = standfast("dev", "--port", "0", code=Exit.WRONG).stderr
    assert "STANDFAST_DATABASE names a database, but no application is given" in told
    both = ("--folder", "mine", "--database", "sqlite:///other.db")
    assert "two places" in standfast("dev", "--port", "0", *both, code=Exit.WRONG).stderr
    Path("taken").write_text("")  # A folder that is said is meant, whatever a variable says.
    told = standfast("dev", "--port", "0", "--folder", "taken", code=Exit.WRONG).stderr
    assert "the data cannot be kept in taken: " in told
    Path("taken").unlink()
    assert standfast.json("bench", "--runs", "1", "--steps", "1")["database"] == "a new SQLite file"
    assert list(tmp_path.iterdir()) == []


def test_what_dev_says_to_type_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment that the shell does not know, such as that of a clone, the command is named with its folder."""
    assert "standfast" in called()
    monkeypatch.setenv("PATH", "")
    assert Path(called().split()[0]).is_file()


@pytest.mark.row("EH-12")
def test_a_project_that_is_written_runs(standfast: Standfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own tests pass, and it is served and worked on by one command in its folder; what is there is not written over."""
    assert "next: cd 'my shop' && standfast dev" in standfast("init", "my shop").stderr
    told = standfast("init", "shop").stdout
    assert "workflows.py" in told
    assert "has .gitignore, README.md" in standfast("init", "shop", code=Exit.WRONG).stderr
    monkeypatch.syspath_prepend("shop")
    tried = [test for name, test in vars(importlib.import_module("test_workflows")).items() if name.startswith("test_")]
    for test in tried:
        test()
    assert len(tried) == 6
    monkeypatch.chdir("shop")
    with standfast_program("dev", "--port", "0") as program:
        address = program.hear(r"standfast is at (\S+)")[1]
        program.hear("workflows:register")
        run = standfast(
            "start", "expense", "--input", '{"who": "ann", "amount": 5}', "--server", address
        ).stdout.strip()
        task = standfast.json("tasks", "list", "--server", address)["items"][0]["step_id"]
        standfast("decide", task, "approve", "--server", address)
        standfast("watch", run, "--server", address, "--timeout", "60s")
        assert program.end(signal.SIGINT)[0] == 0
    assert standfast.json("show", run)["run"]["status"] == "completed"
