"""Log output of long-running commands on standard error: one line per record, as text or JSON."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final

import click

from standfast.app.engine import Engine
from standfast.app.logs import JsonFormatter, tell_whose
from standfast.cli.target import Target
from standfast.expressions.model.characters import visible

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


class _TextFormatter(logging.Formatter):
    """A record as a line that people read, and behind it, set off from it, where it came from. Whatever stands in it, nothing looks like another record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of what it replaces
        """The line."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - as above
        """Format a traceback; the exception's message may have several lines."""
        return "\n".join(f"  {visible(line)}" for line in super().formatException(ei).splitlines())


log_option = click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="How logs are written to standard error."
)


def begin_logs(place: Target, *, level: int = logging.INFO) -> None:
    """Configure logging from the command's configuration."""
    handler = logging.StreamHandler(sys.stderr)
    is_json = place.configuration.log_format == "json"
    handler.setFormatter(JsonFormatter() if is_json else _TextFormatter(_TEXT))
    logging.basicConfig(level=level, handlers=[handler])


def tell_calls(place: Target, engine: Engine) -> None:
    """Add the context of handler calls to log records, if they are written."""
    if place.configuration.log_format == "json":
        tell_whose(engine)
