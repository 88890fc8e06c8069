"""What programs that stay write to standard error: a line for each record, for people or as JSON."""

from __future__ import annotations

import logging
import sys
from typing import Final

import click

from holdfast.app.engine import Engine
from holdfast.app.json_logs import JsonFormatter, tell_whose
from holdfast.cli.place import Place

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"

log_option = click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="How logs are written to standard error."
)


def begin_logs(place: Place, *, level: int = logging.INFO) -> None:
    """Write logs as the command was told."""
    handler = logging.StreamHandler(sys.stderr)
    is_json = place.configuration.log_format == "json"
    handler.setFormatter(JsonFormatter() if is_json else logging.Formatter(_TEXT))
    logging.basicConfig(level=level, handlers=[handler])


def tell_calls(place: Place, engine: Engine) -> None:
    """Have records from inside of handlers say whose work it is, where somebody reads that."""
    if place.configuration.log_format == "json":
        tell_whose(engine)
