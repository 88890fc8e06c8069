"""What all commands have in common: exit codes, errors in one sentence, help with examples."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.calling import Standfast
from standfast.cli import framework as frame
from standfast.cli import main
from standfast.cli.exit_codes import OF_ERRORS, Exit, exit_of
from standfast.cli.logs import begin_logs
from standfast.cli.target import Target, configuration_of
from standfast.errors import ConfigurationError, ConflictError, NotFoundError, ReusedIdError
from support.repository import ROOT, load_generator


def commands(group: click.Group = main, path: str = "standfast") -> Iterator[tuple[str, click.Command]]:
    """Every command by the words that call it; groups are no commands."""
    for name, each in sorted(group.commands.items()):
        if isinstance(each, click.Group):
            yield from commands(each, f"{path} {name}")
        else:
            yield f"{path} {name}", each


COMMANDS = list(commands())


def test_every_error_has_an_exit_code() -> None:
    """The table names every class of the tree, so that a new one is thought about."""
    assert OF_ERRORS.keys() == set(load_generator().error_classes())


def test_what_the_table_does_not_name_has_the_code_of_its_parent() -> None:
    """An error of an application that is derived from one of ours is told by the same code."""

    class TakenError(ConflictError):
        code = "taken"

    assert exit_of(TakenError("x")) is Exit.CONFLICT
    assert exit_of(ReusedIdError("x")) is Exit.CONFLICT
    assert exit_of(NotFoundError("run", "x")) is Exit.NOT_FOUND
    assert exit_of(ValueError("x")) is Exit.BROKEN
    assert exit_of(TimeoutError()) is Exit.UNAVAILABLE


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_every_command_helps_with_an_example(standfast: Standfast, path: str, command: click.Command) -> None:
    """Help says what a command does, what each option is for, and shows a call that names the command."""
    assert isinstance(command, frame.CliCommand)
    assert command.help
    assert command.examples
    assert all(path in example for example in command.examples)
    silent = [each.name for each in command.params if isinstance(each, click.Option) and not each.help]
    assert silent == []
    told = standfast(*path.split()[1:], "--help").stdout
    assert "Examples:" in told
    assert "--debug" in told


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_examples_can_be_typed(path: str, command: click.Command) -> None:
    """Every example is parsed by the command that it is an example of."""
    assert isinstance(command, frame.CliCommand)
    for name in ("order.json", "row.json", "old.json", "rent.json", "keys.txt"):
        Path(name).write_text("{}")
    for example in command.examples:
        typed = shlex.split(example.split("|")[-1])
        words = typed[: typed.index(">")] if ">" in typed else typed
        depth = len(path.split())
        assert words[:depth] == path.split()
        command.make_context(path, words[depth:]).close()


def test_a_command_that_is_not_there_is_answered_with_one_that_is(standfast: Standfast) -> None:
    """Also inside a group."""
    assert "did you mean 'validate'?" in standfast("valdate", code=2).stderr
    assert "did you mean 'show'?" in standfast("template", "shw", code=2).stderr
    assert "`standfast --help` lists" in standfast("zzzzz", code=2).stderr


def test_an_option_before_its_command_is_told_where_it_belongs(standfast: Standfast) -> None:
    """As other programs take it there; what no command has is no option."""
    told = "--database stands behind the command, as in: standfast list --database …"
    assert told in standfast("--database", "sqlite:///x.db", "list", code=2).stderr
    assert "No such option" in standfast("--databse", "sqlite:///x.db", "list", code=2).stderr


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    """`standfast --help` is made from a table, so that nothing is loaded for it: each name, and each sentence, is that of the command itself."""
    for name, entry in main.shelf.entries.items():
        assert (main.commands[name].name, main.commands[name].get_short_help_str(1000)) == (name, entry.told)


_LOADED = """
import sys
from click.testing import CliRunner
from standfast.cli import main
for words in (["--help"], ["--version"]):
    assert CliRunner().invoke(main, words).exit_code == 0
