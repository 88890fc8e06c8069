"""The same words against a database and against a server: what they print is the same, and errors are one sentence."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from api.serving import served
from cli.calling import Holdfast
from cli.stage import Stage
from holdfast import Engine
from holdfast.app.faces import blocking
from holdfast.cli import remote, remote_people
from holdfast.cli.exits import Exit
from holdfast.http import HttpOptions
from holdfast.store.opening import open_store

FEW = HttpOptions(max_page=2)
"""Pages of a server are shorter than those that commands ask for."""


class Remote:
    """A stage, and the command against a server on the same database."""

    def __init__(self, stage: Stage, address: str, secret: str) -> None:
        self.stage = stage
        self.here = stage.holdfast
        self.place = ("--server", address, "--api-key", secret)

    def there(self, *words: str, code: int = 0) -> Result:
        """Ask the server."""
        return Holdfast()(*words, *self.place, code=code)

    def same(self, *words: str, code: int = 0) -> str:
        """What a command prints, which is the same on the database and against the server."""
        here, there = self.here(*words, code=code), self.there(*words, code=code)
        assert there.stdout == here.stdout
        return here.stdout


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """One server for all tests of the module; which store it is on makes no difference to who asks it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('remote') / 'holdfast.db'}"
    open_store(url).close()
    stage = Stage(Holdfast(url))
    engine = Engine(url, migrate=False)
    try:
        with served(engine, FEW) as address:
            made = engine.keys.create("all", actor="ann", roles=["boss"], capabilities=["*"])
            yield Remote(stage, address, made.secret)
    finally:
        engine.stop()
        stage.engine.stop()


def test_looking_is_the_same(asked: Remote) -> None:
    """Lists with their pages and filters, one run, its history, and why it does not move; as text and as JSON."""
    order = asked.stage.begun("order", amount=7)
    asked.stage.begun("import", row="x")
    for _ in range(3):
        asked.stage.begun("order", amount=1)
    for words in (
        ("list",),
        ("list", "--json"),
        ("list", "--limit", "2"),
        ("list", "--definition", "order", "--active", "--limit", "4"),
        ("list", "--status", "failed"),
        ("list", "--paused"),
        ("list", "--paused", "--next-step", "charge"),
        ("processes", "expired", "--before", "2040-01-01T00:00:00Z"),
        ("list", "--stuck"),
        ("show", order),
        ("show", order, "--json"),
        ("history", order),
        ("history", order, "--limit", "3"),
        ("why", order),
        ("dlq", "list"),
        ("dlq", "list", "--definition", "import", "--json"),
    ):
        assert asked.same(*words)
    more = asked.there("list", "--limit", "2").stderr.split("--after ")[1].strip()
    assert asked.same("list", "--after", more)


def test_doing_is_the_same(asked: Remote) -> None:
    """Start, pause, resume, signal, retry, cancel: what is done there is found here."""
    run = asked.there("start", "order", "--input", '{"amount": 9}', "--key", "o-9").stdout.strip()
    asked.stage.engine.drain()
    asked.there("pause", run, "--reason", "audit", "--until", "2099-01-01T00:00:00Z")
    assert asked.stage.status(run) == "paused"
    assert run in asked.same("list", "--paused")
    asked.there("resume", run)
    assert asked.there("signal", run, "payment").stdout == f"{run} was told 'payment'\n"
    asked.stage.engine.drain()
    assert asked.stage.status(run) == "completed"
    letter = asked.stage.begun("import", row="y")
    asked.there("retry", letter, "row", "--reason", "mended", "--input", '{"row": 7}')
    asked.stage.engine.drain()
    assert asked.stage.status(letter) == "completed"
    gone = asked.stage.begun("ask", who="ann")
    assert asked.there("abort", gone, "--reason", "no", "--wait", "5s").stdout == "aborted\n"


def test_questions_are_answered_as_whoever_the_key_names(asked: Remote) -> None:
    """The inbox of the key's bearer; an answer by the words of the definition, or by yes and no."""
    asked.stage.begun("ask", who="ann")
    task = asked.there("tasks", "list", "--mine", "--json").stdout.split('"step_id": "')[1].partition('"')[0]
    asked.same("tasks", "show", task)
    asked.there("tasks", "comment", task, "see page 3")
    asked.there("decide", task, "approve", "--comment", "fine")
    assert "fine" in asked.same("tasks", "show", task)
    assert task in asked.there("tasks", "decided").stdout


def test_processes_are_led_on(asked: Remote) -> None:
    """They are listed, shown to whoever the key names, and left by an event."""
    run = asked.stage.begun("orders.approval", order_id="o-1")
    assert run in asked.same("processes", "list")
    assert asked.same("processes", "list", "--limit", "1", "--json")
    assert "approved" in asked.there("processes", "show", run).stdout
    refused = asked.there("advance", run, "shipped", code=Exit.REFUSED)
    assert "shipped" in refused.stderr
    assert "confirm" in asked.there("advance", run, "approved", "--comment", "fine").stdout


