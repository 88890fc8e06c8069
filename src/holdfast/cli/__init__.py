"""The `holdfast` command. Each command lives in a module of its own and is added here."""

from __future__ import annotations

import click

from holdfast.cli.expr import expr
from holdfast.cli.migrate import migrate


@click.group()
@click.version_option(package_name="holdfast")
def main() -> None:
    """Durable workflows: run them, look at them, ask them why."""


main.add_command(expr)
main.add_command(migrate)