asked = {"_STANDFAST_COMPLETE": "bash_complete", "COMP_WORDS": "standfast ", "COMP_CWORD": "1"}
assert "plain,dlq" in CliRunner(env=asked).invoke(main, []).output
print([each for each in sys.modules if each.startswith(("standfast.app", "standfast.kernel", "standfast.expressions"))])
assert CliRunner().invoke(main, ["completion", "bash"]).exit_code == 0
print([each for each in sys.modules if each.startswith("standfast.app")])
import standfast
assert standfast.errors.ConflictError is standfast.ConflictError
assert set(standfast.__all__) <= set(dir(standfast))
print(hasattr(standfast, "Nothing"), hasattr(standfast, "__wrapped__"))
"""


def test_help_version_and_completion_load_no_engine() -> None:
    """What a person waits for at every keystroke needs neither the engine nor the modules of commands; a command needs its own alone."""
    said = subprocess.run(
        [sys.executable, "-c", _LOADED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert said.stdout.splitlines() == ["[]", "[]", "False False"], said.stderr


def test_the_version_is_told(standfast: Standfast) -> None:
    """By the name of the program and a number."""
    assert standfast("--version").stdout.startswith("standfast 0.")


RUN = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb"
MISTYPED = [
    (("show",), "Missing argument 'RUN'", "standfast show [OPTIONS] RUN"),
    (("retry", RUN, "charge"), "Missing option '--reason'", "standfast retry [OPTIONS] RUN STEP"),
    (("list", "--limit", "x"), "'x' is no whole number", "`standfast list --help`"),
    (("list", "--limit", "0"), "0 is not in the range", "`standfast list --help`"),
    (("dlq", "show", "x"), "'x' is no whole number", "standfast dlq show [OPTIONS] LETTER"),
    (("list", "--definitio", "x"), "Did you mean '--definition'?", "`standfast list --help`"),
    (("list", "extra"), "unexpected extra argument", "`standfast list --help`"),
    (("list", "--since", "yesterday"), "2026-03-31T12:00:00Z", "`standfast list --help`"),
    (("start", "order", "--input", "@nofile"), "nofile cannot be read", "`standfast start --help`"),
    (("batch", "begin", "explode"), "'explode' is not one of", "`standfast batch begin --help`"),
    (("completion",), "Choose from: bash, zsh, fish", "`standfast completion --help`"),
    (("--colour",), "No such option '--colour'", "`standfast --help`"),
    (("template", "shw"), "did you mean 'show'?", "`standfast template --help`"),
]


@pytest.mark.parametrize(("words", "told", "remedy"), MISTYPED, ids=[" ".join(each[0]) for each in MISTYPED])
def test_what_is_mistyped_is_one_sentence_with_a_next_step(
    standfast: Standfast, words: tuple[str, ...], told: str, remedy: str
) -> None:
    """As for any other error: what is wrong with its code, and how the command is called; exit code 2, and nothing on standard output."""
    said = standfast(*words, code=Exit.WRONG)
    sentence, step = said.stderr.splitlines()
    assert told in sentence
    assert sentence.endswith("[bad_configuration]")
    assert step.startswith("  → ")
    assert remedy in step
    assert said.stdout == ""


UNKNOWN = [
    (("batch", "show", "x"), Exit.NOT_FOUND, "`standfast batch list`"),
    (("schedules", "show", "x"), Exit.NOT_FOUND, "`standfast schedules list`"),
    (("sessions", "end", "x"), Exit.NOT_FOUND, "`standfast sessions list`"),
    (("keys", "show", "x"), Exit.NOT_FOUND, "`standfast keys list`"),
    (("notifications", "read", "7"), Exit.NOT_FOUND, "`standfast notifications list`"),
    (("projections", "drop", "x"), Exit.NOT_FOUND, "`standfast projections list`"),
    (("inbox", "bury", "7"), Exit.NOT_FOUND, "`standfast inbox list`"),
    (("instances", "delete", RUN), Exit.NOT_FOUND, "`standfast instances list`"),
    (("definitions", "archive", "x", "1"), Exit.NOT_FOUND, "`standfast definitions list`"),
    (("report", "x"), Exit.NOT_FOUND, "nothing of this name is published"),
    (("charters", "show", "rules:x"), Exit.NOT_FOUND, "`standfast charters list`"),
    (("show", "x"), Exit.WRONG, "`standfast list`"),
    (("decide", "x", "yes"), Exit.WRONG, "`standfast tasks list`"),
    (("list", "--config", "no.toml"), Exit.WRONG, "--config"),
    (("list", "--server", ""), Exit.WRONG, "--server names no server"),
    (("init", "/dev/null/x"), Exit.WRONG, "name a folder"),
]


def test_what_is_not_there_is_told_with_where_to_look(standfast: Standfast, tmp_path: Path) -> None:
    """Each names a command, or what to write instead, and no call of the engine."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    standfast("migrate", url)
    for words, code, remedy in UNKNOWN:
        said = Standfast(url)(*words, code=code).stderr
        assert remedy in said, words
        assert "engine." not in said
        assert len(said.splitlines()) <= 2


def test_a_database_that_is_not_there_is_not_made(standfast: Standfast, tmp_path: Path) -> None:
    """A misspelt name of a file makes no file; the sentence says how one is made."""
    result = standfast("definitions", "list", "--database", "sqlite:///nope.db", code=Exit.NOT_FOUND)
    told = "`standfast migrate sqlite:///nope.db` makes it, and --database or STANDFAST_DATABASE names another one [not_found]"
    assert told in result.stderr
    assert not (tmp_path / "nope.db").exists()


