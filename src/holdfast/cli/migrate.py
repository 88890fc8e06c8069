"""`holdfast migrate`: bring a database to the schema of this code."""

from __future__ import annotations

import click

from holdfast.cli.frame import verb
from holdfast.cli.place import Place, located
from holdfast.kernel.codecs import JsonCodec
from holdfast.store.opening import open_store


@verb(
    "migrate",
    "holdfast migrate",
    "holdfast migrate sqlite:///orders.db",
    "holdfast migrate --database postgresql://user@host/db",
)
@click.argument("url", default="")
@click.option("--codec", default=JsonCodec.name, show_default=True, help="Name of the codec that the database is for.")
@located
def migrate(place: Place, *, url: str, codec: str) -> None:
    """Bring the database at URL to the schema of this code; does nothing if it is there already.

    URL is sqlite:///file.db or postgresql://user@host/database; without it, the database that --database, HOLDFAST_DATABASE or holdfast.toml
    names. Several processes may do this at once: one works, the others wait.
    """
    store = open_store(url or place.url, codec=codec, may_migrate=True)
    click.echo(f"{store.url} has the schema of this code")
    store.close()
