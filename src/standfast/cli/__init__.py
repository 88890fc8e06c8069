"""The `standfast` command. Commands live in modules by their subject; `commands` is the table of them."""

from __future__ import annotations

import click

from standfast.cli.command_table import SECTIONS
from standfast.cli.framework import Root

__all__ = ["main"]


@click.group("standfast", cls=Root, sections=SECTIONS)
@click.version_option(package_name="standfast", prog_name="standfast", message="%(prog)s %(version)s")
def main() -> None:
    """Durable workflows: write, run, inspect and repair them.

    Set the database and the acting user with flags, `STANDFAST_*` variables or `standfast.toml`.
    """
