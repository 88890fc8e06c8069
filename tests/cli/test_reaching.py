"""Every option and argument of every command changes what the command asks of the engine or of the server, or what it prints: none is parsed and dropped."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from cli.flows import ORDERS
from cli.test_frame import COMMANDS
from standfast.app.configuration import Configuration
from standfast.app.engine import Engine
from standfast.cli import framework as frame
from standfast.cli import main
from standfast.cli.target import Target
from standfast.client import Client
from support.recording import FULL, SOME, STYLES, Recorder, Style

OWN = {
    "bench": "measures an engine of its own",
    "completion": "prints a script",
    "config": "prints the configuration",
    "contracts ready": "prints what comes along",
    "copy": "opens two databases itself",
    "dev": "becomes a server and a worker",
    "drop": "opens the database itself",
    "expr": "evaluates an expression",
    "graph": "draws a file",
    "init": "writes a project",
    "migrate": "opens the database itself",
    "server": "becomes a server",
    "template copy": "writes a file",
    "template list": "prints what comes along",
    "template run": "runs an engine of its own",
    "template show": "prints what comes along",
    "validate": "reads files",
    "worker": "becomes a worker",
}
"""Commands that ask no engine of the database that a place names; their own tests say what their options do."""
ELSEWHERE = {"config", "debug"}
"""Options that all commands have and that change neither what is asked nor what is printed here: `test_config` and `test_frame` have them."""
LOCAL = {"database", "tenant", "actor", "roles", "capabilities"}
"""Options of whoever works on a database; a server is told them by its key, and refuses them."""
REFUSED = {"app", "of", "all_tenants"}
"""Options that servers refuse, of which a command says so."""
RUN = "standfast {} " + str(SOME)
ALSO: dict[str, list[str]] = {
    "audit": ["standfast audit", f"standfast audit {SOME}", "standfast audit --subject text"],
    "bodies export": ["standfast bodies export --draft one"],
    "complete": [f"{RUN.format('complete')} text --reason x"],
    "definitions pauses": ["standfast definitions pauses text"],
    "definitions show": ["standfast definitions show text"],
    "diff": ["standfast diff text.yaml"],
    "doctor": ["standfast doctor --invariants"],
    "dry-run": ["standfast dry-run both.yaml"],
    "keys rotate": [f"standfast keys rotate {SOME}"],
    "list": ["standfast list --paused"],
    "notifications read": ["standfast notifications read"],
    "pauses pause": ["standfast pauses pause"],
    "pauses resume": ["standfast pauses resume --definition text --version text --step text"],
    "reenqueue": [f"{RUN.format('reenqueue')} text --reason x"],
    "requeue": ["standfast requeue --cause 5c1e0b7a9d3f2e64"],
    "retry": [f"{RUN.format('retry')} text --reason x"],
    "schedules backfill": ["standfast schedules backfill nightly"],
    "skip": [f"{RUN.format('skip')} text --reason x"],
    "verify": ["standfast verify"],
    "watch": [f"{RUN.format('watch')} --interval 1h"],
}
"""Lines besides the examples of a command, for options that count only together with others."""
PAIRS: dict[str, list[tuple[str | None, str]]] = {
    "integer": [("2", "3"), ("11", "12")],
    "integer range": [("2", "3"), ("11", "12")],
    "float": [("2.5", "3.5")],
    "instant": [("2031-01-01T00:00:00Z", "2032-01-01T00:00:00Z")],
    "duration": [("2h", "3h")],
    "json": [('{"a": 1}', '{"b": 2}'), ('[{"a": 1}]', '[{"b": 2}]')],
    "file": [("orders.yaml", "others.yaml"), (None, "others.yaml")],
    "text": [
        ("one", "two"),
        (str(SOME), str(SOME)[:-1] + "2"),
        (f"{SOME}:1", f"{SOME}:2"),
        ("11", "12"),
        ("one=1", "one=2"),
        ("rules:one", "rules:two"),
        ("orders.approval", "others.approval"),
        ("one:register", "two:register"),
        (f"2031-01-01T00:00:00Z/{SOME}", f"2032-01-01T00:00:00Z/{SOME}"),
        ("text", "two"),
        (None, "text"),
        (None, "1"),
        (None, str(SOME)),
    ],
}
"""Values of which at least one pair must make a difference, by the name of the type; None leaves the option out."""

Raw = dict[str, Any]
"""What stands behind each parameter on a line."""


class Seen(NamedTuple):
    """What came of one line."""

    calls: list[tuple[str, dict[str, object]]]
    output: str
    code: int

    @property
    def is_of_use(self) -> bool:
        """Whether the line was one that can be typed, and something was asked."""
        return self.code not in {2, 70} or len(self.calls) > 1


class Typist:
    """Types lines, and sees what is asked of an engine, or of a server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_remote: bool) -> None:
        self.recorder = Recorder()
        self._now = 0.0
        self.is_remote = is_remote
        self._before = ["--server", "https://there.example", "--api-key", "k"] if is_remote else []

        @contextmanager
        def engine(place: Target) -> Iterator[Engine]:
            yield opened(place)

        def opened(place: Target) -> Engine:
            self.recorder.note("open", {"url": place.url})
            found: Engine = self.recorder.of(Engine)
            return found

        @contextmanager
        def client(told: Configuration, reason: str) -> Iterator[Client]:
            told_ = {"server": told.server, "key": told.api_key, "partition": told.partition, "reason": reason}
            self.recorder.note("connect", told_)
            yield self.recorder.of(Client)

        monkeypatch.setattr(Target, "engine", engine)
        monkeypatch.setattr(Target, "open", opened)
        monkeypatch.setattr("standfast.cli.target._client", client)
        monkeypatch.setattr(time, "sleep", self._sleep)
        monkeypatch.setattr(time, "monotonic", self._monotonic)

    def _monotonic(self) -> float:
        self._now += 600
        return self._now

    def _sleep(self, seconds: float) -> None:
        self._now += seconds
        self.recorder.note("sleep", {"seconds": seconds})

    def typed(self, path: Sequence[str], words: Sequence[str], style: Style = FULL) -> Seen:
        """What comes of a line, if the engine answers in this style."""
        modules = ("standfast.app.api.", "standfast.app.engine", "standfast.client.")
        self.recorder = Recorder(*modules, style=style)
        result = CliRunner().invoke(main, [*path, *self._before, *words])
        return Seen(self.recorder.calls, result.output, result.exit_code)


