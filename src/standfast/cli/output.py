"""Output of commands: coloured tables on a terminal, plain aligned text in a pipe, and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeVar

import click
import msgspec

from standfast.cli.framework import is_terminal
from standfast.expressions.model.characters import visible

T = TypeVar("T")

Columns: TypeAlias = Mapping[str, Callable[[T], object]]
"""The headings of a table, each with its cell function."""

_WIDEST: Final = 60
"""Longer texts of a plain table are cut; `--json` and the commands about a single thing have all of it."""

_WHOLE: Final = frozenset({"ID", "RUN", "TASK"})
"""Columns whose values are copied into the next command."""
_LONG_WORD: Final = 24
_GAP: Final = 2
"""Blanks between two columns."""

_STYLES: Final = {
    "completed": "green",
    "approved": "green",
    "running": "cyan",
    "active": "cyan",
    "paused": "yellow",
    "suspended": "yellow",
    "pending": "dim",
    "dlq": "red",
    "failed": "red",
    "aborted": "red",
    "blocked": "red",
    "cancelled": "magenta",
}
"""Colours of the words for how something stands."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_list(items: Sequence[T], columns: Columns[T], *, as_json: bool, after: str | None = None) -> None:
    """Print a page of a list; `after` is the next page's start, None on the last page."""
    if as_json:
        print_json({"items": list(items), "next": after})
        return
    rows = [[cell(value(item)) for value in columns.values()] for item in items]
    if is_terminal():
        _show(list(columns), rows)
    else:
        for line in aligned([list(columns), *rows]):
            click.echo(line)
    if not items:
        click.echo("(nothing)", err=True)
    if after is not None:
        click.echo(f"there is more: --after {after}", err=True)


def acted_by(actor: str, on_behalf_of: str) -> str:
    """Return the actor, and for whom they acted."""
    return f"{actor} for {on_behalf_of}" if actor and on_behalf_of else actor


def print_fields(fields: Mapping[str, object]) -> None:
    """The fields of one thing, a line for each; those that say nothing are left out."""
    told = {name: cell(value) for name, value in fields.items() if value not in (None, "", [], {}, ())}
    width = max(map(len, told), default=0)
    for name, value in told.items():
        click.echo(f"{name:<{width}}  {coloured(value)}")


def print_json(value: object) -> None:
    """Print a value as JSON in pure ASCII, so that no control character reaches the terminal."""
    click.echo(json.dumps(plain(value), indent=2))


def plain(value: object) -> object:
    """A value as JSON has it."""
    return msgspec.to_builtins(value, enc_hook=str)


def cell(value: object) -> str:
    """A value in a line of text."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
        case dict() | list() | tuple() | msgspec.Struct():
            return visible(json.dumps(plain(value), ensure_ascii=False))
        case _:
            return visible(str(value))


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Format rows as aligned lines."""
    cut = [[text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…" for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cut]


def coloured(text: str) -> str:
    """A word for how something stands in its colour, if a person looks at it."""
    style = _STYLES.get(text)
    if style is None or not is_terminal():
        return text
    return click.style(text, dim=True) if style == "dim" else click.style(text, fg=style)


def _show(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal; for a pipe the table library is not imported."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    widths = [_least_width(head, [row[place] for row in rows]) for place, head in enumerate(heads)]
    if sum(widths) + _GAP * (len(heads) - 1) > console.width:
        _print_apart(heads, rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head, width in zip(heads, widths, strict=True):
        table.add_column(head, overflow="fold", no_wrap=head in _WHOLE, min_width=width)
    for row in rows:
        table.add_row(*(Text(text, style=_STYLES.get(text, "")) for text in row))
    console.print(table)


def _least_width(head: str, cells: Sequence[str]) -> int:
    """Return the minimum width of a column: ids stay on one line, and only very long words are broken."""
    words = cells if head in _WHOLE else [word[:_LONG_WORD] for each in cells for word in each.split()]
    return max(map(len, [head, *words]))


def _print_apart(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as blocks, where the terminal is too narrow for the columns."""
    for number, row in enumerate(rows):
        if number:
            click.echo()
        print_fields(dict(zip(heads, row, strict=True)))
