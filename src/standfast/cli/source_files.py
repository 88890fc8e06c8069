"""Files of workflows: read whole, of whichever kind they are, with every mistake at its line and column."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from standfast.cli.options import STANDARD_INPUT
from standfast.errors import ConfigurationError, DefinitionError, Diagnostic
from standfast.features.definitions.files import definitions_of
from standfast.graph.definition import Definition

_LARGEST: Final = 64 * 1024 * 1024
"""Largest file that is read completely; each kind of file has a much lower limit of its own."""


class Mistake(NamedTuple):
    """Something that is wrong, or odd, about a file."""

    file: str
    line: int
    """Counted from 1; 0 if it concerns the whole file."""
    column: int
    where: str
    """The path of the affected part, in files whose mistakes have no line."""
    rule: str
    message: str
    """What is wrong, and how to fix it."""
    is_warning: bool

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        what = "warning" if self.is_warning else "error"
        return f"{self.file}{place}: {what}: {f'{self.where}: ' if self.where else ''}{self.message} [{self.rule}]"


def read_file(name: str) -> tuple[str, bytes]:
    """Read a file; return its name for messages, and its content. ConfigurationError if it is unreadable."""
    told = "standard input" if name == STANDARD_INPUT else name
    try:
        with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be read: {error.strerror}; give a file, or -") from error
    if len(text) > _LARGEST:
        raise ConfigurationError(f"{told} is larger than any file of workflows; is it the right one?")
    return told, text


def mistakes_of(name: str, text: bytes) -> tuple[list[Definition], list[Mistake]]:
    """The workflows of a file, none if something is wrong with it, and all that is wrong or odd about it."""
    try:
        found = definitions_of(text, name)
    except DefinitionError as error:
        return [], [_mistake(name, each, is_warning=False) for each in error.diagnostics]
    return found, warnings_of(name, [each for one in found for each in one.warnings])


def warnings_of(name: str, findings: Sequence[Diagnostic]) -> list[Mistake]:
    """Return the warnings of a file, with positions."""
    return [_mistake(name, each, is_warning=True) for each in findings]


def _mistake(name: str, finding: Diagnostic, *, is_warning: bool) -> Mistake:
    line, _, column = finding.position.partition(":")
    has_line = line.isdecimal() and column.isdecimal()
    return Mistake(
        file=name,
        line=int(line) if has_line else 0,
        column=int(column) if has_line else 0,
        where="" if has_line else finding.position,
        rule=finding.code,
        message=finding.message,
        is_warning=is_warning,
    )