def bases(path: Sequence[str], command: frame.CliCommand) -> Iterator[Raw]:
    """Lines that can be typed, as what stands behind each parameter: the examples of the command first."""
    lines = [*(each.split(" | ")[-1].split(" > ")[0] for each in command.examples), *ALSO.get(" ".join(path), ())]
    for each in lines:
        words = shlex.split(each)[1 + len(path) :]
        parser = command.make_parser(click.Context(command))
        yield {name: value for name, value in parser.parse_args(words)[0].items() if value is not None}


def line(command: frame.CliCommand, raw: Mapping[str, Any]) -> list[str]:
    """The words of a line."""
    words: list[str] = []
    behind: list[str] = []
    for each in command.params:
        value = raw.get(each.name or "")
        if value is None or not isinstance(value, (str, bool, list, tuple)):
            continue
        several = [str(one) for one in (value if isinstance(value, (list, tuple)) else [value])]
        if isinstance(each, click.Argument):
            behind += several
        elif isinstance(each, click.Option) and each.is_flag:
            words += (
                [each.opts[-1]]
                if value in {True, each.flag_value}
                else each.secondary_opts[-1:]
                if value is False
                else []
            )
        else:
            words += [word for one in several for word in (each.opts[-1], one)]
    return [*words, "--", *behind]


