"""The `holdfast` command. Commands live in modules by their subject; `commands` is the table of them."""

from __future__ import annotations

import click

from holdfast.cli.commands import SECTIONS
from holdfast.cli.frame import Root

__all__ = ["main"]


@click.group("holdfast", cls=Root, sections=SECTIONS)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def main() -> None:
    """Durable workflows: write them, run them, look at them, ask them why.

    Where the database is, and for whom commands are done, is said by flags, by HOLDFAST_… variables, or in holdfast.toml.
    """