def test_an_old_database_is_told_with_the_next_step(standfast: Standfast, tmp_path: Path) -> None:
    """A file without the schema is none that this code was written for."""
    (tmp_path / "empty.db").touch()
    result = standfast("definitions", "list", "--database", "sqlite:///empty.db", code=Exit.UNFIT)
    assert "[schema_mismatch]" in result.stderr
    assert "→ `standfast migrate` brings" in result.stderr


def test_a_database_of_newer_code_is_not_told_to_be_migrated(standfast: Standfast, tmp_path: Path) -> None:
    """Nothing that this code could do would help: the next step is another one than for an older database."""
    standfast("migrate", "--database", f"sqlite:///{tmp_path / 'newer.db'}")
    with closing(sqlite3.connect(tmp_path / "newer.db")) as database:
        database.execute("pragma user_version = 99")
    for words in (["list"], ["doctor"], ["migrate"]):
        told = standfast(*words, "--database", f"sqlite:///{tmp_path / 'newer.db'}", code=Exit.UNFIT).stderr
        assert "upgrade Standfast before opening it [schema_mismatch]" in told
        assert "standfast migrate" not in told


def test_an_unreachable_server_is_told_without_its_password(standfast: Standfast) -> None:
    """Exit code 7, one sentence, a next step, and nothing of the secret."""
    url = "postgresql://ann:hunter2@127.0.0.1:1/nowhere"
    result = standfast("definitions", "list", "--database", url, code=Exit.UNAVAILABLE)
    assert "[store_unavailable]" in result.stderr
    assert "→ see whether the database is up" in result.stderr
    assert "hunter2" not in result.output


@pytest.mark.parametrize("url", ["mysql://x", "orders.db", "sqlite:/x.db", "http://127.0.0.1:8080"])
def test_what_is_no_database_is_refused(standfast: Standfast, url: str) -> None:
    """The sentence says how one is written."""
    assert "sqlite:///file.db" in standfast("definitions", "list", "--database", url, code=Exit.WRONG).stderr


@pytest.mark.parametrize(
    "url",
    [
        "postgre://ann:hunter2@127.0.0.1/db",
        "postgresql+psycopg://ann:hunter2@127.0.0.1/db",
        "host=127.0.0.1 password=hunter2",
        "ann:hunter2@127.0.0.1/db",
        "postgresql://ann:50%hunter2@127.0.0.1/db",
        "postgresql://ann:hunter2/x@127.0.0.1/db",
        "postgresql://ann:x/y?hunter2=z@127.0.0.1/db",
    ],
)
def test_an_address_that_cannot_be_read_is_told_without_its_password(standfast: Standfast, url: str) -> None:
    """What is wrong with it is often the password: letters that an address takes for its own, or another program's way to write it."""
    for words in (
        ["list", "--database", url],
        ["migrate", url],
        ["drop", url, "--yes"],
        ["copy", url, "sqlite:///b.db"],
    ):
        told = standfast(*words, code=Exit.WRONG)
        assert "postgresql://user" in told.stderr
        assert "hunter2" not in told.output


def test_an_impossible_tenant_is_refused(based: Standfast) -> None:
    """Before anything is asked of the database on its behalf."""
    for tenant in ("*", "a\0b"):
        assert "tenant" in based("definitions", "list", "--tenant", tenant, code=Exit.WRONG).stderr


