"""The command line as tests call it."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from standfast.cli import main


class Standfast:
    """The command, called in this process with the database of the test."""

    def __init__(self, url: str = "") -> None:
        self.url = url

    def __call__(self, *arguments: str, code: int = 0, stdin: str | bytes | None = None) -> Result:
        """Call it, and see that it ends with this exit code."""
        environment = {"STANDFAST_DATABASE": self.url} if self.url else {}
        result = CliRunner(env=environment).invoke(main, list(arguments), input=stdin)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What it says to a program."""
        found = json.loads(self(*arguments, "--json", code=code).stdout)
        assert isinstance(found, dict)
        return found
