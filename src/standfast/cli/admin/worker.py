"""`standfast worker`: run a worker, or supervise several worker processes.

A process that dies is restarted. On shutdown all of them are drained.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import click

from standfast.app.configuration import FILE_VARIABLE
from standfast.app.signals import GracefulShutdown
from standfast.cli.applications import equip
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb
from standfast.cli.logs import begin_logs, log_option, tell_calls
from standfast.cli.subprocesses import Subprocess, start_worker
from standfast.cli.target import Target, database_scope
from standfast.engine.common.environment import text_of, variable_of

_LOOK_SECONDS: Final = 0.2
_HOPELESS: Final = frozenset({Exit.WRONG, Exit.NOT_FOUND, Exit.UNFIT})
"""Exits that a restart cannot fix: the call, the configuration or the database is wrong."""
_SHORT_LIFE_SECONDS: Final = 10.0
_LONGEST_REST_SECONDS: Final = 30.0


class _Seat:
    """A slot for one worker process."""

    def __init__(self, start: Callable[[], Subprocess]) -> None:
        self._start = start
        self._rest = 1.0
        self._starts_at = 0.0
        """Earliest start of the next process, if there is none."""
        self._began_at = 0.0
        self.process: Subprocess | None = None

    def look(self) -> int | None:
        """Start or restart the process of this slot; return the exit code of a process that must not be restarted."""
        if self.process is None:
            if time.monotonic() >= self._starts_at:
                self._sit_down()
            return None
        code = self.process.ended()
        if code is None:
            return None
        told = f"worker {self.process.pid} ended ({code})"
        self.process.close()
        self.process = None
        if code in _HOPELESS:
            click.echo(told, err=True)
            return code
        self._take_rest(told)
        return None

    def _sit_down(self) -> None:
        self._began_at = time.monotonic()
        try:
            self.process = self._start()
        except OSError as error:  # The machine has no room for a process now; the others go on.
            self._take_rest(f"a worker cannot be started: {error.strerror}")
        else:
            click.echo(f"worker {self.process.pid} started", err=True)

    def _take_rest(self, told: str) -> None:
        """Wait longer each time if processes end soon after they began."""
        is_short = time.monotonic() - self._began_at < _SHORT_LIFE_SECONDS
        self._rest = min(2 * self._rest, _LONGEST_REST_SECONDS) if is_short else 1.0
        pause = self._rest / 2 if is_short else 0.0
        self._starts_at = time.monotonic() + pause
        click.echo(f"{told}; the next one begins {f'in {pause:g} s' if pause else 'at once'}", err=True)


def supervise(start: Callable[[], Subprocess], count: int, *, patience: float) -> int:
    """Keep this number of processes alive until a signal; return the exit code.

    `patience` is the number of seconds that they have to stop before they are killed.
    """
    asked = threading.Event()
    seats = [_Seat(start) for _ in range(count)]
    code: int | None = None
    with GracefulShutdown(asked.set) as departure:
        try:
            while code is None and not asked.is_set():
                codes = [seat.look() for seat in seats]
                code = next((each for each in codes if each is not None), None)
                asked.wait(_LOOK_SECONDS)
        finally:
            departure.begin()
            is_clean = _end_all([seat.process for seat in seats if seat.process is not None], patience)
    return code if code is not None else Exit.DONE if is_clean else Exit.BROKEN


def _end_all(processes: list[Subprocess], patience: float) -> bool:
    """Stop all processes, and kill those that exceed the time; return whether all have stopped without that."""
    for each in processes:
        each.ask()
    deadline = time.monotonic() + patience
    ended = [
        each.end(max(0.0, deadline - time.monotonic())) for each in processes
    ]  # Each of them, even if another one fails.
    return all(ended)


_MARGIN_SECONDS = 10.0
"""Time that a worker may take to stop beyond the timeout of its handlers."""


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
    """Run handlers, timers and projections until SIGTERM or Ctrl-C.

    On shutdown, running handlers finish (setting shutdown_timeout) and their results are committed; the exit code is 0.
    A second SIGTERM changes nothing, a second Ctrl-C ends the process immediately.
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
    """Stop when the parent process is gone, for any reason."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    shutdown.set()


def _environment(place: Target) -> Mapping[str, str]:
    """Return the environment of the processes: that of this one, with its flags as variables."""
    told = dict(os.environ)
    for path, value, origin in place.source.values():
        if origin.startswith("--"):
            told[variable_of(path)] = text_of(value)
    if place.file is not None:
        told[FILE_VARIABLE] = place.file
    return told
