"""`standfast migrate`, `copy` and `drop`: create and upgrade the schema, copy a database, remove all tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from standfast.app.copy import Copied, CopyProgress, copy_database
from standfast.cli.framework import complain, verb
from standfast.cli.output import cell, json_option, print_json
from standfast.cli.target import Target, database_scope
from standfast.errors import ConfigurationError, NotFoundError
from standfast.kernel.codec.codecs import JsonCodec
from standfast.store.opening import is_there, migration_script, open_store, remove_schema

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
    help="Copy while workers run: the source stays open, and the copy is in maintenance, so that no work is done twice.",
)
@click.option("--unverified", is_flag=True, help="Compare all rows, but fold no history again.")
@json_option
def copy(*, source: str, target: str, rehearse: bool, unverified: bool, as_json: bool) -> None:
    """Copy the database at SOURCE into the empty one at TARGET, SQLite or Postgres, and continue there.

    The copy is atomic. It is refused while workers are alive, or if TARGET is not empty. Afterwards SOURCE is in
    maintenance and refuses commands; TARGET has all runs, documents, people, keys and schedules, and its histories were
    verified.
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
        click.echo(f"{done.source} is in maintenance and refuses commands: start workers and servers on {done.target}")


@contextmanager
def _telling() -> Iterator[Callable[[CopyProgress], None]]:
    """Report progress: a bar on a terminal, a line for each table in a log."""
    if not (sys.stderr is not None and sys.stderr.isatty()):
        yield _line
        return
    with click.progressbar(length=1, file=sys.stderr, width=_WIDTH) as bar:
        yield _Bar(bar).move


class _Bar:
    """A progress bar that restarts with every table."""

    def __init__(self, bar: ProgressBar[int]) -> None:
        self._bar = bar
        self._what = ""

    def move(self, progress: CopyProgress) -> None:
        """Update the bar."""
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


@verb(
    "drop",
    "standfast drop sqlite:///orders.db --yes",
    "standfast drop --database postgresql://user@host/db --yes --with-unfinished",
)
@click.argument("url", default="")
@click.option("--yes", is_flag=True, help="Confirms that all of it is to be lost; without it nothing is done.")
@click.option("--with-unfinished", is_flag=True, help="Also if instances have not ended.")
@database_scope
def drop(place: Target, *, url: str, yes: bool, with_unfinished: bool) -> None:
    """Drop all tables of Standfast in the database at URL, with their data; other tables are not touched.

    The drop is atomic. It is refused while workers are alive, while instances have not ended, and while views or keys
    of other programs depend on these tables. `standfast migrate` creates empty tables again.
    """
    where = url or place.url
    if not is_there(where):
        raise NotFoundError("database", where, hint="so that nothing is dropped")
    if not yes:
        raise ConfigurationError(
            "this drops all tables of Standfast in the database, with everything in them; say --yes"
        )
    removed = remove_schema(where, with_unfinished=with_unfinished)
    if removed.tables:
        click.echo(f"dropped {removed.tables} tables with {removed.instances} instances from {removed.url}")
    else:
        click.echo(f"{removed.url} has no tables of Standfast")


@verb(
    "migrate",
    "standfast migrate",
    "standfast migrate sqlite:///orders.db",
    "standfast migrate --database postgresql://user@host/db",
    "standfast migrate --export postgres > standfast.sql",
)
@click.argument("url", default="")
@click.option("--codec", default=JsonCodec.name, show_default=True, help="Name of the codec that the database is for.")
@click.option(
    "--export",
    "driver",
    type=click.Choice(["sqlite", "postgres"]),
    help="Change nothing, and print the SQL that would do it, for a tool of your own.",
)
@click.option("--after", type=click.IntRange(min=0), default=0, help="With --export: only entries after this number.")
@database_scope
def migrate(place: Target, *, url: str, codec: str, driver: str | None, after: int) -> None:
    """Migrate the database at URL to the schema of this version; does nothing if it is current.

    URL is sqlite:///file.db or postgresql://user@host/database. Without it, --database, STANDFAST_DATABASE or
    standfast.toml names the database. Several processes may migrate at the same time: one works, the others wait.
    """
    if driver is not None:
        click.echo(migration_script(driver, after=after), nl=False)
        return
    store = open_store(url or place.url, codec=codec, may_migrate=True)
    click.echo(f"{store.url} has the schema of this code")
    store.close()
