"""`standfast drop`: take everything away that Standfast has made in a database."""

from __future__ import annotations

import click

from standfast.cli.framework import verb
from standfast.cli.target import Target, database_scope
from standfast.errors import ConfigurationError, NotFoundError
from standfast.store.opening import is_there, remove_schema


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
    """Take away all tables of Standfast in the database at URL, with everything in them; other tables there are not touched.

    It is done whole or not at all, and refused while workers are alive, while instances have not ended, and while views or keys of somebody
    else build on these tables. `standfast migrate` makes empty ones again.
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
