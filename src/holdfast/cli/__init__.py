"""The `holdfast` command. Commands live in modules by their subject and are added here."""

from __future__ import annotations

import click

from holdfast.cli.authoring import graph, validate
from holdfast.cli.expr import expr
from holdfast.cli.frame import Root
from holdfast.cli.migrate import migrate
from holdfast.cli.publishing import definitions, diff, publish
from holdfast.cli.templates import template

__all__ = ["main"]


@click.group("holdfast", cls=Root)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def main() -> None:
    """Durable workflows: write them, run them, look at them, ask them why.

    Where the database is, and for whom commands are done, is said by flags, by HOLDFAST_… variables, or in holdfast.toml.
    """


for each in (definitions, diff, expr, graph, migrate, publish, template, validate):
    main.add_command(each)
