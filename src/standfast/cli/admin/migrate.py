"""`standfast migrate`: bring a database to the schema of this code."""

from __future__ import annotations

import click

from standfast.cli.framework import verb
from standfast.cli.target import Target, database_scope
from standfast.kernel.codec.codecs import JsonCodec
from standfast.store.opening import migration_script, open_store


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
@click.option(
    "--after", type=click.IntRange(min=0), default=0, help="With --export: only what comes after this number."
)
@database_scope
def migrate(place: Target, *, url: str, codec: str, driver: str | None, after: int) -> None:
    """Bring the database at URL to the schema of this code; does nothing if it is there already.

    URL is sqlite:///file.db or postgresql://user@host/database; without it, the database that --database, STANDFAST_DATABASE or standfast.toml
    names. Several processes may do this at once: one works, the others wait.
    """
    if driver is not None:
        click.echo(migration_script(driver, after=after), nl=False)
        return
    store = open_store(url or place.url, codec=codec, may_migrate=True)
    click.echo(f"{store.url} has the schema of this code")
    store.close()
