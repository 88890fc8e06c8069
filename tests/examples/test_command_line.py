"""What the page about the command line shows is what the command says."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from string import Template

import click
import pytest
from click.testing import CliRunner

from standfast.cli import main
from support.repository import ROOT

PAGE = ROOT / "docs" / "how-to" / "command-line.md"
REFERENCE = ROOT / "docs" / "reference" / "cli.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
CHANGING = {
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "<id>",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:Z|(?:\.\d+)?\+00:00)": "<time>",
}


class Shell:
    """As much of a shell as the page needs: the command, variables, and the last exit code."""

    def __init__(self) -> None:
        self._variables: dict[str, str] = {}
        self._code = 0

    def type(self, line: str) -> str:
        """What is said when this is typed."""
        if line == "echo $?":
            return f"{self._code}\n"
        if match := re.fullmatch(r"export (\w+)=(.*)", line):
            os.environ[match[1]] = match[2]
            return ""
        if match := re.fullmatch(r"(\w+)=\$\((.*)\)", line):
            self._variables[match[1]] = self.type(match[2]).strip()
            return ""
        name, *words = shlex.split(Template(line).safe_substitute(self._variables))
        assert name == "standfast"
        result = CliRunner().invoke(main, words)
        self._code = result.exit_code
        return result.output


def steps() -> Iterator[tuple[str, str]]:
    """What is typed on the page, and what it says that comes of it."""
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, told = part.partition("\n")
            yield line, told


def told(text: str) -> list[list[str]]:
    """The words of each line; what is another in each run stands as a sign."""
    for pattern, sign in CHANGING.items():
        text = re.sub(pattern, sign, text)
    return [line.split() for line in text.splitlines()]


def test_the_page_shows_what_the_command_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of it, typed in order, word for word; ids, times and blanks aside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STANDFAST_DATABASE", "")  # So that what the page exports is gone afterwards.
    shell = Shell()
    said = [(line, told(shell.type(line))) for line, _ in steps()]
    assert said == [(line, told(expected)) for line, expected in steps()]


def test_every_command_is_on_the_reference_page() -> None:
    """With its options; the page is made from the commands, so this only finds one that was never written."""
    text = REFERENCE.read_text(encoding="utf-8")
    missing = [path for path in words(main, "standfast") if f"### {path}\n" not in text]
    assert missing == []


def words(group: click.Group, path: str) -> Iterator[str]:
    """Every command and group by the words that call it."""
    for name, each in group.commands.items():
        yield f"{path} {name}"
        if isinstance(each, click.Group):
            yield from words(each, f"{path} {name}")


PAGES = [
    ROOT / "README.md",
    ROOT / "src/standfast/cli/develop/samples/project/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
CALLED = re.compile(r"(?:^(?:    )?(?:\$ )?|`|\$\(|&& )standfast ((?!=)[^`\n|]+)", re.MULTILINE)
SPANS = {"call", "claim", "command", "commit"}
"""What begins with the name of the program, and is a span of a trace."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_that_a_page_names_are_there(page: Path) -> None:
    """Whether a whole line is to be typed or a sentence names a command: its words and its options are those of the program."""
    for line in CALLED.findall(page.read_text(encoding="utf-8")):
        typed = re.split(r"\s#|&&|[)>]", line)[0].split()
        command: click.Command = main
        while isinstance(command, click.Group) and typed and re.fullmatch(r"[a-z][a-z-]*", typed[0]):
            name = typed.pop(0)
            assert name in command.commands or (command is main and name in SPANS), line
            if name not in command.commands:
                typed.clear()
                break
            command = command.commands[name]
        known = {"--help", "--debug"} | {
            each for param in command.params for each in (*param.opts, *param.secondary_opts)
        }
        named = [re.split("[=,.;:…]", each)[0] for each in typed if re.match(r"--[a-z]", each)]
        assert [each for each in named if each not in known] == [], line


def test_every_command_is_in_a_section_of_the_help() -> None:
    """None is left out of what a newcomer sees first."""
    assert sorted(name for names in main.sections.values() for name in names) == sorted(main.commands)