def test_a_traceback_is_shown_only_when_it_is_wanted(standfast: Standfast) -> None:
    """With `--debug`; the sentence is there all the same."""
    said = subprocess.run(
        [sys.executable, "-m", "standfast.cli", "validate", "nope.yaml", "--debug"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert said.returncode == Exit.WRONG
    assert "Traceback" in said.stderr
    assert "nope.yaml cannot be read: No such file or directory" in said.stderr
    assert "Traceback" not in standfast("validate", "nope.yaml", code=Exit.WRONG).stderr


def test_a_mistake_of_our_own_is_told_as_one(standfast: Standfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command raises is a sentence that asks for a report, with an exit code of its own."""

    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("standfast.cli.workflows.validate.read_file", broken)
    result = standfast("validate", "x.yaml", code=Exit.BROKEN)
    assert "ZeroDivisionError: division by zero [unexpected]" in result.stderr
    assert "call it again with --debug" in result.stderr


@pytest.mark.row("EO-33")
def test_every_list_has_pages_and_all_that_is_shown_is_json_too() -> None:
    """Whatever is printed for people can be read by programs, and no list is without an end."""
    options = {path: {each.opts[0] for each in command.params} for path, command in COMMANDS}
    shown = {
        "list",
        "show",
        "history",
        "why",
        "versions",
        "changes",
        "decided",
        "stranded",
        "doctor",
        "verify",
        "config",
    }
    assert [path for path, known in options.items() if path.split()[-1] in shown and "--json" not in known] == []
    lists = {"list", "history", "versions", "changes", "decided", "stranded"}
    endless = {
        path for path, known in options.items() if path.split()[-1] in lists and not {"--limit", "--after"} <= known
    }
    assert endless == {"standfast template list"}  # They come with the package.


def test_an_interruption_has_a_code_of_its_own(standfast: Standfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is no mistake."""

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("standfast.cli.workflows.validate.read_file", interrupted)
    assert standfast("validate", "x.yaml", code=Exit.INTERRUPTED).stderr.strip() == "interrupted"


def test_whoever_reads_a_pipe_may_stop_at_any_line() -> None:
    """Then nothing is complained of."""
    reader, writer = os.pipe()
    os.close(reader)
    said = subprocess.run(
        [sys.executable, "-m", "standfast.cli", "template", "show", "settlement"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    os.close(writer)
    assert said.stderr == ""


@pytest.mark.parametrize(
    ("options", "variable", "told"),
    [
        (["--as", ""], {}, "--as is empty"),
        ([], {"STANDFAST_ACTOR": ""}, "STANDFAST_ACTOR is empty"),
        (["--role", "boss"], {}, "may do everything (--with-role sets a role of a key's bearer)"),
        (["--can", "execution:read"], {}, "--can is about the acting user"),
    ],
)
def test_nobody_becomes_the_engine_by_accident(
    based: Standfast, monkeypatch: pytest.MonkeyPatch, *, options: list[str], variable: dict[str, str], told: str
) -> None:
    """An empty name in a script, or rights without a name, would be all the rights there are."""
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    assert told in based("list", *options, code=Exit.WRONG).stderr


def test_the_shell_completes_commands() -> None:
    """By click's own way: the shell asks the command what could stand next."""
    said = subprocess.run(
        [sys.executable, "-m", "standfast.cli"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "_STANDFAST_COMPLETE": "bash_complete",
            "COMP_WORDS": "standfast vali",
            "COMP_CWORD": "1",
        },
    )
    assert said.stdout.split() == ["plain,validate"]


def test_shells_complete_commands(standfast: Standfast) -> None:
    """What is printed for a shell asks the command itself, which knows its words."""
    for shell in ("bash", "zsh", "fish"):
        assert f"_STANDFAST_COMPLETE={shell}_complete" in standfast("completion", shell).stdout
    asked = {"_STANDFAST_COMPLETE": "bash_complete", "COMP_WORDS": "standfast sched", "COMP_CWORD": "1"}
    assert CliRunner(env=asked).invoke(main, []).output == "plain,schedules\n"


def test_shells_complete_the_names_of_files() -> None:
    """A shell that asks us completes nothing by itself, so that whatever takes a file says so."""
    taken = [
        (path, each)
        for path, command in COMMANDS
        for each in command.params
        if "FILE" in (each.metavar or each.human_readable_name.upper())
    ]
    assert len(taken) > 20
    context = click.Context(main)
    for path, each in taken:
        assert [item.type for item in each.shell_complete(context, "or")] == ["file"], (path, each.name)


def test_a_database_is_measured(standfast: Standfast, tmp_path: Path) -> None:
    """Sagas that do nothing run to their ends, on a file that goes afterwards; on a database of one's own they are a tenant's of their own."""
    told = standfast.json("bench", "--runs", "3", "--steps", "2")
    assert (told["runs"], told["steps"], told["database"]) == (3, 6, "a new SQLite file")
    assert told["steps_per_second"] > 0
    assert list(tmp_path.iterdir()) == []
    standfast("bench", "--database", "sqlite:///none.db", code=Exit.NOT_FOUND)


def test_logs_are_lines_for_people_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag or a variable says which; what is neither is refused. Nothing that stands in a record looks like another one."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    begin_logs(Target(configuration_of({"log_format": "json"}, None)))
    record = logging.makeLogRecord({"name": "shop", "msg": "two\nlines", "levelname": "INFO"})
    assert json.loads(root.handlers[0].format(record))["message"] == "two\nlines"
    monkeypatch.setattr(root, "handlers", [])
    begin_logs(Target(configuration_of({}, None)))
    assert root.handlers[0].format(record).endswith("INFO shop two\\u000alines")
    error = ValueError("wrong\n2026-01-01 INFO shop all is well")
    fields = {"name": "shop", "msg": "no", "levelname": "ERROR", "exc_info": (ValueError, error, None)}
    failed = logging.makeLogRecord(fields)
    first, *rest = root.handlers[0].format(failed).split("\n")
    assert (first.endswith("ERROR shop no"), all(each.startswith("  ") for each in rest)) == (True, True)
    monkeypatch.setenv("STANDFAST_LOG_FORMAT", "xml")
    with pytest.raises(ConfigurationError, match="text, json"):
        configuration_of({}, None)