def pairs_of(param: click.Parameter) -> list[tuple[Any, Any]]:
    """Values that are to make a difference."""
    if isinstance(param, click.Option) and param.is_flag:
        return [(None, param.flag_value if isinstance(param.flag_value, str) else True)]
    if isinstance(param.type, click.Choice):
        return [(param.type.choices[0], param.type.choices[-1])]
    if param.nargs == -1 or (isinstance(param, click.Option) and param.multiple):
        return [(a if a is None else [a], [b]) for a, b in PAIRS[param.type.name]]
    return list(PAIRS[param.type.name])


def reaches(typist: Typist, path: Sequence[str], command: frame.CliCommand, param: click.Parameter) -> bool:
    """Whether a value makes a difference, in whatever line it can be typed in."""
    name = param.name or ""
    also: Raw = {"actor": "ann"} if name in {"roles", "capabilities"} else {}
    if typist.is_remote:
        also = dict.fromkeys(LOCAL)
    for style, base, pair in product(STYLES, bases(path, command), pairs_of(param)):
        lines = [line(command, {**base, **also, name: value}) for value in pair]
        one, other = (typist.typed(path, words, style) for words in lines)
        # A flag may be what makes a line one that can be typed; of a value that would say nothing but that it is wrong.
        is_flag = isinstance(param, click.Option) and param.is_flag
        is_seen = (one.is_of_use or is_flag) and other.is_of_use
        is_refused = typist.is_remote and name in REFUSED and other.code == 2 and "a server" in other.output
        if is_refused or (is_seen and one != other):
            return True
    return False


FILES = {
    "one.py": "def register(engine):\n    engine.runs.list(definition='one')\n",
    "two.py": "def register(engine):\n    engine.runs.list(definition='two')\n",
}


@pytest.fixture
def _files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that the examples name."""
    for name in ("order.json", "row.json", "old.json", "rent.json"):
        Path(name).write_text('{"a": 1}')
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("keys.txt").write_text("one\n")
    Path("orders.yaml").write_text(ORDERS)
    others = ORDERS.replace("orders", "others")
    Path("others.yaml").write_text(others)
    Path("both.yaml").write_text(ORDERS + others.partition("workflows:\n")[2])
    Path("text.yaml").write_text(ORDERS.replace("orders.approval", "text"))
    for name in ("invoice.yaml", "invoice-body.yaml"):
        Path(name).write_text("entity_type: invoice\n")
    monkeypatch.syspath_prepend(tmp_path)


ASKING = [each for each in COMMANDS if each[0].removeprefix("standfast ") not in OWN]


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(("path", "command"), ASKING, ids=[path for path, _ in ASKING])
def test_every_option_reaches_the_engine(monkeypatch: pytest.MonkeyPatch, path: str, command: frame.CliCommand) -> None:
    """On a database, two values of any option or argument lead to different calls of the engine, or to different output."""
    typist, words = Typist(monkeypatch, is_remote=False), path.split()[1:]
    own = [each for each in command.params if each.name not in ELSEWHERE | {"server", "api_key"}]
    dropped = [each.name for each in own if not reaches(typist, words, command, each)]
    assert not dropped, (path, dropped)


REMOTE = [each for each in ASKING if "server" in {param.name for param in each[1].params}]


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(("path", "command"), REMOTE, ids=[path for path, _ in REMOTE])
def test_every_option_reaches_the_server(monkeypatch: pytest.MonkeyPatch, path: str, command: frame.CliCommand) -> None:
    """With `--server`, two values of any option or argument lead to different requests, or to different output."""
    typist, words = Typist(monkeypatch, is_remote=True), path.split()[1:]
    own = [each for each in command.params if each.name not in ELSEWHERE | LOCAL]
    dropped = [each.name for each in own if not reaches(typist, words, command, each)]
    assert not dropped, (path, dropped)
