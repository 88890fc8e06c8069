"""`manage.py holdfast …`: the command line, on the database of the project."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand, CommandError

from holdfast.contrib.django.engines import told
from holdfast.contrib.programs import run_command
from holdfast.errors import HoldfastError


class Command(BaseCommand):  # type: ignore[misc]
    """All commands of `holdfast`: worker, migrate, doctor, list, why and the others."""

    help = "The command line of Holdfast on the database of the project, such as: holdfast migrate, holdfast worker, holdfast doctor --json"
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Everything behind the name is for `holdfast`."""
        parser.add_argument("words", nargs=argparse.REMAINDER)

    def handle(self, *_arguments: object, words: list[str], **_options: object) -> None:
        """Run it; it ends the process with the exit code of the command."""
        try:
            said = told()
            run_command(words, said, program="manage.py holdfast", app="holdfast.contrib.django.engines:register")
        except HoldfastError as error:
            raise CommandError(str(error)) from error