def test_dead_letters_are_dealt_with(asked: Remote) -> None:
    """They are shown, put back to work, and found again if that does not help."""
    asked.stage.begun("import", row="z")
    letter = asked.here.json("dlq", "list", "--definition", "import")["items"][-1]["id"]
    asked.same("dlq", "show", str(letter))
    asked.there("dlq", "requeue", str(letter), "--input", '{"row": 3}')
    asked.stage.engine.drain()
    assert asked.same("dlq", "show", str(letter), code=Exit.NOT_FOUND) == ""


def test_keys_are_made_shown_once_rotated_and_revoked(asked: Remote) -> None:
    """Against a server as on a database; a secret is printed when it is made, and in no list."""
    made = asked.there(
        "keys", "create", "shop", "--actor", "shop", "--scope", "execution:read", "--for", "1h", "--json"
    )
    secret = made.stdout.split('"secret": "')[1].partition('"')[0]
    key = secret.split("_")[1]
    assert secret not in asked.same("keys", "list", "--json")
    assert key in asked.same("keys", "list", "--limit", "1", "--after", key[:-1])
    turned = asked.there("keys", "rotate", key)
    assert turned.stdout.startswith("hf_")
    assert asked.here.json("keys", "show", key)["revoked_at"] is not None
    refused = asked.there("keys", "rotate", key, code=Exit.REFUSED)
    assert "is revoked" in refused.stderr
    new = turned.stdout.split("_")[1]
    asked.there("keys", "revoke", new)
    assert Holdfast()("list", *asked.place[:2], "--api-key", turned.stdout.strip(), code=Exit.FORBIDDEN).stdout == ""


def test_errors_are_one_sentence_with_the_same_exit_code(asked: Remote) -> None:
    """What is not there, what cannot be done, what nobody may, and a server that is away; each says what to do."""
    nobody = "0193a2b4-0000-7000-8000-000000000001"
    for words, code in (
        (("show", nobody), Exit.NOT_FOUND),
        (("start", "ordre"), Exit.NOT_FOUND),
        (("list", "--parent", "x"), Exit.WRONG),
        (("dlq", "show", "99999"), Exit.NOT_FOUND),
        (("decide", f"{nobody}:1", "yes"), Exit.NOT_FOUND),
    ):
        told = asked.there(*words, code=code).stderr.splitlines()
        assert 1 <= len(told) <= 2, told
    assert "did you mean 'order'?" in asked.there("start", "ordre", code=Exit.NOT_FOUND).stderr
    away = Holdfast()("list", "--server", "http://127.0.0.1:1", code=Exit.UNAVAILABLE).stderr
    assert "http://127.0.0.1:1 does not answer" in away
    assert "Bearer" not in away


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "--server", "http://h", "--database", "sqlite:///x.db"), "leave one of them out"),
        (("list", "--server", "http://h", "--as", "ann"), "the key says for whom"),
        (("list", "--server", "http://h", "--tenant", "acme"), "the key says for whom"),
        (("list", "--server", "holdfast.example.org"), "is no address of a server"),
        (("directory", "list", "--server", "http://h"), "works on a database alone"),
        (("chains", "list", "--server", "http://h"), "works on a database alone"),
        (("instances", "list", "--server", "http://h"), "works on a database alone"),
    ],
)
def test_what_cannot_be_asked_of_a_server_is_refused(holdfast: Holdfast, words: tuple[str, ...], told: str) -> None:
    """In a sentence, before anything is sent."""
    assert told in holdfast(*words, code=Exit.WRONG).stderr


def test_what_is_said_nearer_to_the_command_counts(
    asked: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A variable that names a server overrules a database of the file, and a flag that names a database overrules both."""
    _, address, _, secret = asked.place
    Path("holdfast.toml").write_text('database = "sqlite:///nowhere.db"\n', encoding="utf-8")
    monkeypatch.setenv("HOLDFAST_SERVER", address)
    monkeypatch.setenv("HOLDFAST_API_KEY", secret)
    assert Holdfast()("list").stdout == asked.here("list").stdout
    assert secret not in Holdfast()("config").stdout
    Holdfast()("list", "--database", f"sqlite:///{tmp_path}/none.db", code=Exit.NOT_FOUND)


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (remote.RemoteRun, blocking.Run),
        (remote.RemoteRuns, blocking.Runs),
        (remote_people.RemoteTasks, blocking.Tasks),
        (remote_people.RemoteProcesses, blocking.Processes),
        (remote.RemoteDeadLetters, blocking.DeadLetters),
        (remote.RemoteDefinitions, blocking.Definitions),
        (remote.RemoteKeys, blocking.Keys),
        (remote.RemoteCalls, blocking.Calls),
    ],
)
def test_the_calls_of_a_server_are_those_of_the_engine(kind: type, own: type) -> None:
    """The same names and parameters, as far as commands use them: one that is renamed there is renamed here."""
    for name, call in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        theirs = inspect.signature(getattr(own, name)).parameters
        ours = inspect.signature(call).parameters
        assert set(ours) <= set(theirs), name
        for each in ours.values():
            assert each.kind == theirs[each.name].kind, (name, each.name)
