"""`standfast copy`: everything of a database into another one, to go on there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from standfast.app.copy import Copied, CopyProgress, copy_database
from standfast.cli.framework import complain, verb
from standfast.cli.output import cell, json_option, print_json

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

_STAGES: Final = {"copy": "copied", "compare": "compared", "verify": "verified"}
_WIDTH, _WIDEST = 24, 30


@verb(
    "copy",
    "standfast copy sqlite:///shop.db postgresql://app@db/shop --rehearse",
    "standfast copy sqlite:///shop.db postgresql://app@db/shop",
    "standfast copy postgresql://app@db/shop sqlite:///shop.db --json",
)
@click.argument("source")
@click.argument("target")
@click.option(
    "--rehearse",
    is_flag=True,
    help="Copy from under those who work: the source goes on, and the copy is in maintenance, so that nothing is done twice.",
)
@click.option("--unverified", is_flag=True, help="Compare all rows, but fold no history again.")
@json_option
def copy(*, source: str, target: str, rehearse: bool, unverified: bool, as_json: bool) -> None:
    """Copy everything of the database at SOURCE into the empty one at TARGET, SQLite or Postgres, and go on there.

    It is done whole or not at all, and refused while workers are alive, or if TARGET is not empty. Afterwards SOURCE is in maintenance and
    refuses commands; TARGET has all runs, documents, people, keys and schedules, and its histories were verified.
    """
    with _telling() as hear:
        done = copy_database(source, target, rehearse=rehearse, verify=not unverified, hear=hear)
    if as_json:
        print_json(done)
    else:
        _tell(done, is_verified=not unverified)


def _tell(done: Copied, *, is_verified: bool) -> None:
    rows, tables = sum(done.rows.values()), sum(map(bool, done.rows.values()))
    click.echo(f"copied {rows} rows of {tables} tables from {done.source} into {done.target}")
    if is_verified:
        click.echo(
            f"{done.verified} instances were held against their histories, and {len(done.differences)} differences found"
        )
    for name, count in sorted(done.unread.items()):
        click.echo(f"  {count} of the decider {cell(name)} were not looked at, because its code is not here")
    for each in done.differences:
        click.echo(f"  as in the source: {cell(each)}")
    if done.left:
        click.echo(f"not copied, because they are not Standfast's: {', '.join(map(cell, done.left))}")
    if done.is_rehearsal:
        click.echo(f"{done.target} is in maintenance, for the source goes on: look at it, then drop it")
    else:
        click.echo(f"{done.source} takes no commands any more: start workers and servers on {done.target}")


@contextmanager
def _telling() -> Iterator[Callable[[CopyProgress], None]]:
    """How far it is: a bar for whoever looks on, a line for each table for whoever reads it later."""
    if not (sys.stderr is not None and sys.stderr.isatty()):
        yield _line
        return
    with click.progressbar(length=1, file=sys.stderr, width=_WIDTH) as bar:
        yield _Bar(bar).move


class _Bar:
    """A bar that begins anew with every table."""

    def __init__(self, bar: ProgressBar[int]) -> None:
        self._bar = bar
        self._what = ""

    def move(self, progress: CopyProgress) -> None:
        """Show how far it is."""
        if not progress.total:
            return
        what = f"{_STAGES[progress.stage]} {progress.table or 'instances'}"
        if what != self._what:
            self._what = what
            self._bar.label, self._bar.length, self._bar.pos = what.ljust(_WIDEST), progress.total, 0
        self._bar.update(progress.done - self._bar.pos)


def _line(progress: CopyProgress) -> None:
    if progress.done == progress.total and progress.total:
        complain(f"{_STAGES[progress.stage]} {progress.done} {progress.table or 'instances'}")
