"""`manage.py standfast …`: the command line, on the database of the project."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand, CommandError

from standfast.contrib.django.engines import told
from standfast.contrib.embedded_cli import run_command
from standfast.errors import StandfastError


class Command(BaseCommand):  # type: ignore[misc]
    """All commands of `standfast`: worker, migrate, doctor, list, why and the others."""

    help = "The command line of Standfast on the database of the project, such as: standfast migrate, standfast worker, standfast doctor --json"
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Pass all arguments after the name to `standfast`."""
        parser.add_argument("words", nargs=argparse.REMAINDER)

    def handle(self, *_arguments: object, words: list[str], **_options: object) -> None:
        """Run the command; the process ends with its exit code."""
        try:
            said = told()
            run_command(words, said, program="manage.py standfast", app="standfast.contrib.django.engines:register")
        except StandfastError as error:
            raise CommandError(str(error)) from error
