"""`standfast worker`: a process, or several, that do what runs ask for."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

import click

from standfast.app.configuration import FILE_VARIABLE
from standfast.cli.admin.supervising import supervise
from standfast.cli.applications import equip
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb
from standfast.cli.logs import begin_logs, log_option, tell_calls
from standfast.cli.subprocesses import start_worker
from standfast.cli.target import Target, database_scope
from standfast.engine.common.environment import text_of, variable_of

_MARGIN_SECONDS = 10.0
"""What a worker may take beyond the time that its handlers have when it stops."""


@verb(
    "worker",
    "standfast worker --app shop.workflows:register",
    "standfast worker --app shop.workflows:register --processes 4 --database postgresql://user@host/db",
)
@click.option(
    "--app", metavar="MODULE:ATTRIBUTE", help="A function that is given the engine; or workflows and deciders."
)
@click.option("--processes", type=click.IntRange(1), help="How many; those that die are started again.")
@log_option
@click.option("--supervised", is_flag=True, hidden=True, help="End when standard input does.")
@database_scope
def worker(place: Target, *, supervised: bool) -> None:
    """Work: run handlers, timers and projections until the process is asked to end.

    SIGTERM and Ctrl-C let running handlers finish (setting shutdown_timeout), commit what they did, and leave; then the exit code is 0.
    SIGTERM again changes nothing, Ctrl-C again ends it at once.
    """
    begin_logs(place)
    if place.configuration.processes == 1 or supervised:
        _work(place, supervised=supervised)
        return
    environment = _environment(place)
    patience = place.configuration.settings.shutdown_timeout.total_seconds() + _MARGIN_SECONDS
    end(Exit(supervise(lambda: start_worker(environment), place.configuration.processes, patience=patience)))


def _work(place: Target, *, supervised: bool) -> None:
    engine = place.open()
    try:
        tell_calls(place, engine)
        equip(engine, place.configuration.app)
        shutdown = threading.Event()
        if supervised:
            threading.Thread(target=_heed_input, args=(shutdown,), name="standfast-supervisor", daemon=True).start()
        click.echo(f"working on {place.shown_url}", err=True)
        engine.serve(shutdown)
    finally:
        engine.stop()


def _heed_input(shutdown: threading.Event) -> None:
    """End when whoever started this process is gone, whatever became of it."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    shutdown.set()


def _environment(place: Target) -> Mapping[str, str]:
    """What the processes are told: the same as this one, what its flags say included."""
    told = dict(os.environ)
    for path, value, origin in place.source.values():
        if origin.startswith("--"):
            told[variable_of(path)] = text_of(value)
    if place.file is not None:
        told[FILE_VARIABLE] = place.file
    return told
