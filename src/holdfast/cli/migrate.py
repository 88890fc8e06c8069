"""`holdfast migrate`: bring a database to the schema of this code."""

from __future__ import annotations

import click

from holdfast.errors import HoldfastError
from holdfast.kernel.codecs import JsonCodec
from holdfast.store.opening import DEFAULT_URL, open_store

FAILED = 2
"""Exit code when the database could not be brought forward."""


@click.command()
@click.argument("url", default=DEFAULT_URL)
@click.option("--codec", default=JsonCodec.name, show_default=True, help="Name of the codec that the database is for.")
def migrate(url: str, codec: str) -> None:
    """Bring the database at URL to the schema of this code; does nothing if it is there already.

    URL is sqlite:///file.db or postgresql://user@host/database. Several processes may do this at once: one works, the others wait.
    """
    try:
        store = open_store(url, codec=codec, may_migrate=True)
    except HoldfastError as error:
        click.echo(f"{error} [{error.code}]", err=True)
        raise SystemExit(FAILED) from error
    click.echo(f"{store.url} has the schema of this code")
    store.close()
