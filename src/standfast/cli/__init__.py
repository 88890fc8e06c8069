"""The `standfast` command. Commands live in modules by their subject; `commands` is the table of them."""

from __future__ import annotations

import click

from standfast.cli.command_table import SECTIONS
from standfast.cli.framework import Root

__all__ = ["main"]


@click.group("standfast", cls=Root, sections=SECTIONS)
@click.version_option(package_name="standfast", prog_name="standfast", message="%(prog)s %(version)s")
def main() -> None:
    """Durable workflows: write them, run them, look at them, ask them why.

    Where the database is, and for whom commands are done, is said by flags, by STANDFAST_… variables, or in standfast.toml.
    """
